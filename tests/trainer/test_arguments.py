"""Every argument of `train` is checked before anything is built or written."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.bandits.environments import bernoulli_py_environment
from tf_agents.metrics import tf_metrics

import trainer
from testing.fakes import CountingAgent, FakeEnvironment
from tests.trainer import runs
from trainer import replay

INTEGER = "Allowed: an integer of at least"

BAD = [
    ("root_dir", 7, TypeError, r"^root_dir is 7\. Allowed: a string or a pathlib"),
    ("root_dir", None, TypeError, r"^root_dir is None\."),
    ("root_dir", "", ValueError, r"^root_dir is ''\. Allowed: the path of a dir"),
    ("root_dir", b"run", TypeError, r"^root_dir is b'run'\."),
    ("agent", "LinUCB", TypeError, r"^agent is 'LinUCB'\. Allowed: a TFAgent\.$"),
    ("environment", 3, TypeError, r"^environment is 3\. Allowed: a TFEnvironment\.$"),
    ("training_loops", -1, ValueError, rf"^training_loops is -1\. {INTEGER} 0\.$"),
    ("training_loops", True, TypeError, rf"^training_loops is True\. {INTEGER} 0"),
    ("training_loops", 2.0, TypeError, r"^training_loops is 2\.0\."),
    ("training_loops", "3", TypeError, r"^training_loops is '3'\."),
    ("training_loops", None, TypeError, r"^training_loops is None\."),
    ("training_loops", np.bool_(True), TypeError, r"^training_loops is "),
    ("steps_per_loop", 0, ValueError, rf"^steps_per_loop is 0\. {INTEGER} 1\.$"),
    ("steps_per_loop", True, TypeError, r"^steps_per_loop is True\."),
    ("async_steps_per_loop", 0, ValueError, r"^async_steps_per_loop is 0\."),
    ("async_steps_per_loop", False, TypeError, r"^async_steps_per_loop is False\."),
    ("async_steps_per_loop", 1.5, TypeError, r"^async_steps_per_loop is 1\.5\."),
    ("additional_metrics", 5, TypeError, r"^additional_metrics is 5\. Allowed: a tup"),
    ("additional_metrics", "loss", TypeError, r"^additional_metrics is 'loss'\."),
    ("additional_metrics", (print,), TypeError, r"^additional_metrics is <built-in"),
    (
        "additional_metrics",
        (tf_metrics.EnvironmentSteps,),
        TypeError,
        r"callables with a name and a result",
    ),
    ("get_replay_buffer_fn", 1, TypeError, r"^get_replay_buffer_fn is 1\. Allowed: a"),
    ("get_training_loop_fn", "f", TypeError, r"^get_training_loop_fn is 'f'\."),
    (
        "training_data_spec_transformation_fn",
        0,
        TypeError,
        r"^training_data_spec_transformation_fn is 0\.",
    ),
    ("save_policy", None, TypeError, r"^save_policy is None\. Allowed: True or False"),
    ("save_policy", "yes", TypeError, r"^save_policy is 'yes'\."),
    ("save_policy", 2, TypeError, r"^save_policy is 2\."),
    ("resume_training_loops", "False", TypeError, r"^resume_training_loops is 'Fal"),
    ("resume_training_loops", 1, TypeError, r"^resume_training_loops is 1\."),
    ("checkpoint_interval", 0, ValueError, r"^checkpoint_interval is 0\."),
    ("max_to_keep", 0, ValueError, r"^max_to_keep is 0\."),
    ("policy_interval", -3, ValueError, r"^policy_interval is -3\."),
    ("on_nonfinite_loss", "stop", ValueError, r"is 'stop'\. Allowed: 'log' or 'raise"),
    ("compile", "yes", TypeError, r"^compile is 'yes'\. Allowed: True, False or None"),
    ("progress", 0, TypeError, r"^progress is 0\."),
]


def arguments(root_dir: pathlib.Path) -> dict[str, object]:
    environment = FakeEnvironment(batch_size=2)
    return {
        "root_dir": root_dir,
        "agent": CountingAgent(environment),
        "environment": environment,
        "training_loops": 1,
        "steps_per_loop": 1,
    }


@pytest.mark.parametrize(
    ("name", "value", "error", "message"), BAD, ids=[f"{b[0]}-{b[1]!r}" for b in BAD]
)
def test_a_bad_argument_is_named_and_nothing_is_written(
    tmp_path, monkeypatch, name, value, error, message
):
    monkeypatch.chdir(tmp_path)
    given = arguments(tmp_path / "run") | {name: value}
    with pytest.raises(error, match=message):
        trainer.train(**given)
    assert list(tmp_path.iterdir()) == []
    assert given["environment"] == value or given["environment"].steps == 0


def test_a_file_as_root_dir_is_refused(tmp_path):
    path = tmp_path / "file"
    path.write_text("precious")
    with pytest.raises(ValueError, match=r"^root_dir is .* a directory; this is a fi"):
        trainer.train(**arguments(path))
    assert path.read_text() == "precious"


def test_a_python_environment_is_refused_with_the_cure(tmp_path):
    environment = bernoulli_py_environment.BernoulliPyEnvironment([0.1, 0.9])
    given = arguments(tmp_path / "run") | {"environment": environment}
    with pytest.raises(TypeError, match=r"wrap it: tf_py_environment\.TFPyEnv"):
        trainer.train(**given)


@pytest.mark.parametrize("name", ["agent", "step", "loss", "onbeat", "restore"])
def test_a_metric_with_a_reserved_name_is_refused(tmp_path, name):
    given = arguments(tmp_path / "run")
    given["additional_metrics"] = [runs.extra_metric(name)]
    with pytest.raises(ValueError, match=rf"a metric is called '{name}'\. Allowed"):
        trainer.train(**given)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("names", [("Same", "Same"), ("AverageReturn",)])
def test_two_metrics_of_one_name_are_refused(tmp_path, names):
    given = arguments(tmp_path / "run")
    given["additional_metrics"] = [runs.extra_metric(name) for name in names]
    with pytest.raises(ValueError, match=rf"two metrics are called '{names[-1]}'"):
        trainer.train(**given)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("factor", [0.5, 2, 1000])
def test_a_buffer_of_another_size_is_refused(tmp_path, factor):
    def buffer(spec, batch_size, steps, async_steps):
        return replay.get_replay_buffer(
            spec, batch_size, int(steps * factor), async_steps
        )

    with pytest.raises(ValueError, match=r"buffer of capacity \d+\. Allowed: 24 = b"):
        runs.run(tmp_path / "run", get_replay_buffer_fn=buffer)
    assert not (tmp_path / "run").exists()


def test_integers_of_numpy_paths_and_none_are_accepted(tmp_path):
    run = runs.run(
        pathlib.Path(tmp_path) / "run",
        loops=np.int64(1),
        steps=np.int32(2),
        runs=None,
        additional_metrics=None,
        save_policy=False,
    )
    assert run.log.steps("loss") == [0]
    assert tf.train.latest_checkpoint(str(tmp_path / "run")) is not None

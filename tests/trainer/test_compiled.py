"""Compiled or not: the same log, calls, summaries and checkpoints."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.bandits.agents import lin_ucb_agent
from tf_agents.bandits.environments import stationary_stochastic_py_environment
from tf_agents.environments import tf_py_environment
from tf_agents.metrics import export_utils, tf_metrics

import trainer
from testing.contracts import check_trainer
from testing.fakes import FakeEnvironment, MockLog
from tests.trainer import runs
from trainer import choice, loop

KINDS = ("env.reset", "env.step", "policy.action", "agent.train")


def plain(**more):
    """A run with the default buffer, which compiled loops read in the graph."""
    return {"get_replay_buffer_fn": None, **more}


def outcome(run):
    """All there is to see of a run, in order."""
    calls = [(e.kind, e.name, e.step, e.value) for e in run.timeline.of(*KINDS)]
    return run.log.lines, run.joint.lines, calls, run.summary.metrics


@pytest.mark.parametrize("buffer", [{}, plain()], ids=["own-buffer", "plain-buffer"])
@pytest.mark.parametrize("runs_per_loop", [1, 3])
@pytest.mark.parametrize("steps", [1, 4, 7])
def test_compiled_and_eager_runs_are_the_same(tmp_path, buffer, runs_per_loop, steps):
    eager, compiled = (
        runs.run(
            tmp_path / str(is_compiled),
            loops=3,
            runs=runs_per_loop,
            steps=steps,
            compile=is_compiled,
            **buffer,
        )
        for is_compiled in (False, True)
    )
    assert outcome(compiled) == outcome(eager)
    assert compiled.experiences() == compiled.driver_runs(steps)


@pytest.mark.parametrize("compile", [True, False])
def test_an_exception_of_the_environment_arrives_as_it_was_raised(tmp_path, compile):
    error = ZeroDivisionError("no reward today")

    def rewards(serials, actions):
        if serials[0] > 30:
            raise error
        return np.ones(len(serials))

    environment = FakeEnvironment(batch_size=3, rewards=rewards)
    with pytest.raises(ZeroDivisionError) as caught:
        runs.run(tmp_path, environment=environment, compile=compile)
    assert caught.value is error
    assert tf.train.latest_checkpoint(tmp_path) is not None


@pytest.mark.parametrize("buffer", [{}, plain()], ids=["own-buffer", "plain-buffer"])
def test_nothing_is_traced_after_the_first_loop(tmp_path, monkeypatch, buffer):
    traces = []
    run_loop = loop.TrainingLoop.run

    def run(self, *args):
        run_loop(self, *args)
        traces.append(self.traces)

    monkeypatch.setattr(loop.TrainingLoop, "run", run)
    runs.run(tmp_path, loops=6, compile=True, **buffer)
    assert len(traces) == 6
    # One for the driver run, one for the train step; more where variables are made.
    assert set(traces) in ({2}, {3}, {4})


def train_compiled(
    *,
    root_dir,
    agent,
    environment,
    training_loops,
    steps_per_loop,
    async_steps_per_loop,
    additional_metrics,
    save_policy,
    resume_training_loops,
):
    """`train` as the contract calls it, compiled."""
    size = (training_loops, steps_per_loop, async_steps_per_loop, additional_metrics)
    return trainer.train(
        root_dir,
        agent,
        environment,
        *size,
        save_policy=save_policy,
        resume_training_loops=resume_training_loops,
        compile=True,
    )


@pytest.mark.slow
def test_the_compiled_trainer_keeps_the_contract():
    assert not check_trainer(train_compiled).violations


class Linear(stationary_stochastic_py_environment.StationaryStochasticPyEnvironment):
    """Three arms, contexts that count up, no noise."""

    def __init__(self):
        self.drawn = 0
        rewards = [lambda x, w=w: float(np.dot(x, w)) for w in np.eye(3)]
        super().__init__(self._contexts, rewards, batch_size=4)

    def _contexts(self):
        self.drawn += 1
        return np.sin(np.arange(12.0) + self.drawn).reshape(4, 3).astype(np.float32)


class Returns(tf.Module):
    """A metric in plain Python: the sum of the rewards it has seen."""

    def __init__(self):
        super().__init__(name="Returns")
        self.total = 0.0

    def __call__(self, trajectory):
        self.total += float(trajectory.reward.numpy().sum())
        return trajectory

    def result(self):
        return np.float32(self.total)


class Doubled(tf_metrics.NumberOfEpisodes):
    """A metric of TF-Agents' with a result of one's own."""

    def __init__(self):
        super().__init__(name="Doubled")
        self.asked = 0

    def result(self):
        self.asked += 1
        return 2 * self.number_episodes


def lin_ucb(root_dir, monkeypatch, **more):
    """A run of LinUCB on a problem without chance: log, metrics, checkpoint."""
    environment = tf_py_environment.TFPyEnvironment(Linear())
    agent = lin_ucb_agent.LinearUCBAgent(
        environment.time_step_spec(), environment.action_spec()
    )
    agent._train_step_counter.assign(0)
    metrics = [Returns(), Doubled()]
    log = MockLog()
    monkeypatch.setattr(export_utils, "logging", log)
    trainer.train(
        root_dir, agent, environment, 6, 3, 2, additional_metrics=metrics, **more
    )
    path = tf.train.latest_checkpoint(root_dir)
    return log.lines, metrics, path


def content(path):
    """All values of a checkpoint, by key."""
    reader = tf.train.load_checkpoint(path)
    names = [n for n in reader.get_variable_to_shape_map() if "GRAPH" not in n]
    return {n: np.asarray(reader.get_tensor(n)).tolist() for n in sorted(names)}


@pytest.mark.parametrize("compile", [True, None])
def test_lin_ucb_is_the_same_in_log_metrics_and_checkpoint(
    tmp_path, monkeypatch, compile
):
    monkeypatch.setattr(choice, "WORTHWHILE_STEPS", 1)
    log, metrics, path = lin_ucb(tmp_path / "eager", monkeypatch, compile=False)
    log2, metrics2, path2 = lin_ucb(tmp_path / "other", monkeypatch, compile=compile)
    assert len(log) == 6 * 2 * 6
    assert log2 == log
    assert metrics2[1].asked == metrics[1].asked == 12
    assert content(path2) == content(path)

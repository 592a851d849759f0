"""Steps, loops, checkpoints and policies over several calls of `train`."""

from __future__ import annotations

import pathlib

import pytest
import tensorflow as tf
from tf_agents.bandits.agents.examples.v2 import trainer as original
from tf_agents.policies import py_tf_eager_policy

import trainer
from tests.trainer import runs
from tests.trainer.runs import BATCH_SIZE, STEPS


def names(directory: pathlib.Path, prefix: str) -> list[str]:
    found = {path.name.split(".")[0] for path in directory.glob(f"{prefix}*")}
    return sorted(found, key=lambda name: int(name.lstrip(f"{prefix}-_")))


def test_resuming_runs_only_the_missing_loops_and_numbers_on(tmp_path):
    runs.run(tmp_path, loops=2)
    again = runs.run(tmp_path, loops=5, resume_training_loops=True)
    assert again.summary.loops == 3
    assert again.summary.total_loops == 5
    assert again.log.steps("loss") == list(range(4, 10))
    assert again.log.steps("AverageReturn") == list(range(4, 10))


def test_without_resuming_so_many_more_loops_are_run_and_numbered_on(tmp_path):
    runs.run(tmp_path, loops=2)
    again = runs.run(tmp_path, loops=2)
    assert again.summary.total_loops == 4
    assert again.log.steps("loss") == [4, 5, 6, 7]


def test_nothing_is_left_to_do_when_all_loops_are_done(tmp_path):
    runs.run(tmp_path, loops=2)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    again = runs.run(tmp_path, loops=2, resume_training_loops=True)
    assert (again.summary.loops, again.summary.total_loops) == (0, 2)
    assert again.log.lines == []
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("changed", [{"steps": 7}, {"runs": 5}, {"runs": 1}])
def test_changed_sizes_never_repeat_a_step(tmp_path, changed):
    runs.run(tmp_path, loops=3, runs=2)
    again = runs.run(tmp_path, loops=5, resume_training_loops=True, **changed)
    done = 2 * changed.get("runs", 2)
    assert again.log.steps("loss") == list(range(6, 6 + done))


def test_a_checkpoint_of_the_original_trainer_restores(tmp_path):
    environment = runs.FakeEnvironment(batch_size=BATCH_SIZE)
    agent = runs.CountingAgent(environment)
    original.train(str(tmp_path), agent, environment, 3, STEPS, 2)
    again = runs.run(tmp_path, loops=4, resume_training_loops=True)
    assert again.summary.loops == 1
    assert again.log.steps("loss") == [6, 7]
    assert runs.log_values(again.log, "NumberOfEpisodes")[-1] == 8 * STEPS * BATCH_SIZE


def test_each_loop_is_checkpointed_and_five_are_kept(tmp_path):
    run = runs.run(tmp_path, loops=7)
    assert names(tmp_path, "ckpt") == [f"ckpt-{n}" for n in range(3, 8)]
    assert run.summary.checkpoint == str(tmp_path / "ckpt-7")


def test_intervals_are_obeyed_and_the_last_loop_is_always_there(tmp_path):
    run = runs.run(
        tmp_path, loops=6, checkpoint_interval=4, max_to_keep=9, policy_interval=3
    )
    assert names(tmp_path, "ckpt") == ["ckpt-4", "ckpt-6"]
    per_loop = 2 * STEPS * BATCH_SIZE
    exported = [f"policy_{loops * per_loop}" for loops in (1, 4, 6)]
    assert names(tmp_path, "policy_") == exported
    assert run.summary.policy_dir == str(tmp_path / exported[-1])


def test_no_policy_is_exported_when_none_is_wanted(tmp_path):
    run = runs.run(tmp_path, save_policy=False)
    assert names(tmp_path, "policy_") == []
    assert run.summary.policy_dir is None


def test_the_final_policy_has_the_agents_own_train_step(tmp_path):
    # The process's global step is another counter.
    tf.compat.v1.train.get_or_create_global_step().assign(77)
    run = runs.run(tmp_path, loops=3, runs=2)
    loaded = py_tf_eager_policy.SavedModelPyTFEagerPolicy(
        run.summary.policy_dir, load_specs_from_pbtxt=True
    )
    assert loaded.get_train_step() == 6


def test_a_missing_final_policy_is_exported_on_the_next_call(tmp_path):
    run = runs.run(tmp_path, loops=2)
    tf.io.gfile.rmtree(run.summary.policy_dir)
    again = runs.run(tmp_path, loops=2, resume_training_loops=True)
    assert again.summary.policy_dir == run.summary.policy_dir
    assert pathlib.Path(again.summary.policy_dir).is_dir()


def test_agent_and_metrics_are_in_the_checkpoint(tmp_path):
    run = runs.run(tmp_path, loops=3, additional_metrics=[runs.extra_metric()])
    agent = runs.CountingAgent(run.environment)
    extra = runs.extra_metric()
    checkpoint = tf.train.Checkpoint(agent=agent, Extra=extra)
    status = checkpoint.restore(run.summary.checkpoint)
    status.expect_partial().assert_existing_objects_matched()
    assert agent.calls == 6
    assert int(extra.result()) == 6 * STEPS * BATCH_SIZE


def test_a_checkpoint_of_another_agent_is_refused(tmp_path):
    runs.run(tmp_path, loops=1)
    other = runs.FakeEnvironment(batch_size=BATCH_SIZE, num_actions=9)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with pytest.raises(
        trainer.CheckpointMismatchError,
        match=r"Different: action spec: saved .*array\(8,",
    ) as caught:
        runs.run(tmp_path, environment=other)
    assert "Use another root_dir" in str(caught.value)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before

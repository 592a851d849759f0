"""Torn, corrupt and missing checkpoints; full disks; what may not be mixed."""

from __future__ import annotations

import errno
import functools
import logging
import os
import re
import shutil

import pytest
import tensorflow as tf
from tf_agents.metrics import tf_metrics

import trainer
from testing.fakes import FakeCheckpointManager, FaultPlan
from tests.trainer import runs

PER_LOOP = 2  # Train steps: runs.run() has two driver runs in a loop.


@pytest.fixture
def root(tmp_path):
    """A directory with three finished loops."""
    runs.run(tmp_path, loops=3, save_policy=False)
    return tmp_path


def resume(root, loops=4, **more):
    return runs.run(root, loops=loops, resume_training_loops=True, **more)


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def empty(path):
    os.truncate(path, 0)


def remove(path):
    path.unlink()


DATA = "data-00000-of-00001"


@pytest.mark.parametrize("damage", [cut, flip, empty, remove])
@pytest.mark.parametrize("part", ["index", DATA])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(root, part, damage, caplog):
    damage(root / f"ckpt-3.{part}")
    again = resume(root, save_policy=False)
    assert again.log.steps("loss") == [4, 5, 6, 7]
    (warning,) = [
        record.getMessage()
        for record in caplog.records
        if "Falling back" in record.getMessage()
    ]
    assert re.match(
        rf"Checkpoint {root}/ckpt-3 \(.+\) can't be read\. "
        rf"Falling back to the one before, {root}/ckpt-2\.$",
        warning,
    )


def test_after_a_fall_back_the_directory_is_whole_again(root):
    cut(root / f"ckpt-3.{DATA}")
    resume(root, save_policy=False, max_to_keep=2)
    assert again_finds(root) == ["ckpt-3", "ckpt-4"]
    assert resume(root, loops=5, save_policy=False).log.steps("loss") == [8, 9]


def again_finds(root):
    """Checkpoints that the state file names; there are no others."""
    state = tf.train.get_checkpoint_state(str(root))
    names = [os.path.basename(path) for path in state.all_model_checkpoint_paths]
    assert sorted(p.stem for p in root.glob("ckpt-*.index")) == names
    assert not list(root.glob("*_temp")) + list(root.glob("*.tmp*"))
    return names


def test_two_damaged_checkpoints_fall_back_by_two(root, caplog):
    cut(root / f"ckpt-3.{DATA}")
    empty(root / "ckpt-2.index")
    assert resume(root, save_policy=False).log.steps("loss")[0] == 2
    assert "ckpt-3 (" in caplog.text
    assert "ckpt-2 (" in caplog.text


@pytest.mark.parametrize("damage", [cut, empty, remove])
def test_no_checkpoint_left_is_an_error_and_not_a_fresh_start(root, damage):
    for part in root.glob("ckpt-*.index"):
        damage(part)
    before = content(root)
    with pytest.raises(
        trainer.UnreadableCheckpointError,
        match=rf"^No checkpoint in {root} can be read: .*ckpt-3 \(.+\); .*ckpt-2 \(.+\)"
        r".*use another root_dir to start anew\.$",
    ):
        resume(root)
    assert content(root) == before


def content(root):
    return {path.name: path.read_bytes() for path in root.rglob("*") if path.is_file()}


TORN = [
    b"",
    b'model_checkpoint_path: "ck',
    b"\0" * 40,
    b"\xff\xfe",
    b'all_model_checkpoint_paths: "ckpt-2"\n',
]


@pytest.mark.parametrize("torn", TORN)
def test_a_torn_state_file_does_not_hide_the_checkpoints(root, torn, caplog):
    (root / "checkpoint").write_bytes(torn)
    assert resume(root, save_policy=False).log.steps("loss") == [6, 7]
    assert f"{root}/checkpoint is torn" in caplog.text
    assert again_finds(root) == ["ckpt-1", "ckpt-2", "ckpt-3", "ckpt-4"]


def test_a_missing_state_file_does_not_hide_them_either(root):
    (root / "checkpoint").unlink()
    assert resume(root, save_policy=False).log.steps("loss") == [6, 7]


def test_a_state_file_that_names_deleted_checkpoints_is_seen_through(root, caplog):
    for path in root.glob("ckpt-3*"):
        path.unlink()
    assert resume(root, save_policy=False).log.steps("loss") == [4, 5, 6, 7]
    assert f"Falling back to the one before, {root}/ckpt-2." in caplog.text


def test_the_state_file_decides_where_to_go_on(root):
    # Somebody went back by hand, as TensorFlow says one may.
    (root / "checkpoint").write_text('model_checkpoint_path: "ckpt-2"\n')
    assert resume(root, save_policy=False).log.steps("loss") == [4, 5, 6, 7]


def test_a_first_checkpoint_that_was_never_completed_is_a_fresh_start(tmp_path, caplog):
    runs.run(tmp_path, loops=1, save_policy=False)
    (tmp_path / "checkpoint").unlink()
    cut(tmp_path / "ckpt-1.index")
    assert resume(tmp_path, loops=1, save_policy=False).log.steps("loss") == [0, 1]
    assert "was never completed" in caplog.text


def test_a_directory_may_be_moved(root):
    moved = root.parent / "moved here"
    shutil.move(root, moved)
    assert resume(moved, save_policy=False).log.steps("loss") == [6, 7]


def test_averages_go_on_with_what_they_were_taken_of(tmp_path):
    # TF-Agents keeps the last ten returns where a checkpoint does not look.
    whole = runs.run(tmp_path / "whole", loops=2, steps=2, batch_size=1)
    for loops in (1, 2):
        environment = runs.FakeEnvironment(batch_size=1, first_serial=4 * (loops - 1))
        part = resume(
            tmp_path / "parts", loops, steps=2, environment=environment, batch_size=1
        )
    assert runs.log_values(part.log, "AverageReturn") == pytest.approx(
        runs.log_values(whole.log, "AverageReturn")[2:]
    )


def test_what_a_dead_process_left_half_done_goes_away(root):
    (root / "ckpt-4_temp").mkdir()
    (root / "ckpt-4_temp" / "part-00000-of-00001.index").write_text("half")
    (root / f"checkpoint.tmp{'a' * 32}").write_text("half")
    (root / "notes.tmp").write_text("not ours")
    resume(root, loops=3, save_policy=False)
    assert not (root / "ckpt-4_temp").exists()
    assert not list(root.glob("checkpoint.tmp*"))
    assert (root / "notes.tmp").exists()


# Full disks.


@pytest.fixture
def faults(monkeypatch):
    plan = FaultPlan()
    make = functools.partial(FakeCheckpointManager, faults=plan)
    monkeypatch.setattr(tf.train, "CheckpointManager", make)
    return plan


def test_a_full_disk_is_a_clear_error_and_keeps_the_last_checkpoint(root, faults):
    faults.disk_full_at("checkpoint.save", 1)
    with pytest.raises(
        trainer.StorageError,
        match=rf"^Checkpoint 5 could not be written to {root}: .*No space left on "
        rf"device\. Kept: {root}/ckpt-4; the next run goes on from there\.$",
    ) as caught:
        resume(root, loops=6, save_policy=False)
    assert isinstance(caught.value, OSError)
    assert isinstance(caught.value.__cause__, tf.errors.ResourceExhaustedError)
    assert not list(root.glob("ckpt-5*"))
    assert resume(root, loops=5, save_policy=False).log.steps("loss") == [8, 9]


def test_a_full_disk_at_the_first_checkpoint_says_so(tmp_path, faults):
    faults.disk_full_at("checkpoint.save", 0)
    with pytest.raises(
        trainer.StorageError,
        match=r"There is no checkpoint yet; the next run starts from scratch\.$",
    ):
        runs.run(tmp_path, save_policy=False)
    assert resume(tmp_path, loops=1, save_policy=False).log.steps("loss") == [0, 1]


def test_an_interrupt_while_saving_leaves_the_last_checkpoint(root, faults):
    faults.raise_at("checkpoint.save", 0, KeyboardInterrupt(), when="inside")
    with pytest.raises(KeyboardInterrupt):
        resume(root, save_policy=False)
    assert not list(root.glob("ckpt-4*"))
    assert resume(root, save_policy=False).log.steps("loss") == [6, 7]


def test_a_permission_error_names_the_directory(root, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(tf.train.CheckpointManager, "save", refuse)
    with pytest.raises(
        trainer.StorageError,
        match=rf"^Checkpoint 4 could not be written to {root}: Permission denied\. K",
    ):
        resume(root, save_policy=False)


# Another run than the one that wrote the checkpoint.


def test_a_metric_that_is_added_starts_from_scratch_with_a_warning(root, caplog):
    extra = runs.extra_metric("Added")
    again = resume(root, additional_metrics=[extra], save_policy=False)
    assert (
        f"Metric Added is not in checkpoint {root}/ckpt-3. It starts from scratch."
        in caplog.text
    )
    assert again.summary.metrics["Added"] == PER_LOOP * runs.STEPS * runs.BATCH_SIZE
    assert again.log.steps("loss") == [6, 7]


def test_a_metric_that_is_left_out_is_warned_about(tmp_path, caplog):
    extra = runs.extra_metric("LeftOut")
    runs.run(tmp_path, loops=1, additional_metrics=[extra], save_policy=False)
    caplog.set_level(logging.WARNING)
    resume(tmp_path, loops=2, save_policy=False)
    assert "Metric LeftOut of checkpoint" in caplog.text
    assert "will be lost with the next checkpoint" in caplog.text


def test_unchanged_metrics_give_no_warning(root, caplog):
    resume(root, save_policy=False)
    assert "Metric" not in caplog.text


def test_another_metric_of_the_same_name_is_refused(tmp_path):
    first = tf_metrics.AverageReturnMetric("Same", buffer_size=10, batch_size=3)
    runs.run(tmp_path, loops=1, additional_metrics=[first], save_policy=False)
    before = content(tmp_path)
    other = tf_metrics.AverageReturnMetric("Same", buffer_size=20, batch_size=3)
    with pytest.raises(
        trainer.CheckpointMismatchError,
        match=rf"^Checkpoint {tmp_path}/ckpt-1 does not fit this run: onbeat_Same: ",
    ):
        resume(tmp_path, additional_metrics=[other], save_policy=False)
    assert content(tmp_path) == before


def test_another_batch_size_is_refused_before_anything_is_written(root):
    before = content(root)
    with pytest.raises(
        trainer.CheckpointMismatchError,
        match=r"Different: batch size of the environment: saved 3, now 5\. ",
    ):
        resume(root, batch_size=5)
    assert content(root) == before


# Numbers.


@pytest.mark.parametrize("steps", [2**31 - 1, 2**53 + 1, 2**62])
def test_step_numbers_are_exact_however_large(tmp_path, steps):
    run = runs.run(tmp_path, loops=1, save_policy=False)
    progress = trainer.checkpoints.Progress()
    checkpoint = tf.train.Checkpoint(onbeat=progress, agent=run.agent)
    checkpoint.restore(run.summary.checkpoint).expect_partial()
    progress.train_steps.assign(steps)
    progress.description.fields = trainer.checkpoints.describe(
        run.agent, run.environment
    )
    manager = tf.train.CheckpointManager(checkpoint, str(tmp_path), max_to_keep=5)
    manager.save(checkpoint_number=1)
    again = resume(tmp_path, loops=2, save_policy=False)
    assert again.log.steps("loss") == [steps, steps + 1]
    assert again.log.steps("AverageReturn") == [steps, steps + 1]
    assert again.summary.train_steps == steps + 2

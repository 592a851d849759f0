"""FakeCheckpointManager: notes saves; faults before, inside and after a write."""

import functools
from unittest import mock

import pytest
import tensorflow as tf

from testing.fakes import FakeCheckpointManager, FaultPlan, InjectedFault, Timeline


def _manager(directory, value=0, **kwargs):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(value))
    return FakeCheckpointManager(checkpoint, str(directory), **kwargs)


def test_writes_real_checkpoints_and_notes_them(tmp_path):
    timeline = Timeline()
    manager = _manager(tmp_path, timeline=timeline)
    paths = [manager.save(), manager.save()]
    assert timeline.steps("checkpoint.save") == [1, 2]
    assert timeline.values("checkpoint.save") == paths
    assert tf.train.latest_checkpoint(str(tmp_path)) == paths[1]
    assert manager.saves == 2


def test_does_what_the_real_one_does(tmp_path):
    results = []
    for cls in (FakeCheckpointManager, tf.train.CheckpointManager):
        directory = tmp_path / cls.__name__
        checkpoint = tf.train.Checkpoint(v=tf.Variable(0))
        manager = cls(checkpoint, str(directory), max_to_keep=2)
        assert manager.restore_or_initialize() is None
        for _ in range(3):
            manager.save()
        manager.save(checkpoint_number=9)
        names = [path.rpartition("/")[2] for path in manager.checkpoints]
        results.append((names, sorted(p.name for p in directory.iterdir())))
    assert results[0] == results[1]


def test_restores(tmp_path):
    _manager(tmp_path, 5).save()
    manager = _manager(tmp_path)
    path = manager.restore_or_initialize()
    assert manager.checkpoint.v.numpy() == 5
    assert manager.timeline.values("checkpoint.restore") == [path]
    assert manager.restores == 1


@pytest.mark.parametrize(
    ("when", "files", "latest"),
    [("before", False, 1), ("inside", True, 1), ("after", True, 2)],
)
def test_stops_at_each_point(tmp_path, when, files, latest):
    faults = FaultPlan()
    faults.raise_at("checkpoint.save", 1, when=when)
    manager = _manager(tmp_path, faults=faults)
    manager.save()
    with pytest.raises(InjectedFault):
        manager.save()
    assert (tmp_path / "ckpt-2.index").exists() == files
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / f"ckpt-{latest}")


def test_a_full_disk_leaves_half_a_file(tmp_path):
    faults = FaultPlan()
    faults.disk_full_at("checkpoint.save", 1)
    manager = _manager(tmp_path, faults=faults)
    good = manager.save()
    with pytest.raises(tf.errors.ResourceExhaustedError, match="No space left"):
        manager.save()
    assert tf.train.latest_checkpoint(str(tmp_path)) == good
    sizes = [p.stat().st_size for p in sorted(tmp_path.glob("*.data*"))]
    assert sizes[1] <= sizes[0] // 2 + 1
    with pytest.raises((tf.errors.OpError, IndexError)):
        tf.train.Checkpoint(v=tf.Variable(0)).restore(str(tmp_path / "ckpt-2"))
    manager.save()
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("ckpt-3")


def test_replaces_the_real_one(tmp_path):
    timeline = Timeline()
    make = functools.partial(FakeCheckpointManager, timeline=timeline)
    with mock.patch.object(tf.train, "CheckpointManager", make):
        tf.train.CheckpointManager(
            tf.train.Checkpoint(), directory=str(tmp_path), max_to_keep=5
        ).save()
    assert timeline.count("checkpoint.save") == 1


def test_saves_and_restores_its_count(tmp_path):
    manager = _manager(tmp_path / "a")
    manager.save()
    path = tf.train.Checkpoint(m=manager).save(str(tmp_path / "c"))
    other = _manager(tmp_path / "b")
    tf.train.Checkpoint(m=other).restore(path).assert_consumed()
    assert other.saves == 1
    assert repr(other) == (
        f"<FakeCheckpointManager of {tmp_path}/b: 1 saves, 0 restores, latest None>"
    )

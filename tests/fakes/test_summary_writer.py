"""FakeSummaryWriter: summaries on the timeline, when they happen."""

import gc
import os
from unittest import mock

import pytest
import tensorflow as tf
from tensorflow.python.ops import summary_ops_v2

from testing.fakes import FakeSummaryWriter, FaultPlan, InjectedFault, Timeline


def test_puts_summaries_on_the_timeline_in_order():
    timeline = Timeline()
    writer = FakeSummaryWriter(timeline=timeline)
    with writer.as_default():
        tf.summary.scalar("loss", 0.5, step=3)
        timeline.add("agent.train")
        tf.summary.scalar("loss", 0.25, step=4)
    assert [str(event) for event in timeline] == [
        "summary loss@3 = 0.5",
        "agent.train",
        "summary loss@4 = 0.25",
    ]


def test_sees_summaries_of_a_graph():
    writer = FakeSummaryWriter()
    timeline = writer.timeline

    @tf.function
    def run(n):
        for i in tf.range(n):
            tf.summary.scalar("x", tf.cast(i, tf.float32) / 2, tf.cast(i, tf.int64))

    with writer.as_default():
        run(tf.constant(3))
    assert timeline.steps("summary", "while/x") == [0, 1, 2]
    assert timeline.values("summary", "while/x") == [0.0, 0.5, 1.0]


def test_keeps_tensors_and_texts():
    writer = FakeSummaryWriter()
    with writer.as_default(step=1):
        tf.summary.text("t", "hello")
        tf.summary.write("w", tf.constant([1, 2]))
    assert writer.timeline.values("summary") == [b"hello", [1, 2]]


def test_stands_in_for_a_file_writer():
    writer = FakeSummaryWriter()
    default = mock.patch.object(summary_ops_v2._summary_state, "writer", None)
    making = mock.patch.object(tf.summary, "create_file_writer", return_value=writer)
    with default, making:
        made = tf.summary.create_file_writer("anywhere")
        made.set_as_default()
        tf.summary.scalar("a", 1.0, step=0)
        made.flush()
        made.close()
    assert writer.timeline.steps("summary", "a") == [0]
    assert writer.flushes == 2
    assert writer.closed


@pytest.mark.parametrize(
    "make", [FakeSummaryWriter, lambda d: tf.summary.create_file_writer(d)]
)
def test_closed_writers_refuse_to_be_the_default(make, tmp_path):
    writer = make(str(tmp_path))
    writer.close()
    writer.close()
    writer.flush()
    for use in (writer.as_default, writer.set_as_default, writer.init):
        with pytest.raises(RuntimeError, match="is already closed"):
            use()


def test_its_directory_goes_away_with_it():
    writer = FakeSummaryWriter()
    assert os.listdir(writer.logdir)
    path = writer.logdir
    timeline = writer.timeline
    del writer
    gc.collect()
    assert not os.path.exists(path)
    assert timeline.events == ()


def test_faults(tmp_path):
    faults = FaultPlan()
    faults.raise_at("summary", 0)
    writer = FakeSummaryWriter(str(tmp_path), faults=faults)
    with pytest.raises(InjectedFault):
        writer.flush()
    assert writer.flushes == 0


def test_saves_and_restores(tmp_path):
    writer = FakeSummaryWriter()
    writer.flush()
    path = tf.train.Checkpoint(w=writer).save(str(tmp_path / "c"))
    other = FakeSummaryWriter()
    tf.train.Checkpoint(w=other).restore(path).assert_consumed()
    assert repr(other) == (
        "<FakeSummaryWriter 'FakeSummaryWriter': 0 summaries, 1 flushes, open>"
    )

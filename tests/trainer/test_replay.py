"""The buffer is read back run by run, rows not mixed, whatever was there before."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from trainer import replay

SPEC = tf.TensorSpec((), tf.int64, "serial")
BATCH, STEPS, RUNS = 3, 2, 4


def buffer(steps=STEPS, runs=RUNS):
    return replay.get_replay_buffer(SPEC, BATCH, steps, runs)


def fill(buffer, steps, first=0):
    """Adds serial numbers, `BATCH` of them at each step; returns them by step."""
    rows = np.arange(first, first + steps * BATCH).reshape(steps, BATCH)
    for row in rows:
        buffer.add_batch(tf.constant(row, tf.int64))
    return rows


def expected(rows):
    """What each run's experience is, of shape [batch_size, steps]."""
    return [rows[i : i + STEPS].T.tolist() for i in range(0, len(rows), STEPS)]


def in_graph(buffer):
    reader = replay.GraphReader(buffer, BATCH, STEPS, RUNS)
    read = tf.function(reader.experience)
    return [read(tf.constant(run, tf.int64)) for run in range(RUNS)]


def eagerly(buffer):
    return list(replay.LoopReader(buffer, BATCH, STEPS, RUNS).read())


@pytest.mark.parametrize("read", [in_graph, eagerly])
@pytest.mark.parametrize("before", [0, 1, 3, RUNS * STEPS])
def test_runs_are_read_back_in_order_and_rows_are_not_mixed(read, before):
    memory = buffer()
    # Overwritten frames: the loop's own begin in the middle of the table.
    fill(memory, before, first=1000)
    rows = fill(memory, RUNS * STEPS)
    got = [experience.numpy().tolist() for experience in read(memory)]
    assert got == expected(rows)


def test_in_a_graph_shapes_are_static():
    memory = buffer()
    reader = replay.GraphReader(memory, BATCH, STEPS, RUNS)
    graph = tf.function(reader.experience).get_concrete_function(
        tf.TensorSpec((), tf.int64)
    )
    assert graph.structured_outputs.shape.as_list() == [BATCH, STEPS]


def test_frames_and_clear_are_the_buffers_own():
    memory = buffer()
    reader = replay.GraphReader(memory, BATCH, STEPS, RUNS)
    for steps in (1, RUNS * STEPS, 1):
        fill(memory, steps)
        assert int(reader.frames()) == int(memory.num_frames())
    reader.clear()
    assert int(reader.frames()) == int(memory.num_frames()) == 0


@pytest.mark.parametrize("steps", [0, 1, RUNS * STEPS - 1])
def test_missing_frames_are_an_error(steps):
    memory = buffer()
    fill(memory, steps)
    with pytest.raises(
        replay.ReplayError,
        match=rf"holds {steps * BATCH} frames after 4 driver runs of 2 steps in 3 "
        rf"environments\. Expected: {RUNS * STEPS * BATCH}\.",
    ):
        eagerly(memory)
    with pytest.raises(replay.ReplayError):
        replay.check_frames(steps * BATCH, BATCH, STEPS, RUNS)

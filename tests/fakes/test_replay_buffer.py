"""RecordingReplayBuffer: counts, and the wrapped buffer's own results."""

import pytest
import tensorflow as tf
from tf_agents.replay_buffers import episodic_replay_buffer, tf_uniform_replay_buffer

from testing.fakes import RecordingReplayBuffer, Timeline

SPEC = tf.TensorSpec((), tf.int64)


def _buffer(batch_size=2, max_length=3, **kwargs):
    return RecordingReplayBuffer(
        tf_uniform_replay_buffer.TFUniformReplayBuffer(SPEC, batch_size, max_length),
        **kwargs,
    )


def _fill(buffer, batches, batch_size=2):
    for i in range(batches):
        buffer.add_batch(tf.range(batch_size, dtype=tf.int64) + 10 * i)


def test_counts_adds_and_what_is_overwritten():
    buffer = _buffer()
    _fill(buffer, 3)
    assert (buffer.adds, buffer.frames, buffer.overwritten) == (3, 6, 0)
    _fill(buffer, 2)
    assert (buffer.adds, buffer.frames, buffer.overwritten) == (5, 6, 4)
    assert buffer.high_water == 6
    assert int(buffer.capacity) == 6


def test_clear_keeps_the_high_water_mark():
    timeline = Timeline()
    buffer = _buffer(timeline=timeline)
    _fill(buffer, 2)
    buffer.clear()
    assert (buffer.frames, buffer.high_water, buffer.clears) == (0, 4, 1)
    _fill(buffer, 1)
    assert (buffer.overwritten, buffer.high_water) == (0, 4)
    assert [str(e) for e in timeline] == [
        "buffer.add RecordingReplayBuffer@0 = 2",
        "buffer.add RecordingReplayBuffer@1 = 4",
        "buffer.clear RecordingReplayBuffer@0 = 4",
        "buffer.add RecordingReplayBuffer@2 = 2",
    ]


def test_a_data_set_is_counted_as_it_is_read():
    timeline = Timeline()
    buffer = _buffer(max_length=4, timeline=timeline)
    _fill(buffer, 4)
    dataset = buffer.as_dataset(
        sample_batch_size=2, num_steps=2, single_deterministic_pass=True
    )
    assert buffer.reads == 0
    read = [item.numpy().tolist() for item, _ in dataset]
    assert read == [[[0, 10], [1, 11]], [[20, 30], [21, 31]]]
    assert timeline.values("buffer.read") == [(2, 2), (2, 2)]


def test_other_reads_are_counted_too():
    buffer = _buffer()
    _fill(buffer, 2)
    assert buffer.gather_all().numpy().tolist() == [[0, 10], [1, 11]]
    item, info = buffer.get_next(sample_batch_size=5)
    assert item.shape == (5,)
    assert info.ids.shape == (5,)
    next(iter(buffer.as_dataset(sample_batch_size=3, num_steps=2)))
    assert buffer.timeline.values("buffer.read") == [(2, 2), (5,), (3, 2)]


def test_counts_in_a_graph_in_the_order_of_the_program():
    timeline = Timeline()
    buffer = _buffer(timeline=timeline)

    @tf.function
    def run(n):
        for i in tf.range(n):
            buffer.add_batch(tf.fill([2], tf.cast(i, tf.int64)))
        items = buffer.gather_all()
        buffer.clear()
        return items

    assert run(tf.constant(2)).numpy().tolist() == [[0, 1], [0, 1]]
    run(tf.constant(3, tf.int64))
    assert [kind.removeprefix("buffer.") for kind in timeline.kinds()] == (
        ["add"] * 2 + ["read", "clear"] + ["add"] * 3 + ["read", "clear"]
    )
    assert buffer.high_water == 6


def test_the_wrapped_buffers_results_are_unchanged():
    inner = tf_uniform_replay_buffer.TFUniformReplayBuffer(SPEC, 2, 3)
    buffer = RecordingReplayBuffer(inner)
    assert buffer.data_spec is inner.data_spec
    assert buffer.table_fn is inner.table_fn
    _fill(buffer, 4)
    for kwargs in ({}, {"num_steps": 2}, {"sample_batch_size": 2}):
        passes = [
            [
                tf.nest.map_structure(lambda t: t.numpy().tolist(), element)
                for element in b.as_dataset(single_deterministic_pass=True, **kwargs)
            ]
            for b in (buffer, inner)
        ]
        assert passes[0] == passes[1]


def test_wraps_other_buffers():
    inner = episodic_replay_buffer.EpisodicReplayBuffer(
        SPEC, capacity=4, completed_only=False
    )
    stateful = episodic_replay_buffer.StatefulEpisodicReplayBuffer(inner, 2)
    with pytest.raises(AttributeError, match="nonsense"):
        stateful.nonsense  # noqa: B018
    assert int(RecordingReplayBuffer(inner).frames) == 0


def test_refuses_what_is_no_buffer():
    with pytest.raises(TypeError, match=r"^buffer is \[\]\. Allowed: a TF-Agents Rep"):
        RecordingReplayBuffer([])


def test_saves_and_restores_with_its_contents(tmp_path):
    buffer = _buffer()
    _fill(buffer, 4)
    path = tf.train.Checkpoint(b=buffer).save(str(tmp_path / "c"))
    other = _buffer()
    tf.train.Checkpoint(b=other).restore(path).assert_consumed()
    assert other.gather_all().numpy().tolist() == [[10, 20, 30], [11, 21, 31]]
    assert repr(other) == (
        "<RecordingReplayBuffer of TFUniformReplayBuffer: 6 of 6 frames, high water "
        "6, 4 adds, 2 overwritten, 1 reads, 0 clears>"
    )

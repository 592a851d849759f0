"""TF-Agents' own observers, doing the same with fewer operations.

Its episode metrics put finished episodes into their ring buffer one by one, which at
batch size 256 takes longer than everything else a driver does. Its replay buffer
takes a lock for each number it counts up. The updates here write the same values to
the same places of the same variables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tf_agents.metrics import tf_metrics
from tf_agents.utils import nest_utils

from trainer import graph_safe

Update = Callable[[Any], Any]


def fast_update(observer: Any) -> Update | None:
    """A faster `observer(trajectory)` with the same effect, or None.

    Only for the very classes of TF-Agents: a subclass, or one that somebody changed,
    is called as it is.
    """
    if graph_safe.is_plain_add_batch(observer):
        return _add_batch_update(observer.__self__)
    kind = type(observer)
    make = _UPDATES.get(kind)
    if make is None or vars(kind).get("call") is not _CALLS[kind]:
        return None
    if "call" in vars(observer) or "_update_state" in vars(observer):
        return None
    return make(observer)


def _add_batch_update(buffer: Any) -> Update:
    def update(items: Any) -> None:
        nest_utils.assert_same_structure(items, buffer.data_spec)
        # No lock: one driver adds, one step after the other.
        id_ = buffer._last_id.assign_add(1).read_value()
        rows = buffer._get_rows_for_id(id_)
        buffer._id_table.write(rows, tf.fill(tf.shape(rows), id_))
        buffer._data_table.write(rows, items)

    return update


def _return_update(metric: Any) -> Update:
    def update(trajectory: Any) -> None:
        reward = trajectory.reward
        if reward.shape.rank > 1:
            reward = tf.reduce_sum(reward, axis=range(1, reward.shape.rank))
        _accumulate(metric._return_accumulator, metric._buffer, reward, trajectory)

    return update


def _extreme_update(metric: Any) -> Update:
    def update(trajectory: Any) -> None:
        _accumulate(
            metric._return_accumulator, metric._buffer, trajectory.reward, trajectory
        )

    return update


def _multi_return_update(metric: Any) -> Update:
    def update(trajectory: Any) -> None:
        tf.nest.assert_same_structure(trajectory.reward, metric._reward_spec)
        parts = (metric._return_accumulator, metric._buffer, trajectory.reward)
        leaves = map(tf.nest.flatten, parts)
        for accumulator, buffer, reward in zip(*leaves, strict=True):
            _accumulate(accumulator, buffer, reward, trajectory)

    return update


def _length_update(metric: Any) -> Update:
    def update(trajectory: Any) -> None:
        lengths = metric._length_accumulator
        counted = tf.cast(tf.logical_not(trajectory.is_boundary()), lengths.dtype)
        total = lengths.assign_add(counted).read_value()
        last = trajectory.is_last()
        extend(metric._buffer, tf.boolean_mask(total, last))
        lengths.assign(tf.where(last, tf.zeros_like(total), total))

    return update


def _accumulate(accumulator: Any, buffer: Any, reward: Any, trajectory: Any) -> None:
    """Adds `reward` to the running returns; finished ones go to the ring buffer."""
    before = accumulator.read_value()
    is_first = trajectory.is_first()
    shape = [-1] + [1] * (before.shape.rank - 1)
    kept = tf.where(tf.reshape(is_first, shape), tf.zeros_like(before), before)
    total = kept + reward
    accumulator.assign(total)
    extend(buffer, tf.boolean_mask(total, trajectory.is_last()))


def extend(buffer: Any, values: Any) -> None:
    """The same as adding `values` to a `TFDeque` one by one."""
    count = tf.shape(values)[0]
    # More than fit overwrite each other; only the last ones stay.
    skipped = tf.maximum(count - buffer._max_len, 0)
    offsets = tf.range(skipped, count)
    rows = tf.math.floormod(buffer._head + offsets, buffer._max_len)
    buffer._buffer.write(rows, values[skipped:])
    buffer._head.assign_add(count)


_UPDATES: dict[type, Callable[[Any], Update]] = {
    tf_metrics.AverageReturnMetric: _return_update,
    tf_metrics.MaxReturnMetric: _extreme_update,
    tf_metrics.MinReturnMetric: _extreme_update,
    tf_metrics.AverageReturnMultiMetric: _multi_return_update,
    tf_metrics.AverageEpisodeLengthMetric: _length_update,
}
_CALLS = {kind: vars(kind)["call"] for kind in _UPDATES}

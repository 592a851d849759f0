"""TF-Agents' own observers told of a whole driver run at once, with the same effect.

For runs of one-step episodes, which need no step by step: what the learner does with
a run that a collector has made then hardly depends on its length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tf_agents.metrics import tf_metrics

from trainer import fast_observers

Update = Callable[[Any], Any]


def whole_run_update(observer: Any, steps: int) -> Update | None:
    """Does with a run of `steps` steps what `observer` does with each, or None.

    The run is a trajectory of shape `[batch_size, steps, ...]` of which
    `is_one_step_episodes` is true.
    """
    kind = type(observer)
    if kind in _COUNTERS:
        return _counter_update(observer) if _is_plain(observer, kind) else None
    if fast_observers.fast_update(observer) is None:
        return None
    if kind in _UPDATES:
        return _UPDATES[kind](observer)
    buffer = observer.__self__
    if steps > buffer._max_length:  # It would write to a place twice.
        return None
    return _add_run_update(buffer, steps)


def is_one_step_episodes(run: Any) -> Any:
    """Whether each step of a run begins an episode and ends it."""
    return tf.reduce_all(run.is_first() & run.is_last())


def _is_plain(observer: Any, kind: type) -> bool:
    return vars(kind).get("call") is _COUNTERS[kind] and "call" not in vars(observer)


def _counter_update(metric: Any) -> Update:
    def update(run: Any) -> None:
        # Sums over whatever there is.
        metric(run)

    return update


def _add_run_update(buffer: Any, steps: int) -> Update:
    def update(run: Any) -> None:
        tf.nest.assert_same_structure(run, buffer.data_spec)
        last = buffer._last_id.assign_add(steps).read_value()
        ids = last - steps + 1 + tf.range(steps, dtype=tf.int64)
        places = tf.math.floormod(ids, buffer._max_length)
        rows = tf.reshape(buffer._batch_offsets[:, tf.newaxis] + places, [-1])
        batch_size = tf.shape(buffer._batch_offsets)[0]
        buffer._id_table.write(rows, tf.tile(ids, [batch_size]))
        buffer._data_table.write(rows, tf.nest.map_structure(_row_by_row, run))

    return update


def _row_by_row(tensor: Any) -> Any:
    return tf.reshape(tensor, [-1, *tensor.shape[2:]])


def _step_by_step(tensor: Any) -> Any:
    """The values in the order in which a driver meets them."""
    order = [1, 0, *range(2, tensor.shape.rank)]
    return _row_by_row(tf.transpose(tensor, order))


def _return_update(metric: Any) -> Update:
    def update(run: Any) -> None:
        reward = run.reward
        if reward.shape.rank > 2:
            reward = tf.reduce_sum(reward, axis=range(2, reward.shape.rank))
        _finish(metric._return_accumulator, metric._buffer, reward)

    return update


def _extreme_update(metric: Any) -> Update:
    def update(run: Any) -> None:
        _finish(metric._return_accumulator, metric._buffer, run.reward)

    return update


def _multi_return_update(metric: Any) -> Update:
    def update(run: Any) -> None:
        tf.nest.assert_same_structure(run.reward, metric._reward_spec)
        parts = (metric._return_accumulator, metric._buffer, run.reward)
        for leaves in zip(*map(tf.nest.flatten, parts), strict=True):
            _finish(*leaves)

    return update


def _finish(accumulator: Any, buffer: Any, reward: Any) -> None:
    """Each reward is a whole return; the accumulator keeps the last ones."""
    fast_observers.extend(buffer, _step_by_step(reward))
    accumulator.assign(reward[:, -1])


def _length_update(metric: Any) -> Update:
    def update(run: Any) -> None:
        lengths = metric._length_accumulator
        # What was begun before this run ends with its first step.
        longer = lengths.read_value()[:, tf.newaxis]
        ones = tf.ones_like(run.step_type, lengths.dtype)
        total = tf.concat([ones[:, :1] + longer, ones[:, 1:]], axis=1)
        fast_observers.extend(metric._buffer, _step_by_step(total))
        lengths.assign(tf.zeros_like(lengths))

    return update


_UPDATES: dict[type, Callable[[Any], Update]] = {
    tf_metrics.AverageReturnMetric: _return_update,
    tf_metrics.MaxReturnMetric: _extreme_update,
    tf_metrics.MinReturnMetric: _extreme_update,
    tf_metrics.AverageReturnMultiMetric: _multi_return_update,
    tf_metrics.AverageEpisodeLengthMetric: _length_update,
}
_COUNTERS = {
    kind: vars(kind)["call"]
    for kind in (tf_metrics.EnvironmentSteps, tf_metrics.NumberOfEpisodes)
}

"""A mean over the last interactions: what a learner does now, not since birth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tf_agents.metrics import tf_metric

PerInteraction = Callable[[Any], Any]


class RecentMean(tf_metric.TFStepMetric):
    """Mean of one number per interaction over the last `window` interactions.

    TF-Agents' `AverageReturnMetric` keeps ten interactions, too few to read a
    rate from; a mean since the start would hide what has been learnt since.
    The window is saved in checkpoints, so it goes on after a restart.
    """

    def __init__(self, name: str, value: PerInteraction, window: int) -> None:
        """Makes an empty window.

        Args:
          name: the metric's name in log lines and summaries.
          value: takes a batched trajectory, gives a number for each of its
            interactions: shape `[batch_size]` (a trailing time axis is
            flattened), any real dtype.
          window: how many interactions to keep, 1 or more.

        Raises:
          ValueError: `window` is below 1.
        """
        if window < 1:
            raise ValueError(f"window must be >= 1, got {window!r}")
        super().__init__(name=name)
        self.window = window
        self._value = value
        self._values = tf.Variable(tf.zeros([window]), trainable=False)
        self._seen = tf.Variable(0, dtype=tf.int64, trainable=False)

    def call(self, trajectory: Any) -> Any:
        """Adds the interactions of `trajectory`; returns it unchanged."""
        new = tf.reshape(tf.cast(self._value(trajectory), tf.float32), [-1])
        # Of a batch larger than the window only its end counts; two values
        # for one slot would be written in no defined order.
        new = new[-self.window :]
        count = tf.size(new, out_type=tf.int64)
        slots = (self._seen + tf.range(count)) % self.window
        self._values.scatter_nd_update(slots[:, tf.newaxis], new)
        self._seen.assign_add(count)
        return trajectory

    def result(self) -> Any:
        """The mean, float32; 0 before the first interaction."""
        filled = tf.cast(tf.minimum(self._seen, self.window), tf.float32)
        return tf.math.divide_no_nan(tf.reduce_sum(self._values), filled)

    def reset(self) -> None:
        """Empties the window."""
        self._values.assign(tf.zeros_like(self._values))
        self._seen.assign(0)

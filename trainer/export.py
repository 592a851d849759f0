"""Log lines and TensorBoard summaries of metrics and losses."""

from __future__ import annotations

import types
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tf_agents.eval import metric_utils
from tf_agents.metrics import export_utils, tf_metric

# The tag of the loss summary. Agents write summaries of their own, against their
# own counters; this one carries the step of the log line.
LOSS_TAG = "loss"


class NonFiniteLossError(ArithmeticError):
    """The loss is NaN or infinite and `on_nonfinite_loss` is 'raise'."""


class ComputedMetric:
    """A metric whose result is already known; all else is the metric's own.

    Lets the log line, the multi-line record and the summary share one computation.
    """

    def __init__(self, metric: Any, value: Any) -> None:
        self._metric = metric
        self._value = value

    def __getattr__(self, name: str) -> Any:
        return getattr(self._metric, name)

    def result(self) -> Any:
        """The value computed before."""
        return self._value

    def tf_summaries(self, train_step: Any = None, step_metrics: Any = ()) -> Any:
        """Writes the metric's summaries, from the computed value where possible."""
        write = getattr(type(self._metric), "tf_summaries", None)
        if write is None:
            return []  # A metric that is only logged.
        # An override may call super(), which wants the metric itself.
        if write.__module__ != tf_metric.__name__:
            return self._metric.tf_summaries(train_step, step_metrics)
        return types.MethodType(write, self)(train_step, step_metrics)


def compute(metrics: Iterable[Any]) -> list[ComputedMetric]:
    """Computes the result of each metric, once."""
    return [ComputedMetric(metric, metric.result()) for metric in metrics]


def export_metrics(step: int, metrics: Iterable[Any]) -> list[ComputedMetric]:
    """Logs each metric and writes its summaries, all against `step`.

    Each metric is computed once. Writes one multi-line record with all metrics and
    one record `[step=<step>] <name> = <value>.` for each.

    Args:
      step: index of the driver run, from 0, counted over all loops.
      metrics: TF-Agents metrics. Summaries go to the default summary writer.

    Returns:
      The metrics with their values, for whoever wants them again.
    """
    computed = compute(metrics)
    log_metrics(step, computed)
    for metric in computed:
        metric.tf_summaries(train_step=uncached(step))
    return computed


def log_metrics(step: int, computed: Sequence[Any]) -> None:
    """Logs metrics that are already computed: one joint record, then one for each."""
    metric_utils.log_metrics(computed)
    export_utils.export_metrics(step=step, metrics=computed)


def export_loss_info(step: int, loss_info: Any) -> None:
    """Logs the loss and writes its summary, both against `step`.

    Args:
      step: index of the train step, from 0, counted over all loops.
      loss_info: a `LossInfo`; its `loss` is logged as it is, NaN as `nan`.
    """
    log_loss(step, loss_info)
    summarize_loss(step, loss_info)


def log_loss(step: int, loss_info: Any) -> None:
    """Logs the loss against `step`."""
    export_utils.export_metrics(step=step, metrics=[], loss_info=loss_info)


def summarize_loss(step: Any, loss_info: Any) -> bool:
    """Writes the summary of a scalar loss against `step`; True if it is known to be.

    In a graph the shape of a loss may be unknown; then nothing is written.
    """
    loss = tf.convert_to_tensor(loss_info.loss)
    if loss.shape.rank == 0:
        tf.summary.scalar(LOSS_TAG, loss, step=uncached(step))
    return loss.shape.rank is not None


def uncached(step: Any) -> Any:
    """The step in a form of which TensorFlow keeps nothing.

    It keeps every Python number that it ever made a tensor of, some 800 bytes each,
    as long as the process lives.
    """
    return np.int64(step) if isinstance(step, int) else step


def check_finite(step: int, loss: Any) -> None:
    """Raises NonFiniteLossError if any part of `loss` is NaN or infinite."""
    value = np.asarray(loss)
    if not np.all(np.isfinite(value)):
        raise NonFiniteLossError(
            f"The loss at step {step} is {value}. on_nonfinite_loss='raise' stops "
            "here; the last checkpoint is from before. Look at rewards and learning "
            "rate, or pass on_nonfinite_loss='log' to go on."
        )

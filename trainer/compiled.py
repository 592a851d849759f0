"""The two halves of a training loop as compiled functions, each traced once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import summary_ops_v2

from trainer import export, graph_safe, linear_agent, python_errors


class Compiled:
    """A function compiled when it is first called, and again for another writer.

    TensorFlow builds the summary writer that is the default one at the time into
    the graph.

    Attributes:
      traces: how often it was traced.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        """`function` takes and returns nests of tensors."""
        self._source = function
        self._writer: Any = None
        self._compiled: Any = None
        self.traces = 0

    def __call__(self, *args: Any) -> Any:
        """Calls it. Exceptions of Python code within it arrive as they are."""
        writer = _default_writer()
        if self._compiled is None or writer is not self._writer:
            self._writer = writer
            self._compiled = tf.function(self._traced, autograph=False)
        with python_errors.surfaced():
            return self._compiled(*args)

    def _traced(self, *args: Any) -> Any:
        self.traces += 1
        with python_errors.noted():
            return self._source(*args)


class Collector:
    """A driver run together with the metrics' results and summaries."""

    def __init__(self, driver: Any, also: Callable[[], Any] | None = None) -> None:
        """`also` is computed after each driver run; its value goes to `extra`."""
        self._driver = driver
        # For drivers that have to wait for something, which a graph can't.
        self._prepare = getattr(driver, "prepare", lambda: None)
        self._also = also or (lambda: ())
        self._metrics: tuple[Any, ...] = ()
        self._inside: list[Any] = []
        self._run = Compiled(self._run_and_compute)
        self.extra: Any = ()

    @property
    def traces(self) -> int:
        """How often it was traced."""
        return self._run.traces

    def collect(self, step: int, metrics: Sequence[Any]) -> list[Any]:
        """Runs the driver, logs the metrics and writes their summaries.

        Args:
          step: index of the driver run, from 0, counted over all loops.
          metrics: observers of the driver, the same ones at each call.

        Returns:
          The metrics with their values.
        """
        self._watch(tuple(metrics))
        self._prepare()
        values, self.extra = self._run(tf.constant(export.uncached(step)))
        known = dict(zip(map(id, self._inside), values, strict=True))
        computed = [
            export.ComputedMetric(m, known[id(m)] if id(m) in known else m.result())
            for m in metrics
        ]
        export.log_metrics(step, computed)
        for metric, result in zip(metrics, computed, strict=True):
            if id(metric) not in known:
                result.tf_summaries(train_step=export.uncached(step))
        return computed

    def _watch(self, metrics: tuple[Any, ...]) -> None:
        if list(map(id, metrics)) != list(map(id, self._metrics)):
            self._metrics = metrics
            self._inside = [m for m in metrics if graph_safe.has_safe_result(m)]
            traces = self._run.traces
            self._run = Compiled(self._run_and_compute)
            self._run.traces = traces

    def _run_and_compute(self, step: Any) -> tuple[list[Any], Any]:
        self._driver.run()
        computed = export.compute(self._inside)
        for metric in computed:
            metric.tf_summaries(train_step=step)
        return [metric.result() for metric in computed], self._also()


class Learner:
    """A train step together with the summary of its loss."""

    def __init__(self, agent: Any, read: Callable[[Any], Any]) -> None:
        """`read` turns what `learn` gets into experience, within the graph."""
        self._agent = agent
        self._read = read
        self._train = Compiled(self._read_and_train)
        self._is_summarized = True

    @property
    def traces(self) -> int:
        """How often it was traced."""
        return self._train.traces

    def learn(self, step: int, source: Any) -> Any:
        """Trains, logs the loss, writes its summary and returns the `LossInfo`.

        Args:
          step: index of the train step, from 0, counted over all loops.
          source: tensors for `read`.
        """
        loss_info = self._train(tf.constant(export.uncached(step)), source)
        export.log_loss(step, loss_info)
        if not self._is_summarized:
            export.summarize_loss(step, loss_info)
        return loss_info

    def _read_and_train(self, step: Any, source: Any) -> Any:
        with tf.init_scope():
            train = linear_agent.fast_train(self._agent)
        loss_info = train(self._read(source))
        self._is_summarized = export.summarize_loss(step, loss_info)
        return loss_info


def _default_writer() -> Any:
    state = getattr(summary_ops_v2, "_summary_state", None)
    return getattr(state, "writer", None)

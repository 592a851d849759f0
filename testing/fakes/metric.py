"""FakeMetric: a metric with scripted values that counts its reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from testing.fakes import _script
from testing.fakes._calls import Core, call_python
from testing.fakes._tf import tf, tf_metric
from testing.fakes.faults import FaultPlan
from testing.fakes.timeline import Timeline

Values = Sequence[float] | Callable[[int], float] | None


class FakeMetric(tf_metric.TFStepMetric):
    """A step metric whose value is scripted by how often it was updated.

    Its value is the script's entry for the number of updates so far, by default that
    number: so a value logged too early or too late shows.

    On its timeline: `metric.update` with the number of rows, `metric.result` with the
    value, each counted from 0.

    Attributes:
      timeline: where its events go.
      updates: how many times it was called since the last reset.
      results: how many times its result was asked for.
      resets: how many times it was reset.
    """

    def __init__(
        self,
        name: str = "FakeMetric",
        *,
        values: Values = None,
        dtype: Any = None,
        prefix: str = "Metrics",
        timeline: Timeline | None = None,
        faults: FaultPlan | None = None,
    ) -> None:
        """Creates the metric.

        Args:
          name: name of its log lines, summaries and events.
          values: its value after n updates, as a sequence or a function of n; also
            for n = 0.
          dtype: of its value, a scalar; float32 by default.
          prefix: of its summaries.
          timeline: where its events go; one of its own by default.
          faults: faults at `metric.update` and `metric.result`, also NaN values.
        """
        super().__init__(name, prefix)
        self._dtype = tf.as_dtype(dtype or tf.float32)
        self._measuring = _Measuring(name, timeline, faults)
        self._measuring.values = values

    @property
    def timeline(self) -> Timeline:
        return self._measuring.timeline

    @property
    def updates(self) -> int:
        return self._measuring.updates

    @property
    def results(self) -> int:
        return self._measuring.results

    @property
    def resets(self) -> int:
        return self._measuring.resets

    def call(self, trajectory: Any) -> Any:
        """Counts one update. Returns the trajectory, as TF-Agents' metrics do."""
        rows = tf.shape(tf.nest.flatten(trajectory)[0])[0]
        core = self._measuring
        call_python(core, core.update, [rows], [(tf.int32, ())])
        return trajectory

    def result(self) -> Any:
        """The value for the updates so far, a scalar."""
        core = self._measuring
        return call_python(core, core.read, [], [(self._dtype, ())])[0]

    def reset(self) -> Any:
        """Goes back to the value for no updates."""
        core = self._measuring
        return call_python(core, core.reset, [], [(tf.int32, ())])[0]

    def __repr__(self) -> str:
        return (
            f"<FakeMetric {self.name!r}: {self.updates} updates, "
            f"{self.results} results, {self.resets} resets>"
        )


class _Measuring(Core):
    """Counts updates and reads, and follows the script."""

    SAVED = ("updates", "results", "resets")

    values: Values = None
    updates = 0
    results = 0
    resets = 0

    def update(self, rows: Any) -> list[Any]:
        with self.lock, self._call("metric.update"):
            self.timeline.add("metric.update", self.name, self.updates, int(rows))
            self.updates += 1
            return [rows]

    def read(self) -> list[Any]:
        with self.lock, self._call("metric.result"):
            value = self.updates
            if self.values is not None:
                value = _script.at(self.values, self.updates, "values")
            value = self.faults.corrupt("metric.result", value, self.name)
            self.timeline.add("metric.result", self.name, self.results, value)
            self.results += 1
            return [value]

    def reset(self) -> list[Any]:
        with self.lock:
            self.updates = 0
            self.resets += 1
            return [self.resets]

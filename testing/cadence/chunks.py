"""What readers hand out: batches of events in columns, and what they noticed.

A run can hold millions of events, so they travel as arrays. Consume a chunk
either way:

    for part in chunk.split():    # fast: one series at a time, arrays
        part.series.name, part.steps, part.places, part.nonfinite
    for event in chunk.events():  # simple: one `Event` at a time, in file order
        event.name, event.step, event.value, event.source
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from testing.cadence.events import Event, Source

Array: TypeAlias = np.ndarray  # of the dtype each docstring names
Values: TypeAlias = Array | Callable[[], Array]

PROBLEMS = (
    "truncated",
    "corrupt",
    "empty",
    "repeated-header",
    "ragged-row",
    "double-line",
)


_NONFINITE = re.compile(r"(?<![a-z])(?:nan|inf|infinity)(?![a-z])", re.I)


def is_nonfinite(value: float | str) -> bool:
    """Whether a value is, or as a text contains, NaN or an infinity."""
    if isinstance(value, str):
        return _NONFINITE.search(value) is not None
    return not math.isfinite(value)


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Series:
    """A series, as one writer wrote it.

    Attributes:
      name: `loss`, `AverageReturn`, ...
      writer: the process, thread or rank that the line prefix names; empty
        where the format names none. Series of one name and several writers
        are one series if the writers took turns (a resumed run, a thread
        pool), and several if they ran side by side.
    """

    name: str
    writer: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """The rows of one series in one chunk, in file order; columns as in `Chunk`."""

    series: Series
    steps: Array
    places: Array
    rows: Array
    _chunk: Chunk

    @property
    def values(self) -> Array:
        """float64; NaN also where the value is no single number."""
        return self._chunk.values[self.rows]

    @property
    def nonfinite(self) -> Array:
        """bool: the value is, or contains, NaN or an infinity."""
        return self._chunk.nonfinite[self.rows]

    def __len__(self) -> int:
        return len(self.steps)


class Chunk:
    """A batch of scalar events of one file, in file order, in columns.

    Attributes:
      path: the file, as it was named to the reader.
      format: the reader that understood it, for example `absl`.
      unit: what `places` count: `line`, `record` or `row`.
      kind: `log` or `summary`.
      series: the series that occur, each once.
      codes: int64 `[n]`, index into `series` of each event.
      steps: int64 `[n]`.
      places: int64 `[n]`, counted from 1, never falling.
      texts: row -> text, for values that are no single number.
      run: the file whose run this belongs to, where that is another one.
    """

    __slots__ = (
        "_nonfinite",
        "_values",
        "codes",
        "format",
        "kind",
        "path",
        "places",
        "run",
        "series",
        "steps",
        "texts",
        "unit",
    )

    def __init__(
        self,
        path: str,
        format: str,
        series: tuple[Series, ...],
        codes: Array,
        steps: Array,
        places: Array,
        values: Values,
        *,
        unit: str = "line",
        kind: str = "log",
        texts: Mapping[int, str] | None = None,
        nonfinite: Array | None = None,
        run: str = "",
    ) -> None:
        self.path = path
        self.format = format
        self.unit = unit
        self.kind = kind
        self.series = series
        self.codes = codes
        self.steps = steps
        self.places = places
        self.texts = texts or {}
        self._values = values
        self._nonfinite = nonfinite
        self.run = run

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def names(self) -> list[str]:
        """The name of each event."""
        names = [series.name for series in self.series]
        return [names[code] for code in self.codes.tolist()]

    @property
    def values(self) -> Array:
        """float64 `[n]`, NaN also where the value is in `texts`. Parsed when asked."""
        if callable(self._values):
            self._values = self._values()
        return self._values

    @property
    def parsed(self) -> bool:
        """Whether `values` are at hand already."""
        return not callable(self._values)

    @property
    def nonfinite(self) -> Array:
        """bool `[n]`: the value is, or contains, NaN or an infinity."""
        if self._nonfinite is None:
            mask = ~np.isfinite(self.values)
            for row, text in self.texts.items():
                mask[row] = is_nonfinite(text)
            self._nonfinite = mask
        return self._nonfinite

    def split(self) -> Iterator[Part]:
        """Yields the chunk series by series; cheap at any number of series."""
        if len(self.series) == 1:
            rows = np.arange(len(self))
            yield Part(self.series[0], self.steps, self.places, rows, self)
            return
        order = np.argsort(self.codes, kind="stable")
        counts = np.bincount(self.codes, minlength=len(self.series))
        ends = np.cumsum(counts)
        for series, count, end in zip(self.series, counts, ends, strict=True):
            rows = order[end - count : end]
            yield Part(series, self.steps[rows], self.places[rows], rows, self)

    def value(self, row: int) -> Any:
        """The value of one event: a float, or its text where it is no number."""
        text = self.texts.get(row)
        return float(self.values[row]) if text is None else text

    def events(self) -> Iterator[Event]:
        """Yields the events in file order."""
        columns = zip(
            self.names, self.steps.tolist(), self.places.tolist(), strict=True
        )
        for row, (name, step, place) in enumerate(columns):
            source = Source(self.path, self.format, place, self.unit)
            yield Event(self.kind, name, step, self.value(row), source)


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """Something a reader itself found wrong with a file.

    Attributes:
      kind: one of `PROBLEMS`.
      source: the file and the first place it was seen at.
      message: what is wrong, and the likely cause.
      count: number of places, where it was counted.
    """

    kind: str
    source: Source
    message: str
    count: int = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Declared:
    """Cadence that a file itself declares.

    Attributes:
      path: the file.
      format: its reader.
      name: `logging_steps`, `eval_steps`, `save_steps` or `max_steps`.
      value: what it declares.
    """

    path: str
    format: str
    name: str
    value: int

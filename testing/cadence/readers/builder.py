"""Gathers events row by row into chunks."""

from __future__ import annotations

import numpy as np

from testing.cadence.chunks import Chunk, Series

ROWS = 1 << 14


class Builder:
    """Takes events one at a time, hands out a chunk at a time."""

    def __init__(
        self, path: str, format: str, *, unit: str = "line", kind: str = "log"
    ) -> None:
        self._path = path
        self._format = format
        self._unit = unit
        self._kind = kind
        self.count = 0
        self._clear()

    def _clear(self) -> None:
        self._table: dict[tuple[str, str], int] = {}
        self._codes: list[int] = []
        self._steps: list[int] = []
        self._places: list[int] = []
        self._values: list[float] = []
        self._texts: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def full(self) -> bool:
        """Time to `take` a chunk."""
        return len(self._codes) >= ROWS

    def add(
        self, name: str, step: int, value: float | str, place: int, writer: str = ""
    ) -> None:
        """Adds one event; a `value` that is a str is kept as text."""
        key = (name, writer)
        if isinstance(value, str):
            self._texts[len(self._codes)] = value
            value = float("nan")
        self._codes.append(self._table.setdefault(key, len(self._table)))
        self._steps.append(step)
        self._places.append(place)
        self._values.append(value)
        self.count += 1

    def take(self) -> Chunk:
        """The chunk of what was added since the last time."""
        chunk = Chunk(
            self._path,
            self._format,
            tuple(Series(*key) for key in self._table),
            np.array(self._codes, np.int64),
            np.array(self._steps, np.int64),
            np.array(self._places, np.int64),
            np.array(self._values, np.float64),
            unit=self._unit,
            kind=self._kind,
            texts=self._texts,
        )
        self._clear()
        return chunk

"""Reads tables of comma-separated values with one row per logged step.

stable-baselines3 (`progress.csv`), Lightning (`metrics.csv`), RLlib, and any
other with a column of steps. An empty cell is no event: loggers that write
some series in rows of their own leave the others empty.
"""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Iterator

from testing.cadence.chunks import Chunk, Problem
from testing.cadence.readers import keys, values
from testing.cadence.readers.blocks import Input
from testing.cadence.readers.builder import Builder
from testing.cadence.readers.notes import Notes

_MOST_COLUMNS = 1 << 13
_REPEATED = "the header is there once more."


def knows(source: Input) -> bool:
    """Whether the first line names columns, among them one of steps."""
    line = source.first_line
    header = _cells(line, _delimiter(line))
    named = all(values.number(cell) is None for cell in header if cell)
    return len(header) > 1 and named and keys.step_key(header) is not None


def read(source: Input) -> Iterator[Chunk | Problem]:
    """Yields the chunks of a table, then what was wrong with it."""
    table = _Table(source)
    for row in _rows(source, table.delimiter):
        table.take(row)
        if table.builder.full:
            yield table.builder.take()
    if len(table.builder):
        yield table.builder.take()
    if not table.builder.count and not len(table.notes):
        table.notes.add("empty", 1, f"the table has {table.content}.")
    yield from table.notes.problems()


@dataclasses.dataclass(frozen=True, slots=True)
class _Row:
    """Cells, and the line they begin in; `whole` if the line end was there."""

    cells: list[str]
    place: int
    whole: bool


class _Table:
    """Turns rows into events."""

    def __init__(self, source: Input) -> None:
        line = source.first_line
        self.delimiter = _delimiter(line)
        self._header = _cells(line, self.delimiter)
        format = _format(self._header)
        self.builder = Builder(source.path, format)
        self.notes = Notes(source.path, format)
        self._rows = 0
        step = keys.step_key(self._header)
        assert step is not None
        self._step = self._header.index(step)
        self._columns = [
            (index, name)
            for index, name in enumerate(_distinct(self._header))
            if index != self._step and name.strip() and not keys.is_index(name)
        ]
        self._parts = {
            name: index for index, name in enumerate(self._header) if keys.is_part(name)
        }

    @property
    def content(self) -> str:
        """What is in the table, for one without any event."""
        return "no value in any row" if self._rows else "a header and no row"

    def take(self, row: _Row) -> None:
        """Adds the events of a row, or notes what is wrong with it."""
        if row.cells == self._header:
            if self._rows or row.place > 1:
                self.notes.add("repeated-header", row.place, _REPEATED)
            return
        self._rows += 1
        if len(row.cells) != len(self._header):
            self._note_size(row)
            return
        step = values.step(row.cells[self._step].strip())
        if step is None:
            return
        part = self._part(row)
        for index, name in self._columns:
            cell = row.cells[index]
            value = values.number(cell) if cell else None
            if value is not None:
                name = f"{part}/{name}" if part else name
                self.builder.add(name, step, value, row.place)

    def _part(self, row: _Row) -> str:
        cells = {name: row.cells[index] for name, index in self._parts.items()}
        return keys.part(cells) if cells else ""

    def _note_size(self, row: _Row) -> None:
        have, want = len(row.cells), len(self._header)
        if not row.whole and have < want:
            message = f"the last row ends after {have} of {want} cells."
            self.notes.add("truncated", row.place, message)
            return
        message = (
            f"a row has {have} cells, the header {want}. "
            "Rows of another size are not read."
        )
        self.notes.add("ragged-row", row.place, message)


def _rows(source: Input, delimiter: str) -> Iterator[_Row]:
    """Yields the rows; a row is a line, also where a quote is never closed."""
    for place, line, whole in source.lines():
        if line.strip():
            yield _Row(_cells(line, delimiter)[:_MOST_COLUMNS], place, whole)


def _cells(line: str, delimiter: str) -> list[str]:
    if '"' not in line:
        return line.split(delimiter)
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:  # a line end within a line, a cell beyond its limit
        return line.split(delimiter)


def _delimiter(line: str) -> str:
    return max(",\t;", key=line.count)


def _distinct(header: list[str]) -> list[str]:
    """The names, a repeated one with its number, as pandas has them."""
    seen: dict[str, int] = {}
    names = []
    for name in header:
        count = seen[name] = seen.get(name, -1) + 1
        names.append(f"{name}.{count}" if count else name)
    return names


def _format(header: list[str]) -> str:
    if any(name.startswith(("time/", "rollout/")) for name in header):
        return "stable-baselines3"
    return "lightning" if {"step", "epoch"} <= set(header) else "csv"

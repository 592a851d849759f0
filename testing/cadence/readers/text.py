"""Reads logs: lines in the forms of `lines`, whatever stands around them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from testing.cadence.chunks import Chunk, Problem
from testing.cadence.events import Source
from testing.cadence.readers import lines, values
from testing.cadence.readers.blocks import LONGEST_LINE, Input
from testing.cadence.readers.builder import Builder
from testing.cadence.readers.errors import UnreadableRun

FORMAT = "text"
_NO_EVENT = (
    "no line with a step and a value, such as '[step=3] loss = 0.5.' or "
    "'step = 3: loss = 0.5'. Name another form with --pattern."
)


def read(source: Input) -> Iterator[Chunk | Problem]:
    """Yields the chunks of a log, then what was wrong with it."""
    builder = Builder(source.path, FORMAT)
    reader = LineReader(builder)
    for block in source.blocks():
        for line in block.split(b"\n"):
            reader.feed(line)
        reader.place -= 1  # `split` gives one more, empty, after the last line end
        if builder.full:
            yield builder.take()
    if len(builder):
        yield builder.take()
    if not builder.count:
        raise UnreadableRun(f"{source.path}: {_NO_EVENT}")
    yield from reader.doubles.problems(source.path)


@dataclasses.dataclass(slots=True)
class Doubles:
    """Counts the lines that were written twice."""

    format: str = FORMAT
    first: int = 0
    count: int = 0

    def add(self, place: int, count: int = 1) -> None:
        """Notes doubled lines, the first of them at `place`."""
        self.first = self.first or place
        self.count += count

    def problems(self, path: str) -> Iterator[Problem]:
        """The finding, if there is one."""
        if self.count:
            times = "line is" if self.count == 1 else "lines are"
            yield Problem(
                "double-line",
                Source(path, self.format, self.first),
                f"{self.count:,} {times} written twice in a row: "
                "two handlers on one logger? Read once here.",
                self.count,
            )


class LineReader:
    """Takes lines one at a time and puts their events into a builder."""

    def __init__(self, builder: Builder) -> None:
        self.place = 0
        self.doubles = Doubles()
        self._builder = builder
        self._last: tuple[str, lines.Found] | None = None
        self._record: lines.Found | None = None

    def feed(self, raw: bytes) -> None:
        """Takes the next line, without its line end."""
        self.place += 1
        line = raw[:LONGEST_LINE].decode("utf-8", "replace").rstrip("\r")
        if self._record is not None and self._continue(line):
            return
        found = lines.parse(line) if "step" in line.lower() else None
        if found is None:
            return
        if not found.pairs:
            self._record = found
        elif self._repeats(line, found):
            self.doubles.add(self.place)
            self._last = None
        else:
            self._last = (line, found)
            self._add(found)

    def _add(self, found: lines.Found) -> None:
        writer = found.writer
        for name, value in lines.pairs(found):
            self._builder.add(name, found.step, value, self.place, writer)

    def _continue(self, line: str) -> bool:
        """Whether the line belongs to the record that was announced."""
        pair = lines.continued(line)
        record = self._record
        if pair is None or record is None:
            self._record = None
            return False
        value = values.scalar(pair[1])
        self._builder.add(pair[0], record.step, value, self.place, record.writer)
        return True

    def _repeats(self, line: str, found: lines.Found) -> bool:
        if self._last is None:
            return False
        before, last = self._last
        same = (found.step, found.pairs) == (last.step, last.pairs)
        return same and lines.doubled(line, found.prefix, before, last.prefix)

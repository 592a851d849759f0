"""Reads logs: lines in the forms of `lines`, whatever stands around them."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterator

import numpy as np

from testing.cadence.chunks import Array, Chunk, Problem
from testing.cadence.readers import lines, values
from testing.cadence.readers.block import BACK, FRONT, Block, padded
from testing.cadence.readers.blocks import Input, decoded
from testing.cadence.readers.columns import Row, Scanned, listed, merged
from testing.cadence.readers.errors import UnreadableRun
from testing.cadence.readers.notes import Notes
from testing.cadence.readers.scan import Hits, scan
from testing.cadence.readers.sieve import Sieve

NO_EVENT = (
    "no line with a step and a value, such as '[step=3] loss = 0.5.' or "
    "'step = 3: loss = 0.5'. Name another form with --pattern."
)
_BINARY = "neither text nor an event file."
_DOUBLED = "a line is there twice in a row; counted once."
_ABSL = re.compile(rb"^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} {1,5}\d{1,20} \S", re.M)
_COLOUR = re.compile(rb"\x1b\[[\d;]{0,20}m")
# A record with more lines is none: what follows is read for itself.
_LONGEST_RECORD = 1000

Scan = Callable[[Block], Hits]


def read(source: Input, scan: Scan = scan) -> Iterator[Chunk | Problem]:
    """Yields the chunks of a log, then what was wrong with it.

    Args:
      source: the opened file.
      scan: finds the lines of the commonest form; tests replace it.
    """
    format = "absl" if _ABSL.search(source.head) else "text"
    reader = TextReader(source.path, format, scan)
    found = False
    for data in source.blocks(FRONT, BACK):
        for chunk in reader.feed(data):
            found = True
            yield chunk
    for chunk in reader.finish():
        found = True
        yield chunk
    if not found:
        binary = b"\0" in source.head
        raise UnreadableRun(f"{source.path}: {_BINARY if binary else NO_EVENT}")
    yield from reader.notes.problems()


@dataclasses.dataclass(slots=True)
class _Line:
    """A line with events: its number, its text, and what is in it.

    Attributes:
      places: the line number of each pair, which differ in a record.
    """

    place: int
    text: str
    found: lines.Found
    places: list[int]

    def rows(self) -> Iterator[Row]:
        """The events of the line."""
        writer = lines.writer(self.found.prefix)
        for (name, text), place in zip(self.found.pairs, self.places, strict=True):
            yield name, writer, self.found.step, values.scalar(text), place

    def repeats(self, before: _Line) -> bool:
        """Whether this is the line `before`, written once more."""
        mine, other = self.found, before.found
        if (mine.step, mine.pairs) != (other.step, other.pairs):
            return False
        return lines.doubled(self.text, mine.prefix, before.text, other.prefix)


class TextReader:
    """Turns blocks of lines into chunks; keeps what spans two blocks."""

    def __init__(self, path: str, format: str, scan: Scan) -> None:
        self.notes = Notes(path, format)
        self._path = path
        self._format = format
        self._scan = scan
        self._record: _Line | None = None
        self._last: _Line | None = None
        self._sieve = Sieve()
        self._scanned = Scanned()

    def feed(self, data: bytes) -> Iterator[Chunk]:
        """Takes lines, `padded`; yields their events, sooner or later."""
        for block in self._sieve.feed(_cleaned(data)):
            yield from self._read(block)

    def finish(self) -> Iterator[Chunk]:
        """Yields what waited for more lines."""
        for block in self._sieve.finish():
            yield from self._read(block)
        if self._record is not None and self._record.found.pairs:
            yield listed(self._record.rows()).chunk(self._path, self._format)
        self._record = None

    def _read(self, block: Block) -> Iterator[Chunk]:
        hits = self._scan(block)
        slow = self._closer_look(block, hits)
        keep = self._drop_doubles(block, hits, slow)
        yield from self._chunks(block, hits, keep, slow)

    def _closer_look(self, block: Block, hits: Hits) -> list[_Line]:
        """The lines with events that `scan` left, records put together."""
        found: list[_Line] = []
        row = self._continue(block, 0, found) if self._record else 0
        for other in hits.others.tolist():
            line = self._parse(block, other) if other >= row else None
            if line is None:
                continue
            if line.found.pairs:
                found.append(line)
            else:
                self._record = line
                row = self._continue(block, other + 1, found)
        return found

    def _parse(self, block: Block, row: int) -> _Line | None:
        text = decoded(block.line(row))
        found = lines.parse(text)
        if found is None:
            return None
        place = int(block.numbers[row])
        return _Line(place, text, found, [place] * len(found.pairs))

    def _continue(self, block: Block, row: int, found: list[_Line]) -> int:
        """Reads the record on; returns the first row that is none of it."""
        record = self._record
        assert record is not None
        pairs = list(record.found.pairs)
        while row < block.size and len(pairs) < _LONGEST_RECORD:
            if block.numbers[row] != record.place + len(pairs) + 1:
                break  # a line between was left out
            pair = lines.continued(decoded(block.line(row)))
            if pair is None:
                break
            pairs.append(pair)
            record.places.append(int(block.numbers[row]))
            row += 1
        record.found = dataclasses.replace(record.found, pairs=tuple(pairs))
        if row < block.size:
            self._record = None
            found += [record] if pairs else []
        return row

    def _drop_doubles(self, block: Block, hits: Hits, slow: list[_Line]) -> Array:
        """The hits that are no doubles of the line before; removes slow ones."""
        places = [block.numbers[hits.rows], [line.place for line in slow]]
        order = np.argsort(np.concatenate(places), kind="stable")
        count = len(hits.rows)
        dropped = np.zeros(len(order), bool)

        def line(position: int) -> _Line | None:
            index = int(order[position])
            if index >= count:
                return slow[index - count]
            return self._parse(block, int(hits.rows[index]))

        anchor = self._last
        for position in _suspects(hits, order).tolist():
            if position and not dropped[position - 1]:
                anchor = line(position - 1)
            this = line(position)
            if this and anchor and this.repeats(anchor):
                dropped[position] = True
                self.notes.add("double-line", this.place, _DOUBLED)
        if len(order):
            self._last = anchor if dropped[-1] else line(len(order) - 1)
        gone = np.zeros(len(order), bool)
        gone[order] = dropped
        kept = zip(slow, gone[count:].tolist(), strict=True)
        slow[:] = [each for each, is_gone in kept if not is_gone]
        return np.flatnonzero(~gone[:count])

    def _chunks(
        self, block: Block, hits: Hits, keep: Array, slow: list[_Line]
    ) -> Iterator[Chunk]:
        columns = []
        if len(keep):
            scanned = self._scanned.columns(block, hits, keep)
            columns.append(scanned)
        if slow:
            columns.append(listed(row for line in slow for row in line.rows()))
        if columns:
            yield functools.reduce(merged, columns).chunk(self._path, self._format)


def _suspects(hits: Hits, order: Array) -> Array:
    """Positions of the lines that may repeat the one before: few, in most logs."""
    fast = order < len(hits.rows)
    suspect = ~fast
    suspect[1:] |= suspect[:-1]
    suspect[:1] = True
    same = np.zeros(len(hits.rows), bool)
    same[1:] = (hits.names[1:] == hits.names[:-1]) & (hits.steps[1:] == hits.steps[:-1])
    suspect[fast] |= same[order[fast]]
    return np.flatnonzero(suspect)


def _cleaned(data: bytes) -> bytes:
    """Whole lines without colours and what progress bars wrote over, `padded`."""
    whole = data.endswith(b"\n" + BACK)
    if whole and b"\x1b" not in data and b"\r" not in data:
        return data
    text = _COLOUR.sub(b"", data[len(FRONT) : -len(BACK)])
    text = text.replace(b"\r\n", b"\n")
    if b"\r" in text:
        lines = text.split(b"\n")
        text = b"\n".join(line.rstrip(b"\r").rpartition(b"\r")[2] for line in lines)
    return padded(text, b"" if whole else b"\n")

"""Leaves out the lines of a file that cannot hold an event, where most cannot.

What is left of many blocks is looked at as one: an operation on a few lines takes
hardly less time than one on many.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from testing.cadence.chunks import Array
from testing.cadence.readers.block import FRONT, Block, Scratch, padded, with_step

# So many bytes of lines are gathered.
FULL = 1 << 20
# A block with a step in fewer bytes than this is taken as it is.
RARE = 256


class Sieve:
    """Turns blocks of whole lines into fewer ones, of the same order.

    Kept are lines with `step` in them, and those that may begin with white space:
    they may continue the record of a line before (`lines.continued`).
    """

    def __init__(self) -> None:
        self._scratch = Scratch()
        self._lines = 0
        self._texts: list[bytes] = []
        self._numbers: list[Array] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[Block]:
        """Takes whole lines, `padded`."""
        places = with_step(np.frombuffer(data, np.uint8), self._scratch)
        many = len(places) * RARE > len(data)
        if not many:
            self._gather(data, places)
        if many or self._size >= FULL:
            yield from self.finish()
        if many:
            block = Block(data, self._scratch, self._lines, places=places)
            self._lines += block.size
            yield block

    def finish(self) -> Iterator[Block]:
        """Yields the lines that are gathered."""
        if self._size:
            data, numbers = padded(*self._texts), np.concatenate(self._numbers)
            yield Block(data, self._scratch, numbers=numbers)
        self._texts, self._numbers, self._size = [], [], 0

    def _gather(self, data: bytes, places: Array) -> None:
        """Cuts out the lines to keep, neighbours in one piece."""
        text = np.frombuffer(data, np.uint8)
        is_end = self._scratch.of(len(data))[0].view(bool)
        ends = np.equal(text, 10, out=is_end).nonzero()[0]
        starts = np.concatenate([[len(FRONT)], ends[:-1] + 1])
        rows = _kept(text[starts], np.searchsorted(ends, places))
        if len(rows):
            breaks = np.flatnonzero(rows[1:] - rows[:-1] != 1)
            first = np.concatenate([rows[:1], rows[breaks + 1]])
            last = np.concatenate([rows[breaks], rows[-1:]])
            spans = zip(starts[first].tolist(), ends[last].tolist(), strict=True)
            pieces = [data[start : end + 1] for start, end in spans]
            self._texts += pieces
            self._numbers.append(rows + (self._lines + 1))
            self._size += sum(map(len, pieces))
        self._lines += len(ends)


def _kept(first: Array, rows: Array) -> Array:
    """Which lines to keep, rising: of the first bytes of all, and those with a step."""
    blank = np.flatnonzero((first <= 32) | (first >= 128))
    if len(blank):
        return np.union1d(rows, blank)
    return rows[np.flatnonzero(np.diff(rows, prepend=-1))]

"""Leaves out the lines of a file that cannot hold an event, where most cannot.

What is left of many blocks is looked at as one: an operation on a few lines takes
hardly less time than one on many.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from testing.cadence.chunks import Array
from testing.cadence.readers.block import Block, Scratch, with_step

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

    def feed(self, text: bytes) -> Iterator[Block]:
        """Takes whole lines; the last line of the file may lack its end."""
        if not text.endswith(b"\n"):
            text += b"\n"
        places = with_step(np.frombuffer(text, np.uint8), self._scratch)
        many = len(places) * RARE > len(text)
        if not many:
            self._gather(text, places)
        if many or self._size >= FULL:
            yield from self.finish()
        if many:
            block = Block(text, self._scratch, self._lines)
            self._lines += block.size
            yield block

    def finish(self) -> Iterator[Block]:
        """Yields the lines that are gathered."""
        if self._size:
            text, numbers = b"".join(self._texts), np.concatenate(self._numbers)
            yield Block(text, self._scratch, numbers=numbers)
        self._texts, self._numbers, self._size = [], [], 0

    def _gather(self, text: bytes, places: Array) -> None:
        """Cuts out the lines to keep, neighbours in one piece."""
        data = np.frombuffer(text, np.uint8)
        is_end = self._scratch.of(len(text))[0].view(bool)
        ends = np.equal(data, 10, out=is_end).nonzero()[0]
        rows = _kept(data, ends, places)
        if len(rows):
            breaks = np.flatnonzero(rows[1:] - rows[:-1] != 1)
            first = np.concatenate([rows[:1], rows[breaks + 1]])
            last = np.concatenate([rows[breaks], rows[-1:]])
            starts = np.where(first > 0, ends[first - 1] + 1, 0).tolist()
            stops = (ends[last] + 1).tolist()
            pieces = [text[a:b] for a, b in zip(starts, stops, strict=True)]
            self._texts += pieces
            self._numbers.append(rows + (self._lines + 1))
            self._size += sum(map(len, pieces))
        self._lines += len(ends)


def _kept(data: Array, ends: Array, places: Array) -> Array:
    """Indices of the lines to keep, rising."""
    rows = np.searchsorted(ends, places)
    first = data[np.concatenate([[0], ends[:-1] + 1])]
    blank = np.flatnonzero((first <= 32) | (first >= 128))
    if len(blank):
        return np.union1d(rows, blank)
    return rows[np.flatnonzero(np.diff(rows, prepend=-1))]

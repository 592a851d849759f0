"""Lines of a file as arrays of their bytes."""

from __future__ import annotations

import numpy as np

from testing.cadence.chunks import Array

# What stands before and behind the lines of a block, so that words may be read there.
FRONT = b"\0" * 8
BACK = b"\0" * 72
_LOWER = np.uint16(0x2020)
_TE, _EP = (np.uint16(int.from_bytes(pair, "little")) for pair in (b"te", b"ep"))


class Scratch:
    """Memory for the comparisons of one block after the other.

    To allocate it anew for each block costs more than the comparisons.
    """

    def __init__(self) -> None:
        self._arrays = np.zeros((4, 0), np.uint8)

    def of(self, size: int) -> tuple[Array, Array, Array, Array]:
        """Four arrays of `size` bytes, with whatever was in them."""
        if self._arrays.shape[1] < size:
            # Whole words, so that pairs of bytes can be looked at too.
            self._arrays = np.zeros((4, size + -size % 8), np.uint8)
        one, two, three, four = self._arrays[:, :size]
        return one, two, three, four


def padded(*lines: bytes) -> bytes:
    """The data of a block."""
    return b"".join((FRONT, *lines, BACK))


class Block:
    """Lines as bytes, where each begins and ends, and which of the file it is.

    Args:
      data: whole lines, `padded`.
      scratch: memory to use.
      before: number of lines of the file before these.
      numbers: the number of each line in the file, from 1, where they do not
        simply follow each other.
      places: those of `with_step`, where they are known.

    Attributes:
      data: as it was given; all offsets count in it.
      size: number of lines.
      numbers: int64, the number of each line.
    """

    def __init__(
        self,
        data: bytes,
        scratch: Scratch,
        before: int = 0,
        numbers: Array | None = None,
        places: Array | None = None,
    ) -> None:
        self.data = data
        self.bytes = np.frombuffer(self.data, np.uint8)
        self.words = np.ndarray(
            (len(self.data) - 7,), "<u8", buffer=self.data, strides=(1,)
        )
        self._scratch = scratch
        self._places = places
        # Every line end and every equals sign, in order.
        self.marks = self._find_marks()
        self.is_end = self.bytes[self.marks] == 10
        self.ends = self.marks[self.is_end]
        self.size = len(self.ends)
        if numbers is None:
            numbers = np.arange(before + 1, before + self.size + 1)
        self.numbers = numbers

    def _find_marks(self) -> Array:
        one, two, _, _ = (each.view(bool) for each in self._scratch.of(len(self.data)))
        np.equal(self.bytes, 10, out=one)
        np.equal(self.bytes, 61, out=two)
        return np.logical_or(one, two, out=one).nonzero()[0]

    def starts(self, rows: Array) -> Array:
        """Offsets of the first bytes of lines."""
        return np.where(rows > 0, self.ends[rows - 1] + 1, len(FRONT))

    def line(self, row: int) -> bytes:
        """One line, without its line end."""
        start = self.ends[row - 1] + 1 if row else len(FRONT)
        return self.data[start : self.ends[row]]

    def with_step(self) -> Array:
        """As `with_step`, of all lines."""
        if self._places is None:
            self._places = with_step(self.bytes, self._scratch)
        return self._places


def with_step(text: Array, scratch: Scratch) -> Array:
    """An offset within each `tep` in any case: part of every `step`, and rare else.

    It is that of its `te` or `ep`, one of which is a pair that begins at an even one.

    Args:
      text: bytes, the last of which is no letter.
      scratch: memory to use.
    """
    size = len(text) // 2
    pairs = text[: 2 * size].view("<u2")
    one, two, _, four = scratch.of(2 * size)
    low = four.view(np.uint16)
    one, two = one[:size].view(bool), two[:size].view(bool)
    np.bitwise_or(pairs, _LOWER, out=low)
    np.equal(low, _TE, out=one)
    np.equal(low, _EP, out=two)
    at = 2 * np.logical_or(one, two, out=one).nonzero()[0]
    # The third letter, behind the pair or before it.
    behind = low[at // 2] == _TE
    third = text.take(np.where(behind, at + 2, at - 1), mode="clip") | 32
    return at[third == np.where(behind, 112, 116)]

"""Where on the step axis a series has values, in bounded memory."""

from __future__ import annotations

import numpy as np

from testing.cadence.chunks import Array

LIMIT = 2048


class Cells:
    """The steps of a series, cut into cells of equal width.

    The width is 1 until there are more than `LIMIT` cells; then it doubles.
    """

    def __init__(self) -> None:
        self.width = 1
        self._cells: Array = np.empty(0, np.int64)

    @property
    def starts(self) -> Array:
        """The first step of every cell that holds a value, rising."""
        return self._cells * self.width

    def add(self, steps: Array, every: int = 0) -> None:
        """Adds `steps`; `every` is their distance if they are even."""
        if 0 < every <= self.width:
            first, last = int(steps[0]), int(steps[-1])
            new = np.arange(first // self.width, last // self.width + 1)
        else:
            new = np.unique(steps // self.width)
        self._merge(new)
        while len(self._cells) > LIMIT:
            self._cells = np.unique(self._cells // 2)
            self.width *= 2

    def _merge(self, new: Array) -> None:
        """Adds rising cells; the usual case, that they go on, needs no sorting."""
        if len(self._cells):
            last = self._cells[-1]
            if new[0] == last:
                new = new[1:]
            elif new[0] < last:
                self._cells = np.union1d(self._cells, new)
                return
        if len(new):
            self._cells = np.concatenate((self._cells, new))

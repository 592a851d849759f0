"""Values that share a step with the value before: repeated once, or stuck?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from testing.cadence.chunks import Array
from testing.cadence.findings import Spot, Tally


class Repeats:
    """Sorts values at an unmoved step into duplicates and frozen stretches.

    A stretch is a run of values at one step. Two different values are a
    duplicate; three and more mean that the step stood still. Equal values are
    left out: they are the business of `doubles`.
    """

    def __init__(self) -> None:
        self.duplicates = Tally()
        self.frozen = Tally()
        self._different = 0
        self._spot: Spot | None = None

    def add(self, still: Array, differs: Array, spot: Callable[[int], Spot]) -> None:
        """Takes, value by value, whether the step stood still, and the value not."""
        if not len(still):
            return
        if not still[0]:
            self.close()
        if not still.any():
            return
        starts = still & ~np.concatenate(([self._spot is not None], still[:-1]))
        stretch = np.cumsum(starts)[still]  # 0 goes on from the batch before
        different = np.bincount(stretch, differs[still], minlength=1).astype(np.int64)
        different[0] += self._different
        self._settle(different, np.flatnonzero(starts), bool(still[-1]), spot)

    def _settle(
        self,
        different: Array,
        starts: Array,
        open_end: bool,
        spot: Callable[[int], Spot],
    ) -> None:
        carried, self._spot, self._different = self._spot, None, 0
        if open_end:
            self._different = int(different[-1])
            self._spot = spot(int(starts[-1])) if len(starts) else carried
            different = different[:-1]
        stuck, twice = np.flatnonzero(different >= 2), np.flatnonzero(different == 1)
        for tally, which in ((self.frozen, stuck), (self.duplicates, twice)):
            if len(which):
                first = carried if which[0] == 0 else spot(int(starts[which[0] - 1]))
                tally.add(int(different[which].sum()), first or spot(0))

    def close(self) -> None:
        """Ends the stretch that is open."""
        if self._spot is not None:
            tally = self.frozen if self._different >= 2 else self.duplicates
            tally.add(self._different, self._spot)
        self._spot, self._different = None, 0

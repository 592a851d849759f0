"""The distances between a series' steps: is there a beat, and where is it missed?"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from testing.cadence.chunks import Array
from testing.cadence.findings import Spot

# More distinct distances than this, and a series has no beat.
DISTINCT = 64
# First places kept of each distance.
KEPT = 32
# Share of its distances that must be equal before a series has a beat, and
# share that may be multiples of it, each a gap.
EVEN = 2 / 3
WIDE = 1 / 5


@dataclasses.dataclass(slots=True)
class Distance:
    """One distance between neighbours.

    Attributes:
      count: how often it occurs.
      again: how often it follows itself.
      first: step before it and place after it, of the first few.
    """

    count: int = 0
    again: int = 0
    first: list[tuple[int, Spot]] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class Gap:
    """Beats that are missing: `steps` of them at `places` places, the first `at`."""

    steps: int
    places: int
    before: int
    at: Spot


class Intervals:
    """Histogram of distances, capped. Only ever sees steps that move on."""

    def __init__(self) -> None:
        self.every = 0  # the commonest so far: what the next one is likely to be
        self.overflow = False
        self._seen: dict[int, Distance] = {}
        self._last = 0

    @property
    def total(self) -> int:
        """Number of distances."""
        return sum(distance.count for distance in self._seen.values())

    def add_even(self, count: int) -> None:
        """Counts `count` more distances of `every`."""
        distance = self._seen[self.every]
        distance.count += count
        distance.again += count - (self._last != self.every)
        self._last = self.every

    def add(
        self,
        distances: Array,
        before: Array,
        caught_up: Array,
        spot: Callable[[int], Spot],
    ) -> None:
        """Counts `distances`.

        Args:
          distances: all above 0.
          before: the step each starts from.
          caught_up: whether the step had stood still just before, so that a
            wide distance only makes up for it.
          spot: `spot(i)` is the place at which distance `i` ends.
        """
        if self.overflow or not len(distances):
            return
        usual = self.every or _commonest(distances)
        rows = np.flatnonzero(~caught_up | (distances == usual))
        if len(rows):
            self._add(distances[rows], before[rows], lambda i: spot(int(rows[i])))

    def _add(
        self, distances: Array, before: Array, spot: Callable[[int], Spot]
    ) -> None:
        kinds, counts = np.unique(distances, return_counts=True)
        if len({*self._seen, *kinds.tolist()}) > DISTINCT:
            self.overflow = True
            self._seen.clear()
            self.every = 0
            return
        follows = np.concatenate(([self._last], distances[:-1])) == distances
        for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
            self._count(kind, count, distances, before, follows, spot)
        self._last = int(distances[-1])
        self.every = self._mode()

    def _count(
        self,
        kind: int,
        count: int,
        distances: Array,
        before: Array,
        follows: Array,
        spot: Callable[[int], Spot],
    ) -> None:
        distance = self._seen.setdefault(kind, Distance())
        rows = np.flatnonzero(distances == kind)
        distance.count += count
        distance.again += int(np.count_nonzero(follows[rows]))
        for row in rows[: KEPT - len(distance.first)].tolist():
            distance.first.append((int(before[row]), spot(row)))

    def _mode(self) -> int:
        return max(self._seen, key=lambda kind: (self._seen[kind].count, -kind))

    def forget(self, step: int) -> None:
        """Takes back the one gap that a late `step` fills."""
        for kind, distance in self._seen.items():
            for found in distance.first:
                if kind != self.every and found[0] < step < found[0] + kind:
                    distance.first.remove(found)
                    distance.count -= 1
                    return

    def beat(self) -> int | None:
        """The interval that the series keeps, but for gaps; None without one."""
        if self.overflow or not self.every:
            return None
        common, total = self._seen[self.every].count, self.total
        alone = common == total
        return self.every if alone or (common >= 2 and common >= EVEN * total) else None

    @property
    def pure(self) -> bool:
        """Whether every distance is the beat or a multiple of it."""
        beat = self.beat()
        return beat is not None and all(kind % beat == 0 for kind in self._seen)

    def gap(self) -> Gap | None:
        """The beats that an even series misses."""
        beat = self.beat()
        if beat is None:
            return None
        wide = [
            (kind, it) for kind, it in self._seen.items() if _is_gap(kind, it, beat)
        ]
        places = sum(it.count for _, it in wide)
        if not places or places > max(1, WIDE * self.total):
            return None
        firsts = [found for _, it in wide for found in it.first[:1]]
        before, at = min(firsts, key=lambda found: (found[1].path, found[1].place))
        steps = sum(it.count * (kind // beat - 1) for kind, it in wide)
        return Gap(steps, places, before, at)

    def missing(self) -> list[int]:
        """The first missing step of each of the first few gaps, rising."""
        beat = self.beat() or 0
        wide = [one for one in self._seen.items() if beat and _is_gap(*one, beat)]
        return sorted(before + beat for _, it in wide for before, _ in it.first)


def _commonest(distances: Array) -> int:
    kinds, counts = np.unique(distances, return_counts=True)
    return int(kinds[counts.argmax()])


def _is_gap(kind: int, distance: Distance, beat: int) -> bool:
    """A multiple of the beat, unless it is a new beat: wide and kept up."""
    if kind == beat or kind % beat or not distance.count or not distance.first:
        return False
    return kind == 2 * beat or distance.again < 2

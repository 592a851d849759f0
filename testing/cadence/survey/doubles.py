"""Records written twice: a block of values that stands again right behind itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from testing.cadence.chunks import Array
from testing.cadence.findings import MARKS, Spot
from testing.cadence.survey.batches import Batch
from testing.cadence.survey.track import Echoes, Track

# Blocks longer than this are no record.
LONGEST = 4096


@dataclasses.dataclass(frozen=True, slots=True)
class _Source:
    """Echoes of one track: where they stand, how far back, and their places."""

    track: Track
    at: Array
    distance: Array
    spots: Callable[[int], Spot]

    def tally(self, rows: Array, doubled: bool) -> None:
        """Counts the echoes `rows`, rising."""
        if len(rows):
            track = self.track
            tally = track.doubles if doubled else track.repeats.duplicates
            spots = [self.spots(int(row)) for row in rows[:MARKS]]
            steps = np.array([spot.step for spot in spots], np.int64)
            tally.add(len(rows), spots[0], steps)

    def one(self, row: int) -> _Source:
        """A source of one of its echoes."""
        spot = self.spots(row)
        cut = slice(row, row + 1)
        return _Source(self.track, self.at[cut], self.distance[cut], lambda _: spot)


class Doubles:
    """Tells echoes that make up whole blocks from single values logged twice.

    A block of `d` values is doubled when `d` echoes in a row each stand `d`
    events behind their twin. Echoes come chunk by chunk; what is left of a
    block at the end of a chunk waits for the next one.
    """

    def __init__(self) -> None:
        self._waiting: list[_Source] = []

    def settle(self, found: list[tuple[Track, Batch, Echoes]], end: int) -> None:
        """Adds each echo of a chunk to a tally of its track.

        `end` is the number of events up to the end of the chunk.
        """
        sources = self._waiting + [_source(*one) for one in found]
        self._waiting = []
        if not sources:
            return
        at = np.concatenate([source.at for source in sources])
        distance = np.concatenate([source.distance for source in sources])
        order = np.argsort(at, kind="stable")
        whole, rest = np.empty(len(at), bool), np.empty(len(at), bool)
        whole[order], rest[order] = _whole_blocks(at[order], distance[order], end)
        start = 0
        for source in sources:
            mine = slice(start, start + len(source.at))
            start = mine.stop
            source.tally(np.flatnonzero(whole[mine]), True)
            source.tally(np.flatnonzero(~whole[mine] & ~rest[mine]), False)
            waiting = np.flatnonzero(rest[mine]).tolist()
            self._waiting += [source.one(row) for row in waiting]

    def close(self) -> None:
        """No more chunks: what waits is no block."""
        for source in self._waiting:
            source.tally(np.arange(len(source.at)), False)
        self._waiting = []


def _source(track: Track, batch: Batch, echoes: Echoes) -> _Source:
    index = echoes.index
    return _Source(
        track, echoes.at, echoes.distance, lambda row: batch.spot(int(index[row]))
    )


def _whole_blocks(at: Array, distance: Array, end: int) -> tuple[Array, Array]:
    """Which echoes, in file order, are in a whole block, and which may become so."""
    breaks = (np.diff(at) != 1) | (np.diff(distance) != 0)
    group = np.concatenate(([0], np.cumsum(breaks)))
    sizes = np.bincount(group)
    place = np.arange(len(at)) - (np.cumsum(sizes) - sizes)[group]
    inside = place < sizes[group] // distance * distance
    short = distance <= LONGEST
    open_end = (group == group[-1]) & (at[-1] == end - 1)
    return inside & short, ~inside & short & open_end

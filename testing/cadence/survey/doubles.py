"""Records written twice: a block of values that stands again right behind itself."""

from __future__ import annotations

import dataclasses

import numpy as np

from testing.cadence.chunks import Array
from testing.cadence.findings import Spot, Tally
from testing.cadence.survey.batches import Batch
from testing.cadence.survey.track import Echoes, Track

# Blocks longer than this are no record.
LONGEST = 4096


@dataclasses.dataclass(frozen=True, slots=True)
class _Echo:
    """An echo whose block may go on in the next chunk."""

    at: int
    distance: int
    track: Track
    spot: Spot


class Doubles:
    """Tells echoes that make up whole blocks from single values logged twice.

    A block of `d` values is doubled when `d` echoes in a row each stand `d`
    events behind their twin. Echoes come chunk by chunk; what is left of a
    block at the end of a chunk waits for the next one.
    """

    def __init__(self) -> None:
        self._waiting: list[_Echo] = []

    def settle(self, found: list[tuple[Track, Batch, Echoes]], end: int) -> None:
        """Adds each echo of a chunk to a tally of its track.

        `end` is the number of events up to the end of the chunk.
        """
        if not found and not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        owner = np.repeat(np.arange(len(found)), [len(e.at) for _, _, e in found])
        index = _join([echoes.index for _, _, echoes in found])
        order = np.argsort(_join([echoes.at for _, _, echoes in found]), kind="stable")
        owner, index = owner[order], index[order]
        at = _join([[e.at for e in waiting], *(e.at for _, _, e in found)])
        distance = _join(
            [[e.distance for e in waiting], *(e.distance for _, _, e in found)]
        )
        order = np.concatenate((np.arange(len(waiting)), order + len(waiting)))
        at, distance = at[order], distance[order]
        whole, rest = _whole_blocks(at, distance, end)
        for number, echo in enumerate(waiting):
            if rest[number]:
                self._waiting.append(echo)
            else:
                _tally(echo.track, bool(whole[number])).add(1, echo.spot)
        whole, rest = whole[len(waiting) :], rest[len(waiting) :]
        for number, (track, batch, _) in enumerate(found):
            mine = owner == number
            for doubled in (True, False):
                rows = index[mine & (whole == doubled) & ~rest]
                if len(rows):
                    first = batch.spot(int(rows[0]))
                    _tally(track, doubled).add(len(rows), first, batch.steps[rows])
        for row in np.flatnonzero(rest).tolist():
            track, batch, _ = found[owner[row]]
            late = row + len(waiting)
            spot = batch.spot(int(index[row]))
            echo = _Echo(int(at[late]), int(distance[late]), track, spot)
            self._waiting.append(echo)

    def close(self) -> None:
        """No more chunks: what waits is no block."""
        for echo in self._waiting:
            _tally(echo.track, False).add(1, echo.spot)
        self._waiting = []


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


def _join(columns: list[Array | list[int]]) -> Array:
    arrays = [np.asarray(column, np.int64) for column in columns]
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)


def _tally(track: Track, doubled: bool) -> Tally:
    return track.doubles if doubled else track.repeats.duplicates

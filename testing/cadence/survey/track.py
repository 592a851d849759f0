"""Track: what is remembered of one series while a run streams by."""

from __future__ import annotations

import dataclasses
import zlib

import numpy as np

from testing.cadence.chunks import Array
from testing.cadence.findings import NOWHERE, Tally
from testing.cadence.survey.batches import Batch
from testing.cadence.survey.cells import Cells
from testing.cadence.survey.intervals import Intervals
from testing.cadence.survey.repeats import Repeats

# First steps kept one by one.
HEAD = 64
# Series that repeat with every row of a table: counters, not measurements.
INDEXES = frozenset({"epoch", "step", "global_step", "time/total_timesteps"})
# Late values that may take back a gap.
_LATE = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Echoes:
    """Values equal to the one before at the same step.

    Attributes:
      at: number of each among all events of the run.
      distance: how many events back the one before stands.
      index: number of each in its batch.
    """

    at: Array
    distance: Array
    index: Array


class Track:
    """Counts, first places and the beat of one series. Size does not grow."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.first = 0
        self.last = 0
        self.high = 0
        self.born = 0
        self.format = ""
        self.start = NOWHERE
        self.end = NOWHERE
        self.again = 0
        self.backs = Tally()
        self.back_from = 0
        self.back_file = False
        self.nonfinite = Tally()
        self.doubles = Tally()
        self.intervals = Intervals()
        self.repeats = Repeats()
        self.cells = Cells()
        self.head: list[int] = []
        self.digest = 0
        self._stuck = False
        self._at = 0
        self._value: float | None = None

    def add(self, batch: Batch) -> Echoes | None:
        """Takes the next values; gives back those that echo the one before."""
        steps = batch.steps
        skip = 0 if self.count else 1
        if skip:
            self.first = self.last = self.high = int(steps[0])
            self.start = batch.spot(0)
            self.format = batch.chunk.format
            self.born = batch.offset + int(batch.rows[0])
        moves = np.diff(steps, prepend=self.last)[skip:]
        every = self.intervals.every if self.last == self.high else 0
        echoes = None
        if every and len(moves) and bool((moves == every).all()):
            self.intervals.add_even(len(moves))
            self.repeats.close()
            self._stuck = False
        else:
            every = 0
            echoes = self._uneven(batch, moves, skip)
        self._finish(batch, every)
        return echoes

    def _finish(self, batch: Batch, every: int) -> None:
        steps = batch.steps
        self.count += len(steps)
        self.last = int(steps[-1])
        self.high = max(self.high, self.last if every else int(steps.max()))
        self.end = batch.spot(len(steps) - 1)
        self.cells.add(steps, every)
        self.head += steps[: HEAD - len(self.head)].tolist()
        self.digest = zlib.crc32(np.ascontiguousarray(steps).tobytes(), self.digest)
        self._at = batch.offset + int(batch.rows[-1])
        self._look_at_values(batch)

    def _look_at_values(self, batch: Batch) -> None:
        odd = batch.chunk.nonfinite[batch.rows]
        if odd.any():
            first = batch.spot(int(odd.argmax()))
            self.nonfinite.add(int(np.count_nonzero(odd)), first, batch.steps[odd])
        # Unparsed values stay so: a neighbour across two chunks is not worth it.
        parsed = batch.chunk.parsed
        self._value = float(batch.chunk.values[batch.rows[-1]]) if parsed else None

    def _uneven(self, batch: Batch, moves: Array, skip: int) -> Echoes | None:
        steps = batch.steps[skip:]
        highs = np.maximum.accumulate(np.concatenate(([self.high], steps)))[:-1]
        ahead = steps > highs
        self.again += int(np.count_nonzero(~ahead))
        # After a fall the distance counts from the highest step: a late value
        # is one fault, not two.
        distances = np.where(ahead, steps - highs, moves)
        moved = np.flatnonzero(moves > 0)
        before = steps[moved] - distances[moved]
        self._note_backs(batch, moves, skip)
        stuck, echoes = self._note_still(batch, moves == 0, skip)
        caught_up = np.concatenate(([self._stuck], stuck[:-1]))[moved]
        self._stuck = bool(len(stuck) and stuck[-1])
        self.intervals.add(
            distances[moved],
            before,
            caught_up,
            lambda i: batch.spot(int(moved[i]) + skip),
        )
        self._fill(batch, moves, skip)
        return echoes

    def _note_backs(self, batch: Batch, moves: Array, skip: int) -> None:
        backs = np.flatnonzero(moves < 0)
        if not len(backs):
            return
        if not self.backs.count:
            first = int(backs[0])
            self.back_from = int(batch.steps[first + skip]) - int(moves[first])
            at_start = first + skip == 0
            self.back_file = at_start and self.end.path != batch.chunk.path
        self.backs.add(
            len(backs), batch.spot(int(backs[0]) + skip), batch.steps[backs + skip]
        )

    def _fill(self, batch: Batch, moves: Array, skip: int) -> None:
        """Takes back the gaps that late values fill."""
        for back in np.flatnonzero(moves < 0)[:_LATE].tolist():
            self.intervals.forget(int(batch.steps[back + skip]))

    def _note_still(
        self, batch: Batch, still: Array, skip: int
    ) -> tuple[Array, Echoes | None]:
        """Sorts values at an unmoved step; gives back which differ, and echoes."""
        index = np.flatnonzero(still) + skip
        same = self._same(batch, index) if len(index) else np.empty(0, bool)
        differs = np.zeros(len(still), bool)
        differs[index - skip] = ~same
        if self.name in INDEXES:
            still = differs
        self.repeats.add(still, differs, lambda i: batch.spot(i + skip))
        if self.name in INDEXES or not same.any():
            return differs, None
        index = index[same]
        rows = batch.rows + batch.offset
        rows_before = np.concatenate(([self._at], rows[:-1]))
        return differs, Echoes(rows[index], (rows - rows_before)[index], index)

    def _same(self, batch: Batch, index: Array) -> Array:
        """Whether the values at `index` equal the ones before; unknown counts."""
        values = batch.chunk.values[batch.rows]
        before = np.concatenate(([np.nan], values[:-1]))
        if self._value is not None:
            before[0] = self._value
        same = (values == before) | (np.isnan(values) & np.isnan(before))
        if self.count and self._value is None:
            same[0] = True
        return same[index]

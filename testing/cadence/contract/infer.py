"""Finds the cadence that a run keeps."""

from __future__ import annotations

import itertools

from testing.cadence.chunks import Chunk
from testing.cadence.contract import REFUSED, Cadence, Order, Series
from testing.cadence.contract.order import OrderFollower
from testing.cadence.survey import Item, Survey, run_key
from testing.cadence.survey.beats import Beat
from testing.cadence.survey.track import HEAD

# Events looked at to guess the order; the rest of the run must confirm it.
_LOOK = 8192


class Recorder:
    """Takes a run chunk by chunk; `close()` gives its cadence.

    Attributes:
      survey: what is off in the run; a cadence of such a run needs a look.
    """

    def __init__(self, root: str = "") -> None:
        self.survey = Survey(root)
        self._orders: dict[tuple[str, str], _OrderGuess] = {}

    def add(self, item: Item) -> None:
        """Takes the next thing a reader yields."""
        self.survey.add(item)
        if isinstance(item, Chunk) and len(item):
            self._orders.setdefault(run_key(item), _OrderGuess()).add(item)

    def close(self) -> Cadence:
        """The cadence of the run."""
        self.survey.close()
        series = tuple(map(_series, self.survey.series))
        return Cadence(series, self._order(), REFUSED)

    def _order(self) -> Order | None:
        """The order within the one log there is, or the one event directory."""
        logs = [key for key in self._orders if key[1] == "log"]
        keys = logs or list(self._orders)
        return self._orders[keys[0]].close() if len(keys) == 1 else None


class _OrderGuess:
    """Guesses an order from the first events and holds the rest against it."""

    def __init__(self) -> None:
        self._head: list[Chunk] = []
        self._events = 0
        self._follower: OrderFollower | None = None

    def add(self, chunk: Chunk) -> None:
        if self._follower:
            self._follower.add(chunk)
        elif self._events < _LOOK:
            self._head.append(chunk)
            self._events += len(chunk)
            if self._events >= _LOOK:
                self._guess()

    def _guess(self) -> None:
        order = guess(self._head)
        if order:
            self._follower = OrderFollower(order)
            for chunk in self._head:
                self._follower.add(chunk)
        self._head = []

    def close(self) -> Order | None:
        """The order, if all events keep it."""
        if self._head:
            self._guess()
        if self._follower is None or self._follower.finding:
            return None
        return self._follower.order


def _series(beat: Beat) -> Series:
    intervals = beat.track.intervals
    if beat.count == 1:
        return Series(beat.name, beat.first, count=1)
    if beat.every and intervals.pure:
        count = (beat.track.high - beat.first) // beat.every + 1
        return Series(beat.name, beat.first, beat.every, count)
    steps = tuple(beat.track.head)
    if beat.count <= HEAD and list(steps) == sorted(set(steps)):
        return Series(beat.name, steps=steps)
    return Series(beat.name, beat.first, count=beat.count, last=beat.last)


def guess(chunks: list[Chunk]) -> Order | None:
    """The order that the first events suggest; None if they suggest none."""
    events = [
        (name, step)
        for chunk in chunks
        for name, step in zip(chunk.names, chunk.steps.tolist(), strict=True)
    ]
    if len({name for name, _ in events}) < 2:
        return None
    return _by_step(events) or _by_block(events)


def _by_step(events: list[tuple[str, int]]) -> Order | None:
    """All series of a step, then those of the next."""
    if any(a[1] > b[1] for a, b in itertools.pairwise(events)):
        return None
    names: list[str] = []
    for index, (name, step) in enumerate(events):
        if name not in names:
            before, step_before = events[index - 1] if index else ("", None)
            joined = step_before == step and before in names
            names.insert(names.index(before) + 1 if joined else len(names), name)
    return Order((tuple(names),), 1, events[0][1])


def _by_block(events: list[tuple[str, int]]) -> Order | None:
    """A block of steps of some series, then the same steps of others."""
    first = events[0][1]
    phases: list[list[str]] = [[]]
    seen: list[int] = []
    before = first
    for name, step in events:
        if len(phases) == 1 and step not in seen:
            if step < before:
                return None
            seen.append(step)
        elif len(phases) > 1 and step > max(seen):
            break
        if step < before:
            if step != first:
                return None
            phases.append([])
        if not any(name in phase for phase in phases):
            phases[-1].append(name)
        before = step
    if len(phases) < 2 or len(seen) < 2 or not all(phases):
        return None
    block = seen[-1] - first + (seen[1] - seen[0])
    return Order(tuple(map(tuple, phases)), block, first)

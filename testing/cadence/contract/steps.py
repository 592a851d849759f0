"""Follows one series and compares its steps with those of a cadence."""

from __future__ import annotations

import numpy as np

from testing.cadence.contract import Series
from testing.cadence.findings import NOWHERE, Finding, Spot, Tally
from testing.cadence.survey.batches import Batch

# Single missing steps remembered, to tell a late one from a repeated one.
_REMEMBERED = 1000
_LARGEST = 2**63 - 1


class Follower:
    """Compares the steps of one series, batch by batch, in bounded memory."""

    def __init__(self, plan: Series) -> None:
        self.plan = plan
        self.count = 0
        self.first: int | None = None
        self.last: int | None = None
        self.start = self.end = NOWHERE
        self.missing = Tally()
        self.repeated = Tally()
        self.late = Tally()
        self.strange = Tally()
        self._next = 0
        self._open: set[int] = set()
        self._exact = bool(plan.steps) or plan.every is not None or plan.count == 0

    @property
    def total(self) -> int | None:
        """How many steps there must be."""
        return len(self.plan.steps) if self.plan.steps else self.plan.count

    def add(self, batch: Batch) -> None:
        """Takes the next steps."""
        steps = batch.steps
        if self.first is None:
            self.first, self.start = int(steps[0]), batch.spot(0)
        self.last, self.end = int(steps[-1]), batch.spot(len(steps) - 1)
        self.count += len(steps)
        if not self._exact:
            return
        if self._as_planned(batch):
            self._next += len(steps)
        else:
            for index, step in enumerate(steps.tolist()):
                self._take(step, batch, index)

    def _as_planned(self, batch: Batch) -> bool:
        number, total = len(batch.steps), self.total
        if total is not None and self._next + number > total:
            return False
        if self.plan.steps:
            planned = self.plan.steps[self._next : self._next + number]
            return planned == tuple(batch.steps.tolist())
        every = self.plan.every or 1
        start = (self.plan.first or 0) + self._next * every
        if abs(start) + every * number > _LARGEST:
            return False  # beyond what the arrays can hold
        return bool((batch.steps == start + every * np.arange(number)).all())

    def _take(self, step: int, batch: Batch, index: int) -> None:
        place = self._number(step)
        if place == self._next:
            self._next += 1
        elif place is None:
            self.strange.add(1, batch.spot(index))
        elif place > self._next:
            self._skip(place, batch.spot(index))
        elif place in self._open:
            self._open.remove(place)
            self.missing.count -= 1
            self.late.add(1, batch.spot(index))
        else:
            self.repeated.add(1, batch.spot(index))

    def _number(self, step: int) -> int | None:
        """Which step of the plan it is, counted from 0."""
        if self.plan.steps:
            return self.plan.steps.index(step) if step in self.plan.steps else None
        number, rest = divmod(step - (self.plan.first or 0), self.plan.every or 1)
        total = self.total
        inside = number >= 0 and (total is None or number < total)
        return number if inside and not rest else None

    def _skip(self, place: int, spot: Spot) -> None:
        self.missing.add(place - self._next, spot._replace(step=self._step(self._next)))
        room = _REMEMBERED - len(self._open)
        self._open.update(range(self._next, min(place, self._next + room)))
        self._next = place + 1

    def _step(self, number: int) -> int:
        if self.plan.steps:
            return self.plan.steps[number]
        return (self.plan.first or 0) + number * (self.plan.every or 1)

    def close(self) -> Finding | None:
        """The finding, if the steps differ."""
        return self._exact_finding() if self._exact else self._loose_finding()

    def _exact_finding(self) -> Finding | None:
        short = (self.total or 0) - self._next if self.total else 0
        parts = [
            _part(self.missing, "is missing", "are missing"),
            _part(self.late, "comes late", "come late"),
            _part(self.repeated, "is repeated", "are repeated"),
            _part(self.strange, "is none of them", "are none of them"),
        ]
        spots = [
            tally.first
            for tally in (self.missing, self.late, self.repeated, self.strange)
            if tally.count and tally.first
        ]
        if short:
            step = self._step(self._next)
            last = f"the last {short:,} steps, from {step}, are missing"
            parts.append(f"step {step} is missing" if short == 1 else last)
            spots.append(self.end._replace(step=step))
        seen = "; ".join(part for part in parts if part)
        return self._finding(seen, spots) if seen else None

    def _loose_finding(self) -> Finding | None:
        plan, parts, spots = self.plan, [], []
        if plan.first not in (None, self.first):
            parts.append(f"starts at step {self.first}")
            spots.append(self.start)
        if plan.last not in (None, self.last):
            parts.append(f"ends at step {self.last}")
            spots.append(self.end)
        if plan.count not in (None, self.count):
            spots.append(self.end)
            parts.append("another number of values")
        return self._finding("; ".join(parts), spots) if parts else None

    def _finding(self, seen: str, spots: list[Spot]) -> Finding:
        times = "once" if self.count == 1 else f"{self.count:,} times"
        spot = min(spots, key=lambda spot: (spot.path, spot.place))
        return Finding(
            self.plan.rule,
            f"{self.plan.name} {times}: {seen}.",
            self.plan.name,
            spot,
            hint=self._hint(),
            expected=str(self.plan),
        )

    def _hint(self) -> str:
        missing = (self.total or 0) - self._next if self.total else 0
        alone = not (self.repeated.count or self.strange.count or self.late.count)
        if self.missing.count == 1 and self.missing.first and not missing and alone:
            return "One value was not logged, or its line was lost."
        if missing and alone and not self.missing.count:
            return "Did the run stop early, or is it still running?"
        if self.repeated.count and not self.strange.count:
            return "Restarted without resuming, or logged twice per step?"
        if self.strange.count == 1 and missing + self.missing.count == 1:
            return "Off by one: is the step counted before or after the work?"
        if self.strange.count:
            return "Was it run for longer, or with another interval?"
        return ""


def _part(tally: Tally, one: str, many: str) -> str:
    if not tally.count or tally.first is None:
        return ""
    if tally.count == 1:
        return f"step {tally.first.step} {one}"
    return f"{tally.count:,} steps {many}, the first is {tally.first.step}"

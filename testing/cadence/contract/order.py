"""Follows a run and compares the order of its series with that of a cadence."""

from __future__ import annotations

import numpy as np

from testing.cadence.chunks import Array, Chunk
from testing.cadence.contract import RULES, Order
from testing.cadence.findings import Finding, Spot

# Falls looked at per chunk before giving up on finding one that is no restart.
_LOOKS = 32


class OrderFollower:
    """Compares the order, chunk by chunk; keeps the first break."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.finding: Finding | None = None
        self._places = {
            name: (phase, rank)
            for phase, names in enumerate(order.phases)
            for rank, name in enumerate(names)
        }
        self._before: Array | None = None
        self._name_before = ""
        self._latest: dict[str, int] = {}

    def add(self, chunk: Chunk) -> None:
        """Takes the next events of one run."""
        if self.finding:
            return
        known = [self._places.get(series.name) for series in chunk.series]
        table = np.array([place or (-1, -1) for place in known], np.int64)
        rows = np.flatnonzero(table[chunk.codes, 0] >= 0)
        if not len(rows):
            return
        codes, steps = chunk.codes[rows], chunk.steps[rows]
        block = (steps - self.order.first) // self.order.block
        keys = np.stack([block, table[codes, 0], steps, table[codes, 1]])
        self._compare(chunk, rows, keys)
        self._before = keys[:, -1:]
        self._name_before = chunk.series[int(codes[-1])].name
        self._remember(chunk, codes, steps)

    def _remember(self, chunk: Chunk, codes: Array, steps: Array) -> None:
        for code, series in enumerate(chunk.series):
            mine = steps[codes == code]
            if len(mine):
                self._latest[series.name] = int(mine[-1])

    def _compare(self, chunk: Chunk, rows: Array, keys: Array) -> None:
        skip = 0 if self._before is not None else 1
        before = self._before if self._before is not None else keys[:, :0]
        change = np.diff(np.concatenate((before, keys), axis=1), axis=1)
        sign = np.zeros(change.shape[1], np.int64)
        for level in change[::-1]:
            sign = np.where(level != 0, np.sign(level), sign)
        for fall in np.flatnonzero(sign < 0)[:_LOOKS].tolist():
            if not self._fell_back(chunk, rows, fall + skip):
                self.finding = self._describe(chunk, rows, fall + skip)
                return

    def _fell_back(self, chunk: Chunk, rows: Array, at: int) -> bool:
        """Whether the series itself stepped back: no matter of order."""
        code, step = chunk.codes[rows[at]], int(chunk.steps[rows[at]])
        mine = rows[:at][chunk.codes[rows[:at]] == code]
        name = chunk.series[int(code)].name
        last = int(chunk.steps[mine[-1]]) if len(mine) else self._latest.get(name)
        return last is not None and step <= last

    def _describe(self, chunk: Chunk, rows: Array, at: int) -> Finding:
        row = int(rows[at])
        name, step = chunk.series[int(chunk.codes[row])].name, int(chunk.steps[row])
        if at:
            other = int(rows[at - 1])
            before = chunk.series[int(chunk.codes[other])].name
            step_before = int(chunk.steps[other])
        else:
            before = self._name_before
            step_before = int(self._before[2, -1]) if self._before is not None else 0
        return Finding(
            self.order.rule,
            f"{before} at step {step_before} stands before {name} at step {step}.",
            name,
            Spot(step, chunk.path, int(chunk.places[row]), chunk.unit),
            hint="Is it logged later than it is known, or are two loops mixed?",
            contract=RULES.get(self.order.rule, ""),
            expected=self.order.words,
        )

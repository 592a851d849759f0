"""Findings: what is off in a run, and where."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from testing.cadence.report import Report, Skip, Violation

if TYPE_CHECKING:
    from testing.cadence.chunks import Array

# What holds in a run that is in order, by the name of what is found otherwise.
IRREGULARITIES = {
    "duplicate-step": "A series has one value at each step.",
    "step-back": "The steps of a series never fall.",
    "gap": "A series that keeps an even beat has a value at each beat from its "
    "first to its last.",
    "missing-head": "Series that share a beat start together.",
    "missing-tail": "Series that share a beat end together.",
    "frozen-step": "The step moves on from value to value.",
    "double-line": "Every record is written once.",
    "repeated-header": "A table has one header, in its first row.",
    "ragged-row": "Every row has as many cells as the header.",
    "truncated": "A file ends with a whole record.",
    "corrupt": "Every record can be read and its checksum holds.",
    "empty": "A run has at least one event.",
    "non-finite": "Every value is a finite number.",
    "declared-cadence": "A run keeps the cadence that its own file declares.",
}


class Spot(NamedTuple):
    """A place in a run: `place` counts from 1 in units of `unit`; 0 if unknown."""

    step: int | None
    path: str = ""
    place: int = 0
    unit: str = "line"

    def __str__(self) -> str:
        if not self.path:
            return f"step {self.step}"
        if not self.place:
            return self.path
        if self.unit == "line":
            return f"{self.path}:{self.place}"
        return f"{self.path}, {self.unit} {self.place}"

    @property
    def short(self) -> str:
        """The place without its file, for the middle of a sentence."""
        if not self.place:
            return f"step {self.step}"
        return f"{self.unit} {self.place:,}"


NOWHERE = Spot(None)


# Steps that a tally remembers, to be marked in a picture.
MARKS = 64


@dataclasses.dataclass(slots=True)
class Tally:
    """Counts places of one kind; keeps the first, and the first few steps."""

    count: int = 0
    first: Spot | None = None
    steps: list[int] = dataclasses.field(default_factory=list)

    def add(self, count: int, spot: Spot, steps: Array | None = None) -> None:
        """Counts `count` more places, the first of them at `spot`."""
        if count and self.first is None:
            self.first = spot
        self.count += count
        room = MARKS - len(self.steps)
        if room > 0 and steps is not None:
            self.steps += steps[:room].tolist()
        elif room > 0 and spot.step is not None:
            self.steps.append(spot.step)


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is off.

    Attributes:
      kind: a key of `IRREGULARITIES`, or the name of a broken rule.
      seen: what was seen, in one sentence.
      series: the series it is about; empty if it is about the file.
      spot: the first place.
      count: number of places.
      hint: the likely cause, or what to try.
      contract: what must hold; found by `kind` if empty.
      expected: what the contract asks for here.
    """

    kind: str
    seen: str
    series: str = ""
    spot: Spot = NOWHERE
    count: int = 1
    hint: str = ""
    contract: str = ""
    expected: str = ""

    @property
    def message(self) -> str:
        """What was seen, what was expected and, if known, why, in one line."""
        expected = f"Expected: {self.expected}." if self.expected else ""
        return " ".join(part for part in (self.seen, expected, self.hint) if part)

    @property
    def rule_text(self) -> str:
        """The contract that is broken."""
        return self.contract or IRREGULARITIES.get(self.kind, "")

    def violation(self) -> Violation:
        """The finding in the form every check of Onbeat reports."""
        return Violation(
            rule=self.kind,
            contract=self.rule_text,
            expected=self.expected,
            seen=self.seen,
            where=str(self.spot) if self.spot != NOWHERE else "",
            hint=self.hint,
        )


def report(
    subject: str,
    findings: Sequence[Finding],
    rules: Sequence[str],
    skipped: Sequence[Skip] = (),
) -> Report:
    """The report of a check that exercised `rules` and found `findings`."""
    broken = {finding.kind for finding in findings}
    return Report(
        subject,
        violations=tuple(finding.violation() for finding in findings),
        passed=tuple(rule for rule in rules if rule not in broken),
        skipped=tuple(skipped),
    )

"""Where in a picture of its beat something is off in a series."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from testing.cadence.findings import Finding
from testing.cadence.survey.beats import Beat


class Mark(NamedTuple):
    """One irregular place."""

    step: int
    kind: str


def marks_of(beat: Beat, findings: Iterable[Finding]) -> list[Mark]:
    """The first few places of each kind that is off in this series."""
    kinds = [finding for finding in findings if finding.series == beat.name]
    return [mark for finding in kinds for mark in _marks(beat, finding)]


def _marks(beat: Beat, finding: Finding) -> Iterator[Mark]:
    steps = _steps(beat, finding.kind)
    if not steps and finding.spot.step is not None:
        steps = [finding.spot.step]
    for step in steps:
        yield Mark(step, finding.kind)


def _steps(beat: Beat, kind: str) -> list[int]:
    track = beat.track
    if kind == "gap":
        return track.intervals.missing()
    tallies = {
        "step-back": track.backs,
        "duplicate-step": track.repeats.duplicates,
        "frozen-step": track.repeats.frozen,
        "double-line": track.doubles,
        "non-finite": track.nonfinite,
    }
    return tallies[kind].steps if kind in tallies else []

"""JSON, of the schema in docs/cadence.md."""

from __future__ import annotations

import json
from typing import Any

from testing.cadence.findings import Finding
from testing.cadence.show import Outcome
from testing.cadence.survey.beats import Beat

SCHEMA = 1


def render(outcome: Outcome) -> str:
    """One object, indented."""
    return json.dumps(as_dict(outcome), indent=2) + "\n"


def as_dict(outcome: Outcome) -> dict[str, Any]:
    """The object."""
    return {
        "schema": SCHEMA,
        "command": outcome.command,
        "run": outcome.run,
        "ok": not outcome.findings,
        "events": outcome.events,
        "series": [series(beat) for beat in outcome.series],
        "findings": [finding(one) for one in outcome.findings],
        "rules": list(outcome.rules),
        "skipped": [{"rule": s.rule, "reason": s.reason} for s in outcome.skipped],
    }


def series(beat: Beat) -> dict[str, Any]:
    """One series."""
    start = beat.track.start
    return {
        "name": beat.name,
        "count": beat.count,
        "first": beat.first,
        "every": beat.every,
        "last": beat.last,
        "gaps": beat.gaps,
        "repeats": beat.repeats,
        "kind": beat.kind,
        "file": start.path or None,
        "line": start.place or None,
        "unit": start.unit,
    }


def finding(one: Finding) -> dict[str, Any]:
    """One finding; `line` counts in `unit`."""
    spot = one.spot
    return {
        "kind": one.kind,
        "series": one.series or None,
        "step": spot.step,
        "line": spot.place or None,
        "message": one.message,
        "file": spot.path or None,
        "unit": spot.unit,
        "count": one.count,
        "contract": one.rule_text,
        "expected": one.expected or None,
        "seen": one.seen,
        "hint": one.hint or None,
    }

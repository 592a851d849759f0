"""Puts together what is off in several series at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from testing.cadence.findings import Finding

_NAMED = 6


def grouped(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Findings of one kind at one step in one file, together."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        spot = finding.spot
        key: tuple[object, ...] = (finding.kind, spot.path, spot.step, finding.count)
        if not finding.series:
            key = (*key, spot.place, finding.seen)
        groups.setdefault(key, []).append(finding)
    return list(groups.values())


def also(group: Sequence[Finding]) -> str:
    """The other series of a group, in words; empty if there are none."""
    names = [finding.series for finding in group[1:]]
    if not names:
        return ""
    rest = len(names) - _NAMED
    more = f" and {rest:,} more" if rest > 0 else ""
    return f"The same in {', '.join(names[:_NAMED])}{more}."

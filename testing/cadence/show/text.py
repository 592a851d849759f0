"""Plain text: for a pipe, a file, a CI log."""

from __future__ import annotations

from collections.abc import Sequence

from testing.cadence.findings import Finding
from testing.cadence.report import Violation
from testing.cadence.show import Outcome, clean
from testing.cadence.show.groups import also, grouped
from testing.cadence.survey.beats import Beat

HEADINGS = ("series", "count", "first", "every", "last", "gaps", "repeats")


def render(outcome: Outcome) -> str:
    """The series, where they are asked for, and what is off."""
    parts = [headline(outcome)]
    if outcome.command == "describe" and outcome.series:
        parts.append(table(outcome.series))
    parts += findings(outcome)
    return "\n\n".join(parts) + "\n"


def headline(outcome: Outcome) -> str:
    """One line: what was looked at, and how it is."""
    number = len(outcome.series)
    what = f"{number:,} series" if number else "no series"
    size = f"{clean(outcome.run)}: {what}, {_count(outcome.events, 'event')}"
    broken = {finding.kind for finding in outcome.findings}
    if broken:
        return f"{size}. Off: {', '.join(sorted(broken))}."
    if outcome.command == "describe":
        return f"{size}. In order."
    return f"{size}. Kept: {', '.join(outcome.rules)}."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def row(beat: Beat) -> tuple[str, ...]:
    """The cells of one series, in the order of `HEADINGS`."""
    every = "-" if beat.count == 1 else "varies"
    return (
        clean(beat.name),
        f"{beat.count:,}",
        str(beat.first),
        every if beat.every is None else str(beat.every),
        str(beat.last),
        f"{beat.gaps:,}",
        f"{beat.repeats:,}",
    )


def table(series: Sequence[Beat]) -> str:
    """All series, in columns."""
    rows = [HEADINGS, *(row(beat) for beat in series)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(_line(cells, widths) for cells in rows)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = zip(cells, widths, strict=True)
    columns = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]
    return "  ".join(columns).rstrip()


def findings(outcome: Outcome) -> list[str]:
    """What is off, one paragraph each, and what was not looked at."""
    parts = [_finding(group) for group in grouped(outcome.findings)]
    if outcome.skipped:
        rows = [f"  {skip}" for skip in outcome.skipped]
        parts.append("\n".join(["not exercised:", *rows]))
    return parts


def _finding(group: Sequence[Finding]) -> str:
    violation = group[0].violation()
    seen = " ".join(part for part in (violation.seen, also(group)) if part)
    shown = Violation(
        violation.rule,
        violation.contract,
        clean(violation.expected),
        clean(seen),
        clean(violation.where),
        clean(violation.hint),
    )
    return str(shown)

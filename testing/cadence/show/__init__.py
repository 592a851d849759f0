"""Shows what was found: text, JSON, GitHub annotations, JUnit XML."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from testing.cadence.findings import Finding
from testing.cadence.report import Skip
from testing.cadence.survey.beats import Beat

FORMATS = ("text", "json", "github", "junit")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a command found out about a run.

    Attributes:
      command: `describe`, `check`, ...
      run: the file or directory, as the user named it.
      events: number of events.
      series: its series.
      findings: what is off.
      rules: what was looked at, kept or not.
      skipped: rules that could not be exercised.
    """

    command: str
    run: str
    events: int
    series: Sequence[Beat]
    findings: Sequence[Finding]
    rules: Sequence[str]
    skipped: Sequence[Skip] = ()


def render(outcome: Outcome, format: str) -> str:
    """The outcome in one of `FORMATS`, ending in a line end unless empty."""
    if format == "json":
        from testing.cadence.show import jsons

        return jsons.render(outcome)
    if format == "github":
        from testing.cadence.show import github

        return github.render(outcome)
    if format == "junit":
        from testing.cadence.show import junit

        return junit.render(outcome)
    from testing.cadence.show import text

    return text.render(outcome)


def clean(text: str) -> str:
    """Text from a log without what could steer a terminal or break a line."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)

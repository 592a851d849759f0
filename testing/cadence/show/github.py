"""Workflow commands that annotate a pull request."""

from __future__ import annotations

from testing.cadence.findings import Finding
from testing.cadence.show import Outcome, clean, text
from testing.cadence.show.groups import also, grouped


def render(outcome: Outcome) -> str:
    """One command for each finding, then one line for the log."""
    lines = [_command(group) for group in grouped(outcome.findings)]
    return "\n".join([*lines, text.headline(outcome)]) + "\n"


def _command(group: list[Finding]) -> str:
    finding = group[0]
    spot = finding.spot
    fields = {"title": f"onbeat: {finding.kind}"}
    if spot.path:
        fields = {"file": spot.path, **fields}
    # GitHub knows lines only; a record or row is named in the message.
    if spot.place and spot.unit in ("line", "row"):
        fields["line"] = str(spot.place)
    where = "" if spot.unit == "line" or not spot.place else f" ({spot.short})"
    message = " ".join(part for part in (finding.message + where, also(group)) if part)
    listed = ",".join(f"{key}={_property(value)}" for key, value in fields.items())
    return f"::error {listed}::{_data(message)}"


def _data(value: str) -> str:
    value = value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return clean(value)


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")

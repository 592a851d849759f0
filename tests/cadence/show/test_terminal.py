"""What `describe` shows on a terminal."""

from __future__ import annotations

import io
import re

import pytest

from testing.cadence.findings import IRREGULARITIES
from testing.cadence.show import Outcome, terminal
from testing.cadence.survey import Survey
from tests.cadence.runs import bandit


def shown(monkeypatch, width, events):
    monkeypatch.setenv("COLUMNS", str(width))
    survey = Survey.of(events, "run.log")
    outcome = Outcome(
        "describe",
        "run.log",
        survey.events,
        survey.series,
        survey.findings,
        list(IRREGULARITIES),
    )
    stream = io.StringIO()
    terminal.show(outcome, stream)
    return re.sub(r"\x1b\[[\d;]*m", "", stream.getvalue())


def test_table_and_strips(monkeypatch):
    monkeypatch.setattr(terminal, "_unicode", lambda: True)
    text = shown(monkeypatch, 100, bandit(drop=(9,)))
    assert "run.log: 3 series, 59 events. Off: gap." in text
    assert re.search(r"loss +19 +0 +1 +19 +1 +0 +━✗━{18}", text)
    assert "loss jumps from step 0 to 2" in text


def test_without_unicode(monkeypatch):
    monkeypatch.setattr(terminal, "_unicode", lambda: False)
    text = shown(monkeypatch, 100, bandit(drop=(9,)))
    assert re.search(r"loss +19 +0 +1 +19 +1 +0 +=x={18}", text)


@pytest.mark.parametrize("width", [30, 50, 62, 70])
def test_narrow_terminals_keep_the_numbers(monkeypatch, width):
    text = shown(monkeypatch, width, bandit())
    assert max(map(len, text.splitlines())) <= max(width, 56)
    if width >= 56:
        assert re.search(r"loss +20 +0 +1 +19 +0 +0", text)

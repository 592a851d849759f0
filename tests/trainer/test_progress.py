"""The progress bar: shown where people look, with the speed."""

from __future__ import annotations

import io
import sys

import pytest

from trainer import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch, show, terminal):
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    seconds = iter([10.0, 12.0, 14.0])
    with progress.bar(3, 5, show, lambda: next(seconds)) as bar:
        bar.advance(1000)
        bar.advance(9000)
    return terminal.getvalue()


def test_a_terminal_shows_loops_and_interactions_per_second(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    text = shown(monkeypatch, None, Terminal())
    assert "training loops" in text
    assert "5/5" in text
    assert "2,500 interactions/s" in text  # 10,000 in 4 seconds.


@pytest.mark.parametrize(
    ("ci", "show", "terminal"),
    [("", None, io.StringIO), ("1", None, Terminal), ("", False, Terminal)],
)
def test_elsewhere_nothing_is_shown(monkeypatch, ci, show, terminal):
    monkeypatch.setenv("CI", ci)
    assert shown(monkeypatch, show, terminal()) == ""


@pytest.mark.parametrize(
    ("rate", "text"),
    [(0.25, "0.2"), (9.94, "9.9"), (12.6, "13"), (1234567.8, "1,234,568")],
)
def test_rates_for_people(rate, text):
    assert progress.shown(rate) == f"{text} interactions/s"

"""Lines read with the user's own expression."""

from __future__ import annotations

import re

import pytest

from testing.cadence.readers import UnreadableRun, pattern, read
from tests.cadence.readers.outcome import formats, rows

NANOGPT = r"iter (?P<step>\d+): (?P<name>\w+) (?P<value>\S+?),"


def test_groups(write):
    path = write("iter 0: loss 4.25, time 3ms\nhello\niter 10: loss nan, time 3ms\n")
    (first, second) = rows(path, pattern=NANOGPT)
    assert first == ("loss", 0, 4.25, 1)
    assert (second[:2], second[3]) == (("loss", 10), 3)
    (event, _) = read_events(path, NANOGPT)
    assert event.source.format == "pattern"
    assert formats(write("[step=0] a = 1.\n")) == {"text"}


def read_events(path, pattern):
    return [event for chunk in read(path, pattern=pattern) for event in chunk.events()]


def test_several_in_a_line_and_no_name(write):
    path = write("3=0.5 4=0.25\n")
    assert rows(path, pattern=r"(?P<step>\d)=(?P<value>[\d.]+)") == [
        ("value", 3, 0.5, 1),
        ("value", 4, 0.25, 1),
    ]


def test_compiled_with_flags(write):
    path = write("STEP 3 LOSS 0.5\n")
    found = re.compile(r"step (?P<step>\d+) loss (?P<value>\S+)", re.I)
    assert [row[:3] for row in rows(path, pattern=found)] == [("value", 3, 0.5)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(", r"^pattern '\(' does not compile: .*"),
        ("(?P<step>.)", r"^pattern .* lacks \(\?P<value>\.\.\.\)\. Allowed too: "),
        ("x", r"^pattern 'x' lacks \(\?P<step>\.\.\.\) and \(\?P<value>\.\.\.\)"),
    ],
)
def test_bad_pattern(write, text, message):
    with pytest.raises(ValueError, match=message):
        read(write("x"), pattern=text)


def test_no_match(write):
    with pytest.raises(UnreadableRun, match="the pattern matches no line"):
        rows(write("hello\n"), pattern=NANOGPT)


def test_pattern_that_backtracks_is_given_up(write, monkeypatch):
    monkeypatch.setattr(pattern, "PATIENCE", 0.05)
    path = write("3 1\n" + "a" * 5000 + "!\n")
    with pytest.raises(UnreadableRun, match=r":2: the pattern took longer than 0.05 s"):
        rows(path, pattern=r"(?P<step>\d) (?P<value>\d)|(?:a|a)+b")


def test_long_line(write):
    """Ten megabytes without a line end: only their beginning is matched."""
    path = write("3 1 " + "4 2 " * (10 << 18) + "\n5 1\n")
    found = rows(path, pattern=r"(?P<step>\d) (?P<value>\d)")
    assert len(found) == pattern.LONGEST_LINE // 4 + 1
    assert found[-1] == ("value", 5, 1.0, 2)


def test_matches_nothing_at_a_step_that_is_none(write):
    path = write("step x: 1\nstep 2: 1\n")
    assert [r[1] for r in rows(path, pattern=r"step (?P<step>\w+): (?P<value>\d)")] == [
        2
    ]

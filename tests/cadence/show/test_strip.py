"""The beat in one line."""

from __future__ import annotations

import pytest

from testing.cadence.events import Event
from testing.cadence.show.strip import Axis, plain, strip
from testing.cadence.survey import Survey
from testing.cadence.survey.marks import marks_of


def strips(width, **series):
    events = [Event("log", n, s, s / 7) for n, steps in series.items() for s in steps]
    survey = Survey.of(events)
    axis = Axis.over(survey.series, width)
    return [
        strip(beat, axis, [mark.step for mark in marks_of(beat, survey.findings)])
        for beat in survey.series
    ]


@pytest.mark.parametrize("width", [20, 60])
def test_a_character_for_a_beat(width):
    assert strips(width, loss=range(20)) == ["━" * 20]
    assert strips(width, loss=range(10, 201, 10)) == ["━" * 20]


def test_gaps_and_coarser_series():
    steps = [step for step in range(12) if step != 5]
    assert strips(20, loss=steps, eval=range(0, 12, 4)) == [
        "━━━━━✗━━━━━━",
        "•   •   •   ",
    ]


def test_many_steps_in_a_character():
    assert strips(10, loss=range(1000), eval=range(0, 1000, 500)) == [
        "━" * 10,
        "•    •    ",
    ]


def test_missing_tail():
    short, _ = strips(20, loss=range(10), reward=range(20))
    assert short == "━" * 10 + "✗" + " " * 9


def test_one_value():
    assert strips(20, loss=[7]) == ["•"]


def test_ascii():
    assert plain("━•✗ ") == "=.x "

"""Values at an unmoved step: duplicates, stuck counters, doubled blocks."""

from __future__ import annotations

import itertools

import pytest

from testing.cadence.events import Event
from testing.cadence.survey import Survey
from testing.cadence.survey.columns import chunks_of


def tallies(rows, cuts=()):
    """Counts by kind for rows of name, step and value, cut into chunks."""
    events = [Event("log", *row) for row in rows]
    survey = Survey()
    ends = [0, *cuts, len(events)]
    for start, end in itertools.pairwise(ends):
        for chunk in chunks_of(events[start:end]):
            survey.add(chunk)
    survey.close()
    return {(f.kind, f.series): (f.count, f.spot.step) for f in survey.findings}


CUTS = [(), (3,), (4,), (5,), (3, 4, 5, 6)]


def series(steps, name="x", same=False):
    return [(name, s, 0.5 if same else n / 7) for n, s in enumerate(steps)]


@pytest.mark.parametrize("cuts", CUTS)
def test_two_values_are_a_duplicate(cuts):
    rows = series([0, 1, 2, 3, 3, 4, 5, 6])
    assert tallies(rows, cuts) == {("duplicate-step", "x"): (1, 3)}


@pytest.mark.parametrize("cuts", CUTS)
def test_more_are_a_counter_that_stands_still(cuts):
    rows = series([0, 1, 2, 3, 3, 3, 4, 5, 6])
    assert tallies(rows, cuts) == {("frozen-step", "x"): (2, 3)}


@pytest.mark.parametrize("cuts", CUTS)
def test_a_counter_that_catches_up_leaves_no_gap(cuts):
    rows = series([0, 1, 2, 3, 3, 3, 6, 7, 8])
    assert tallies(rows, cuts) == {("frozen-step", "x"): (2, 3)}


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("same", [True, False])
def test_one_step_throughout(cuts, same):
    rows = series([7] * 9, same=same)
    assert tallies(rows, cuts) == {("frozen-step", "x"): (8, 7)}


@pytest.mark.parametrize("cuts", CUTS)
def test_the_same_value_right_behind_is_a_doubled_line(cuts):
    rows = series(range(8))
    rows.insert(4, rows[3])
    assert tallies(rows, cuts) == {("double-line", "x"): (1, 3)}


@pytest.mark.parametrize("cuts", CUTS)
def test_a_whole_block_right_behind_is_doubled_lines(cuts):
    rows = [
        (name, step, step + k / 4) for step in range(5) for k, name in enumerate("ab")
    ]
    rows[4:4] = rows[2:4]
    assert tallies(rows, cuts) == {
        ("double-line", "a"): (1, 1),
        ("double-line", "b"): (1, 1),
    }


@pytest.mark.parametrize("cuts", CUTS)
def test_half_a_block_is_a_value_logged_twice(cuts):
    rows = [
        (name, step, step + k / 4) for step in range(5) for k, name in enumerate("ab")
    ]
    rows[4:4] = rows[2:3]
    assert tallies(rows, cuts) == {("duplicate-step", "a"): (1, 1)}


def test_counters_repeat_with_every_row():
    rows = [("epoch", step, 3.0) for step in range(5) for _ in range(2)]
    assert tallies(rows) == {}


@pytest.mark.parametrize("cuts", CUTS)
def test_a_late_value_is_a_step_back_and_no_gap(cuts):
    rows = series([0, 1, 2, 3, 5, 4, 6, 7, 8])
    assert tallies(rows, cuts) == {("step-back", "x"): (1, 4)}

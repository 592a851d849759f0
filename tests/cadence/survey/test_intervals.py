"""Beats and gaps from the distances between steps."""

from __future__ import annotations

import numpy as np
import pytest

from testing.cadence.findings import Spot
from testing.cadence.survey.intervals import DISTINCT, Intervals


def intervals(steps, pieces=1):
    made = Intervals()
    distances = np.diff(np.array(steps, np.int64))
    before = np.array(steps[:-1], np.int64)
    rows = np.array_split(np.arange(len(distances)), pieces)
    for part in rows:
        made.add(
            distances[part],
            before[part],
            np.zeros(len(part), bool),
            lambda i, part=part: Spot(steps[part[i] + 1], "run", int(part[i]) + 2),
        )
    return made


@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize(
    ("steps", "beat"),
    [
        ([0], None),
        ([0, 5], 5),
        ([0, 1, 2, 3], 1),
        ([0, 1, 3], None),
        ([0, 1, 2, 4], 1),
        ([1, 500, 1000, 1500], 500),
        ([9, 20, 27, 44, 61], None),
        ([0, 1, 2, 4, 6, 8], None),
    ],
)
def test_beat(steps, beat, pieces):
    assert intervals(steps, pieces).beat() == beat


@pytest.mark.parametrize("pieces", [1, 4])
def test_gap(pieces):
    steps = [s for s in range(0, 300, 10) if s not in (50, 60, 200)]
    gap = intervals(steps, pieces).gap()
    assert (gap.steps, gap.places, gap.before) == (3, 2, 40)
    assert gap.at == Spot(70, "run", 6)
    assert intervals(steps, pieces).missing() == [50, 200]


def test_many_wide_distances_are_no_gaps():
    assert intervals([0, 1, 2, 3, 5, 6, 7, 9, 10, 12, 13, 14]).gap() is None


def test_a_new_beat_is_no_gap():
    assert intervals([*range(100), *range(109, 200, 10)]).gap() is None
    assert intervals([*range(100), 109, *range(110, 200)]).gap().steps == 9


def test_a_late_value_fills_its_gap():
    made = intervals([*range(7), *range(8, 20)])
    made.forget(3)
    assert made.gap().places == 1
    made.forget(7)
    assert made.gap() is None


def test_pure():
    assert intervals([0, 1, 2, 4]).pure
    assert not intervals([1, 500, 1000, 1500]).pure


def test_too_many_distances_overflow_and_stay_small():
    made = intervals(np.cumsum(range(DISTINCT + 5)).tolist())
    assert made.overflow
    assert made.beat() is None
    assert made.total == 0

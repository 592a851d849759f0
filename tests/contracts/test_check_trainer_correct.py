"""No fault is found with correct trainers, however they are built."""

from __future__ import annotations

import pytest

import trainer
from testing.contracts import check_trainer
from tests.faulty.correct import CORRECT

# What each does not offer; all else is exercised.
SKIPPED = {
    "bare": {
        "buffer-size",
        "metric-steps",
        "metric-values",
        "additional-metrics",
        "summary-steps",
        "summary-complete",
        "checkpoint-final",
        "policy-final",
        "resume-continues",
        "crash-resumes",
    },
    "class_based": {"buffer-size", "additional-metrics"},
    "single_element": {"summary-steps", "summary-complete", "policy-final"},
}


@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_trainer_breaks_no_rule(name):
    report = check_trainer(CORRECT[name])
    assert report.broken == ()
    assert {skip.rule for skip in report.skipped} == SKIPPED.get(name, set())


def test_there_are_enough_ways_to_be_correct():
    assert len(CORRECT) >= 6


def test_our_own_trainer_keeps_every_rule():
    report = check_trainer(trainer.train)
    assert report.skipped == ()
    assert len(report.passed) == 25


@pytest.mark.parametrize("compiled", [True, False])
def test_it_does_so_compiled_or_not(compiled):
    report = check_trainer(
        lambda **arguments: trainer.train(**arguments, compile=compiled)
    )
    assert report.skipped == ()

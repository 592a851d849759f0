"""Each rule of a cadence is seen to fail, at its place, and to hold."""

from __future__ import annotations

import pytest

from testing.cadence import Cadence, Order, Series
from testing.cadence.contract import RULES
from testing.cadence.contract.check import Checker
from testing.cadence.events import Event
from testing.cadence.survey.columns import chunks_of
from tests.cadence.runs import METRICS, bandit, write

CADENCE = Cadence.bandit(5, 4, METRICS)
STRICT = Cadence(CADENCE.series, CADENCE.order, "refused")


def log(*pairs):
    return [Event("log", name, step, 1.0) for name, step in pairs]


def test_kept():
    report = STRICT.check(bandit())
    assert report.ok
    assert set(report.passed) == {
        "series-present",
        "other-series",
        "metric-steps",
        "loss-steps",
        "event-order",
    }


def swapped(events, one, other):
    events = list(events)
    events[one], events[other] = events[other], events[one]
    return events


# planted fault -> the rules that catch it, and what is seen
FAULTS = {
    "a metric once too few": (
        bandit(drop=(3,)),
        {"metric-steps"},
        "AverageReturn 19 times: step 1 is missing.",
    ),
    "a loss once too few": (
        bandit(drop=(9,)),
        {"loss-steps"},
        "loss 19 times: step 1 is missing.",
    ),
    "the last loss missing": (
        bandit(drop=(59,)),
        {"loss-steps"},
        "loss 19 times: step 19 is missing.",
    ),
    "a loop too few": (
        bandit(loops=4),
        {"metric-steps", "loss-steps"},
        "the last 4 steps, from 16, are missing",
    ),
    "a loop too many": (
        bandit(loops=6),
        {"metric-steps", "loss-steps"},
        "4 steps are none of them, the first is 20",
    ),
    "a run twice": (
        [*bandit(), *bandit()],
        {"metric-steps", "loss-steps"},
        "loss 40 times: 20 steps are repeated, the first is 0.",
    ),
    "a loss after its time": (
        swapped(bandit(), 8, 9),
        {"loss-steps"},
        "loss 20 times: step 0 comes late.",
    ),
    "loops of one step": (
        bandit(loops=20, runs=1),
        {"event-order"},
        "loss at step 0 stands before NumberOfEpisodes at step 1.",
    ),
    "metrics in another order": (
        bandit(metrics=METRICS[::-1]),
        {"event-order"},
        "AverageReturn at step 0 stands before NumberOfEpisodes at step 0.",
    ),
    "no loss": (
        [event for event in bandit() if event.name != "loss"],
        {"series-present"},
        "no loss; there is AverageReturn, NumberOfEpisodes.",
    ),
    "another series": (
        [*bandit(), *log(("extra", 3))],
        {"other-series"},
        "extra, first at step 3.",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_fault(fault):
    events, rules, seen = FAULTS[fault]
    report = STRICT.check(events)
    assert set(report.broken) == rules
    assert any(seen in violation.seen for violation in report.violations)
    assert all(
        violation.contract == RULES[violation.rule] for violation in report.violations
    )
    assert not set(report.passed) & rules


def test_every_rule_has_a_fault():
    caught = set().union(*(rules for _, rules, _ in FAULTS.values()))
    loose = {"series-steps", "series-order"}  # the same checks under another name
    assert caught | loose == set(RULES)


def test_place_in_the_file(tmp_path):
    path = write(tmp_path / "run.log", bandit(drop=(9,)))
    (violation,) = STRICT.check(path).violations
    assert violation.where == f"{path}:10"
    assert violation.expected == "loss at 0, 1, 2, ..., 19 (20 times)"
    assert violation.hint == "One value was not logged, or its line was lost."


def test_what_is_absent_is_not_exercised():
    report = CADENCE.check([])
    assert report.broken == ("series-present",)
    assert {skip.rule for skip in report.skipped} == {"metric-steps", "loss-steps"}


def test_a_renamed_series_is_guessed():
    cadence = Cadence((Series("average_return", 0, 1, 2),))
    (violation,) = cadence.check(
        log(("AverageReturn", 0), ("average_returns", 1))
    ).violations
    assert violation.hint == "Was it renamed to average_returns?"


def test_never():
    cadence = Cadence((Series("loss", count=0),))
    assert cadence.check([]).ok
    assert cadence.check(log(("loss", 0))).broken == ("series-steps",)


def test_open_end():
    cadence = Cadence((Series("loss", 5, 5),))
    assert cadence.check(log(("loss", 5), ("loss", 10), ("loss", 15))).ok
    assert not cadence.check(log(("loss", 5), ("loss", 15))).ok


def test_explicit_steps():
    cadence = Cadence((Series("loss", steps=(1, 5, 30)),))
    assert cadence.check(log(("loss", 1), ("loss", 5), ("loss", 30))).ok
    (violation,) = cadence.check(log(("loss", 1), ("loss", 30))).violations
    assert violation.seen == "loss 2 times: step 5 is missing."
    assert violation.expected == "loss at 1, 5, 30"


@pytest.mark.parametrize(
    ("plan", "seen"),
    [
        (Series("loss", 2), "starts at step 1"),
        (Series("loss", last=9), "ends at step 30"),
        (Series("loss", count=2), "another number of values"),
    ],
)
def test_loose_series(plan, seen):
    events = log(("loss", 1), ("loss", 5), ("loss", 30))
    assert Cadence((Series("loss", 1, count=3, last=30),)).check(events).ok
    (violation,) = Cadence((plan,)).check(events).violations
    assert seen in violation.seen


def test_off_by_one_has_its_hint():
    events = log(*(("loss", step) for step in range(1, 11)))
    (violation,) = Cadence((Series("loss", 0, 1, 10),)).check(events).violations
    assert "step 0 is missing; step 10 is none of them" in violation.seen
    assert violation.hint.startswith("Off by one")


def test_order_of_coarser_series():
    cadence = Cadence(order=Order((("loss", "eval"),)))
    good = log(("loss", 1), ("loss", 2), ("eval", 2), ("loss", 3))
    assert cadence.check(good).ok
    bad = log(("loss", 1), ("eval", 2), ("loss", 2), ("loss", 3))
    assert cadence.check(bad).broken == ("series-order",)


def test_a_restart_is_no_matter_of_order():
    cadence = Cadence(order=Order((("loss", "eval"),)))
    once = log(("loss", 1), ("eval", 1), ("loss", 2), ("eval", 2))
    assert cadence.check([*once, *once]).ok


def test_long_runs_in_many_chunks():
    cadence = Cadence((Series("loss", 0, 1, 50_000),))
    events = log(*(("loss", step) for step in range(50_000)))
    assert cadence.check(events).ok
    del events[20_000]
    (violation,) = cadence.check(events).violations
    assert violation.seen == "loss 49,999 times: step 20000 is missing."


def test_order_from_chunk_to_chunk():
    checker = Checker(Cadence(order=Order((("loss", "eval"),))))
    for event in log(("loss", 1), ("eval", 1), ("eval", 2), ("loss", 2)):
        for chunk in chunks_of([event]):
            checker.add(chunk)
    (finding,) = checker.close()
    assert finding.seen == "eval at step 2 stands before loss at step 2."

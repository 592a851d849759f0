"""The cadence of a run is found, and holds for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testing.cadence import Cadence, Order, Series
from testing.cadence.contract.infer import Recorder
from testing.cadence.events import Event
from testing.cadence.survey.columns import chunks_of
from tests.cadence.runs import METRICS, bandit


def test_a_bandit_run():
    assert Cadence.infer(bandit()) == Cadence(
        tuple(Series(name, 0, 1, 20) for name in (*METRICS, "loss")),
        Order((METRICS, ("loss",)), 4),
        "refused",
    )


@pytest.mark.parametrize(("loops", "runs"), [(5, 1), (3, 2), (2, 9), (600, 10)])
def test_blocks_are_found(loops, runs):
    cadence = Cadence.infer(bandit(loops, runs))
    assert cadence.order is not None
    assert cadence.order.block == runs
    assert cadence.check(bandit(loops, runs)).ok
    assert not cadence.check(bandit(loops * runs, 1)).ok or runs == 1


def test_an_order_that_breaks_late_is_none():
    events = [*bandit(3000, 1), *bandit(1, 1, METRICS[::-1])]
    shifted = [
        Event("log", e.name, e.step + (3000 if number >= 9000 else 0), e.value)
        for number, e in enumerate(events)
    ]
    assert Cadence.infer(shifted).order is None


def test_gaps_are_no_part_of_the_beat():
    cadence = Cadence.infer([e for e in bandit() if (e.name, e.step) != ("loss", 7)])
    assert cadence["loss"] == Series("loss", 0, 1, 20)


def test_series_without_a_beat():
    steps = [3, 8, 9, 40]
    events = [Event("log", "reward", step, 1.0) for step in steps]
    assert Cadence.infer(events).series == (Series("reward", steps=(3, 8, 9, 40)),)
    steps = [step * step for step in range(200)]
    events = [Event("log", "reward", step, 1.0) for step in steps]
    assert Cadence.infer(events).series == (Series("reward", 0, count=200, last=39601),)


@st.composite
def runs(draw):
    moments = {}
    for name in draw(st.lists(st.sampled_from("abcd"), min_size=1, unique=True)):
        first, every = draw(st.integers(0, 9)), draw(st.integers(1, 9))
        for number in range(draw(st.integers(1, 40))):
            moments.setdefault(first + number * every, []).append(name)
    return [
        Event("log", name, step, step / 3)
        for step, names in sorted(moments.items())
        for name in names
    ]


@given(runs(), st.data())
def test_a_run_keeps_its_own_cadence_and_no_other(events, data):
    cadence = Cadence.infer(events)
    assert cadence.check(events).ok
    lost = data.draw(st.integers(0, len(events) - 1))
    assert not cadence.check(events[:lost] + events[lost + 1 :]).ok
    again = [*events[: lost + 1], *events[lost:]]
    assert not cadence.check(again).ok


def test_recorder_knows_what_is_off():
    recorder = Recorder()
    for chunk in chunks_of(bandit(drop=(9,))):
        recorder.add(chunk)
    recorder.close()
    assert [finding.kind for finding in recorder.survey.findings] == ["gap"]


def test_log_lines_and_summaries_are_told_apart():
    logs = bandit()
    summaries = [Event("summary", "loss", step, 0.5) for step in range(20, 0, -1)]
    cadence = Cadence.infer([*logs, *reversed(summaries)])
    assert cadence.order == Cadence.infer(logs).order
    assert cadence["summary:loss"] == Series("summary:loss", 1, 1, 20)
    assert cadence.check([*logs, *reversed(summaries)]).ok
    assert cadence.check(logs).broken == ("series-present",)

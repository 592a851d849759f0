"""The pool: each driver run of a loop once, whatever happens to collectors."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.trainer import backends
from trainer import pool as pool_lib
from trainer.collectors import Failure
from trainer.pool import CollectorError, Pool


@pytest.fixture(autouse=True)
def warnings(monkeypatch):
    """Warnings that the pool logs."""
    lines: list[str] = []
    monkeypatch.setattr(
        pool_lib.logging, "warning", lambda text, *args: lines.append(text % args)
    )
    return lines


def make(size, **more):
    backend = backends.Scripted()
    return backend, Pool(backend, size, clock=backend.clock, **more)


def loop(pool, version, runs):
    """Runs a loop; returns which collector made each driver run."""
    pool.begin([version], runs)
    made = [pool.result(run) for run in range(runs)]
    assert [result.arrays[1] for result in made] == [version] * runs
    return [result.arrays[0] for result in made]


def test_runs_are_shared_out_in_turn():
    _, pool = make(3)
    assert loop(pool, "a", 7) == [0, 1, 2, 0, 1, 2, 0]
    assert loop(pool, "b", 2) == [0, 1]


def test_results_come_in_order_whoever_is_first():
    backend, pool = make(2)
    backend.choose = lambda busy: (busy[-1], False)
    assert loop(pool, "a", 4) == [0, 1, 0, 1]


def test_when_one_dies_the_others_make_its_runs_and_it_is_replaced(warnings):
    backend, pool = make(3)
    loop(pool, "a", 3)
    script = iter([(0, False), (1, True)])
    backend.choose = lambda busy: next(script, (busy[0], False))
    assert loop(pool, "b", 6) == [0, 0, 2, 0, 0, 2]
    assert backend.alive == {0, 2, 3}
    assert backend.stopped == [(1,)]
    assert warnings == [
        "Collector 1 died: collector 1 was killed. Its unfinished driver runs are "
        "made again by the other collectors."
    ]


def test_what_was_made_before_a_death_counts():
    backend, pool = make(2)
    loop(pool, "a", 2)
    script = iter([(1, False), (1, True)])
    backend.choose = lambda busy: next(script, (busy[0], False))
    assert loop(pool, "b", 4) == [0, 1, 0, 0]


def test_a_replacement_works_from_the_next_loop_on_for_which_it_is_ready():
    backend, pool = make(2)
    loop(pool, "a", 2)
    backend.kill(1)
    # The replacement, collector 2, does not get ready in this loop.
    backend.choose = lambda busy: (busy[0], False)
    assert loop(pool, "b", 4) == [0, 0, 0, 0]
    # Nor before the next one begins.
    assert loop(pool, "c", 2) == [0, 0]
    script = iter([(2, False)])
    backend.choose = lambda busy: next(script, (busy[0], False))
    assert loop(pool, "d", 2) == [0, 0]
    assert loop(pool, "e", 4) == [0, 2, 0, 2]


def test_no_more_are_replaced_than_allowed():
    backend, pool = make(3, max_replacements=1)
    loop(pool, "a", 3)
    backend.kill(1)
    loop(pool, "b", 3)
    backend.kill(2)
    loop(pool, "c", 3)
    assert backend.alive == {0, 3}


def test_when_all_die_the_error_says_so():
    backend, pool = make(2)
    loop(pool, "a", 2)
    backend.choose = lambda busy: (busy[0], True)
    with pytest.raises(
        CollectorError, match=r"^All collectors died, the last one "
    ) as e:
        loop(pool, "b", 2)
    assert "call again to go on" in str(e.value)
    assert e.value.collector == 1


def test_when_all_die_before_they_are_ready_the_error_says_so():
    backend, pool = make(2)
    backend.kill(0)
    backend.kill(1)
    with pytest.raises(CollectorError, match="All collectors died"):
        loop(pool, "a", 2)


def test_an_exception_in_a_collector_is_raised_with_its_traceback():
    backend, pool = make(2)
    loop(pool, "a", 2)
    backend.failing[1] = Failure.of(ValueError("no such arm"))
    with pytest.raises(CollectorError) as caught:
        loop(pool, "b", 4)
    text = str(caught.value)
    assert text.startswith(
        "Collector 1 failed in driver run 2 of 4: ValueError: no such arm\n"
        "Traceback of collector 1:\n"
    )
    assert caught.value.collector == 1
    assert isinstance(caught.value.__cause__, ValueError)


def test_slow_collectors_are_named_again_and_again(warnings):
    backend, pool = make(2, slow_after=30)
    loop(pool, "a", 2)
    waits = iter([(0, False), None, None])
    backend.choose = lambda busy: next(waits, (busy[0], False))
    loop(pool, "b", 2)
    assert warnings == [
        f"Collector 1 has been making driver run 2 of 2 for {seconds} s. The loop "
        "waits for it."
        for seconds in (30, 60)
    ]


def test_one_that_does_not_get_ready_is_named(warnings):
    backend, pool = make(1, slow_after=5)
    waits = iter([None])
    backend.choose = lambda busy: next(waits, (busy[0], False))
    loop(pool, "a", 1)
    assert warnings == [
        "Collector 0 has been getting ready for 5 s. The loop waits for it."
    ]


def test_closing_ends_all():
    backend, pool = make(3)
    loop(pool, "a", 3)
    pool.close()
    assert backend.stopped == [(0, 1, 2)]


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_each_run_counts_once_whatever_happens(data):
    size = data.draw(st.integers(1, 4), "collectors")
    backend, pool = make(size, max_replacements=data.draw(st.integers(0, 3)))

    def choose(busy):
        number = data.draw(st.sampled_from(busy))
        return number, data.draw(st.integers(0, 9)) == 0

    backend.choose = choose
    for version in range(data.draw(st.integers(1, 4), "loops")):
        runs = data.draw(st.integers(1, 6), "runs")
        try:
            made = loop(pool, version, runs)  # Also asserts the version.
        except CollectorError:
            ready = {m.number for m in pool._members if m.is_ready}
            assert not (backend.alive & ready)
            return
        assert len(made) == runs
        assert not pool._done

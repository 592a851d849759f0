"""The life of a golden cadence, played through in a pytest of its own."""

from __future__ import annotations

import pathlib

import pytest

from testing.cadence import Cadence
from testing.cadence.golden import file_name

OPTIONS = ("-p", "no:cacheprovider", "-p", "testing.pytest_plugin")
TEST = """
    import logging

    def test_beat(cadence, record_cadence):
        with record_cadence() as run:
            for step in range({steps}):
                logging.getLogger("x").info("[step=%d] loss = %s.", step, 0.5)
        cadence.check(run)
"""


@pytest.fixture
def run(pytester):
    """Runs a module of one test that logs so many steps."""

    def run(steps, *options):
        pytester.makepyfile(test_it=TEST.format(steps=steps))
        return pytester.runpytest_inprocess(*OPTIONS, *options)

    return run


def golden(pytester):
    return pytester.path / "test_it.test_beat.cadence.toml"


def test_never_green_in_the_run_that_writes(run, pytester):
    first = run(3)
    first.assert_outcomes(failed=1)
    first.stdout.fnmatch_lines(
        ["There was no golden cadence; test_it.test_beat.cadence.toml is written now."]
    )
    assert Cadence.load(golden(pytester))["loss"].count == 3
    run(3).assert_outcomes(passed=1)


@pytest.mark.parametrize("options", [(), ("--cadence-update",)])
def test_not_green_when_a_plugin_runs_the_test_again(run, pytester, options):
    twice = ("test_it.py", "test_it.py", "--keep-duplicates")
    first = run(3, *options, *twice)
    first.assert_outcomes(failed=2)
    first.stdout.fnmatch_lines(
        ["test_it.test_beat.cadence.toml was written in this run. Run again *"]
    )
    run(3, *twice).assert_outcomes(passed=2)


def test_a_change_fails_until_it_is_recorded(run, pytester):
    run(3)
    changed = run(4)
    changed.assert_outcomes(failed=1)
    changed.stdout.fnmatch_lines(
        [
            "*seen*loss 4 times: step 3 is none of them.",
            "If this is meant, run with --cadence-update.",
        ]
    )
    assert Cadence.load(golden(pytester))["loss"].count == 3
    updated = run(4, "--cadence-update")
    updated.assert_outcomes(failed=1)
    updated.stdout.fnmatch_lines(["*did not hold and is rewritten."])
    run(4).assert_outcomes(passed=1)


def test_update_leaves_alone_what_holds(run, pytester):
    run(3)
    loose = "[series]\nloss = { first = 0 }\n"
    golden(pytester).write_text(loose)
    run(3, "--cadence-update").assert_outcomes(passed=1)
    assert golden(pytester).read_text() == loose


def test_a_broken_golden_file(run, pytester):
    golden(pytester).write_text("[")
    broken = run(3)
    broken.assert_outcomes(failed=1)
    broken.stdout.fnmatch_lines(["*no TOML*", "--cadence-update writes it anew."])
    run(3, "--cadence-update").assert_outcomes(failed=1)
    run(3).assert_outcomes(passed=1)


def test_workers_side_by_side(pytester, monkeypatch):
    root = pathlib.Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", str(root))
    pytester.makepyfile(test_it=TEST.format(steps=3), test_other=TEST.format(steps=5))
    (pytester.path / "test_it.test_gone.cadence.toml").write_text("")
    options = (*OPTIONS, "-n", "2")
    pytester.runpytest_subprocess(*options).assert_outcomes(failed=2)
    second = pytester.runpytest_subprocess(*options)
    second.assert_outcomes(passed=2)
    second.stdout.fnmatch_lines(
        [
            "*stale golden cadences*",
            "*test_it.test_gone.cadence.toml: no test uses it.*",
        ]
    )
    assert not list(pytester.path.glob("*.tmp"))


def test_stale_files_are_reported(run, pytester):
    run(3)
    (pytester.path / "test_it.test_gone.cadence.toml").write_text("")
    (pytester.path / "test_gone.test_x.cadence.toml").write_text("")
    result = run(3)
    result.stdout.fnmatch_lines(
        [
            "*test_gone.test_x.cadence.toml: no test uses it. Delete it.",
            "*test_it.test_gone.cadence.toml: no test uses it. Delete it.",
        ]
    )
    result.stdout.no_fnmatch_line("*test_beat.cadence.toml: no test*")
    # Deselected tests are still there; of one test by name nothing is known.
    run(3, "-k", "nothing").stdout.no_fnmatch_line("*test_beat.cadence.toml: no test*")
    picked = run(3, "test_it.py::test_beat")
    picked.stdout.no_fnmatch_line("*no test uses it*")


def test_several_runs_of_one_test(pytester):
    pytester.makepyfile(
        test_it="""
        from testing.cadence import Event

        def test_two(cadence):
            for name in ("one", "two"):
                events = [Event("log", name, step, 0.5) for step in range(3)]
                cadence.check(events, name=name)
        """
    )
    for _ in range(2):
        pytester.runpytest_inprocess(*OPTIONS).assert_outcomes(failed=1)
    result = pytester.runpytest_inprocess(*OPTIONS)
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*no test uses it*")


def test_file_names():
    assert file_name("test_a", "test_b") == "test_a.test_b.cadence.toml"
    assert file_name("test_a", "TestC::test_b[x-1]") == (
        "test_a.TestC.test_b-x-1.cadence.toml"
    )
    odd = {file_name("test_a", f"test_b[{c}]") for c in ("a/b", "a b", "a:b", "é")}
    assert len(odd) == 4
    assert all(name.isascii() and "/" not in name for name in odd)
    assert len(file_name("test_a", "x" * 999)) < 160

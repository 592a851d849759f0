"""Logs of several processes, read as one in the order of their times."""

from __future__ import annotations

import re

import pytest

from testing.cadence import Cadence, Survey, UnreadableRun
from testing.cadence.__main__ import main
from testing.cadence.readers import read_together

ABSL = "I1202 05:20:{:09.6f} 7 export_utils.py:32] [step={}] {} = {}.\n"
PLAIN = "2026-12-02 05:20:{:09.6f} INFO [step={}] {} = {}.\n"


def write(path, entries, form=ABSL):
    """Entries: second, step, name, value."""
    path.write_text("".join(form.format(*entry) for entry in entries))
    return path


def seen(paths):
    items = read_together(paths)
    return [(e.name, e.step, e.value) for chunk in items for e in chunk.events()]


def test_events_come_in_the_order_of_their_times(tmp_path):
    a = write(tmp_path / "a.log", [(1, 0, "loss", 0.5), (3, 2, "loss", 0.3)])
    b = write(tmp_path / "b.log", [(2, 1, "loss", 0.4), (4, 3, "loss", 0.2)])
    assert seen([b, a]) == [("loss", step, 0.5 - step / 10) for step in range(4)]


def test_at_one_time_in_the_order_of_the_files(tmp_path):
    a = write(tmp_path / "a.log", [(1, 0, "x", 1.0), (1, 1, "x", 2.0)])
    b = write(tmp_path / "b.log", [(1, 0, "y", 3.0)])
    assert [name for name, _, _ in seen([a, b])] == ["x", "x", "y"]
    assert [name for name, _, _ in seen([b, a])] == ["y", "x", "x"]


def test_different_kinds_of_times(tmp_path):
    a = write(tmp_path / "a.log", [(1.5, 0, "x", 1.0), (2.5, 1, "x", 1.0)])
    b = write(tmp_path / "b.log", [(2, 0, "y", 1.0)], PLAIN)
    c = write(tmp_path / "c.log", [(2.25, 0, "z", 1.0)], PLAIN.replace("9.6", "6.3"))
    assert [name for name, _, _ in seen([a, b, c])] == ["x", "y", "z", "x"]


def test_lines_without_a_time_are_of_the_time_before(tmp_path):
    a = write(tmp_path / "a.log", [(1, 0, "x", 1.0)])
    a.write_text(a.read_text() + "[step=1] x = 2.0.\n")
    b = write(tmp_path / "b.log", [(2, 0, "y", 1.0)])
    assert seen([b, a]) == [("x", 0, 1.0), ("x", 1, 2.0), ("y", 0, 1.0)]


def test_a_year_begins(tmp_path):
    old = "I1231 23:59:59.000000 7 a.py:1] [step=0] x = 1.0.\n"
    new = "I0101 00:00:01.000000 7 a.py:1] [step=1] x = 1.0.\n"
    a, b = tmp_path / "a.log", tmp_path / "b.log"
    a.write_text(old + new)
    b.write_text(old.replace("59:59", "59:58").replace(" x ", " y "))
    assert [name for name, _, _ in seen([a, b])] == ["y", "x", "x"]


def test_events_tell_where_they_stand_and_are_of_one_run(tmp_path):
    a = write(tmp_path / "a.log", [(1, 0, "loss", 0.5), (3, 2, "loss", 0.3)])
    b = write(tmp_path / "b.log", [(2, 1, "loss", 0.4), (4, 2, "loss", float("nan"))])
    survey = Survey(str(a))
    for item in read_together([a, b]):
        survey.add(item)
    survey.close()
    (beat,) = survey.series
    assert (beat.name, beat.count) == ("loss", 4)
    found = {finding.kind: finding.spot for finding in survey.findings}
    assert set(found) == {"duplicate-step", "non-finite"}
    spot = found["non-finite"]
    assert (spot.path, spot.place) == (str(b), 2)


def test_values_that_are_texts_stay_with_their_events(tmp_path):
    entries = [(1, 0, "x", 1.0), (3, 1, "x", "[1 2]"), (5, 2, "x", "[3 4]")]
    a = write(tmp_path / "a.log", entries)
    b = write(tmp_path / "b.log", [(2, 0, "y", "[5 6]"), (4, 1, "y", 2.0)])
    values = [value for _, _, value in seen([a, b])]
    assert values == [1.0, "[5 6]", "[1 2]", 2.0, "[3 4]"]


@pytest.mark.parametrize("text", ["collector 0 is ready\n", ""])
def test_files_without_events_are_passed_over(tmp_path, text):
    a = write(tmp_path / "a.log", [(1, 0, "loss", 0.5)])
    silent = tmp_path / "silent.log"
    silent.write_text(text)
    assert seen([silent, a]) == [("loss", 0, 0.5)]
    with pytest.raises(UnreadableRun, match="no line with a step and a value"):
        seen([silent, silent])


def test_files_that_are_not_there_are_not_passed_over(tmp_path):
    a = write(tmp_path / "a.log", [(1, 0, "loss", 0.5)])
    with pytest.raises(UnreadableRun, match=r"b\.log: No such file or directory"):
        seen([a, tmp_path / "b.log"])


def test_files_without_times_are_refused(tmp_path):
    a = write(tmp_path / "a.log", [(1, 0, "loss", 0.5)])
    b = tmp_path / "b.log"
    b.write_text("[step=1] loss = 0.4.\n")
    with pytest.raises(UnreadableRun, match=re.escape(f"{b}: its lines carry no time")):
        seen([a, b])


def test_a_large_file_is_put_in_order_too(tmp_path):
    """Of several chunks, which the other file's events fall into."""
    entries = [(n / 2000, n, "x", float(n)) for n in range(40_000)]
    a = write(tmp_path / "a.log", entries[::2])
    b = write(tmp_path / "b.log", entries[1::2])
    assert a.stat().st_size > 1 << 20
    assert [step for _, step, _ in seen([a, b])] == list(range(40_000))


@pytest.fixture
def halves(tmp_path):
    """Metrics of one process, losses of another."""
    metrics = [(n + 4 * (n // 2), n, "Return", 1.0) for n in range(8)]
    losses = [(n + 4 * (n // 2) + 2.5, n, "loss", 0.5) for n in range(8)]
    return [
        str(write(tmp_path / "collector.log", metrics)),
        str(write(tmp_path / "learner.log", losses)),
    ]


BANDIT = ["--training-loops", "4", "--async-steps-per-loop", "2", "--metric", "Return"]


def test_the_command_checks_all_of_them(halves, capsys):
    assert main(["check", *halves, *BANDIT]) == 0
    assert "Kept: series-present, metric-steps, loss-steps, event-order" in (
        capsys.readouterr().out
    )
    assert Cadence.bandit(4, 2, ["Return"]).check(halves).ok


def test_the_command_finds_an_order_that_only_both_show(halves, tmp_path, capsys):
    entries = [(n + 4 * (n // 2) + 0.5, n, "loss", 0.5) for n in range(8)]
    early = str(write(tmp_path / "early.log", entries))
    assert main(["check", early, *BANDIT, "--ignore", "gap"]) == 1
    assert main(["check", halves[0], early, *BANDIT]) == 1
    out = capsys.readouterr().out
    assert "loss at step 0 stands before Return at step 1" in out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (".", "several runs were named, so each must be a file."),
        ("-", "-: several runs were named, so each must be a file."),
        ("{first}", ": named twice."),
    ],
)
def test_what_can_not_be_put_together(halves, capsys, more, message):
    assert main(["describe", halves[0], more.format(first=halves[0])]) == 2
    error = capsys.readouterr().err
    assert error.startswith("onbeat describe: ")
    assert error.endswith(f"{message}\n")

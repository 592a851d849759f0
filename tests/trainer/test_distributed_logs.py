"""`onbeat` reads what the processes of a distributed run have logged."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import pytest

from testing.cadence import Cadence
from testing.cadence.report import Report
from testing.fakes import CountingAgent, FakeEnvironment
from tests.trainer import in_process, runs
from trainer import train_log

LOOPS, RUNS = 3, 4
CADENCE = Cadence.bandit(LOOPS, RUNS, runs.METRICS)


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The learner's log, line by line."""
    directory = tmp_path_factory.mktemp("run")
    environment = FakeEnvironment(batch_size=3)
    with train_log.write_to(directory / "train.log", append=False, show=False):
        agent = CountingAgent(environment)
        size = LOOPS, runs.STEPS, RUNS
        in_process.train(directory, agent, environment, *size, save_policy=False)
    return (directory / "train.log").read_text().splitlines()


def _of_actor(actor: str, pid: int, line: str) -> str:
    """A line as Ray shows it to whoever started the actor."""
    return f"\x1b[36m({actor} pid={pid}, ip=10.0.0.{pid % 9})\x1b[0m {line}"


def _apart(lines: list[str]) -> list[str]:
    """Metrics logged by whichever of two collectors made the run, losses by another."""
    shown = []
    for line in lines:
        step = line.partition("[step=")[2].partition("]")[0]
        actor = ("Learner", 300)
        if step and " loss = " not in line:
            actor = "Collector", 100 + int(step) % 2
        shown.append(_of_actor(*actor, line))
    return shown


def _with_chatter(lines: list[str]) -> list[str]:
    """What collectors print comes in between, whenever it likes."""
    shown = []
    for number, line in enumerate(lines):
        shown.append(line)
        for pid in range(number % 3):
            told = f"I1202 05:20:31.{number:06d} {pid} web.py:10] click {number}"
            shown.append(_of_actor("Collector", 100 + pid, told))
    return shown


VIEWS: dict[str, Callable[[list[str]], list[str]]] = {
    "learner": lambda lines: lines,
    "console": _with_chatter,
    "learner is an actor": lambda lines: [_of_actor("main", 7, x) for x in lines],
    "all are actors": _apart,
    "all are actors that talk": lambda lines: _with_chatter(_apart(lines)),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_the_contract_holds_over_all_processes(
    lines: list[str], view: Callable[[list[str]], list[str]], tmp_path: pathlib.Path
) -> None:
    report = _check(tmp_path, view(lines))
    assert report.ok, str(report)
    assert {"metric-steps", "loss-steps", "event-order"} <= set(report.passed)


def _index(lines: list[str], text: str) -> int:
    (found,) = [n for n, line in enumerate(lines) if text in line]
    return found


def _lost(lines: list[str]) -> list[str]:
    at = _index(lines, "[step=5] AverageReturn")
    return lines[:at] + lines[at + 1 :]


def _twice(lines: list[str]) -> list[str]:
    """Two collectors log the same driver run."""
    at = _index(lines, "[step=6] AverageReturn")
    other = lines[at].replace("pid=100", "pid=101")
    return [*lines[: at + 1], other, *lines[at + 1 :]]


def _early(lines: list[str]) -> list[str]:
    """The learner does not wait for the last collector."""
    loss = lines.pop(_index(lines, "[step=4] loss"))
    at = _index(lines, "[step=7] NumberOfEpisodes")
    return [*lines[:at], loss, *lines[at:]]


@pytest.mark.parametrize(
    ("fault", "rule"),
    [(_lost, "metric-steps"), (_twice, "metric-steps"), (_early, "event-order")],
)
def test_what_only_all_processes_together_show(
    lines: list[str],
    fault: Callable[[list[str]], list[str]],
    rule: str,
    tmp_path: pathlib.Path,
) -> None:
    report = _check(tmp_path, _with_chatter(fault(_apart(lines))))
    assert {violation.rule for violation in report.violations} == {rule}


def _files(tmp_path: pathlib.Path, lines: list[str]) -> list[pathlib.Path]:
    """A log for each process, without Ray's prefixes."""
    texts: dict[str, list[str]] = {}
    for line in _with_chatter(_apart(lines)):
        actor, _, text = line.partition("\x1b[0m ")
        texts.setdefault(actor.split("pid=")[1].split(",")[0], []).append(text)
    paths = [tmp_path / f"process-{pid}.log" for pid in sorted(texts)]
    for path, pid in zip(paths, sorted(texts), strict=True):
        path.write_text("\n".join(texts[pid]) + "\n")
    return paths


def test_a_log_of_each_process(lines: list[str], tmp_path: pathlib.Path) -> None:
    paths = _files(tmp_path, lines)
    assert len(paths) == 3
    report = CADENCE.check(paths)
    assert report.ok, str(report)
    # None of them holds the cadence by itself.
    assert not any(CADENCE.check(path).ok for path in paths)


def test_what_only_all_logs_together_show(
    lines: list[str], tmp_path: pathlib.Path
) -> None:
    broken = CADENCE.check(_files(tmp_path, _lost(lines))).violations
    assert [violation.rule for violation in broken] == ["metric-steps"]
    assert "step 5 is missing" in broken[0].seen


def test_a_directory_with_a_log_of_each_process(
    lines: list[str], tmp_path: pathlib.Path
) -> None:
    (tmp_path / "learner.log").write_text("\n".join(lines) + "\n")
    for collector in range(2):
        (tmp_path / f"collector-{collector}.log").write_text("I was ready\n")
    report = CADENCE.check(tmp_path)
    assert report.ok, str(report)
    (tmp_path / "learner.log").write_text("\n".join(_lost(lines)) + "\n")
    assert [v.rule for v in CADENCE.check(tmp_path).violations] == ["metric-steps"]


def _check(tmp_path: pathlib.Path, lines: list[str]) -> Report:
    path = tmp_path / "console.log"
    path.write_text("\n".join(lines) + "\n")
    return CADENCE.check(path)

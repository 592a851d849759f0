"""The command line with collectors, which are in this process instead of on Ray."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from tests.trainer import backends
from trainer import __main__ as command_line
from trainer import distributed, maker, problems, ray_session
from trainer.settings import Settings

SMALL = ("--training_loops=3", "--batch_size=4", "--seed=1", "--nosave_policy")
FIXED = [n for n in problems.ENVIRONMENTS if "linear" not in n]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str | None, Any]]:
    """Address and backend of each run."""
    made: list[tuple[str | None, Any]] = []
    addresses: list[str | None] = []

    def connected(address: str | None) -> Any:
        addresses.append(address)
        return mock.MagicMock()

    def backend(session: Any, recipe: Any, cpus: float) -> Any:
        made.append((addresses[-1], backends.InProcess(recipe)))
        return made[-1][1]

    monkeypatch.setattr(ray_session, "connected", connected)
    monkeypatch.setattr(distributed.ray_backend, "RayBackend", backend)
    return made


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def call(*arguments: str) -> tuple[int, str, str]:
        code = command_line.main(["trainer", *arguments])
        return (code, *capsys.readouterr())

    return call


def _lines(name: str) -> list[str]:
    return re.findall(r"\[step=.*", Path(name, "train.log").read_text())


def _values(name: str, series: str) -> list[float]:
    found = re.findall(rf"\[step=\d+\] {series} = (.*)\.\n", _text(name))
    return [float(value) for value in found]


def _text(name: str) -> str:
    return Path(name, "train.log").read_text()


@pytest.mark.parametrize("environment", FIXED)
def test_one_collector_logs_what_the_single_process_logs(
    command: Any, started: Any, environment: str
) -> None:
    size = f"--environment={environment}", "--async_steps_per_loop=2", *SMALL
    assert command(*size, "--root_dir=alone")[0] == 0
    assert command(*size, "--root_dir=apart", "--num_collectors=1")[0] == 0

    assert len(started) == 1
    assert len(_lines("alone")) > 30
    assert _lines("apart") == _lines("alone")


def test_a_loop_has_a_run_for_each_collector(command: Any, started: Any) -> None:
    code, out, _ = command(*SMALL, "--num_collectors=3", "--root_dir=run")

    assert code == 0
    assert "9 train steps, 72 interactions" in out
    ((address, backend),) = started
    assert address is None
    assert sorted(backend.stopped) == [0, 1, 2]
    # In a run of several collectors, whose rows the learner's environment never saw.
    right = _values("run", "RecentAccuracy")
    assert right == _values("run", "RecentReturn")
    assert [1 - r for r in right] == pytest.approx(_values("run", "RecentRegret"))


def test_more_runs_than_collectors_and_a_cluster(command: Any, started: Any) -> None:
    flags = "--num_collectors=2", "--ray_address=10.0.0.1:6379"
    code, out, _ = command(*SMALL, *flags, "--async_steps_per_loop=4", "--root_dir=run")

    assert code == 0
    assert "12 train steps" in out
    assert started[0][0] == "10.0.0.1:6379"
    assert f"-m trainer --root_dir=run {' '.join(flags)}  # train on" in out


def test_a_run_goes_on_with_or_without_collectors(command: Any, started: Any) -> None:
    command(*SMALL, "--num_collectors=2", "--root_dir=run")
    assert command("--root_dir=run", "--training_loops=1")[0] == 0
    again = "--root_dir=run", "--training_loops=1", "--num_collectors=2"
    assert command(*again)[0] == 0

    assert len(started) == 2
    steps = re.findall(r"\[step=(\d+)\] loss", _text("run"))
    assert [int(step) for step in steps] == list(range(10))
    code, _, errors = command("--root_dir=run", "--num_collectors=3")
    assert code == 2
    assert "a loop has only 2 driver runs to share out" in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--num_collectors=4", "--async_steps_per_loop=2"),
            "flag --num_collectors=4: a loop has only 2 driver runs to share out "
            "(--async_steps_per_loop); allowed are 1 to 2",
        ),
        (
            ("--num_collectors=1", "--environment=drifting_linear"),
            "flag --num_collectors=1: allowed only where rewards stay as they are; "
            "those of --environment=drifting_linear change, in each collector in "
            "another way",
        ),
        (
            ("--num_collectors=2", "--ray_address=ray://head:10001"),
            "flag --ray_address=ray://head:10001: allowed are HOST:PORT and auto",
        ),
    ],
)
def test_refusals(command: Any, arguments: tuple[str, ...], message: str) -> None:
    assert command(*arguments) == (2, "", f"python -m trainer: {message}\n")
    assert not list(Path().iterdir())


def test_without_ray(command: Any) -> None:
    with mock.patch("importlib.util.find_spec", return_value=None):
        result = command("--num_collectors=4")
    assert result == (
        2,
        "",
        "python -m trainer: flag --num_collectors=4: trainer.distributed needs Ray: "
        "pip install 'onbeat-trainer[distributed]' (or 'onbeat[distributed]').\n",
    )
    assert not list(Path().iterdir())


def test_no_cluster(command: Any) -> None:
    pytest.importorskip("ray")
    code, _, errors = command("--num_collectors=2", "--ray_address=127.0.0.1:1")

    assert code == 2
    assert errors.startswith("python -m trainer: flag --ray_address=127.0.0.1:1: ")
    assert "where no Ray cluster could be joined" in errors
    assert errors.count("\n") == 1
    assert not list(Path().iterdir())


def test_collectors_see_other_observations_of_the_same_problem() -> None:
    made = maker.Maker(Settings(batch_size=8, seed=3), None, 5)
    shown = []
    for collector in (0, 1, 0):
        environment = made.environment(collector)
        shown.append(environment.reset().observation.numpy())
    np.testing.assert_array_equal(shown[0], shown[2])
    assert not (shown[0] == shown[1]).all(axis=1).any()


def test_an_agent_for_another_environment_is_refused() -> None:
    made = maker.Maker(Settings(environment="bernoulli", seed=3), None, 5)
    first = made.environment(0)
    made.environment(1)
    with pytest.raises(ValueError, match="the environment that this Maker made last"):
        made.agent(first)

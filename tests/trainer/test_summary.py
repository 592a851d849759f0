"""What is shown at the end: figures, and commands that can be typed as they are."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import rich.console

from trainer import TrainSummary, summary
from trainer.problems import Problem, Reference
from trainer.runs import Run
from trainer.settings import Settings

Install = Callable[..., Path]


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Makes a Python environment with scripts in it, and says whether to use it."""
    monkeypatch.chdir(tmp_path)

    def install(*scripts: str, on_path: bool) -> Path:
        folder = tmp_path / ".venv" / "bin"
        folder.mkdir(parents=True)
        for name in ("python", *scripts):
            (folder / name).write_text("#!/bin/sh\n")
            (folder / name).chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(folder / "python"))
        monkeypatch.setenv("PATH", str(folder) if on_path else "/nowhere")
        return folder

    return install


def _commands() -> dict[str, str]:
    run = Run(Path("runs/one"), Settings(), continued=False)
    return {purpose: " ".join(it) for purpose, it in summary.next_commands(run)}


def test_by_name_in_an_active_environment(environment: Install) -> None:
    environment("tensorboard", "onbeat", on_path=True)

    assert _commands() == {
        "train on": "python -m trainer --root_dir=runs/one",
        "see the curves": "tensorboard --logdir=runs/one",
        "see what was logged when": "onbeat describe runs/one/train.log",
    }


def test_by_path_in_another(environment: Install) -> None:
    environment("tensorboard", "onbeat", on_path=False)

    assert _commands() == {
        "train on": ".venv/bin/python -m trainer --root_dir=runs/one",
        "see the curves": ".venv/bin/tensorboard --logdir=runs/one",
        "see what was logged when": ".venv/bin/onbeat describe runs/one/train.log",
    }


def test_as_modules_without_scripts(environment: Install) -> None:
    environment(on_path=True)

    assert _commands() == {
        "train on": "python -m trainer --root_dir=runs/one",
        "see the curves": "python -m tensorboard.main --logdir=runs/one",
        "see what was logged when": (
            "python -m testing.cadence describe runs/one/train.log"
        ),
    }


def test_what_is_not_installed_is_not_offered(
    environment: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment(on_path=True)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    assert list(_commands()) == ["train on"]


def test_a_foreign_python_of_the_same_binary_is_not_ours(
    environment: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A virtual environment's python is a link; by its target packages are lost."""
    folder = environment(on_path=False)
    base = tmp_path / "base"
    base.mkdir()
    (base / "python").symlink_to(folder / "python")
    monkeypatch.setenv("PATH", str(base))

    assert _commands()["train on"].startswith(".venv/bin/python ")


def test_paths_with_spaces_are_quoted() -> None:
    run = Run(Path("my runs"), Settings(), continued=False)
    assert any("'--root_dir=my runs'" in line for line in summary.next_lines(run))


def _shown(environment: str, interactions: int, classes: dict[str, float]) -> str:
    summary_of_train = TrainSummary(
        loops=2,
        total_loops=5,
        train_steps=10,
        environment_steps=interactions,
        metrics={
            "RecentAccuracy": 0.75,
            "RecentReturn": 0.5,
            "RecentRegret": 0.25,
            "AverageReturn": 9.0,
            "RegretMetric": 9.0,
        },
        checkpoint=None,
        policy_dir=None,
    )
    chance = Reference(average_return=0.125, regret=0.625, source="exact")
    problem = Problem(None, None, None, chance, "some data", classes)  # type: ignore[arg-type]
    run = Run(Path("runs/one"), Settings(environment=environment, seed=3), False)
    console = rich.console.Console(file=io.StringIO(), width=80)
    outcome = summary.Outcome(run, problem, summary_of_train, chance, seconds=61.6)
    summary.show(outcome, console)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_figures_of_a_classification() -> None:
    text = _shown("digits", interactions=4000, classes={"u": 0.625, "v": 0.375})

    assert re.search(r"over the last 1,000 interactions +LinUCB +random policy", text)
    assert re.search(r"accuracy +0\.750 +0\.125\b", text)
    assert re.search(r"average return +0\.500 +0\.125\b", text)
    assert re.search(r"regret +0\.250 +0\.625\b", text)
    assert "Always naming the most frequent class, 'u', gets 0.625." in text
    assert (
        "5 training loops (2 in this run, 62 s), 10 train steps, 4,000 interactions, "
        "seed 3." in text
    )
    assert "9.0" not in text


def test_figures_of_another_problem() -> None:
    text = _shown("wheel", interactions=1000, classes={})

    assert "over all 1,000 interactions" in text
    assert "accuracy" not in text
    assert "most frequent" not in text
    assert "Checkpoints   none\nPolicy        none\n" in text

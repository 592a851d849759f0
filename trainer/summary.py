"""The table at the end of a run, and what to type next."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import rich.box
import rich.console
import rich.table

from trainer.problems import WINDOW, Problem, Reference
from trainer.runs import Run
from trainer.train import TrainSummary

TRAIN_LOG = "train.log"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """All that is told at the end of a run.

    Attributes:
      run: the run.
      problem: what was learnt.
      summary: what `train` returned.
      random: what a random policy gets on the same problem.
      seconds: wall time of training.
    """

    run: Run
    problem: Problem
    summary: TrainSummary
    random: Reference
    seconds: float


def show(outcome: Outcome, console: rich.console.Console) -> None:
    """Prints figures, places and next commands."""
    console.print()
    console.print(_table(outcome))
    for line in (*_notes(outcome), "", *_places(outcome), "", *next_lines(outcome.run)):
        # As it is: a path must not be broken into lines or coloured in parts.
        console.print(line, soft_wrap=True, markup=False, highlight=False)


def _table(outcome: Outcome) -> rich.table.Table:
    settings, summary = outcome.run.settings, outcome.summary
    table = rich.table.Table(
        title=f"{settings.agent} on {settings.environment}",
        box=rich.box.SIMPLE_HEAD,
        title_style="bold",
    )
    table.add_column(_window(summary.environment_steps))
    for heading in (settings.agent, "random policy"):
        table.add_column(heading, justify="right")
    for name, learner, chance in _figures(outcome):
        table.add_row(name, f"{learner:.3f}", f"{chance:.3f}")
    return table


def _window(interactions: int) -> str:
    if interactions > WINDOW:
        return f"mean over the last {WINDOW:,} interactions"
    return f"mean over all {interactions:,} interactions"


def _figures(outcome: Outcome) -> Iterator[tuple[str, float, float]]:
    metrics, random = outcome.summary.metrics, outcome.random
    if outcome.problem.classes:
        # The reward is 1 for the right class, else 0.
        yield "accuracy", metrics["RecentAccuracy"], random.average_return
    yield "average return", metrics["RecentReturn"], random.average_return
    yield "regret", metrics["RecentRegret"], random.regret


def _notes(outcome: Outcome) -> Iterator[str]:
    summary, settings = outcome.summary, outcome.run.settings
    yield (
        f"{summary.total_loops:,} training loops ({summary.loops:,} in this run, "
        f"{outcome.seconds:.0f} s), {summary.train_steps:,} train steps, "
        f"{summary.environment_steps:,} interactions, seed {settings.seed}."
    )
    yield f"The environment: {outcome.problem.describe}."
    yield f"The random policy's figures are {outcome.random.source}."
    for name, share in list(outcome.problem.classes.items())[:1]:
        yield f"Always naming the most frequent class, {name!r}, gets {share:.3f}."


def _places(outcome: Outcome) -> Iterator[str]:
    summary, root = outcome.summary, outcome.run.path
    yield f"Checkpoints   {summary.checkpoint or 'none'}"
    yield f"Policy        {summary.policy_dir or 'none'}"
    yield f"TensorBoard   {root}"
    yield f"Log lines     {root / TRAIN_LOG}"


def next_lines(run: Run) -> Iterator[str]:
    """What can be typed now, ready to be copied to a shell."""
    yield "Next:"
    for purpose, command in next_commands(run):
        yield f"  {shlex.join(command)}  # {purpose}"


def next_commands(run: Run) -> Iterator[tuple[str, list[str]]]:
    """What can be typed now, with its purpose; only what is installed."""
    root = os.fspath(run.path)
    yield "train on", _train_on(run)
    if board := _installed("tensorboard", "tensorboard", "main"):
        yield "see the curves", [*board, f"--logdir={root}"]
    if onbeat := _installed("onbeat", "testing", "cadence"):
        yield "see what was logged when", [*onbeat, "describe", f"{root}/{TRAIN_LOG}"]


def resume_command(run: Run) -> list[str]:
    """How to finish an interrupted run; from the last checkpoint."""
    settings = run.settings
    if run.continued and not settings.resume_training_loops:
        # How many loops there were before this call, only its checkpoint tells.
        return _train_on(run)
    loops = f"--training_loops={settings.training_loops}"
    return [*_train_on(run), "--resume_training_loops", loops]


def _train_on(run: Run) -> list[str]:
    command = [*_python(), "-m", "trainer", f"--root_dir={os.fspath(run.path)}"]
    for name in ("num_collectors", "ray_address"):
        value = getattr(run.settings, name)
        command += [] if value is None else [f"--{name}={value}"]
    return command


def _installed(script: str, package: str, module: str) -> list[str] | None:
    """How to call a command: by its script, or else as a module; None: not there."""
    beside = Path(sys.executable).with_name(script)
    found = shutil.which(script)
    if found and (not beside.exists() or os.path.samefile(found, beside)):
        return [script]
    if beside.exists():
        return [_short(beside)]
    # Looked for without an import: neither belongs to this package.
    spec = importlib.util.find_spec(package)
    places = (spec and spec.submodule_search_locations) or []
    names = (f"{module}.py", f"{module}/__main__.py")
    if any(Path(place, name).exists() for place in places for name in names):
        return [*_python(), "-m", f"{package}.{module}"]
    return None


def _python() -> list[str]:
    """How to call this very interpreter from the present directory."""
    found = shutil.which("python")
    # Not by `samefile`: an environment's python links to the one it was made with.
    if found and os.path.abspath(found) == os.path.abspath(sys.executable):
        return ["python"]
    return [_short(sys.executable)]


def _short(path: str | os.PathLike[str]) -> str:
    """Relative to the present directory where that is inside it."""
    path = os.path.abspath(path)
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative

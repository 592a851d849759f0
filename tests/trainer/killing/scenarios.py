"""What a forked child does. Imports all it needs, but runs no TensorFlow op before."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
from typing import Any

from absl import logging

import trainer
from testing.fakes import FaultPlan
from tests.trainer.killing import points, problem


def start(scenario: str = "train", **request: Any) -> None:
    """Does one of the functions below."""
    globals()[scenario](**request)


def train(
    log: str, faults: list[dict[str, Any]], result: str = "", **given: Any
) -> None:
    """Trains, with the faults, its log appended to a file and its summary written.

    Args:
      log: file for standard error and output.
      faults: arguments of `FaultPlan.kill_at`.
      result: file for the `TrainSummary`, as JSON.
      **given: arguments of `trainer.train`, other than agent and environment.
    """
    _log_to(log)
    plan = FaultPlan()
    for fault in faults:
        plan.kill_at(**fault)
    with points.reached(plan):
        summary = _train(plan, **given)
    if plan.pending:
        sys.exit(f"Never happened: {plan}")
    if result:
        with open(result, "w") as file:
            json.dump(dataclasses.asdict(summary), file)


def on_a_small_disk(root_dir: str, log: str, result: str) -> None:
    """Trains on a real file system that is full, then read-only, then neither."""
    _log_to(log)
    os.makedirs(root_dir)
    _mount("-t", "tmpfs", "-o", "size=400k", "tmpfs", root_dir)
    steps = [_outcome(root_dir, 2)]
    filler = _fill(root_dir, spare=4096)
    steps.append(_outcome(root_dir, 3))
    os.truncate(filler, os.path.getsize(filler) - 60_000)
    steps.append(_outcome(root_dir, 3, save_policy=True))
    os.unlink(filler)
    _mount("-o", "remount,ro", root_dir)
    steps.append(_outcome(root_dir, 4))
    _mount("-o", "remount,rw", root_dir)
    steps.append(_outcome(root_dir, 4, save_policy=True))
    with open(result, "w") as file:
        json.dump(steps, file)


def _log_to(log: str) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    logging.set_verbosity(logging.INFO)


def _train(plan: FaultPlan, **given: Any) -> trainer.TrainSummary:
    agent, environment = problem.make(plan)
    return trainer.train(
        agent=agent, environment=environment, steps_per_loop=problem.STEPS, **given
    )


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def _fill(directory: str, spare: int) -> str:
    """Fills the file system but for some bytes; returns the file that does so."""
    path = os.path.join(directory, "filler")
    with contextlib.suppress(OSError), open(path, "wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass
    os.truncate(path, os.path.getsize(path) - spare)
    return path


def _outcome(root_dir: str, loops: int, save_policy: bool = False) -> dict[str, Any]:
    """What came of a run, and what is there after it."""
    error = None
    try:
        _train(
            FaultPlan(),
            root_dir=root_dir,
            training_loops=loops,
            async_steps_per_loop=1,
            resume_training_loops=True,
            save_policy=save_policy,
        )
    except trainer.StorageError as problem_of_the_disk:
        error = str(problem_of_the_disk)
    return {"error": error, "files": sorted(os.listdir(root_dir))}

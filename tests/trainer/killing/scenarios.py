"""What a forked child does. Imports all it needs, but runs no TensorFlow op before."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from typing import Any

from absl import logging

import trainer
from testing.fakes import FaultPlan
from tests.trainer.killing import points, problem


def do(log: str, faults: list[dict[str, Any]], result: str = "", **train: Any) -> None:
    """Trains, with the faults, its log appended to a file and its summary written.

    Args:
      log: file for standard error and output.
      faults: arguments of `FaultPlan.kill_at`.
      result: file for the `TrainSummary`, as JSON.
      **train: arguments of `trainer.train`, other than agent and environment.
    """
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    logging.set_verbosity(logging.INFO)
    plan = FaultPlan()
    for fault in faults:
        plan.kill_at(**fault)
    agent, environment = problem.make(plan)
    with points.reached(plan):
        summary = trainer.train(
            agent=agent, environment=environment, steps_per_loop=problem.STEPS, **train
        )
    if plan.pending:
        sys.exit(f"Never happened: {plan}")
    if result:
        with open(result, "w") as file:
            json.dump(dataclasses.asdict(summary), file)

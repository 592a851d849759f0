"""check_trainer: runs a training loop in many ways and tells what is wrong with it."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from testing.cadence.report import Report
from testing.contracts.trainer import (
    crash,
    killer,
    rules_disk,
    rules_flow,
    rules_log,
    rules_manners,
    rules_resume,
    sizes,
)
from testing.contracts.trainer.error import TrainerContractError
from testing.contracts.trainer.lab import Lab
from testing.contracts.trainer.rulebook import RULES, check_names
from testing.contracts.trainer.signature import Offer

# Importing them registers the rules.
_RULES = (rules_flow, rules_log, rules_disk, rules_resume, rules_manners)


def check_trainer(
    train: Callable[..., Any],
    *,
    training_loops: int = 3,
    steps_per_loop: int = 4,
    async_steps_per_loop: int = 2,
    batch_size: int = 7,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    raises: bool = True,
) -> Report:
    """Checks a bandit training loop from outside: log, data flow, checkpoints, resume.

        def test_my_trainer():
            check_trainer(my_project.train)

    The trainer is run a dozen times, briefly, with fakes for agent and environment.
    It gets, by keyword, those of these arguments that it takes: `root_dir`, `agent`,
    `environment`, `training_loops`, `steps_per_loop`, `async_steps_per_loop`,
    `additional_metrics`, `save_policy`, `resume_training_loops`. What it does not
    take is reported as not exercised.

    Args:
      train: the training loop, a function. Where names differ, wrap it in a lambda.
      training_loops: loops of an ordinary run, from 2.
      steps_per_loop: steps of one driver run in each environment, from 2.
      async_steps_per_loop: driver runs, and then train calls, of one loop, from 1.
      batch_size: environments stepped together, from 2.
      only: names of the only rules to check; all if empty. `completes` comes along.
      skip: names of rules to leave out; they are reported as skipped.
      raises: whether to raise when a rule is broken.

    Returns:
      A `Report` of violations, kept rules, and rules that were not exercised.

    Raises:
      TrainerContractError: rules are broken and `raises` is true; it names all.
      TypeError: `train` cannot be called so; the message has the lambda to write.
      ValueError: a size is not allowed, or `only` or `skip` name no rule.
    """
    size = sizes.checked(
        training_loops=training_loops,
        steps_per_loop=steps_per_loop,
        async_steps_per_loop=async_steps_per_loop,
        batch_size=batch_size,
    )
    check_names(only=only, skip=skip)
    offer = Offer(train)
    if only:
        only = {*only, "completes"}
    if _may_kill(train, only, skip):
        # It imports TensorFlow meanwhile.
        with contextlib.suppress(killer.NotPossible):
            killer.start()
    with tempfile.TemporaryDirectory(prefix="check_trainer_") as directory:
        lab = Lab(train, offer, size, Path(directory))
        report = RULES.run(lab, offer.name, only=only, skip=skip, raises=False)
    report = dataclasses.replace(report, notes=tuple(lab.notes))
    if raises and not report.ok:
        raise TrainerContractError(report)
    return report


def _may_kill(
    train: Callable[..., Any], only: Collection[str], skip: Collection[str]
) -> bool:
    rule = "crash-resumes"
    wanted = rule not in skip and (not only or rule in only)
    return wanted and crash.importable(train) is not None

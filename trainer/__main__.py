"""Trains a bandit agent on handwritten digits, a table of yours or a synthetic bandit.

  python -m trainer
  python -m trainer --environment=csv --data_path=iris.csv --label_column=species
  python -m trainer --environment=wheel --agent=LinTS --training_loops=300
  python -m trainer --num_collectors=4

Checkpoints, policies, TensorBoard summaries and the log go to --root_dir. At the end
a table tells how well the agent does beside a random policy, and what to type next.
"""

from __future__ import annotations

import contextlib
import shlex
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import rich.console
from absl import app, flags

from trainer import (
    baseline,
    distributed,
    maker,
    problems,
    ray_session,
    runs,
    summary,
    tables,
    train_log,
)
from trainer import settings as settings_lib
from trainer.checkpoints import CheckpointMismatchError
from trainer.settings import Settings, UsageError
from trainer.train import TrainSummary, train

settings_lib.define_flags()

_USAGE, _INTERRUPTED = 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; `argv` begins with the program's name.

    Returns:
      The exit code: 0 done, 2 the command asks for something impossible (said in
      one line; nothing was written), 130 interrupted.
    """
    try:
        return run(*settings_lib.parse(sys.argv if argv is None else argv))
    except UsageError as error:
        return _refuse(error)


def run(settings: Settings, given: Collection[str]) -> int:
    """Trains as `settings` say and shows how well it went. Raises UsageError."""
    console = rich.console.Console()
    this_run = runs.find(settings, given)
    table = maker.read_table(this_run.settings)
    problem = maker.make_problem(this_run.settings, table)
    agent = maker.make_agent(this_run.settings, problem)
    with _collectors_possible(this_run.settings, problem):
        this_run.create()
        _announce(this_run, console)
        start = time.monotonic()
        try:
            result = _train(this_run, problem, agent, table)
        except KeyboardInterrupt:
            command = shlex.join(summary.resume_command(this_run))
            print(f"\nStopped. To go on: {command}", file=sys.stderr)
            return _INTERRUPTED
        seconds = time.monotonic() - start
    chance = problem.random or baseline.measure_random(
        maker.make_problem(this_run.settings, table)
    )
    summary.show(summary.Outcome(this_run, problem, result, chance, seconds), console)
    return 0


@contextlib.contextmanager
def _collectors_possible(
    settings: Settings, problem: problems.Problem
) -> Iterator[None]:
    """Connects to the cluster, if one is named. Raises UsageError before writing."""
    count, address = settings.num_collectors, settings.ray_address
    if not count:
        yield
        return
    if problem.changes:
        raise UsageError(
            f"flag --num_collectors={count}: allowed only where rewards stay as they "
            f"are; those of --environment={settings.environment} change, in each "
            "collector in another way"
        )
    with contextlib.ExitStack() as stack:
        try:
            ray_session.require_ray()
            if address is not None:
                stack.enter_context(ray_session.connected(address))
        except ImportError as error:
            raise UsageError(f"flag --num_collectors={count}: {error}") from error
        except ConnectionError as error:
            raise UsageError(f"flag --ray_address={address}: {error}") from error
        yield


def _train(
    this_run: runs.Run,
    problem: problems.Problem,
    agent: object,
    table: tables.Table | None,
) -> TrainSummary:
    settings = this_run.settings
    # Not left to the flag's value: absl's `app.run` raises it to INFO.
    lines = flags.FLAGS["verbosity"].present and flags.FLAGS.verbosity >= 0
    log = this_run.path / summary.TRAIN_LOG
    common: dict[str, Any] = {
        "root_dir": this_run.path,
        "training_loops": settings.training_loops,
        "steps_per_loop": settings.steps_per_loop,
        "async_steps_per_loop": settings.async_steps_per_loop,
        "additional_metrics": problem.metrics(),
        "save_policy": settings.save_policy,
        "resume_training_loops": settings.resume_training_loops,
        "progress": False if lines else None,
    }
    maker.seed_all(this_run.stream())
    try:
        with train_log.write_to(log, append=this_run.continued, show=lines):
            if settings.num_collectors is None:
                return train(agent=agent, environment=problem.environment, **common)
            return _train_apart(this_run, table, common)
    except CheckpointMismatchError as error:
        raise UsageError(f"flag --root_dir={this_run.path}: {error}") from error


def _train_apart(
    this_run: runs.Run, table: tables.Table | None, common: dict[str, Any]
) -> TrainSummary:
    settings = this_run.settings
    parts = maker.Maker(settings, table, this_run.stream())
    return distributed.train(
        agent_fn=parts.agent,
        environment_fn=parts.environment,
        num_collectors=settings.num_collectors or 1,
        address=settings.ray_address,
        **common,
    )


def _announce(this_run: runs.Run, console: rich.console.Console) -> None:
    settings = this_run.settings
    doing = "Continuing" if this_run.continued else "Training"
    console.print(
        f"{doing} {settings.agent} on {settings.environment} in {this_run.path}",
        soft_wrap=True,
        markup=False,
        highlight=False,
    )


def _refuse(error: UsageError) -> int:
    print(f"python -m trainer: {error}", file=sys.stderr)
    return _USAGE


def _parse_or_exit(argv: Sequence[str]) -> tuple[Settings, set[str]]:
    """For `app.run`: like absl's own parser, but one line and exit code 2."""
    try:
        return settings_lib.parse(argv)
    except UsageError as error:
        sys.exit(_refuse(error))
    except SystemExit as stop:
        # absl leaves with 1 after --help; a shell takes that for a failure.
        sys.exit(0 if stop.code == 1 else stop.code)


def _run_or_refuse(parsed: tuple[Settings, set[str]]) -> int:
    try:
        return run(*parsed)
    except UsageError as error:
        return _refuse(error)


if __name__ == "__main__":
    app.run(_run_or_refuse, flags_parser=_parse_or_exit)

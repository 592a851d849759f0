"""What the command line asks for: flags, their meaning and their limits."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from absl import flags

from trainer import agents, problems

# The flags count as those of the module that calls `define_flags`.
flags.disclaim_key_flags()

_MAX_SEED = 2**32 - 1


class UsageError(ValueError):
    """The command asks for something impossible; the message is one line."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """The values of all flags; each is described in `define_flags`."""

    environment: str = "digits"
    agent: str = "LinUCB"
    data_path: str | None = None
    label_column: str | None = None
    training_loops: int = 100
    steps_per_loop: int = 2
    async_steps_per_loop: int = 1
    batch_size: int = 32
    seed: int | None = None
    root_dir: str | None = None
    resume_training_loops: bool = False
    save_policy: bool = True
    num_collectors: int | None = None
    ray_address: str | None = None


class _Whole(flags.IntegerParser):
    """Whole numbers between two bounds, with one sentence for all errors."""

    def parse(self, argument: str | int) -> int:
        try:
            return super().parse(argument)
        except (TypeError, ValueError):
            bounds = f"{self.lower_bound} to {self.upper_bound}"
            raise ValueError(f"allowed are whole numbers from {bounds}") from None


def _define_whole(name: str, most: int, help_text: str, least: int = 1) -> None:
    flags.DEFINE(
        _Whole(lower_bound=least, upper_bound=most),
        name,
        getattr(Settings, name),
        help_text,
        serializer=flags.ArgumentSerializer(),
    )


def define_flags() -> None:
    """Defines one flag for each field of `Settings`."""
    _define_problem()
    _define_run()
    _define_size()
    _define_scale()


def _define_problem() -> None:
    flags.DEFINE_enum(
        "environment",
        Settings.environment,
        [*problems.ENVIRONMENTS, problems.CSV],
        "What to learn. digits: handwritten digits, bundled with scikit-learn; "
        "csv: your own table, see --data_path; the others are TF-Agents' synthetic "
        "bandits.",
        case_sensitive=False,
    )
    flags.DEFINE_enum(
        "agent",
        Settings.agent,
        list(agents.AGENTS),
        "Who learns.",
        case_sensitive=False,
    )
    flags.DEFINE_string(
        "data_path",
        None,
        "For --environment=csv: a CSV file whose first row names the columns. All "
        "columns but the class column must hold numbers; they are scaled to mean 0 "
        "and variance 1.",
    )
    flags.DEFINE_string(
        "label_column",
        None,
        "For --environment=csv: the name of the class column, of texts or whole "
        "numbers. Naming a row's class earns a reward of 1, anything else 0.",
    )
    _define_whole(
        "seed",
        _MAX_SEED,
        "Makes the run repeatable: the same seed gives the same log lines. Default: "
        "one is drawn, shown at the end and kept for resumption.",
        least=0,
    )


def _define_run() -> None:
    flags.DEFINE_string(
        "root_dir",
        None,
        "Where checkpoints, policies, summaries and train.log go. A run that is "
        "there already is continued with its own settings. Default: a new directory "
        "in ./runs.",
    )
    flags.DEFINE_boolean(
        "resume_training_loops",
        Settings.resume_training_loops,
        "When continuing: whether --training_loops counts from the very first run "
        "(true: only the missing loops are run) or from now on (false).",
    )
    flags.DEFINE_boolean(
        "save_policy", Settings.save_policy, "Whether the policy is exported."
    )


def _define_size() -> None:
    _define_whole("training_loops", 10**9, "How many loops to run.")
    _define_whole(
        "steps_per_loop", 10**6, "Steps of one driver run in each environment."
    )
    _define_whole(
        "async_steps_per_loop",
        10**6,
        "Driver runs, and then train steps, of one loop. With --num_collectors: as "
        "many as there are collectors, if not given.",
    )
    _define_whole("batch_size", 4096, "Environments that are stepped side by side.")


def _define_scale() -> None:
    _define_whole(
        "num_collectors",
        10**6,
        "Makes the driver runs of a loop side by side, in so many processes, on Ray. "
        "Default: all in this one, one after the other.",
    )
    flags.DEFINE_string(
        "ray_address",
        None,
        "With --num_collectors: HOST:PORT of a Ray cluster for the collectors, or "
        "'auto' to look for one. Default: this machine alone.",
    )


def parse(argv: Sequence[str], values: Any = flags.FLAGS) -> tuple[Settings, set[str]]:
    """Parses a command line.

    Args:
      argv: program name and arguments.
      values: where the flags were defined.

    Returns:
      The settings, and the names of those that `argv` gives itself.

    Raises:
      UsageError: a flag or value is not allowed.
    """
    names = [field.name for field in dataclasses.fields(Settings)]
    for name in (*names, "verbosity"):
        if name in values:
            values[name].unparse()  # What an earlier call in this process said.
    try:
        rest = values(list(argv))
    except flags.Error as error:
        raise UsageError(_one_line(error)) from error
    if len(rest) > 1:
        raise UsageError(f"{rest[1]!r} is no flag; flags begin with --")
    settings = Settings(**{name: values[name].value for name in names})
    return settings, {name for name in names if values[name].present}


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    if "Non-boolean" in text:
        text = f"{text.split(': ')[0]}: allowed are true and false"
    return text


def check(settings: Settings) -> None:
    """Checks what one flag alone cannot tell. Raises UsageError."""
    for name in ("data_path", "label_column"):
        value = getattr(settings, name)
        if value and settings.environment != problems.CSV:
            raise UsageError(
                f"flag --{name}={value}: allowed only with --environment={problems.CSV}"
            )
    if settings.environment == problems.CSV and not settings.data_path:
        raise UsageError("flag --data_path: needed with --environment=csv")
    _check_scale(settings)


def _check_scale(settings: Settings) -> None:
    collectors, address = settings.num_collectors, settings.ray_address
    runs = settings.async_steps_per_loop
    if collectors and collectors > runs:
        raise UsageError(
            f"flag --num_collectors={collectors}: a loop has only {runs} driver runs "
            f"to share out (--async_steps_per_loop); allowed are 1 to {runs}"
        )
    if address is not None and not collectors:
        raise UsageError(
            f"flag --ray_address={address}: allowed only with --num_collectors"
        )
    if address is not None and (not address or "://" in address):
        raise UsageError(
            f"flag --ray_address={address}: allowed are HOST:PORT and auto"
        )

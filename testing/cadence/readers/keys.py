"""Which column or key of a record holds the step, and which are no series."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

# The first that is there counts. The order matters: a table with steps and
# epochs is by step.
_STEPS = (
    "step",
    "global_step",
    "_step",
    "time/total_timesteps",
    "total_timesteps",
    "timesteps_total",
    "num_env_steps_sampled_lifetime",
    "train_step",
    "trainer/global_step",
    "timestep",
    "timesteps",
    "env_steps",
    "environment_steps",
    "iteration",
    "iter",
    "training_iteration",
    "time/iterations",
    "update",
    "epoch",
)
# What tells when a record was written, or counts what the step counts too.
_INDICES = frozenset(
    {
        "epoch",
        "time",
        "wall_time",
        "wall time",
        "walltime",
        "timestamp",
        "_timestamp",
        "_runtime",
        "date",
        "datetime",
        "created_at",
        "relative time (wall)",
        "relative time (process)",
    }
)
# What tells the records of one logger apart, by a word.
_PARTS = ("split", "phase", "mode", "stage", "subset")
_PART = re.compile(r"[A-Za-z][\w.-]{0,40}")


def step_key(keys: Iterable[str]) -> str | None:
    """The key that holds the step; None if there is none."""
    by_name: dict[str, str] = {}
    for key in keys:
        by_name.setdefault(key.strip().lower(), key)
    return next((by_name[name] for name in _STEPS if name in by_name), None)


def is_index(key: str) -> bool:
    """Whether a key besides that of the step holds no series."""
    return key.strip().lower() in _INDICES


def is_part(key: str) -> bool:
    """Whether a key may hold what `part` looks for."""
    return key in _PARTS


def part(record: Mapping[str, object]) -> str:
    """What a record says it is about, such as `train` or `val`; or empty.

    Loggers that write `{"split": "val", "step": 5, "loss": 1}` have a series of
    losses for each split, not one with two losses a step.
    """
    for key in _PARTS:
        value = record.get(key)
        if isinstance(value, str) and _PART.fullmatch(value):
            return value
    return ""

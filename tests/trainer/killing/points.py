"""Points of a run at which a process can be made to die, in real code."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.checkpoint import checkpoint_management
from tf_agents.bandits.replay_buffers import bandit_replay_buffer
from tf_agents.eval import metric_utils
from tf_agents.policies import policy_saver

from testing.fakes import FaultPlan
from trainer import driver, found, lock, policies

# Those of no kind of their own are `log` calls with a name.
PLACES: tuple[tuple[Any, str, str, str], ...] = (
    (driver.LeanDriver, "run", "driver.run", ""),
    (bandit_replay_buffer.BanditReplayBuffer, "clear", "buffer.clear", ""),
    (metric_utils, "log_metrics", "log", "joint"),
    (tf.summary, "scalar", "summary", ""),
    (tf.compat.v2.summary, "scalar", "summary", ""),
    (tf.train.CheckpointManager, "save", "checkpoint.save", ""),
    # Within a save: the files are there, but not yet the latest; then they are.
    (checkpoint_management, "update_checkpoint_state_internal", "log", "declare"),
    (checkpoint_management, "_delete_file_if_exists", "log", "sweep"),
    (policy_saver.PolicySaver, "save", "policy.save", ""),
    (tf.compat.v2.saved_model, "save", "log", "saved model"),
    (policies, "_replace", "log", "rename"),
    (found, "latest_readable", "log", "find"),
    (lock, "_take_over", "log", "lock"),
    (lock, "_release", "log", "unlock"),
)


@contextlib.contextmanager
def reached(faults: FaultPlan) -> Iterator[None]:
    """Makes each border of the trainer a point of the plan, while open."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(faults.around_log())
        for owner, attribute, kind, label in _distinct(PLACES):
            around = faults.around(
                owner, attribute, kind, name_of=lambda *_, label=label, **__: label
            )
            stack.enter_context(around)
        yield


def _distinct(places: Any) -> Iterator[tuple[Any, str, str, str]]:
    """Each once: the two `summary` are one module in 2.15, but not in 2.21."""
    seen = set()
    for place in places:
        if (id(place[0]), place[1]) not in seen:
            seen.add((id(place[0]), place[1]))
            yield place

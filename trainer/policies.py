"""Exports policies, each to a directory of its own, whole or not at all."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import tensorflow as tf
from tf_agents.policies import policy_saver

from trainer import found, storage

_POLICY = "policy_"
_UNFINISHED = ".unfinished_"
_REPLACED = ".replaced_"


class PolicyExporter:
    """Saves an agent's policy as `<root_dir>/policy_<environment steps>`."""

    def __init__(self, agent: Any, root_dir: str) -> None:
        """Saves `agent.policy` below `root_dir`, with the agent's own train step."""
        self._root_dir = root_dir
        self._saver = policy_saver.PolicySaver(
            agent.policy, train_step=_own_train_step(agent)
        )

    def save(self, environment_steps: int) -> str:
        """Exports the policy as it is now and returns its directory.

        The directory appears under its name only when it is complete. One that is
        there already is of an unfinished loop that is run again; it is replaced.

        Raises:
          StorageError: it could not be written. Nothing is left of it.
        """
        target = policy_path(self._root_dir, environment_steps)
        unfinished = _aside(target, _UNFINISHED)
        kept = "The checkpoint is saved; the next run exports the policy from it."
        with storage.writing("The policy", target, lambda: kept):
            try:
                found.remove(unfinished)
                self._saver.save(unfinished)
                _replace(unfinished, target)
            except BaseException:
                with contextlib.suppress(OSError, tf.errors.OpError):
                    found.remove(unfinished)
                raise
        return target


def _replace(source: str, target: str) -> None:
    """Puts `source` in the place of `target`, of which no half is ever seen."""
    if not tf.io.gfile.exists(target):
        tf.io.gfile.rename(source, target)
        return
    replaced = _aside(target, _REPLACED)
    found.remove(replaced)
    tf.io.gfile.rename(target, replaced)
    tf.io.gfile.rename(source, target)
    found.remove(replaced)


def remove_unfinished(root_dir: str) -> None:
    """Deletes what processes that died during an export left there."""
    if not tf.io.gfile.isdir(root_dir):
        return
    for name in tf.io.gfile.listdir(root_dir):
        if name.startswith((f"{_UNFINISHED}{_POLICY}", f"{_REPLACED}{_POLICY}")):
            found.remove(os.path.join(root_dir, name.rstrip("/")))


def policy_path(root_dir: str, environment_steps: int) -> str:
    """The directory of the policy exported after so many environment steps."""
    return os.path.join(root_dir, f"{_POLICY}{environment_steps}")


def _aside(target: str, prefix: str) -> str:
    """A name beside `target` that nobody who looks for `policy_*` finds."""
    directory, name = os.path.split(target)
    return os.path.join(directory, f"{prefix}{name}")


def _own_train_step(agent: Any) -> tf.Variable | None:
    """The agent's counter, if it has one that can be saved."""
    counter = getattr(agent, "train_step_counter", None)
    return counter if isinstance(counter, tf.Variable) else None

"""Exports policies, each to a directory of its own, whole or not at all."""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf
from tf_agents.policies import policy_saver


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
        """
        target = policy_path(self._root_dir, environment_steps)
        unfinished = f"{target}.unfinished"
        _remove(unfinished)
        self._saver.save(unfinished)
        _remove(target)
        tf.io.gfile.rename(unfinished, target)
        return target


def policy_path(root_dir: str, environment_steps: int) -> str:
    """The directory of the policy exported after so many environment steps."""
    return os.path.join(root_dir, f"policy_{environment_steps}")


def _remove(directory: str) -> None:
    if tf.io.gfile.exists(directory):
        tf.io.gfile.rmtree(directory)


def _own_train_step(agent: Any) -> tf.Variable | None:
    """The agent's counter, if it has one that can be saved."""
    counter = getattr(agent, "train_step_counter", None)
    return counter if isinstance(counter, tf.Variable) else None

"""A problem without chance, which goes on where a killed process left it."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from tf_agents.bandits.agents import lin_ucb_agent
from tf_agents.bandits.environments import bandit_py_environment
from tf_agents.environments import tf_py_environment
from tf_agents.specs import array_spec

from testing.fakes import FaultPlan

ROWS = 2
STEPS = 2
ACTIONS = 3
FEATURES = 3


class World(bandit_py_environment.BanditPyEnvironment):
    """Numbers its interactions; contexts and rewards follow from the number.

    The world does not stop when a trainer dies, but a test's does, with the process.
    The agent knows how much of it has been seen, and a new one goes on from there.
    """

    def __init__(self, faults: FaultPlan) -> None:
        self.agent: Any = None
        self._faults = faults
        self._number: int | None = None
        super().__init__(
            array_spec.ArraySpec((FEATURES,), np.float32, "context"),
            array_spec.BoundedArraySpec((), np.int32, 0, ACTIONS - 1, "action"),
        )

    @property
    def batched(self) -> bool:
        return True

    @property
    def batch_size(self) -> int:
        return ROWS

    def _observe(self) -> Any:
        if self._number is None:
            # LinUCB counts what it was trained on, over all rows.
            self._number = int(self.agent.train_step_counter) // ROWS
        rows = [[self._number, row, 1] for row in range(ROWS)]
        return np.sin(np.asarray(rows, np.float32) * 1.7)

    def _apply_action(self, action: Any) -> Any:
        self._faults.reach("env.step", "before")
        self._faults.reach("env.step", "inside")
        number, self._number = self._number, self._number + 1
        angles = np.arange(ROWS) + number * 0.3 + np.asarray(action) * 2.1
        self._faults.reach("env.step", "after")
        return np.cos(angles).astype(np.float32)


class Agent(lin_ucb_agent.LinearUCBAgent):
    """LinUCB with the points of its train call, also inside compiled code."""

    def __init__(self, environment: Any, faults: FaultPlan) -> None:
        self._faults = faults
        super().__init__(
            environment.time_step_spec(),
            environment.action_spec(),
            alpha=0.5,
            dtype=tf.float32,
        )

    def _train(self, experience: Any, weights: Any = None) -> Any:
        with tf.control_dependencies([self._point("before")]):
            experience = tf.nest.map_structure(tf.identity, experience)
        info = super()._train(experience, weights)
        with tf.control_dependencies([info.loss]):
            inside = self._point("inside")  # The agent has changed; nobody knows.
        with tf.control_dependencies([inside]):
            after = self._point("after")
        with tf.control_dependencies([after]):
            return info._replace(loss=tf.identity(info.loss))

    def _point(self, when: str) -> Any:
        def reach() -> Any:
            self._faults.reach("agent.train", when)
            return np.int32(0)

        return tf.numpy_function(reach, [], tf.int32)


def make(faults: FaultPlan) -> tuple[Any, Any]:
    """The agent and the environment."""
    world = World(faults)
    environment = tf_py_environment.TFPyEnvironment(world)
    world.agent = Agent(environment, faults)
    return world.agent, environment

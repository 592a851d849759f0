"""Small Python environments: episodes of several steps, and a bandit."""

from __future__ import annotations

from typing import Any

import numpy as np

from testing.fakes._tf import (
    array_spec,
    bernoulli_py_environment,
    py_environment,
    tf_py_environment,
    time_step,
)

EPISODE = 3


class Episodes(py_environment.PyEnvironment):
    """Episodes of `EPISODE` steps; observes and pays the number of the step."""

    def __init__(self) -> None:
        super().__init__()
        self._position = 0

    def observation_spec(self) -> Any:
        return array_spec.ArraySpec((), np.int64, "position")

    def action_spec(self) -> Any:
        return array_spec.BoundedArraySpec((), np.int32, 0, 2, "action")

    def _reset(self) -> Any:
        self._position = 0
        return time_step.restart(np.asarray(0, np.int64))

    def _step(self, action: Any) -> Any:
        if self._current_time_step.is_last():
            return self.reset()
        self._position += 1
        observation = np.asarray(self._position, np.int64)
        if self._position == EPISODE:
            return time_step.termination(observation, float(self._position))
        return time_step.transition(observation, float(self._position))


def new_episodes() -> Any:
    """The environment for TensorFlow, batch size 1, without a thread of its own."""
    return tf_py_environment.TFPyEnvironment(Episodes(), isolation=False)


def new_bandit(batch_size: int) -> Any:
    """A bandit written in Python, three actions, for TensorFlow."""
    bandit = bernoulli_py_environment.BernoulliPyEnvironment(
        [0.2, 0.5, 0.8], batch_size
    )
    return tf_py_environment.TFPyEnvironment(bandit, isolation=False)

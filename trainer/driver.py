"""A driver that is `DynamicStepDriver` without its overhead, where that can be.

Every step of a bandit is an episode, so every step counts: the number of steps is
known beforehand, and nothing has to be counted or tested while they are taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tf_agents.drivers import dynamic_step_driver
from tf_agents.trajectories import time_step as ts
from tf_agents.trajectories import trajectory

from trainer import fast_observers, graph_safe, linear_policy

# More steps than this are looped over in a graph, fewer are laid out one by one: each
# costs tracing time once, and saves a little in each run.
UNROLLED_STEPS = 2


class LeanDriver(dynamic_step_driver.DynamicStepDriver):
    """Takes steps in an environment, eagerly or in a `tf.function`.

    Does what `DynamicStepDriver` does: the same steps, trajectories and calls of the
    observers in the same order. TF-Agents' episode metrics among the observers are
    updated for all rows at once, with the same result. Environments whose episodes
    are longer than a step are left to `DynamicStepDriver`.
    """

    def __init__(
        self,
        env: Any,
        policy: Any,
        observers: Sequence[Callable[..., Any]] | None = None,
        transition_observers: Sequence[Callable[..., Any]] | None = None,
        num_steps: int = 1,
        action: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        """Creates the driver.

        Args:
          env: a `TFEnvironment`.
          policy: a `TFPolicy`.
          observers: called after every step with a `Trajectory` of shape
            `[batch_size, ...]`.
          transition_observers: called after every step with a tuple of `TimeStep`,
            `PolicyStep` and next `TimeStep`.
          num_steps: steps of one run, summed over all environments and rounded up
            to whole batches.
          action: what is called with time step and policy state in place of
            `policy.action`, if anything; for bandits alone.
        """
        super().__init__(env, policy, observers, transition_observers, num_steps)
        self._action = action or linear_policy.fast_action(policy, env.batch_size)
        self._watchers = [Watcher(observer) for observer in self._observers]

    def _run(
        self,
        time_step: Any = None,
        policy_state: Any = None,
        maximum_iterations: int | None = None,
    ) -> tuple[Any, Any]:
        """See `run` of `DynamicStepDriver`."""
        if not self._is_bandit_env or tf.is_tensor(maximum_iterations):
            return super()._run(time_step, policy_state, maximum_iterations)
        if time_step is None:
            time_step = self.env.current_time_step()
        if policy_state is None:
            policy_state = self.policy.get_initial_state(self.env.batch_size)
        steps = math.ceil(self._num_steps / self.env.batch_size)
        if maximum_iterations is not None:
            steps = min(steps, int(maximum_iterations))
        if tf.executing_eagerly() or steps <= UNROLLED_STEPS:
            run = self._one_by_one
        else:
            run = self._looped
        return run(steps, time_step, policy_state)

    def _one_by_one(
        self, steps: int, time_step: Any, policy_state: Any
    ) -> tuple[Any, Any]:
        for _ in range(steps):
            time_step, policy_state = self._step(time_step, policy_state)
        return time_step, policy_state

    def _looped(self, steps: int, time_step: Any, policy_state: Any) -> tuple[Any, Any]:
        _, time_step, policy_state = tf.while_loop(
            lambda taken, *_: taken < steps,
            lambda taken, *at: (taken + 1, *self._step(*at)),
            (tf.constant(0), time_step, policy_state),
            parallel_iterations=1,
        )
        return time_step, policy_state

    def _step(self, time_step: Any, policy_state: Any) -> tuple[Any, Any]:
        action_step = self._action(time_step, policy_state)
        # A policy may take no notice of the time step; the environment must not step
        # before it has shown it.
        action = after(tf.nest.flatten(time_step), action_step.action)
        next_time_step = self.env.step(action)
        # The time step that ends one episode of a bandit begins the next one.
        first = tf.fill(tf.shape(time_step.discount), ts.StepType.FIRST)
        time_step = time_step._replace(step_type=first)
        experience = trajectory.from_transition(time_step, action_step, next_time_step)
        seen = [watcher(experience) for watcher in self._watchers]
        for observer in self._transition_observers:
            observer((time_step, action_step, next_time_step))
            seen.append(_last_operation())
        return after(seen, (next_time_step, action_step.state))


class Watcher:
    """Calls an observer; tells what has to be done before the next step."""

    def __init__(self, observer: Callable[..., Any]) -> None:
        self._observer = observer
        self._update = fast_observers.fast_update(observer)
        # One trace for all runs, as TF-Agents does with the metric's own update.
        self._eager = tf.function(self._update or observer, autograph=False)
        self._waits = not graph_safe.is_safe_observer(observer)

    def __call__(self, experience: Any) -> Any:
        if self._update is None:
            self._observer(experience)
        elif tf.executing_eagerly():
            self._eager(experience)
        else:
            self._update(experience)
        # TensorFlow itself keeps operations on variables in order, but not Python.
        return _last_operation() if self._waits else None


def _last_operation() -> Any:
    if tf.executing_eagerly():
        return None
    return tf.compat.v1.get_default_graph().get_operations()[-1]


def after(operations: Sequence[Any], tensors: Any) -> Any:
    """`tensors`, but in a graph only after the operations."""
    operations = [operation for operation in operations if operation is not None]
    if tf.executing_eagerly() or not operations:
        return tensors
    with tf.control_dependencies(operations):
        return tf.nest.map_structure(tf.identity, tensors)

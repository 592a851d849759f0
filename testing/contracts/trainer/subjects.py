"""What a trainer is given: fakes that leave marks in checkpoints and policies."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from testing.contracts.trainer.watch import Watch
from testing.fakes._tf import tf, tf_metric
from testing.fakes.agent import CountingAgent
from testing.fakes.environment import FakeEnvironment
from testing.fakes.faults import FaultPlan
from testing.fakes.policy import FakePolicy

NUM_ACTIONS = 11
METRIC = "CheckedInteractions"
# Numbers that nothing else in a checkpoint has.
AGENT_MARK = 71_000_000
METRIC_MARK = 92_000_000


class RandomPolicy(FakePolicy):
    """A policy whose actions hang on all global random generators."""

    def _default(self, spec: Any, outer: Any) -> Any:
        # In the graph: TensorFlow called from Python called from a graph may wait
        # for itself.
        drawn = tf.random.uniform(outer, 0, NUM_ACTIONS, tf.int64)
        shift = tf.numpy_function(_draw, [], tf.int64, stateful=True)
        drawn += tf.ensure_shape(shift, ())
        return tf.cast(drawn % NUM_ACTIONS, spec.dtype)


class MarkedAgent(CountingAgent):
    """A CountingAgent that can be found in a checkpoint, and acts at random.

    So a trainer shows which seeds a global random generator, or draws from it.
    """

    def __init__(self, environment: Any, **options: Any) -> None:
        super().__init__(environment, **options)
        self._mark = tf.Variable(AGENT_MARK, dtype=tf.int64, trainable=False)
        self._collect_policy = RandomPolicy(
            self.time_step_spec,
            self.action_spec,
            train_step=self.train_step_counter,
            timeline=self.timeline,
            name="collect_policy",
        )

    def _train(self, experience: Any, weights: Any = None) -> Any:
        loss_info = super()._train(experience, weights)
        self._mark.assign_add(1)
        return loss_info


class Interactions(tf_metric.TFStepMetric):
    """Counts interactions: as exact a metric as can be, and marked."""

    def __init__(self) -> None:
        super().__init__(METRIC)
        self._count = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._mark = tf.Variable(METRIC_MARK, dtype=tf.int64, trainable=False)

    def __call__(self, trajectory: Any) -> Any:
        """Counts the rows of one step, without the parent's `tf.function`."""
        return self.call(trajectory)

    def call(self, trajectory: Any) -> Any:
        """Counts the rows of one step."""
        rows = tf.shape(tf.nest.flatten(trajectory.reward)[0], tf.int64)[0]
        self._count.assign_add(rows)
        self._mark.assign_add(rows)
        return trajectory

    def result(self) -> Any:
        """Interactions so far, int64."""
        return tf.identity(self._count)

    def reset(self) -> None:
        """Back to none."""
        self._count.assign(0)
        self._mark.assign(METRIC_MARK)


def environment(
    batch_size: int, watch: Watch, first_serial: int, faults: FaultPlan | None = None
) -> FakeEnvironment:
    """The environment of one run."""
    return FakeEnvironment(
        batch_size=batch_size,
        num_actions=NUM_ACTIONS,
        first_serial=first_serial,
        timeline=watch,
        faults=faults,
    )


def agent(
    env: Any,
    watch: Watch,
    losses: Callable[[int], float] | None = None,
    faults: FaultPlan | None = None,
) -> MarkedAgent:
    """The agent of one run."""
    script = {} if losses is None else {"losses": losses}
    return MarkedAgent(env, timeline=watch, faults=faults, name="agent", **script)


def seed_all(seed: int) -> None:
    """Seeds every global random generator."""
    random.seed(seed)
    np.random.seed(seed)
    tf.random.set_seed(seed)


def _draw() -> Any:
    drawn = np.random.randint(NUM_ACTIONS) + random.randrange(NUM_ACTIONS)
    return np.int64(drawn)

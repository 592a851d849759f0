"""Environments by name, each with what is known of its best and random rewards."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from tf_agents.bandits.environments import (
    bernoulli_py_environment,
    classification_environment,
    drifting_linear_environment,
    environment_utilities,
    non_stationary_stochastic_environment,
    piecewise_stochastic_environment,
    stationary_stochastic_per_arm_py_environment,
    stationary_stochastic_py_environment,
    wheel_py_environment,
)
from tf_agents.bandits.metrics import tf_metrics as bandit_metrics
from tf_agents.bandits.specs import utils as bandit_specs
from tf_agents.environments import tf_py_environment
from tf_agents.specs import array_spec

from trainer import tables
from trainer.recent import RecentMean

# Interactions over which the end of a run is judged.
WINDOW = 1000

Observation = Any
Function = Callable[[Observation], Any]


@dataclasses.dataclass(frozen=True)
class Reference:
    """Mean reward and regret per interaction that a fixed rule gets.

    Attributes:
      average_return: mean reward.
      regret: mean of the best arm's expected reward less the reward got.
      source: how the two are known: `exact`, or `measured over ...`.
    """

    average_return: float
    regret: float
    source: str = "exact"


@dataclasses.dataclass(frozen=True)
class Problem:
    """A bandit environment and how to judge a learner on it.

    Attributes:
      environment: the `TFEnvironment`, batched.
      optimal_reward: best arm's expected reward, shape `[batch_size]`, for an
        observation of `environment` that was just acted on.
      optimal_action: that arm, int32, shape `[batch_size]`.
      random: what a uniformly random policy gets; `None`: not known exactly.
      describe: one line for people, such as the size of the data.
      classes: the share of each class in the data, most frequent first; empty:
        not a classification.
      per_arm: whether each arm has features of its own.
      contextual: whether the best arm depends on the observation.
      changes: whether the rewards change with time, so that old ones mislead.
    """

    environment: Any
    optimal_reward: Function
    optimal_action: Function
    random: Reference | None
    describe: str
    classes: Mapping[str, float] = dataclasses.field(default_factory=dict)
    per_arm: bool = False
    contextual: bool = True
    changes: bool = False

    def metrics(self, window: int = WINDOW) -> tuple[Any, ...]:
        """New metrics for one run.

        TF-Agents' regret and suboptimal arms, which tell of the last step only,
        and the same over the last `window` interactions.
        """
        recent = [
            RecentMean("RecentReturn", lambda t: t.reward, window),
            RecentMean("RecentRegret", self.regret, window),
        ]
        if self.classes:
            recent.append(RecentMean("RecentAccuracy", self.is_best, window))
        suboptimal = bandit_metrics.SuboptimalArmsMetric(self.optimal_action)
        if self.classes:
            suboptimal = _Wrong(self.is_best)
        return bandit_metrics.RegretMetric(self.optimal_reward), suboptimal, *recent

    def regret(self, trajectory: Any) -> Any:
        """Of each interaction: the best arm's expected reward less that received."""
        return self.optimal_reward(trajectory.observation) - trajectory.reward

    def is_best(self, trajectory: Any) -> Any:
        """Whether each action was the best one."""
        if self.classes:
            # The environment knows the class only of the row it shows itself.
            return tf.equal(trajectory.reward, 1.0)
        best = self.optimal_action(trajectory.observation)
        return tf.equal(tf.cast(best, trajectory.action.dtype), trajectory.action)


class _Wrong(bandit_metrics.SuboptimalArmsMetric):
    """Told by the reward, as the observation alone does not name the best arm."""

    def __init__(self, is_best: Function) -> None:
        super().__init__(is_best)

    def call(self, trajectory: Any) -> Any:
        wrong = tf.logical_not(self._baseline_action_fn(trajectory))
        self.suboptimal_arms.assign(tf.reduce_mean(tf.cast(wrong, tf.float32)))
        return trajectory


###############################################################################
# Classification


def digits(batch_size: int) -> Problem:
    """scikit-learn's 1,797 handwritten digits: 64 pixels, 10 arms."""
    from sklearn import datasets

    data = datasets.load_digits()
    return classification(
        tables.make_table(data.data, [str(y) for y in data.target], data.feature_names),
        batch_size,
    )


def classification(table: tables.Table, batch_size: int) -> Problem:
    """Rows come in random order; naming the class earns 1, else 0."""
    rewards = tf.eye(len(table.classes))
    environment = classification_environment.ClassificationBanditEnvironment(
        tf.data.Dataset.from_tensor_slices((table.features, table.labels)),
        tfp.distributions.Independent(tfp.distributions.Deterministic(rewards), 2),
        batch_size,
        shuffle_buffer_size=len(table.labels),
    )
    counts = Counter(table.classes[i] for i in table.labels)
    rows, features = table.features.shape
    return Problem(
        environment=environment,
        optimal_reward=lambda _: tf.ones([batch_size]),
        optimal_action=lambda _: environment.compute_optimal_action(),
        random=Reference(1 / len(counts), 1 - 1 / len(counts)),
        describe=f"{rows:,} rows, {features} features, {len(counts)} classes",
        classes={name: n / rows for name, n in counts.most_common()},
    )


###############################################################################
# Python environments of TF-Agents


def wheel(batch_size: int) -> Problem:
    """Points in the unit disc; far out, the quadrant decides the best of 5 arms."""
    delta, high, noise = 0.5, 1.0, 0.01
    base = [0.1, 0.05, 0.05, 0.05, 0.05]
    environment = wheel_py_environment.WheelPyEnvironment(
        delta, base, [noise] * 5, high, noise, batch_size
    )
    inside = delta**2
    best = inside * base[0] + (1 - inside) * high
    # Outside, four of the five arms pay their base reward.
    chance = inside * np.mean(base) + (1 - inside) * (base[0] + 3 * base[1] + high) / 5
    utilities = environment_utilities
    return Problem(
        environment=tf_py_environment.TFPyEnvironment(environment),
        optimal_reward=functools.partial(
            utilities.tf_wheel_bandit_compute_optimal_reward,
            delta=delta,
            mu_inside=base[0],
            mu_high=high,
        ),
        optimal_action=functools.partial(
            utilities.tf_wheel_bandit_compute_optimal_action, delta=delta
        ),
        random=Reference(float(chance), float(best - chance)),
        describe=f"2 features, 5 arms, delta {delta}",
    )


def stationary_stochastic(batch_size: int) -> Problem:
    """Rewards linear in 15 features, 5 arms, little noise."""
    features, arms, noise = 15, 5, 0.1
    reward_fns = environment_utilities.normalized_sliding_linear_reward_fn_generator(
        features, arms, noise
    )
    environment = (
        stationary_stochastic_py_environment.StationaryStochasticPyEnvironment(
            # Divided, so that rewards are of the size of 1 for the networks.
            lambda: (
                environment_utilities.context_sampling_fn(batch_size, features)
                / np.float32(10)
            ),
            reward_fns,
            batch_size=batch_size,
        )
    )
    utilities = environment_utilities
    return Problem(
        environment=tf_py_environment.TFPyEnvironment(environment),
        optimal_reward=functools.partial(
            utilities.tf_compute_optimal_reward, per_action_reward_fns=reward_fns
        ),
        optimal_action=functools.partial(
            utilities.tf_compute_optimal_action, per_action_reward_fns=reward_fns
        ),
        random=None,
        describe=f"{features} features, {arms} arms",
    )


class _BernoulliEnvironment(bernoulli_py_environment.BernoulliPyEnvironment):
    """With an observation of shape `[1]`: agents with contexts need a vector."""

    def observation_spec(self) -> Any:
        return array_spec.ArraySpec((1,), np.float32, name="observation")


def bernoulli(batch_size: int) -> Problem:
    """Five arms that pay 1 with fixed chances; the observation is constant."""
    means = [0.1, 0.2, 0.3, 0.45, 0.7]
    best, chance = max(means), float(np.mean(means))

    def constant(value: Any) -> Function:
        return lambda observation: tf.fill([batch_size], value)

    return Problem(
        environment=tf_py_environment.TFPyEnvironment(
            _BernoulliEnvironment(means, batch_size)
        ),
        optimal_reward=constant(tf.constant(best)),
        optimal_action=constant(tf.constant(int(np.argmax(means)))),
        random=Reference(chance, best - chance),
        describe=f"{len(means)} arms that pay with chance {means}",
        contextual=False,
    )


def per_arm(batch_size: int) -> Problem:
    """Each of 7 arms has 5 features of its own, beside 4 shared ones."""
    arms, noise = 7, 0.1
    theta = np.arange(1, 10, dtype=np.float32) / 10
    environment = stationary_stochastic_per_arm_py_environment
    draw = np.random.randint
    python_environment = environment.StationaryStochasticPerArmPyEnvironment(
        lambda: draw(-10, 10, [4]).astype(np.float32) / 10,
        lambda: draw(-2, 3, [5]).astype(np.float32) / 2,
        arms,
        lambda x: np.random.normal(np.dot(x, theta), noise),
        batch_size=batch_size,
    )

    def rewards(observation: Observation) -> Any:
        shared = observation[bandit_specs.GLOBAL_FEATURE_KEY]
        own = observation[bandit_specs.PER_ARM_FEATURE_KEY]
        return tf.linalg.matvec(shared, theta[:4])[:, tf.newaxis] + tf.linalg.matvec(
            own, theta[4:]
        )

    return Problem(
        environment=tf_py_environment.TFPyEnvironment(python_environment),
        optimal_reward=lambda x: tf.reduce_max(rewards(x), axis=1),
        optimal_action=lambda x: tf.argmax(rewards(x), 1, output_type=tf.int32),
        random=None,
        describe=f"4 shared features and 5 of each arm, {arms} arms",
        per_arm=True,
    )


###############################################################################
# Environments that change with time

_FEATURES, _ARMS, _NOISE, _PIECE = 15, 5, 0.01, 4000


def drifting_linear(batch_size: int) -> Problem:
    """Rewards linear in 15 features, 5 arms; the weights turn slowly."""
    turn = tfp.distributions.Normal(loc=0.01, scale=0.01)
    dynamics = drifting_linear_environment.DriftingLinearDynamics(
        _normal([batch_size, _FEATURES]),
        _normal([_FEATURES, _ARMS]),
        turn,
        _normal([_ARMS], _NOISE),
    )
    return _changing(dynamics, "the weights turn at every step")


def piecewise_linear(batch_size: int) -> Problem:
    """Rewards linear in 15 features, 5 arms; new weights from time to time."""
    dynamics = piecewise_stochastic_environment.PiecewiseStationaryDynamics(
        _normal([batch_size, _FEATURES]),
        tfp.distributions.Deterministic(_PIECE),
        _normal([_FEATURES, _ARMS]),
        _normal([_ARMS], _NOISE),
    )
    return _changing(dynamics, f"new weights every {_PIECE:,} interactions")


def _normal(shape: list[int], scale: float = 1.0) -> Any:
    return tfp.distributions.Normal(tf.zeros(shape), scale * tf.ones(shape))


def _changing(dynamics: Any, describe: str) -> Problem:
    environment = non_stationary_stochastic_environment
    return Problem(
        environment=environment.NonStationaryStochasticEnvironment(dynamics),
        optimal_reward=dynamics.compute_optimal_reward,
        optimal_action=dynamics.compute_optimal_action,
        random=None,
        describe=f"{_FEATURES} features, {_ARMS} arms, {describe}",
        changes=True,
    )


###############################################################################
# By name

ENVIRONMENTS: Mapping[str, Callable[[int], Problem]] = MappingProxyType(
    {
        "digits": digits,
        "wheel": wheel,
        "stationary_stochastic": stationary_stochastic,
        "bernoulli": bernoulli,
        "drifting_linear": drifting_linear,
        "piecewise_linear": piecewise_linear,
        "per_arm": per_arm,
    }
)
# The one environment that needs more than a batch size: see `classification`.
CSV = "csv"

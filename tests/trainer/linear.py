"""Linear bandits of every sort, with experience to train them on."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from tf_agents.bandits.agents import lin_ucb_agent
from tf_agents.bandits.agents import linear_thompson_sampling_agent as lin_ts_agent
from tf_agents.bandits.specs import utils as bandit_spec_utils
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import policy_step, trajectory
from tf_agents.trajectories import time_step as ts

ARMS, SIZE, BATCH = 4, 5, 6
INFO = ("predicted_rewards_mean", "predicted_rewards_optimistic")


@dataclasses.dataclass(frozen=True)
class Sort:
    """One sort of agent.

    Attributes:
      options: for the constructor.
      kind: the agent's class.
      per_arm: whether each arm has features of its own.
      masked: whether the observation comes with a mask of allowed actions.
    """

    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    kind: Callable[..., Any] = lin_ucb_agent.LinearUCBAgent
    per_arm: bool = False
    masked: bool = False


SORTS = {
    "plain": Sort(),
    "bias": Sort({"add_bias": True, "alpha": 0.3}),
    "float64": Sort({"dtype": tf.float64}),
    "forgets": Sort({"gamma": 0.9, "tikhonov_weight": 2.0}),
    "tells": Sort({"emit_policy_info": INFO, "emit_log_probability": True}),
    "greedy": Sort({"alpha": 0.0}),
    "per arm": Sort(per_arm=True),
    "per arm, bias": Sort({"add_bias": True, "emit_policy_info": INFO}, per_arm=True),
    "masked": Sort(masked=True),
    "samples": Sort(kind=lin_ts_agent.LinearThompsonSamplingAgent),
}


def make(sort: Sort) -> Any:
    """An agent."""
    spec = tensor_spec.TensorSpec([SIZE], tf.float32, "observation")
    options = dict(sort.options)
    if sort.per_arm:
        spec = bandit_spec_utils.create_per_arm_observation_spec(
            SIZE, 2, ARMS, add_num_actions_feature=False
        )
        options["accepts_per_arm_features"] = True
    if sort.masked:
        spec = (spec, tensor_spec.TensorSpec([ARMS], tf.int32, "mask"))
        options["observation_and_action_constraint_splitter"] = lambda seen: seen
    action = tensor_spec.BoundedTensorSpec((), tf.int32, 0, ARMS - 1)
    return sort.kind(ts.time_step_spec(spec), action, **options)


def time_step(agent: Any, seed: int) -> Any:
    """A first time step; its observations are all different."""
    numbers = np.random.default_rng(seed)

    def drawn(spec: Any) -> Any:
        shape = [BATCH, *spec.shape]
        if spec.dtype.is_integer:
            allowed = numbers.integers(0, 2, size=shape)
            allowed[:, 0] = 1
            return tf.constant(allowed, spec.dtype)
        return tf.constant(numbers.normal(size=shape) * 3, spec.dtype)

    return ts.restart(
        tf.nest.map_structure(drawn, agent.time_step_spec.observation), BATCH
    )


def experience(agent: Any, seed: int) -> Any:
    """A batch to train on, of shape `[BATCH, 1, ...]`: each arm is pulled but one."""
    numbers = np.random.default_rng(seed)
    first = time_step(agent, seed)
    action = tf.constant(np.arange(BATCH) % (ARMS - 1), tf.int32)
    info = tensor_spec.sample_spec_nest(
        agent.policy.info_spec, outer_dims=[BATCH], seed=seed
    )
    if agent._accepts_per_arm_features:
        arms = first.observation["per_arm"]
        info = info._replace(chosen_arm_features=tf.gather(arms, action, batch_dims=1))
        first.observation.pop("per_arm")
    reward = tf.constant(numbers.normal(size=BATCH), tf.float32)
    last = ts.termination(first.observation, reward)
    step = policy_step.PolicyStep(action, (), info)
    whole = trajectory.from_transition(first, step, last)
    return tf.nest.map_structure(lambda t: tf.expand_dims(t, 1), whole)

"""Agents by name, set up for a problem, and which of them fit it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import tensorflow as tf
from tf_agents.bandits.agents import (
    exp3_agent,
    exp3_mixture_agent,
    lin_ucb_agent,
    linear_thompson_sampling_agent,
    neural_boltzmann_agent,
    neural_epsilon_greedy_agent,
)
from tf_agents.bandits.networks import global_and_arm_feature_network
from tf_agents.networks import q_network
from tf_agents.policies import utils as policy_utilities

from trainer.problems import Problem

_LAYERS = (50, 50)
_LEARNING_RATE = 0.005
_EPSILON = 0.1
# Samples of many features spread far: at 1, the default, 64 pixels hide the best arm.
_THOMPSON_ALPHA = 0.2
# The share of old experience that linear agents keep at each train step.
_KEEP_ALL, _KEEP_RECENT = 1.0, 0.95
_MEAN = (policy_utilities.InfoFields.PREDICTED_REWARDS_MEAN,)


def _specs(problem: Problem) -> dict[str, Any]:
    return {
        "time_step_spec": problem.environment.time_step_spec(),
        "action_spec": problem.environment.action_spec(),
    }


def _linear(problem: Problem, **more: Any) -> dict[str, Any]:
    return {
        **_specs(problem),
        "gamma": _KEEP_RECENT if problem.changes else _KEEP_ALL,
        "add_bias": True,
        # A third of the time of the default solver, with the same choices.
        "use_eigendecomp": True,
        "accepts_per_arm_features": problem.per_arm,
        **more,
    }


def _neural(problem: Problem, **more: Any) -> dict[str, Any]:
    return {
        **_specs(problem),
        "reward_network": _network(problem),
        "optimizer": tf.compat.v1.train.AdamOptimizer(_LEARNING_RATE),
        "accepts_per_arm_features": problem.per_arm,
        # A counter of its own: the process's global step is shared by all.
        "train_step_counter": tf.Variable(0, dtype=tf.int64, trainable=False),
        **more,
    }


def _network(problem: Problem) -> Any:
    observation = problem.environment.time_step_spec().observation
    if problem.per_arm:
        make = global_and_arm_feature_network.create_feed_forward_common_tower_network
        return make(observation, _LAYERS, _LAYERS, _LAYERS)
    return q_network.QNetwork(
        input_tensor_spec=observation,
        action_spec=problem.environment.action_spec(),
        fc_layer_params=_LAYERS,
    )


def lin_ucb(problem: Problem, **more: Any) -> Any:
    return lin_ucb_agent.LinearUCBAgent(**_linear(problem, **more))


def lin_ts(problem: Problem, **more: Any) -> Any:
    agent = linear_thompson_sampling_agent.LinearThompsonSamplingAgent
    return agent(**_linear(problem, alpha=_THOMPSON_ALPHA, **more))


def eps_greedy(problem: Problem, **more: Any) -> Any:
    agent = neural_epsilon_greedy_agent.NeuralEpsilonGreedyAgent
    return agent(**_neural(problem, epsilon=_EPSILON, **more))


def boltzmann(problem: Problem, **more: Any) -> Any:
    agent = neural_boltzmann_agent.NeuralBoltzmannAgent
    return agent(**_neural(problem, temperature=0.1, **more))


def exp3(problem: Problem) -> Any:
    return exp3_agent.Exp3Agent(**_specs(problem), learning_rate=0.05)


def mix(problem: Problem) -> Any:
    parts = (lin_ucb, lin_ts, eps_greedy)
    agents = [part(problem, emit_policy_info=_MEAN) for part in parts]
    return exp3_mixture_agent.Exp3MixtureAgent(agents)


AGENTS: Mapping[str, Callable[[Problem], Any]] = MappingProxyType(
    {
        "LinUCB": lin_ucb,
        "LinTS": lin_ts,
        "epsGreedy": eps_greedy,
        "Boltzmann": boltzmann,
        "EXP3": exp3,
        "mix": mix,
    }
)


def make(name: str, problem: Problem) -> Any:
    """The agent called `name` (a key of `AGENTS`), set up for `problem`."""
    return AGENTS[name](problem)


def misfit(name: str, problem: Problem) -> str | None:
    """Why the agent called `name` cannot learn `problem`; None: it can."""
    if name == "EXP3" and problem.contextual:
        return "EXP3 takes no notice of observations, and the best arm depends on them"
    return None


def fitting(problem: Problem) -> list[str]:
    """Names of the agents that fit `problem`."""
    return [name for name in AGENTS if misfit(name, problem) is None]

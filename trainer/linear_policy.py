"""LinUCB's and linear Thompson sampling's action with all arms computed at once.

In a graph it is several times as fast as TF-Agents' `LinearBanditPolicy`, with the same
result to the last bit (see `trainer.exact_sums`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tf_agents.bandits.policies.linear_bandit_policy import LinearBanditPolicy

from trainer import exact_sums, graph_safe
from trainer.conjugate_gradient import Sums, transposed


def fast_action(policy: Any, batch_size: int) -> Callable[[Any, Any], Any]:
    """`policy.action`, or something faster in a graph that gives the same.

    Args:
      policy: any `TFPolicy`.
      batch_size: of the environment it acts in.

    Returns:
      A function of time step, of shape `[batch_size, ...]`, and policy state.
    """
    return LinearAction(policy, batch_size) if _is_plain(policy) else policy.action


def _is_plain(policy: Any) -> bool:
    """True for TF-Agents' policy itself where it solves equations."""
    is_linear = type(policy) is LinearBanditPolicy and not policy._use_eigendecomp
    return is_linear and graph_safe.unsafe_policy(policy) is None


class LinearAction:
    """A `LinearBanditPolicy`'s action; in a graph all arms are computed at once."""

    def __init__(self, policy: Any, batch_size: int) -> None:
        """Nothing is tried out before the first call within a graph."""
        self._policy = policy
        self._batch_size = batch_size
        self._fast: Any = None

    def __call__(self, time_step: Any, policy_state: Any) -> Any:
        """The `PolicyStep` for time steps of shape `[batch_size, ...]`."""
        if tf.executing_eagerly():
            return self._policy.action(time_step, policy_state)
        if self._fast is None:
            with tf.init_scope():
                self._fast = self._chosen()
        return self._fast.action(time_step, policy_state)

    def _chosen(self) -> Any:
        policy = self._policy
        size = (policy._num_actions, policy._overall_context_dim, self._batch_size)
        sums = exact_sums.exact_sums(*size, policy._dtype)
        return policy if sums is None else _AllArms(policy, self._batch_size, sums)


class _AllArms(LinearBanditPolicy):
    """Another `LinearBanditPolicy` on the same variables."""

    def __init__(self, policy: Any, batch_size: int, sums: Sums) -> None:
        splitter = policy.observation_and_action_constraint_splitter
        super().__init__(
            action_spec=policy.action_spec,
            cov_matrix=policy._cov_matrix,
            data_vector=policy._data_vector,
            num_samples=policy._num_samples,
            time_step_spec=policy.time_step_spec,
            exploration_strategy=policy._exploration_strategy,
            alpha=policy._alpha,
            tikhonov_weight=policy._tikhonov_weight,
            add_bias=policy._add_bias,
            emit_policy_info=policy._emit_policy_info,
            emit_log_probability=policy.emit_log_probability,
            accepts_per_arm_features=policy._accepts_per_arm_features,
            observation_and_action_constraint_splitter=splitter,
            theta=policy._theta,
            name=policy.name,
        )
        self._shape = [batch_size, self._overall_context_dim]
        self._sums = sums

    def _predict_mean_reward_and_variance(
        self, global_observation: Any, arm_observations: Any
    ) -> tuple[Any, Any]:
        """See `LinearBanditPolicy`; both of shape `[batch_size, arms]`."""
        arms = range(self._num_actions)
        models = [0 if self._accepts_per_arm_features else arm for arm in arms]
        observed = [
            self._get_current_observation(global_observation, arm_observations, arm)
            for arm in arms
        ]
        columns = [transposed(tf.ensure_shape(seen, self._shape)) for seen in observed]
        ridge = self._tikhonov_weight * tf.eye(self._shape[1], dtype=self._dtype)
        _, means, variances = exact_sums.all_at_once(
            self._sums,
            [self._cov_matrix[model] + ridge for model in models],
            [tf.convert_to_tensor(self._data_vector[model]) for model in models],
            tf.concat(columns, axis=1),
        )
        return means, variances

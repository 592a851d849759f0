"""A linear bandit's action, all arms at once: the same to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.bandits.policies import linear_bandit_policy

from tests.trainer import linear
from trainer import exact_sums, linear_policy

DRAWS = ("samples",)


def trained(name):
    agent = linear.make(linear.SORTS[name])
    for seed in range(3):
        agent.train(linear.experience(agent, seed))
    return agent


def assert_same(one, other):
    tf.nest.map_structure(np.testing.assert_array_equal, one, other)


@pytest.mark.parametrize("name", [n for n in linear.SORTS if n not in DRAWS])
def test_it_acts_the_same(name):
    agent = trained(name)
    action = linear_policy.fast_action(agent.collect_policy, linear.BATCH)
    compiled = tf.function(action, autograph=False)
    for seed in range(10, 14):
        now = linear.time_step(agent, seed)
        assert_same(compiled(now, ()), agent.collect_policy.action(now, ()))
        # It sees what is learnt later on.
        agent.train(linear.experience(agent, seed))
    assert action._fast is not agent.collect_policy


@pytest.mark.parametrize("name", linear.SORTS)
def test_it_estimates_the_same(name):
    policy = trained(name).collect_policy
    action = linear_policy.LinearAction(policy, linear.BATCH)
    numbers = np.random.default_rng(5)
    shape = [linear.BATCH, policy._global_context_dim]
    seen = tf.constant(numbers.normal(size=shape), policy._dtype)
    arms = None
    if policy._accepts_per_arm_features:
        shape = [linear.BATCH, linear.ARMS, policy._arm_context_dim]
        arms = tf.constant(numbers.normal(size=shape), policy._dtype)
    fast = action._chosen()._predict_mean_reward_and_variance
    got = tf.function(fast, autograph=False)(seen, arms)
    expected = policy._predict_mean_reward_and_variance(seen, arms)
    assert np.unique(expected[0].numpy()).size > 1
    assert_same(got, expected)


def test_what_samples_draws_by_the_seed_again():
    agent = trained("samples")
    now = linear.time_step(agent, 3)

    def drawn():
        tf.random.set_seed(7)
        action = linear_policy.fast_action(agent.collect_policy, linear.BATCH)
        compiled = tf.function(action, autograph=False)
        return [compiled(now, ()).action.numpy().tolist() for _ in range(5)]

    first = drawn()
    assert first == drawn()
    assert len(set(map(tuple, first))) > 1


def test_eagerly_the_policy_itself_acts(monkeypatch):
    agent = trained("plain")
    monkeypatch.setattr(exact_sums, "exact_sums", lambda *_: pytest.fail("was tried"))
    action = linear_policy.fast_action(agent.collect_policy, linear.BATCH)
    now = linear.time_step(agent, 1)
    assert_same(action(now, ()), agent.collect_policy.action(now, ()))


def test_without_exact_sums_the_policy_itself_acts(monkeypatch):
    agent = trained("plain")
    monkeypatch.setattr(exact_sums, "exact_sums", lambda *_: None)
    action = linear_policy.fast_action(agent.collect_policy, linear.BATCH)
    now = linear.time_step(agent, 1)
    got = tf.function(action, autograph=False)(now, ())
    assert action._fast is agent.collect_policy
    assert_same(got, agent.collect_policy.action(now, ()))


class Mine(linear_bandit_policy.LinearBanditPolicy):
    """Somebody's own."""


def own_class():
    policy = linear.make(linear.SORTS["plain"]).policy
    return Mine(
        policy.action_spec,
        policy._cov_matrix,
        policy._data_vector,
        policy._num_samples,
        policy.time_step_spec,
    )


def replaced():
    policy = linear.make(linear.SORTS["plain"]).policy
    policy._distribution = type(policy)._distribution
    return policy


@pytest.mark.parametrize(
    "make",
    [
        own_class,
        replaced,
        lambda: linear.make(linear.Sort({"use_eigendecomp": True})).policy,
    ],
    ids=["own class", "replaced method", "eigenvalues"],
)
def test_others_act_as_they_are(make):
    policy = make()
    assert linear_policy.fast_action(policy, linear.BATCH) == policy.action

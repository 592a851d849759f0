"""Training a linear bandit, all arms at once: the same to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.bandits.agents import lin_ucb_agent

from tests.trainer import linear
from trainer import exact_sums, linear_agent


def state(agent):
    return [variable.numpy() for variable in agent.variables]


@pytest.mark.parametrize("name", linear.SORTS)
def test_it_trains_the_same(name):
    slow, fast = (linear.make(linear.SORTS[name]) for _ in range(2))
    train = linear_agent.fast_train(fast)
    assert train != fast.train
    compiled = tf.function(train, autograph=False)
    for seed in range(4):
        batch = linear.experience(slow, seed)
        expected = slow.train(batch)
        np.testing.assert_array_equal(compiled(batch).loss, expected.loss)
        assert fast.theta.numpy().any()
        for one, other in zip(state(slow), state(fast), strict=True):
            np.testing.assert_array_equal(one, other)


def test_it_counts_the_same():
    counts = []
    for is_fast in (False, True):
        agent = linear.make(linear.SORTS["plain"])
        train = linear_agent.fast_train(agent) if is_fast else agent.train
        before = int(agent.train_step_counter)
        tf.function(train, autograph=False)(linear.experience(agent, 1))
        counts.append(int(agent.train_step_counter) - before)
    assert counts[0] == counts[1] > 0


def test_it_adds_no_variable():
    agent = linear.make(linear.SORTS["plain"])
    before = list(map(id, agent.variables))
    linear_agent.fast_train(agent)
    assert list(map(id, agent.variables)) == before


class Mine(lin_ucb_agent.LinearUCBAgent):
    """Somebody's own."""


def replaced(agent):
    original = agent._train
    agent._train = lambda *args, **kwargs: original(*args, **kwargs)
    return agent


@pytest.mark.parametrize(
    "agent",
    [
        lambda: linear.make(linear.Sort(kind=Mine)),
        lambda: linear.make(linear.Sort({"use_eigendecomp": True})),
        lambda: replaced(linear.make(linear.Sort())),
    ],
    ids=["own class", "eigenvalues", "replaced method"],
)
def test_others_train_as_they_are(agent):
    agent = agent()
    assert linear_agent.fast_train(agent) == agent.train


def test_without_exact_sums_it_trains_as_it_is(monkeypatch):
    monkeypatch.setattr(exact_sums, "exact_sums", lambda *_, **__: None)
    agent = linear.make(linear.SORTS["plain"])
    assert linear_agent.fast_train(agent) == agent.train

"""compile=None: what is compiled, and the line that says why."""

from __future__ import annotations

import pytest
import tensorflow as tf
from tf_agents.bandits.agents import lin_ucb_agent
from tf_agents.bandits.environments import bernoulli_py_environment
from tf_agents.environments import tf_py_environment

from testing.fakes import CountingAgent, FakeEnvironment
from trainer import choice
from trainer.driver import LeanDriver


class Bernoulli(bernoulli_py_environment.BernoulliPyEnvironment):
    """With a context, which LinUCB needs."""

    def observation_spec(self):
        return tf.TensorSpec((1,), tf.float32)


@pytest.fixture(scope="module")
def known():
    environment = tf_py_environment.TFPyEnvironment(Bernoulli([0.1, 0.9], 2))
    agent = lin_ucb_agent.LinearUCBAgent(
        environment.time_step_spec(), environment.action_spec()
    )
    return LeanDriver(environment, agent.collect_policy), agent


@pytest.fixture(scope="module")
def fakes():
    environment = FakeEnvironment()
    agent = CountingAgent(environment)
    return LeanDriver(environment, agent.collect_policy), agent


LONG, SHORT = (1000, 2, 4), (1, 2, 1)


@pytest.mark.parametrize(
    ("compile", "size", "collect", "train", "reason"),
    [
        (None, LONG, True, True, "driver run compiled, train step compiled"),
        (None, SHORT, False, False, "eager, because 3 driver and train steps are"),
        (True, SHORT, True, True, "compile=True: driver run compiled, train step"),
        (False, LONG, False, False, "compile=False: driver run eager, train step"),
    ],
)
def test_known_parts(known, compile, size, collect, train, reason):
    got = choice.choose(compile, *known, *size)
    assert (got.collect, got.train) == (collect, train)
    assert reason in got.reason
    assert "\n" not in got.reason


def test_unknown_parts_stay_eager_unless_asked_for(fakes):
    got = choice.choose(None, *fakes, *LONG)
    assert (got.collect, got.train) == (False, False)
    assert "driver run eager, because policy FakePolicy is not of" in got.reason
    assert "train step eager, because agent CountingAgent is not of" in got.reason
    got = choice.choose(True, *fakes, *LONG)
    assert (got.collect, got.train) == (True, True)


def test_halves_are_decided_one_by_one(known, fakes):
    got = choice.choose(None, known[0], fakes[1], *LONG)
    assert (got.collect, got.train) == (True, False)
    got = choice.choose(None, fakes[0], known[1], *LONG)
    assert (got.collect, got.train) == (False, True)


def test_another_kind_of_driver_is_never_compiled(known):
    got = choice.choose(True, object(), known[1], *LONG)
    assert (got.collect, got.train) == (False, True)
    assert "driver object is no DynamicStepDriver" in got.reason


def test_it_depends_on_the_work_to_be_done(known):
    least = choice.WORTHWHILE_STEPS
    assert not choice.choose(None, *known, (least - 1) // 3, 2, 1).train
    assert choice.choose(None, *known, -(-least // 3), 2, 1).train

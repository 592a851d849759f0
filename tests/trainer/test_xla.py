"""xla=True: where it works, and what is said where it doesn't."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from absl import logging as absl_logging
from tf_agents.bandits.agents import lin_ucb_agent
from tf_agents.bandits.agents import linear_thompson_sampling_agent as lin_ts_agent

import trainer
from testing.fakes import CountingAgent, FakeEnvironment
from trainer import linear_policy, xla


@pytest.fixture
def environment():
    return FakeEnvironment(
        batch_size=4,
        observation_shape=(3,),
        observation_dtype=tf.float32,
        rewards=lambda serials, actions: np.cos(serials) + actions,
    )


@pytest.fixture
def warnings(monkeypatch):
    said = []
    monkeypatch.setattr(
        absl_logging, "warning", lambda text, *args: said.append(text % args)
    )
    return said


def agent(environment, kind=lin_ucb_agent.LinearUCBAgent):
    return kind(environment.time_step_spec(), environment.action_spec())


def test_lin_ucb_is_compiled_and_chooses_the_same(environment, warnings):
    policy = agent(environment).collect_policy
    action = xla.XlaAction(policy, environment)
    time_step = environment.reset()
    got = tf.function(action)(time_step, ())
    assert warnings == []
    assert action._action != policy.action
    expected = policy.action(time_step, ())
    assert got.action.numpy().tolist() == expected.action.numpy().tolist()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda e: agent(e, lin_ts_agent.LinearThompsonSamplingAgent),
            "LinearBanditPolicy is compiled without XLA, because it draws random",
        ),
        (CountingAgent, "FakePolicy is compiled without XLA, because"),
    ],
    ids=["draws", "python"],
)
def test_what_xla_can_not_do_is_said_once(environment, warnings, make, said):
    policy = make(environment).collect_policy
    action = xla.XlaAction(policy, environment)
    run = tf.function(action, autograph=False)
    for _ in range(2):
        run(environment.current_time_step(), ())
    assert len(warnings) == 1
    assert said in warnings[0]
    assert "\n" not in warnings[0]


def test_without_xla_all_arms_are_still_computed_at_once(environment, warnings):
    policy = agent(environment, lin_ts_agent.LinearThompsonSamplingAgent).policy
    action = xla.XlaAction(policy, environment)
    tf.function(action, autograph=False)(environment.reset(), ())
    assert isinstance(action._action, linear_policy.LinearAction)


def test_finding_out_draws_no_random_number(environment):
    def drawn(is_asked):
        tf.random.set_seed(3)
        if is_asked:
            xla.XlaAction(agent(environment).policy, environment)(
                environment.reset(), ()
            )
        return float(tf.random.uniform([]))

    assert drawn(is_asked=True) == drawn(is_asked=False)


def test_a_run_by_xla(tmp_path, environment):
    summary = trainer.train(
        tmp_path, agent(environment), environment, 3, 2, 2, xla=True, compile=True
    )
    assert summary.train_steps == 6
    assert environment.steps == 12

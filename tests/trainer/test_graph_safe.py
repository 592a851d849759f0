"""What is compiled without asking: TF-Agents' own, as it is, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.bandits.agents import lin_ucb_agent
from tf_agents.bandits.environments import bernoulli_py_environment
from tf_agents.bandits.replay_buffers import bandit_replay_buffer
from tf_agents.environments import tf_py_environment
from tf_agents.metrics import tf_metric, tf_metrics
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step as ts

from testing.fakes import CountingAgent, CountingDriver, FakeEnvironment
from trainer import graph_safe

CONTEXT = ts.time_step_spec(tf.TensorSpec((2,), tf.float32))
ACTION = tensor_spec.BoundedTensorSpec((), tf.int32, 0, 1)
BUFFER_SPEC = tf.TensorSpec((), tf.float32, "x")


def lin_ucb(kind=lin_ucb_agent.LinearUCBAgent):
    return kind(CONTEXT, ACTION)


def bernoulli(kind=tf_py_environment.TFPyEnvironment):
    python = bernoulli_py_environment.BernoulliPyEnvironment
    return kind(python([0.1, 0.9], batch_size=2))


def test_agents():
    assert graph_safe.unsafe_agent(lin_ucb()) is None

    class Mine(lin_ucb_agent.LinearUCBAgent):
        pass

    assert graph_safe.unsafe_agent(lin_ucb(Mine)) == "agent Mine is not of TF-Agents"
    fake = CountingAgent(FakeEnvironment())
    assert "CountingAgent is not of" in graph_safe.unsafe_agent(fake)


def test_an_agent_with_a_replaced_method():
    agent = lin_ucb()
    agent.train = lambda experience: None
    assert (
        graph_safe.unsafe_agent(agent) == "train of agent LinearUCBAgent was replaced"
    )


def test_an_agent_of_a_patched_class(monkeypatch):
    monkeypatch.setattr(lin_ucb_agent.LinearUCBAgent, "_train", lambda *a, **k: None)
    assert "_train of agent" in graph_safe.unsafe_agent(lin_ucb())


def test_policies():
    agent = lin_ucb()
    assert graph_safe.unsafe_policy(agent.collect_policy) is None
    fake = CountingAgent(FakeEnvironment())
    assert "FakePolicy is not of" in graph_safe.unsafe_policy(fake.collect_policy)


def test_environments():
    assert graph_safe.unsafe_environment(bernoulli()) is None
    assert "FakeEnvironment is not of" in graph_safe.unsafe_environment(
        FakeEnvironment()
    )

    class Mine(tf_py_environment.TFPyEnvironment):
        pass

    assert "Mine is not of" in graph_safe.unsafe_environment(bernoulli(Mine))


def test_an_environment_with_a_replaced_method():
    environment = bernoulli()
    environment.step = lambda action: None
    assert "step of environment" in graph_safe.unsafe_environment(environment)


def test_drivers():
    environment = FakeEnvironment()
    policy = CountingAgent(environment).collect_policy
    driver = CountingDriver(environment, policy)
    is_known = isinstance(driver, graph_safe.dynamic_step_driver.DynamicStepDriver)
    assert (graph_safe.unsafe_driver(driver) is None) == is_known
    assert graph_safe.unsafe_driver(object()) == "driver object is no DynamicStepDriver"


def test_observers():
    class Mine(tf_metrics.NumberOfEpisodes):
        def __call__(self, trajectory):
            return trajectory

    class MyBuffer(bandit_replay_buffer.BanditReplayBuffer):
        pass

    size = {"data_spec": BUFFER_SPEC, "batch_size": 1, "max_length": 2}
    plain = bandit_replay_buffer.BanditReplayBuffer(**size)
    assert graph_safe.is_safe_observer(tf_metrics.NumberOfEpisodes())
    assert graph_safe.is_safe_observer(plain.add_batch)
    for unsafe in (print, Mine(), MyBuffer(**size).add_batch, plain.clear):
        assert not graph_safe.is_safe_observer(unsafe)
    plain._clear = lambda: None
    assert not graph_safe.is_safe_observer(plain.add_batch)


class _WithResult(tf_metrics.NumberOfEpisodes):
    def result(self):
        return np.float32(1)


class _Python:
    name = "python"

    def __call__(self, trajectory):
        return trajectory

    def result(self):
        return 1


@pytest.mark.parametrize(
    ("metric", "is_safe"),
    [(tf_metrics.NumberOfEpisodes(), True), (_WithResult(), False), (_Python(), False)],
)
def test_results_of_metrics(metric, is_safe):
    assert graph_safe.has_safe_result(metric) is is_safe


def test_a_metric_whose_update_is_traced_by_tf_agents_is_safe_to_call():
    assert graph_safe.is_safe_observer(_WithResult())
    assert issubclass(_WithResult, tf_metric.TFStepMetric)

"""CountingDriver: runs, order of events, the real driver's results."""

import pytest
import tensorflow as tf
from tf_agents.drivers import dynamic_step_driver
from tf_agents.environments import suite_gym, tf_py_environment
from tf_agents.metrics import tf_metrics
from tf_agents.policies import random_tf_policy

from testing.fakes import CountingAgent, CountingDriver, FakeEnvironment, Timeline


def _driver(timeline=None, observers=(), **kwargs):
    environment = FakeEnvironment(timeline=timeline)
    agent = CountingAgent(environment, timeline=timeline)
    return CountingDriver(
        environment,
        agent.collect_policy,
        list(observers),
        timeline=timeline,
        **kwargs,
    )


def test_counts_runs():
    timeline = Timeline()
    driver = _driver(timeline, num_steps=4)
    driver.run()
    driver.run()
    assert driver.runs == 2
    step = ["policy.action", "env.step"]
    assert timeline.kinds() == ["env.reset", *([*step * 2, "driver.run"] * 2)]
    assert timeline.values("driver.run") == [4, 4]
    assert timeline.steps("driver.run") == [0, 1]


@pytest.mark.parametrize("retrace", [False, True])
def test_keeps_count_and_order_in_a_graph(retrace):
    timeline = Timeline()
    driver = _driver(timeline, num_steps=4)

    @tf.function
    def run(n):
        for _ in tf.range(n):
            driver.run()
        driver.run()

    run(tf.constant(2))
    run(tf.constant(1, tf.int64 if retrace else tf.int32))
    step = ["policy.action", "env.step"]
    assert timeline.kinds() == ["env.reset", *([*step * 2, "driver.run"] * 5)]


def test_tells_observers_what_the_real_driver_tells():
    seen = {}
    for cls in (CountingDriver, dynamic_step_driver.DynamicStepDriver):
        environment = FakeEnvironment()
        policy = CountingAgent(environment).collect_policy
        trajectories, transitions = [], []
        cls(environment, policy, [trajectories.append], [transitions.append], 4).run()
        seen[cls] = tf.nest.map_structure(
            lambda t: t.numpy().tolist(), (trajectories, transitions)
        )
    fake, real = seen.values()
    assert len(fake[0]) == len(fake[1]) == 2
    assert fake == real


def test_feeds_metrics_in_a_graph():
    metric = tf_metrics.EnvironmentSteps()
    driver = _driver(observers=[metric], num_steps=6)
    tf.function(driver.run)()
    assert metric.result().numpy() == 6


def test_boundaries_of_longer_episodes_do_not_count():
    environment = tf_py_environment.TFPyEnvironment(suite_gym.load("CartPole-v0"))
    policy = random_tf_policy.RandomTFPolicy(
        environment.time_step_spec(), environment.action_spec()
    )
    seen = []
    CountingDriver(environment, policy, [seen.append], num_steps=60).run()
    boundaries = [bool(t.is_boundary()) for t in seen]
    assert sum(boundaries) > 0
    assert len(boundaries) - sum(boundaries) == 60


def test_stops_at_maximum_iterations():
    driver = _driver(num_steps=100)
    driver.run(maximum_iterations=3)
    assert driver.env.steps == 3


def test_saves_and_restores_its_count_and_nothing_else(tmp_path):
    driver = _driver(observers=[tf_metrics.EnvironmentSteps()], num_steps=2)
    driver.run()
    path = tf.train.Checkpoint(d=driver).save(str(tmp_path / "c"))
    names = {name for name, _ in tf.train.list_variables(path) if name.startswith("d")}
    assert names == {"d/core/.ATTRIBUTES/py_state"}
    other = _driver(num_steps=2)
    tf.train.Checkpoint(d=other).restore(path).assert_consumed()
    other.run()
    assert other.runs == 2
    assert repr(other) == (
        "<CountingDriver 'CountingDriver': 2 runs of 2 transitions, 0 observers>"
    )

"""The lean driver does what DynamicStepDriver does."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.bandits.environments import stationary_stochastic_py_environment
from tf_agents.drivers import dynamic_step_driver
from tf_agents.environments import tf_py_environment
from tf_agents.metrics import tf_metrics

from testing.contracts import check_driver
from testing.fakes import FakeEnvironment, FakePolicy, Timeline
from trainer import driver as driver_lib
from trainer.driver import LeanDriver

DRIVERS = (dynamic_step_driver.DynamicStepDriver, LeanDriver)
BATCH = 3


class Stage:
    """An environment and a policy, driven by one driver, with all that is seen."""

    def __init__(self, kind, num_steps, is_compiled, observers=lambda: ()):
        self.timeline = Timeline()
        self.environment = FakeEnvironment(batch_size=BATCH, timeline=self.timeline)
        policy = FakePolicy(
            self.environment.time_step_spec(),
            self.environment.action_spec(),
            timeline=self.timeline,
        )
        self.seen = []
        self.metrics = list(observers())
        self.driver = kind(
            self.environment,
            policy,
            observers=[self._observe, *self.metrics],
            transition_observers=[self._observe],
            num_steps=num_steps,
        )
        run = self.driver.run
        self.run = tf.function(run, autograph=False) if is_compiled else run

    def _observe(self, data):
        def keep(*flat):
            self.seen.append([np.asarray(t).tolist() for t in flat])

        return tf.py_function(keep, tf.nest.flatten(data), [])

    def everything(self):
        events = [(e.kind, e.step, e.value) for e in self.timeline]
        return events, self.seen, [m.result().numpy() for m in self.metrics]


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("num_steps", [1, BATCH, BATCH + 1, 5 * BATCH])
def test_it_takes_the_steps_of_dynamic_step_driver(num_steps, is_compiled):
    theirs, ours = (Stage(kind, num_steps, is_compiled) for kind in DRIVERS)
    for _ in range(2):
        expected = tf.nest.map_structure(lambda t: t.numpy().tolist(), theirs.run())
        got = tf.nest.map_structure(lambda t: t.numpy().tolist(), ours.run())
        assert got == expected
    assert ours.everything() == theirs.everything()
    assert ours.environment.steps == 2 * -(-num_steps // BATCH)


@pytest.mark.parametrize("unrolled", [0, 10], ids=["looped", "unrolled"])
def test_looped_or_laid_out_it_is_the_same(monkeypatch, unrolled):
    monkeypatch.setattr(driver_lib, "UNROLLED_STEPS", unrolled)
    theirs, ours = (Stage(kind, 4 * BATCH, True) for kind in DRIVERS)
    theirs.run(), ours.run()
    assert ours.everything() == theirs.everything()


@pytest.mark.parametrize("is_compiled", [False, True])
def test_metrics_get_the_same_values(is_compiled):
    def metrics():
        return [
            tf_metrics.NumberOfEpisodes(),
            tf_metrics.AverageReturnMetric(batch_size=BATCH, buffer_size=4),
            tf_metrics.AverageEpisodeLengthMetric(batch_size=BATCH, buffer_size=4),
            tf_metrics.MaxReturnMetric(batch_size=BATCH, buffer_size=2),
        ]

    theirs, ours = (Stage(k, 2 * BATCH, is_compiled, metrics) for k in DRIVERS)
    for _ in range(3):
        theirs.run(), ours.run()
    assert ours.everything() == theirs.everything()


@pytest.mark.parametrize("is_compiled", [False, True])
def test_maximum_iterations(is_compiled):
    stage = Stage(LeanDriver, 5 * BATCH, False)
    run = tf.function(lambda: stage.driver.run(maximum_iterations=2), autograph=False)
    run() if is_compiled else stage.driver.run(maximum_iterations=2)
    assert stage.environment.steps == 2


def test_it_starts_where_it_is_told_to():
    theirs, ours = (Stage(kind, BATCH, False) for kind in DRIVERS)
    for stage in (theirs, ours):
        first, _ = stage.driver.run()
        stage.driver.run(time_step=first, policy_state=())
    assert ours.everything() == theirs.everything()
    assert "env.reset" not in [e.kind for e in list(ours.timeline)[1:]]


def test_compiled_it_is_traced_once():
    stage = Stage(LeanDriver, 2 * BATCH, True)
    stage.run()
    traces = stage.run.experimental_get_tracing_count()
    for _ in range(4):
        stage.run()
    assert stage.run.experimental_get_tracing_count() == traces
    assert stage.environment.steps == 10


@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_python_environment_is_called_at_each_step(is_compiled):
    rewards = [lambda x: float(x[0]), lambda x: float(-x[0])]
    environment = stationary_stochastic_py_environment
    environment = environment.StationaryStochasticPyEnvironment(
        lambda: np.ones([2, 1], np.float32), rewards, batch_size=2
    )
    environment = tf_py_environment.TFPyEnvironment(environment)
    policy = FakePolicy(environment.time_step_spec(), environment.action_spec())
    returns = tf_metrics.AverageReturnMetric(batch_size=2)
    driver = LeanDriver(environment, policy, [returns], num_steps=6)
    run = tf.function(driver.run) if is_compiled else driver.run
    run(), run()
    assert int(returns._buffer._head) == 12


def test_it_keeps_the_contract_of_a_driver():
    assert not check_driver(LeanDriver).violations


def test_a_number_of_iterations_known_only_in_the_graph():
    stage = Stage(LeanDriver, 5 * BATCH, False)
    run = tf.function(lambda n: stage.driver.run(maximum_iterations=n))
    run(tf.constant(3))
    assert stage.environment.steps == 3


def test_the_policy_can_be_asked_in_another_way():
    stage = Stage(LeanDriver, BATCH, False)
    asked = []

    def action(time_step, policy_state):
        asked.append(time_step)
        return stage.driver.policy.action(time_step, policy_state)

    driver = LeanDriver(
        stage.environment, stage.driver.policy, num_steps=2 * BATCH, action=action
    )
    driver.run()
    assert len(asked) == 2

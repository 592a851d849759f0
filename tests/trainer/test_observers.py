"""Rewards, observations, buffers and loops of every kind, beside TF-Agents' trainer.

Both train on the same problem without chance and must log the same.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.bandits.agents import lin_ucb_agent
from tf_agents.bandits.agents.examples.v2 import trainer as original
from tf_agents.bandits.environments import bandit_py_environment
from tf_agents.bandits.specs import utils as spec_utils
from tf_agents.environments import tf_py_environment
from tf_agents.metrics import export_utils
from tf_agents.replay_buffers import tf_uniform_replay_buffer
from tf_agents.specs import array_spec

import trainer
from testing.fakes import CountingAgent, FakeEnvironment, MockLog
from tests.trainer import runs
from tests.trainer.killing.traces import LINE
from trainer import choice

ROWS, STEPS, RUNS, LOOPS, ACTIONS = 2, 3, 2, 2, 3
GLOBAL = array_spec.ArraySpec((2,), np.float32, "context")
PER_ARM = {
    "global": GLOBAL,
    "per_arm": array_spec.ArraySpec((ACTIONS, 2), np.float32, "arms"),
}
SCALAR = array_spec.ArraySpec((), np.float32, "reward")


class World(bandit_py_environment.BanditPyEnvironment):
    """Contexts and rewards of any structure, each following from a counter."""

    def __init__(self, observation: Any, reward: Any) -> None:
        self._count = 0
        action = array_spec.BoundedArraySpec((), np.int32, 0, ACTIONS - 1, "action")
        super().__init__(observation, action, reward)

    @property
    def batched(self) -> bool:
        return True

    @property
    def batch_size(self) -> int:
        return ROWS

    def _observe(self) -> Any:
        return self._values(self.observation_spec(), 0.0)

    def _apply_action(self, action: Any) -> Any:
        return self._values(self.reward_spec(), np.asarray(action, np.float32))

    def _values(self, specs: Any, shift: Any) -> Any:
        def value(spec: Any) -> Any:
            self._count += 1
            size = ROWS * int(np.prod(spec.shape))
            shape = (ROWS, *spec.shape)
            numbers = np.arange(size).reshape(shape).T + self._count + shift
            return np.sin(numbers.T).astype(np.float32)

        return tf.nest.map_structure(value, specs)


def counting(environment: Any) -> Any:
    return CountingAgent(environment)


def lin_ucb(environment: Any, **more: Any) -> Any:
    specs = environment.time_step_spec(), environment.action_spec()
    return lin_ucb_agent.LinearUCBAgent(*specs, dtype=tf.float32, **more)


def per_arm(environment: Any) -> Any:
    return lin_ucb(environment, accepts_per_arm_features=True)


def series(train: Any, directory: Any, make: Any, observation: Any, reward: Any, more):
    """Steps and values that a trainer logs, by series."""
    environment = tf_py_environment.TFPyEnvironment(World(observation, reward))
    # LinUCB counts in the global step.
    tf.compat.v1.train.get_or_create_global_step().assign(0)
    with mock.patch.object(export_utils, "logging", new_callable=MockLog) as log:
        agent = make(environment)
        train(str(directory), agent, environment, LOOPS, STEPS, RUNS, **more)
    found: dict[str, list[tuple[int, str]]] = {}
    for line in log.lines:
        match = LINE.search(line)
        found.setdefault(match[2], []).append((int(match[1]), match[3]))
    return found


def assert_same(tmp_path, make, observation=GLOBAL, reward=SCALAR, **more):
    given = (make, observation, reward)
    compiled = {"compile": more.pop("compile", None)}
    expected = series(original.train, tmp_path / "original", *given, more)
    found = series(trainer.train, tmp_path / "ours", *given, more | compiled)
    assert found == expected
    for name, pairs in found.items():
        assert [step for step, _ in pairs] == list(range(LOOPS * RUNS)), name
    return found


@pytest.mark.parametrize("compile", [False, True])
def test_scalar_rewards(tmp_path, compile):
    found = assert_same(tmp_path, lin_ucb, compile=compile)
    assert len({value for _, value in found["AverageReturn"]}) == LOOPS * RUNS


@pytest.mark.parametrize("compile", [False, True])
def test_dict_rewards(tmp_path, compile):
    rewards = {
        "reward": array_spec.ArraySpec((), np.float32, "reward"),
        "constraint": array_spec.ArraySpec((), np.float32, "constraint"),
    }
    found = assert_same(tmp_path, counting, reward=rewards, compile=compile)
    assert "AverageReturn" not in found


@pytest.mark.parametrize("compile", [False, True])
def test_rewards_of_several_objectives(tmp_path, compile):
    reward = array_spec.ArraySpec((3,), np.float32, "objectives")
    assert_same(tmp_path, counting, reward=reward, compile=compile)


@pytest.mark.parametrize("compile", [False, True])
def test_features_of_each_arm_without_their_observations(tmp_path, compile):
    # What TF-Agents' own examples do: the arms' features are not trained on.
    assert_same(
        tmp_path,
        per_arm,
        observation=PER_ARM,
        training_data_spec_transformation_fn=spec_utils.drop_arm_observation,
        compile=compile,
    )


def test_a_transformation_in_a_run_that_is_compiled_by_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(choice, "WORTHWHILE_STEPS", 0)
    assert_same(
        tmp_path,
        lin_ucb,
        training_data_spec_transformation_fn=lambda trajectory: trajectory,
    )


@pytest.mark.parametrize("compile", [False, True])
def test_a_transformation_sees_each_trajectory_once(tmp_path, compile):
    def halve(trajectory):
        if isinstance(trajectory.reward, tf.Tensor):
            return trajectory._replace(reward=trajectory.reward / 2)
        return trajectory

    more = {"training_data_spec_transformation_fn": halve, "compile": compile}
    halved = assert_same(tmp_path / "halved", lin_ucb, **more)
    plain = assert_same(tmp_path / "plain", lin_ucb)
    assert halved["loss"][0] != plain["loss"][0]
    # Metrics are of what happened.
    assert halved["AverageReturn"][0] == plain["AverageReturn"][0]


@pytest.mark.parametrize("compile", [False, True])
def test_a_buffer_of_ones_own(tmp_path, compile):
    made = []

    def buffer(spec, batch_size, steps, runs):
        made.append((batch_size, steps, runs))
        return tf_uniform_replay_buffer.TFUniformReplayBuffer(
            spec, batch_size, max_length=steps * runs
        )

    assert_same(tmp_path, lin_ucb, get_replay_buffer_fn=buffer, compile=compile)
    assert made == [(ROWS, STEPS, RUNS)] * 2


def test_a_loop_of_ones_own(tmp_path):
    calls = []

    def get_loop(driver, replay_buffer, agent, steps, async_steps_per_loop):
        loop = trainer.get_training_loop(
            driver, replay_buffer, agent, steps, async_steps_per_loop
        )

        def run(train_step, metrics):
            calls.append((steps, async_steps_per_loop, train_step, len(metrics)))
            loop(train_step=train_step, metrics=metrics)

        return run

    assert_same(tmp_path, lin_ucb, get_training_loop_fn=get_loop)
    assert calls == 2 * [(STEPS, RUNS, loop, 3) for loop in range(LOOPS)]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_rewards_that_are_no_numbers_are_logged_as_they_are(tmp_path, value):
    # Not from a Python environment: TF-Agents itself refuses NaN from one.
    environment = FakeEnvironment(rewards=[1.0] * 8 + [value] * 9)
    run = runs.run(tmp_path, loops=1, runs=2, steps=4, environment=environment)
    first, second = runs.log_values(run.log, "AverageReturn")
    assert first == 1.0
    assert second == pytest.approx(value, nan_ok=True)


def test_averages_of_several_rewards_are_in_the_checkpoint(tmp_path):
    reward = array_spec.ArraySpec((3,), np.float32, "objectives")
    series(trainer.train, tmp_path, counting, GLOBAL, reward, {})
    saved = [name for name, _ in tf.train.list_variables(str(tmp_path / "ckpt-2"))]
    assert any(
        name.startswith("onbeat_AverageReturnMultiMetric/_buffer_0/") for name in saved
    )

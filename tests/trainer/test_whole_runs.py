"""Whole runs leave the same variables behind as their steps, one by one."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.bandits.replay_buffers import bandit_replay_buffer
from tf_agents.metrics import tf_metrics
from tf_agents.trajectories import trajectory

from tests.trainer import test_fast_observers as fast_tests
from tests.trainer.test_fast_observers import BATCH, FIRST, LAST, METRICS, SPEC
from trainer import whole_runs

STEPS = 4
COUNTERS = {
    "EnvironmentSteps": lambda n: tf_metrics.EnvironmentSteps(),
    "NumberOfEpisodes": lambda n: tf_metrics.NumberOfEpisodes(),
}


def one_step_episodes(number, *more):
    """Runs of bandits; `more`: further dimensions of the reward."""
    rng = np.random.default_rng(number)
    for _ in range(number):
        yield trajectory.Trajectory(
            step_type=tf.fill([BATCH, STEPS], FIRST),
            observation=(),
            action=(),
            policy_info=(),
            next_step_type=tf.fill([BATCH, STEPS], LAST),
            reward=tf.constant(rng.normal(size=(BATCH, STEPS, *more)), tf.float32),
            discount=tf.ones([BATCH, STEPS]),
        )


def check(make, update_of, runs, state):
    slow, fast = make(), make()
    update = whole_runs.whole_run_update(update_of(fast), STEPS)
    for run in runs:
        for step in range(STEPS):
            one = tf.nest.map_structure(lambda t, at=step: t[:, at], run)
            update_of(slow)(one)
        assert whole_runs.is_one_step_episodes(run)
        update(run)
        assert state(fast) == state(slow)


@pytest.mark.parametrize("size", [1, 7, 100], ids="buffer-{}".format)
@pytest.mark.parametrize("name", METRICS | COUNTERS)
def test_metrics(name, size):
    def state(metric):
        return fast_tests.state(metric), metric.result().numpy()

    make = (METRICS | COUNTERS)[name]
    check(lambda: make(size), lambda m: m, one_step_episodes(5), state)


def test_an_episode_that_an_earlier_run_began_counts_in_full():
    def metric():
        made = METRICS["AverageEpisodeLength"](100)
        made._length_accumulator.assign([0, 1, 2, 3, 4])
        return made

    check(metric, lambda m: m, one_step_episodes(2), fast_tests.state)


def test_return_sums_over_parts_of_a_reward():
    make = METRICS["AverageReturn"]
    check(lambda: make(7), lambda m: m, one_step_episodes(3, 2), fast_tests.state)


def test_multi_metric():
    def metric():
        return tf_metrics.AverageReturnMultiMetric(
            {k: tf.TensorSpec(s.shape, s.dtype, k) for k, s in SPEC.items()},
            batch_size=BATCH,
            buffer_size=7,
        )

    pairs = zip(one_step_episodes(3), one_step_episodes(3, 2), strict=True)
    runs = [a._replace(reward={"a": a.reward, "b": b.reward}) for a, b in pairs]
    check(metric, lambda m: m, runs, fast_tests.state)


@pytest.mark.parametrize("length", [4, 7, 12])
def test_replay_buffer(length):
    spec = trajectory.Trajectory(
        step_type=tf.TensorSpec((), tf.int32, "step_type"),
        observation=(),
        action=(),
        policy_info=(),
        next_step_type=tf.TensorSpec((), tf.int32, "next_step_type"),
        reward=tf.TensorSpec((2,), tf.float32, "reward"),
        discount=tf.TensorSpec((), tf.float32, "discount"),
    )

    def buffer():
        return bandit_replay_buffer.BanditReplayBuffer(spec, BATCH, max_length=length)

    check(
        buffer,
        lambda made: made.add_batch,
        one_step_episodes(5, 2),
        lambda made: fast_tests.variables(made.variables()),
    )


def _patched():
    metric = tf_metrics.NumberOfEpisodes()
    metric.call = lambda trajectory: trajectory
    return metric


@pytest.mark.parametrize(
    "make",
    [
        fast_tests._subclass,
        fast_tests._changed_object,
        fast_tests._other_buffer,
        _patched,
        lambda: print,
        # Too small for a run.
        lambda: bandit_replay_buffer.BanditReplayBuffer(SPEC, BATCH, 3).add_batch,
    ],
)
def test_whatever_is_not_known_is_left_alone(make):
    assert whole_runs.whole_run_update(make(), STEPS) is None


@pytest.mark.parametrize("part", ["step_type", "next_step_type"])
def test_longer_episodes_are_told_apart(part):
    (run,) = one_step_episodes(1)
    longer = getattr(run, part).numpy()
    longer[2, 1] = 1
    assert not whole_runs.is_one_step_episodes(run._replace(**{part: longer}))

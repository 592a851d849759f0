"""The faster updates leave the same variables behind as TF-Agents' own."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.bandits.replay_buffers import bandit_replay_buffer
from tf_agents.metrics import tf_metrics
from tf_agents.replay_buffers import table
from tf_agents.trajectories import trajectory

from trainer import fast_observers

BATCH = 5
FIRST, MID, LAST = 0, 1, 2
SPEC = {"a": tf.TensorSpec((), tf.float32, "a"), "b": tf.TensorSpec((2,), tf.float32)}

METRICS = {
    "AverageReturn": lambda n: tf_metrics.AverageReturnMetric(
        batch_size=BATCH, buffer_size=n
    ),
    "MaxReturn": lambda n: tf_metrics.MaxReturnMetric(batch_size=BATCH, buffer_size=n),
    "MinReturn": lambda n: tf_metrics.MinReturnMetric(batch_size=BATCH, buffer_size=n),
    "AverageEpisodeLength": lambda n: tf_metrics.AverageEpisodeLengthMetric(
        batch_size=BATCH, buffer_size=n
    ),
}


def trajectories(seed, reward=lambda draw: draw(BATCH)):
    """Steps of bandits and of longer episodes, boundaries included."""
    rng = np.random.default_rng(seed)
    for _ in range(12):
        yield trajectory.Trajectory(
            step_type=tf.constant(rng.integers(0, 3, BATCH), tf.int32),
            observation=(),
            action=(),
            policy_info=(),
            next_step_type=tf.constant(rng.integers(0, 3, BATCH), tf.int32),
            reward=reward(lambda *s: tf.constant(rng.normal(size=s), tf.float32)),
            discount=tf.ones(BATCH),
        )


def variables(*things):
    found = []
    for thing in things:
        found += [v.numpy().tolist() for v in tf.nest.flatten(thing)]
    return found


def state(metric):
    return variables([v for _, v in sorted(_variables(metric).items())])


def _variables(module):
    view = tf.train.TrackableView(module)
    found = {}
    buffers = tf.nest.flatten(module._buffer) if hasattr(module, "_buffer") else []
    for i, deque in enumerate(buffers):
        found[f"head{i}"] = deque._head
        found[f"table{i}"] = deque._buffer.variables()
    for i, thing in enumerate(view.descendants()):
        if isinstance(thing, tf.Variable):
            found[f"v{i}"] = thing
    return found


@pytest.mark.parametrize("size", [1, 3, 7, 100], ids="buffer-{}".format)
@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("name", METRICS)
def test_metrics(name, is_compiled, size):
    slow, fast = METRICS[name](size), METRICS[name](size)
    update = fast_observers.fast_update(fast)
    update = tf.function(update, autograph=False) if is_compiled else update
    for step in trajectories(seed=size):
        slow(step)
        update(step)
        assert state(fast) == state(slow)
        assert fast.result().numpy() == slow.result().numpy()


def test_return_sums_over_parts_of_a_reward():
    slow, fast = METRICS["AverageReturn"](3), METRICS["AverageReturn"](3)
    update = fast_observers.fast_update(fast)
    for step in trajectories(seed=0, reward=lambda draw: draw(BATCH, 2)):
        slow(step)
        update(step)
        assert state(fast) == state(slow)


def test_multi_metric():
    def metric():
        return tf_metrics.AverageReturnMultiMetric(
            {k: tf.TensorSpec(s.shape, s.dtype, k) for k, s in SPEC.items()},
            batch_size=BATCH,
            buffer_size=3,
        )

    slow, fast = metric(), metric()
    update = fast_observers.fast_update(fast)
    reward = {"a": (BATCH,), "b": (BATCH, 2)}
    for step in trajectories(
        seed=0, reward=lambda draw: {k: draw(*s) for k, s in reward.items()}
    ):
        slow(step)
        update(step)
        assert state(fast) == state(slow)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_replay_buffer(is_compiled):
    def buffer():
        return bandit_replay_buffer.BanditReplayBuffer(SPEC, BATCH, max_length=3)

    slow, fast = buffer(), buffer()
    update = fast_observers.fast_update(fast.add_batch)
    update = tf.function(update, autograph=False) if is_compiled else update
    for number in range(5):
        items = {
            "a": tf.fill([BATCH], float(number)),
            "b": tf.random.normal([BATCH, 2]),
        }
        slow.add_batch(items)
        update(items)
        assert variables(fast.variables()) == variables(slow.variables())


def _subclass():
    class Mine(tf_metrics.AverageReturnMetric):
        pass

    return Mine(batch_size=BATCH)


def _changed_object():
    metric = METRICS["AverageReturn"](3)
    metric.call = lambda trajectory: trajectory
    return metric


def _other_buffer():
    class Mine(bandit_replay_buffer.BanditReplayBuffer):
        pass

    return Mine(SPEC, BATCH, max_length=3).add_batch


@pytest.mark.parametrize(
    "make",
    [
        _subclass,
        _changed_object,
        _other_buffer,
        tf_metrics.NumberOfEpisodes,
        lambda: print,
        lambda: table.Table(SPEC, 1).write,
    ],
)
def test_whatever_is_not_known_is_left_alone(make):
    assert fast_observers.fast_update(make()) is None


def test_a_class_that_somebody_patched_is_left_alone(monkeypatch):
    monkeypatch.setattr(tf_metrics.AverageReturnMetric, "call", lambda self, t: t)
    assert fast_observers.fast_update(METRICS["AverageReturn"](3)) is None

"""The windowed mean beside one taken from a plain list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.trajectories import trajectory

from trainer.recent import RecentMean


def _batch(rewards: Any) -> Any:
    rewards = tf.constant(rewards, tf.float32)
    zeros = tf.zeros_like(rewards)
    return trajectory.single_step(zeros, zeros, (), rewards, zeros)


def _rewards(trajectory: Any) -> Any:
    return trajectory.reward


@pytest.mark.parametrize("batch_size", [1, 3, 7, 10, 25])
@pytest.mark.parametrize("compiled", [False, True])
def test_mean_of_the_last_interactions(batch_size: int, compiled: bool) -> None:
    metric = RecentMean("Recent", _rewards, window=10)
    add = tf.function(metric) if compiled else metric
    random = np.random.default_rng(1)
    seen: list[float] = []
    for _ in range(12):
        rewards = random.normal(size=batch_size)
        add(_batch(rewards))
        seen.extend(rewards)
        assert float(metric.result()) == pytest.approx(np.mean(seen[-10:]), abs=1e-5)


def test_empty_is_zero_and_reset_empties() -> None:
    metric = RecentMean("Recent", _rewards, window=4)
    assert float(metric.result()) == 0

    metric(_batch([1.0, 2.0]))
    metric.reset()
    assert float(metric.result()) == 0

    metric(_batch([5.0]))
    assert float(metric.result()) == 5


def test_the_window_is_saved(tmp_path: Any) -> None:
    metric = RecentMean("Recent", _rewards, window=3)
    metric(_batch([1.0, 2.0]))
    path = tf.train.Checkpoint(metric=metric).save(tmp_path / "ckpt")

    other = RecentMean("Recent", _rewards, window=3)
    tf.train.Checkpoint(metric=other).restore(path)
    other(_batch([3.0, 4.0]))

    assert float(other.result()) == 3


def test_trajectories_pass_through() -> None:
    batch = _batch([1.0])
    assert RecentMean("Recent", _rewards, window=3)(batch) is not None


@pytest.mark.parametrize("window", [0, -1])
def test_bad_window(window: int) -> None:
    with pytest.raises(ValueError, match=f"^window must be >= 1, got {window}$"):
        RecentMean("Recent", _rewards, window)

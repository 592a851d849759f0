"""The random policy, measured."""

from __future__ import annotations

import pytest
import tensorflow as tf

from trainer import baseline, problems


def test_an_unknown_reference_is_measured_and_says_over_how_much() -> None:
    tf.keras.utils.set_random_seed(1)
    reference = baseline.measure_random(problems.per_arm(32), interactions=1000)

    assert reference.source == "measured over 1,024 interactions"
    assert reference.regret > 0.5


def test_the_same_seed_measures_the_same() -> None:
    def measure() -> problems.Reference:
        tf.keras.utils.set_random_seed(2)
        return baseline.measure_random(problems.drifting_linear(16), interactions=320)

    assert measure() == measure()


def test_mean_return_of_linear_rewards() -> None:
    """Contexts of stationary_stochastic average -0.05, weights 0.45 over all arms."""
    tf.keras.utils.set_random_seed(3)
    reference = baseline.measure_random(problems.stationary_stochastic(100), 20_000)

    assert reference.average_return == pytest.approx(15 * -0.05 * 0.45, abs=0.05)

"""check_environment: on real environments, on the fake, and on broken ones."""

import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from tf_agents.bandits.environments import (
    bernoulli_py_environment,
    classification_environment,
    environment_utilities,
    random_bandit_environment,
    stationary_stochastic_py_environment,
    wheel_py_environment,
)
from tf_agents.environments import suite_gym, tf_environment, tf_py_environment

from testing.contracts import check_environment
from testing.contracts._episodes import Episodes, new_episodes
from testing.contracts.environment import CONTRACT
from testing.fakes import FakeEnvironment

BATCH = 3


def _tf(environment):
    return tf_py_environment.TFPyEnvironment(environment, isolation=False)


def _stationary():
    return _tf(
        stationary_stochastic_py_environment.StationaryStochasticPyEnvironment(
            functools.partial(
                environment_utilities.context_sampling_fn,
                batch_size=BATCH,
                context_dim=4,
            ),
            environment_utilities.sliding_linear_reward_fn_generator(4, 3, 0.1),
            batch_size=BATCH,
        )
    )


def _wheel():
    means = [0.05, 0.01, 0.011, 0.009, 0.012]
    return _tf(
        wheel_py_environment.WheelPyEnvironment(
            0.5, means, [0.001] * 5, 0.5, 0.001, BATCH
        )
    )


def _bernoulli():
    return _tf(bernoulli_py_environment.BernoulliPyEnvironment([0.2, 0.5, 0.9], BATCH))


def _classification():
    numbers = np.random.default_rng(0)
    features = numbers.random((50, 4), np.float32)
    labels = numbers.integers(0, 3, (50, 1))
    rewards = tfp.distributions.Independent(
        tfp.distributions.Deterministic(tf.eye(3)), reinterpreted_batch_ndims=2
    )
    return classification_environment.ClassificationBanditEnvironment(
        tf.data.Dataset.from_tensor_slices((features, labels)),
        rewards,
        BATCH,
        label_dtype_cast=tf.int32,
    )


def _random():
    zeros, ones = tf.zeros([BATCH, 2]), tf.ones([BATCH, 2])
    observations = tfp.distributions.Independent(
        tfp.distributions.Uniform(zeros, ones), reinterpreted_batch_ndims=1
    )
    rewards = tfp.distributions.Uniform(zeros[:, 0], ones[:, 0])
    return random_bandit_environment.RandomBanditEnvironment(observations, rewards)


# Bernoulli bandits take the action of each row they are given, however many.
REAL = {
    _stationary: set(),
    _wheel: set(),
    _bernoulli: {"refuses-wrong-batch"},
    _classification: set(),
    FakeEnvironment: set(),
    functools.partial(FakeEnvironment, batch_size=1): set(),
    functools.partial(
        FakeEnvironment, observation_shape=(2,), observation_dtype=tf.float32
    ): set(),
}


def _check(make, **kwargs):
    report = check_environment(make, raises=False, **kwargs)
    print(report)
    return report


@pytest.mark.parametrize(("make", "expected"), REAL.items())
def test_bandits(make, expected):
    report = _check(make)
    assert set(report.broken) == expected
    assert [skip.rule for skip in report.skipped] == ["episode-order"]


def test_environments_with_longer_episodes():
    for make in (new_episodes, lambda: _tf(suite_gym.load("CartPole-v0"))):
        report = _check(make, steps=60)
        assert report.ok
        assert [skip.rule for skip in report.skipped] == ["one-step-episodes"]


def test_an_episode_that_does_not_end_is_not_exercised():
    report = _check(new_episodes, steps=2)
    reasons = {skip.rule: skip.reason for skip in report.skipped}
    assert reasons["episode-order"] == "no episode ended within 2 steps; try more"


# Broken ones, each with the rules that must catch it.


class _Proxy:
    """Has all that an environment has, and is none."""

    def __init__(self):
        self._environment = FakeEnvironment()

    def __getattr__(self, name):
        return getattr(self._environment, name)


class _Changed(FakeEnvironment):
    """Changes its time steps."""

    def _changed(self, step_type, reward, discount, observation):
        return step_type, reward, discount, observation

    def _time_step(self, *args):
        made = super()._time_step(*args)
        return made._make(self._changed(*made))


class _Float64Rewards(_Changed):
    def _changed(self, step_type, reward, discount, observation):
        return step_type, tf.cast(reward, tf.float64), discount, observation


class _ObservationWithoutBatch(_Changed):
    def _changed(self, step_type, reward, discount, observation):
        return step_type, reward, discount, observation[:1]


class _DiscountTwo(_Changed):
    def _changed(self, step_type, reward, discount, observation):
        return step_type, reward, discount * 2, observation


class _ResetPays(FakeEnvironment):
    def _reset(self):
        return super()._reset()._replace(reward=tf.ones([self.batch_size]))

    def _current_time_step(self):
        now = super()._current_time_step()
        if self.steps:
            return now
        return now._replace(reward=tf.ones([self.batch_size]))


class _ResetIsMid(_Changed):
    def _changed(self, step_type, reward, discount, observation):
        return tf.where(step_type == 0, 1, step_type), reward, discount, observation


class _StepIsMid(_Changed):
    def _changed(self, step_type, reward, discount, observation):
        return tf.where(step_type == 2, 1, step_type), reward, discount, observation


class _DiscountOneAtTheEnd(_Changed):
    def _changed(self, step_type, reward, discount, observation):
        return step_type, reward, tf.ones_like(discount), observation


class _NaNRewards(_Changed):
    def _changed(self, step_type, reward, discount, observation):
        return (
            step_type,
            tf.where(step_type == 2, np.nan, reward),
            discount,
            observation,
        )


class _AskingSteps(FakeEnvironment):
    def _current_time_step(self):
        return super()._step(tf.zeros([self.batch_size], tf.int32))


class _AskingResets(FakeEnvironment):
    def _current_time_step(self):
        return super()._reset()


class _NoResetAtFirst(FakeEnvironment):
    def _current_time_step(self):
        if not self.resets:
            self._reset()
            return self._step(tf.zeros([self.batch_size], tf.int32))
        return super()._current_time_step()


class _RefusesTheLastAction(FakeEnvironment):
    def _step(self, action):
        if tf.executing_eagerly() and (np.asarray(action) == 2).all():
            raise ValueError("no such action")
        return super()._step(action)


class _TakesAnyBatch(FakeEnvironment):
    def _step(self, action):
        return super()._step(action[: self.batch_size])


class _StepsWhenTraced(FakeEnvironment):
    def _step(self, action):
        with tf.init_scope():
            super()._step([0] * self.batch_size)
        return super()._current_time_step()


class _EndlessAfterTheFirst(Episodes):
    def _step(self, action):
        if self._position == 3:
            self._position = 0
            return self._current_time_step._replace(step_type=np.asarray(1, np.int32))
        return super()._step(action)


class _LastTwice(Episodes):
    def _step(self, action):
        if self._current_time_step.is_last() and self._position == 3:
            self._position = 4
            return self._current_time_step
        return super()._step(action)


BROKEN = {
    # Drivers do not take it for a bandit either, so its episodes are too short.
    _Proxy: {"interface", "episode-order"},
    _Float64Rewards: {"fits-specs"},
    _ObservationWithoutBatch: {"fits-specs"},
    _DiscountTwo: {"fits-specs", "reset-is-first"},
    _ResetPays: {"reset-is-first"},
    _ResetIsMid: {"first-ask-resets", "reset-is-first"},
    _StepIsMid: {"one-step-episodes", "in-graph"},
    _DiscountOneAtTheEnd: {"one-step-episodes"},
    _NaNRewards: {"finite"},
    _AskingSteps: {"first-ask-resets", "current-is-last-seen", "in-graph"},
    _AskingResets: {"current-is-last-seen", "in-graph"},
    _NoResetAtFirst: {"first-ask-resets"},
    _RefusesTheLastAction: {"takes-every-action"},
    _TakesAnyBatch: {"refuses-wrong-batch"},
    _StepsWhenTraced: {"refuses-wrong-batch", "in-graph"},
    lambda: _tf(_EndlessAfterTheFirst()): {"episode-order"},
    lambda: _tf(_LastTwice()): {"episode-order"},
}


@pytest.mark.parametrize(("make", "rules"), BROKEN.items())
def test_broken_ones_are_caught_by_exactly_these_rules(make, rules):
    assert set(_check(make).broken) == rules


def test_every_rule_catches_something():
    assert set().union(*BROKEN.values()) == set(CONTRACT)


def test_a_message():
    violation = _check(_NaNRewards).violations[0]
    assert str(violation) == (
        "finite: Observations and rewards are finite.\n"
        "  expected  finite numbers\n"
        "  seen      [nan, nan]\n"
        "  where     reward of time step 1"
    )


def test_proxy_is_no_environment():
    assert not isinstance(_Proxy(), tf_environment.TFEnvironment)

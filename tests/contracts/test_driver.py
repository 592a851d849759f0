"""check_driver: on the real driver, on the fake, and on broken ones."""

from unittest import mock

import pytest
import tensorflow as tf
from tf_agents.drivers import driver, dynamic_step_driver

from testing.contracts import check_driver
from testing.contracts.driver import CONTRACT
from testing.fakes import CountingDriver

Real = dynamic_step_driver.DynamicStepDriver


def _check(make, **kwargs):
    report = check_driver(make, raises=False, **kwargs)
    print(report)
    return report


@pytest.mark.parametrize("make", [Real, CountingDriver])
def test_the_real_driver_and_the_fake_keep_every_rule(make):
    report = _check(make)
    assert report.ok
    assert report.skipped == ()


def test_what_a_driver_does_not_offer_is_skipped():
    def make(env, policy, observers, num_steps):
        inner = Real(env, policy, observers, num_steps=num_steps)

        class Plain(driver.Driver):
            def run(self):
                return inner.run()

        return Plain(env, policy, observers)

    report = _check(make)
    assert report.ok
    assert [skip.rule for skip in report.skipped] == [
        "transitions",
        "starts-where-told",
        "policy-state",
        "maximum-iterations",
    ]


# Broken ones, each with the rules that must catch it.


class _HidesItsParts(driver.Driver):
    def __init__(self, *args, **kwargs):
        self._inner = CountingDriver(*args, **kwargs)
        super().__init__(None, None)

    def run(self, time_step=None, policy_state=None, maximum_iterations=None):
        return self._inner.run(time_step, policy_state, maximum_iterations)


class _CountsStepsNotTransitions(CountingDriver):
    def _counted(self, experience):
        # One for all rows together.
        counted = super()._counted(experience)
        return tf.concat([counted[:1], tf.zeros_like(counted[1:])], 0)


class _OneStepTooMany(CountingDriver):
    def run(self, *args, **kwargs):
        super().run(*args, **kwargs)
        return super().run(maximum_iterations=1)


class _RoundsDown(CountingDriver):
    def __init__(self, env, *args, num_steps=1, **kwargs):
        rows = env.batch_size
        super().__init__(env, *args, num_steps=num_steps // rows * rows, **kwargs)


class _AsksTwice(CountingDriver):
    def _advance(self, counter, now, policy_state):
        self.policy.action(now, policy_state)
        return super()._advance(counter, now, policy_state)


class _ActsOtherwise(CountingDriver):
    """Steps the environment with other actions than the policy chose."""

    def _advance(self, *args):
        step = self.env.step
        others = mock.patch.object(
            self.env, "step", lambda action: step(tf.zeros_like(action))
        )
        with others:
            return super()._advance(*args)


class _NeverEnds(CountingDriver):
    def _counted(self, experience):
        return tf.zeros_like(experience.step_type)


class _ForgetsAnObserver(CountingDriver):
    def _tell(self, experience, transition):
        self.observers[0](experience)
        for observer in self.transition_observers:
            observer(transition)


class _TellsNobody(CountingDriver):
    def _tell(self, experience, transition):
        for observer in self.transition_observers:
            observer(transition)


class _TellsTwice(CountingDriver):
    def _tell(self, experience, transition):
        super()._tell(experience, transition)
        self.observers[-1](experience)


class _TellsInReverse(CountingDriver):
    def _tell(self, experience, transition):
        for observer in reversed(self.observers):
            observer(experience)
        for observer in self.transition_observers:
            observer(transition)


class _TellsTheNextObservation(CountingDriver):
    def _tell(self, experience, transition):
        later = transition[2].observation
        super()._tell(experience._replace(observation=later), transition)


class _MixesRows(CountingDriver):
    def _tell(self, experience, transition):
        reward = tf.roll(experience.reward, 1, 0)
        super()._tell(experience._replace(reward=reward), transition)


class _LeavesStepTypes(CountingDriver):
    def _tell(self, experience, transition):
        if experience.observation.dtype == tf.int64 and experience.reward.shape[0] == 3:
            last = tf.fill(tf.shape(experience.step_type), 2)
            experience = experience._replace(step_type=last)
        super()._tell(experience, transition)


class _ForgetsPythonBandits(CountingDriver):
    def _tell(self, experience, transition):
        if experience.observation.dtype != tf.int64:
            last = tf.fill(tf.shape(experience.step_type), 2)
            experience = experience._replace(step_type=last)
        super()._tell(experience, transition)


class _ForgetsTransitions(CountingDriver):
    def _tell(self, experience, transition):
        for observer in self.observers:
            observer(experience)


class _ResetsEachTime(CountingDriver):
    def run(self, time_step=None, *args, **kwargs):
        return super().run(
            self.env.reset() if time_step is None else time_step, *args, **kwargs
        )


class _ReturnsNothing(CountingDriver):
    def run(self, time_step=None, policy_state=None, maximum_iterations=None):
        super().run(time_step, policy_state, maximum_iterations)


class _ReturnsTheFirst(CountingDriver):
    def run(self, time_step=None, policy_state=None, maximum_iterations=None):
        first = self.env.current_time_step() if time_step is None else time_step
        return first, super().run(first, policy_state, maximum_iterations)[1]


class _StartsElsewhere(CountingDriver):
    def run(self, time_step=None, policy_state=None, maximum_iterations=None):
        return super().run(None, policy_state, maximum_iterations)


class _ForgetsItsState(CountingDriver):
    def _advance(self, counter, now, policy_state):
        initial = self.policy.get_initial_state(self.env.batch_size)
        return super()._advance(counter, now, initial)


class _IgnoresTheStateGiven(CountingDriver):
    def run(self, time_step=None, policy_state=None, maximum_iterations=None):
        return super().run(time_step, None, maximum_iterations)


class _ReturnsTheInitialState(CountingDriver):
    def run(self, time_step=None, policy_state=None, maximum_iterations=None):
        initial = self.policy.get_initial_state(self.env.batch_size)
        return super().run(time_step, policy_state, maximum_iterations)[0], initial


class _HasNoLimit(CountingDriver):
    def run(self, time_step=None, policy_state=None, maximum_iterations=None):
        return super().run(time_step, policy_state)


class _CountsBoundaries(CountingDriver):
    def _counted(self, experience):
        return tf.ones_like(experience.step_type)


class _RunsWhenTraced(CountingDriver):
    def run(self, *args, **kwargs):
        with tf.init_scope():
            return super().run(*args, **kwargs)


class _RunsOnceInAGraph(CountingDriver):
    def run(self, *args, **kwargs):
        if not tf.executing_eagerly():
            kwargs["maximum_iterations"] = 1
        return super().run(*args, **kwargs)


class _SwallowsErrors(CountingDriver):
    def run(self, *args, **kwargs):
        try:
            return super().run(*args, **kwargs)
        except RuntimeError:
            return self.env.current_time_step(), ()


BROKEN = {
    _HidesItsParts: {"keeps-parts"},
    _CountsStepsNotTransitions: {"step-count", "whole-steps"},
    _OneStepTooMany: {"step-count", "whole-steps", "boundaries"},
    _RoundsDown: {"whole-steps"},
    _AsksTwice: {"act-then-step"},
    _ActsOtherwise: {"act-then-step", "trajectory", "transitions"},
    _ForgetsAnObserver: {"observers-each-step", "observers-in-order"},
    _TellsNobody: {"observers-each-step"},
    _TellsTwice: {"observers-each-step"},
    _TellsInReverse: {"observers-in-order"},
    _TellsTheNextObservation: {"trajectory", "starts-where-told"},
    _MixesRows: {"trajectory"},
    _LeavesStepTypes: {"bandit-episodes"},
    _ForgetsPythonBandits: {"bandit-episodes"},
    _ForgetsTransitions: {"transitions"},
    _ResetsEachTime: {"goes-on"},
    _ReturnsNothing: {"returns-last"},
    _ReturnsTheFirst: {"returns-last"},
    _StartsElsewhere: {"starts-where-told"},
    _ForgetsItsState: {"policy-state"},
    _IgnoresTheStateGiven: {"policy-state"},
    _ReturnsTheInitialState: {"policy-state"},
    _HasNoLimit: {"maximum-iterations"},
    _CountsBoundaries: {"boundaries"},
    _RunsWhenTraced: {"in-graph"},
    _RunsOnceInAGraph: {"in-graph"},
    _SwallowsErrors: {"errors-surface"},
}


@pytest.mark.parametrize(("make", "rules"), BROKEN.items())
def test_broken_ones_are_caught_by_exactly_these_rules(make, rules):
    assert set(_check(make).broken) == rules


def test_a_run_that_does_not_end_is_ended():
    report = _check(_NeverEnds, only=["step-count"])
    assert "The run does not end" in report.violations[0].seen


def test_every_rule_catches_something():
    assert set().union(*BROKEN.values()) == set(CONTRACT)


def test_a_message():
    (violation,) = _check(_RoundsDown).violations
    assert str(violation) == (
        "whole-steps: When num_steps is no multiple of the batch size, a run takes "
        "the fewest whole steps that reach it.\n"
        "  expected  1\n"
        "  seen      0\n"
        "  where     environment steps for num_steps=1"
    )

"""check_agent: on real agents, on the fake, and on broken ones."""

import pytest
import tensorflow as tf
from tf_agents.agents import tf_agent
from tf_agents.bandits.agents import (
    exp3_agent,
    lin_ucb_agent,
    neural_epsilon_greedy_agent,
)
from tf_agents.networks import q_network
from tf_agents.specs import tensor_spec

from testing.contracts import check_agent
from testing.contracts.agent import CONTRACT
from testing.fakes import CountingAgent, FakePolicy


def _check(make, **kwargs):
    report = check_agent(make, raises=False, **kwargs)
    print(report)
    return report


def _exp3(time_step_spec, action_spec):
    return exp3_agent.Exp3Agent(time_step_spec, action_spec, learning_rate=0.1)


def _epsilon_greedy(time_step_spec, action_spec):
    return neural_epsilon_greedy_agent.NeuralEpsilonGreedyAgent(
        time_step_spec,
        action_spec,
        reward_network=q_network.QNetwork(
            time_step_spec.observation, action_spec, fc_layer_params=(4,)
        ),
        optimizer=tf.compat.v1.train.AdamOptimizer(0.1),
        epsilon=0.1,
    )


# These add the number of rows of the experience, though `TFAgent._train` "must
# increment self.train_step_counter exactly once".
COUNTS_ROWS = {"counts-train-steps"}
REAL = {
    lin_ucb_agent.LinearUCBAgent: COUNTS_ROWS,
    _exp3: COUNTS_ROWS,
    _epsilon_greedy: set(),
}


@pytest.mark.parametrize(("make", "expected"), REAL.items())
def test_real_agents(make, expected):
    report = _check(make)
    assert set(report.broken) == expected
    assert report.skipped == ()


class _Fake(CountingAgent):
    def __init__(self, time_step_spec, action_spec, **kwargs):
        super().__init__(
            time_step_spec=time_step_spec, action_spec=action_spec, **kwargs
        )


def test_the_fake_keeps_every_rule():
    report = _check(_Fake)
    assert report.ok
    assert report.skipped == ()


# Broken ones, each with the rules that must catch it.


class _Proxy(tf.Module):
    """Has all that an agent has, and is none."""

    def __init__(self, *specs):
        super().__init__()
        self._agent = _Fake(*specs)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._agent, name)


class _OtherSpecs(_Fake):
    action_spec = property(
        lambda self: tensor_spec.BoundedTensorSpec((), tf.int32, 0, 7, "action")
    )


class _NewPolicies(_Fake):
    @property
    def collect_policy(self):
        return FakePolicy(self._time_step_spec, self._action_spec)


class _Acts(FakePolicy):
    """Acts as told, unchecked."""

    act = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._clip = self._validate_args = False

    def _action(self, time_step, *args, **kwargs):
        step = super()._action(time_step, *args, **kwargs)
        return step._replace(action=type(self).act(step.action, time_step))


class _ActsBeyond(_Acts):
    act = staticmethod(lambda action, _: action + 9)


class _ActsForOneRow(_Acts):
    act = staticmethod(lambda action, _: action[:1])


class _ActsInInt64(_Acts):
    act = staticmethod(lambda action, _: tf.cast(action, tf.int64))


class _ActsEagerlyOnly(_Acts):
    act = staticmethod(lambda action, time_step: action + int(time_step.reward[0] * 0))


class _Collects(_Fake):
    """Has another collect policy."""

    collect = _ActsBeyond

    def __init__(self, *specs):
        super().__init__(*specs)
        self._collect_policy = self.collect(*specs, train_step=self.train_step_counter)


class _CollectsInInt64(_Collects):
    collect = _ActsInInt64


class _PolicyBeyond(_Fake):
    def __init__(self, *specs):
        super().__init__(*specs)
        self._policy = _ActsBeyond(*specs, train_step=self.train_step_counter)


class _PolicyIsEagerOnly(_Fake):
    def __init__(self, *specs):
        super().__init__(*specs)
        self._policy = _ActsEagerlyOnly(*specs, train_step=self.train_step_counter)


class _PolicyForOneRow(_Fake):
    def __init__(self, *specs):
        super().__init__(*specs)
        self._policy = _ActsForOneRow(*specs, train_step=self.train_step_counter)


class _PolicyIsACopy(_Fake):
    def __init__(self, *specs):
        super().__init__(*specs)
        self._policy = FakePolicy(*specs)


class _LossPerRow(_Fake):
    def _train(self, experience, weights=None):
        loss = super()._train(experience, weights).loss
        return tf_agent.LossInfo(tf.fill([3], loss), ())


class _LossIsNaN(_Fake):
    def __init__(self, *specs):
        super().__init__(*specs, losses=lambda call: float("nan"))


class _CountsRows(_Fake):
    def _train(self, experience, weights=None):
        rows = tf.size(experience.reward, tf.int64)
        info = super()._train(experience, weights)
        self.train_step_counter.assign_add(rows - 1)
        return info


class _CountsNothing(_Fake):
    def _train(self, experience, weights=None):
        info = super()._train(experience, weights)
        self.train_step_counter.assign_sub(1)
        return info


class _NeedsTwoSteps(_Fake):
    def _train(self, experience, weights=None):
        if experience.reward.shape[1] == 1:
            raise ValueError("one step is not enough")
        return super()._train(experience, weights)


class _TakesAnything(_Fake):
    def _train(self, experience, weights=None):
        if experience.observation == ():
            experience = experience._replace(
                observation=tf.zeros([*experience.reward.shape, 2])
            )
        return super()._train(experience, weights)


class _RefusesTooLate(_Fake):
    def _train(self, experience, weights=None):
        self.train_step_counter.assign_add(1)
        try:
            info = super()._train(experience, weights)
        finally:
            pass
        self.train_step_counter.assign_sub(1)
        return info


class _TrainsWhenTraced(_Fake):
    def _train(self, experience, weights=None):
        if tf.executing_eagerly():
            return super()._train(experience, weights)
        with tf.init_scope():
            zeros = tf.nest.map_structure(
                lambda s: tf.zeros([3, 2, *s.shape], s.dtype), self.training_data_spec
            )
            loss = super()._train(zeros, weights).loss.numpy()
        return tf_agent.LossInfo(tf.constant(loss), ())


class _LossOfTheTrace(_Fake):
    """In a graph, each call returns the loss of the first."""

    def _train(self, experience, weights=None):
        with tf.init_scope():
            calls = self.calls
        info = super()._train(experience, weights)
        if tf.executing_eagerly():
            return info
        return info._replace(loss=info.loss * 0 + calls)


class _LeavesOutItsLosses(_Fake):
    """What its losses depend on is in no checkpoint."""

    def __setattr__(self, name, value):
        if name == "_training":
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)


class _LeavesOutItsCounter(_Fake):
    """Its counter is restored as a number that nobody uses."""

    def _trackable_children(self, *args, **kwargs):
        children = super()._trackable_children(*args, **kwargs)
        keep = {"_training": children["_training"]}
        return {name: child for name, child in children.items() if name in keep}

    def _lookup_dependency(self, name, *args, **kwargs):
        if name != "_training":
            return None
        return super()._lookup_dependency(name, *args, **kwargs)


BROKEN = {
    _Proxy: {"interface"},
    _OtherSpecs: {"interface"},
    _NewPolicies: {"same-policies"},
    _Collects: {"acts-in-spec"},
    _CollectsInInt64: {"acts-in-spec", "collects-what-it-trains-on"},
    _PolicyBeyond: {"acts-in-spec", "exports"},
    _PolicyIsEagerOnly: {"exports"},
    _PolicyForOneRow: {"acts-in-spec", "exports"},
    _PolicyIsACopy: {"policy-follows"},
    _LossPerRow: {"loss-info"},
    _LossIsNaN: {"loss-info"},
    _CountsRows: {"counts-train-steps"},
    # The fake has no other variable.
    _CountsNothing: {"counts-train-steps", "training-shows", "policy-follows"},
    _NeedsTwoSteps: {"counts-train-steps", "any-length"},
    _TakesAnything: {"refuses-wrong-experience"},
    _RefusesTooLate: {"refuses-wrong-experience"},
    _TrainsWhenTraced: {"in-graph"},
    _LossOfTheTrace: {"in-graph"},
    _LeavesOutItsLosses: {"checkpoint"},
    _LeavesOutItsCounter: {"checkpoint"},
}


@pytest.mark.parametrize(("make", "rules"), BROKEN.items())
def test_broken_ones_are_caught_by_exactly_these_rules(make, rules):
    assert set(_check(make).broken) == rules


def test_every_rule_catches_something():
    assert set().union(*BROKEN.values()) == set(CONTRACT)


def test_a_sequence_length_is_respected():
    class Pairs(_Fake):
        train_sequence_length = 2

    report = _check(Pairs, only=["any-length"])
    assert [str(skip) for skip in report.skipped] == [
        "any-length: it asks for sequences of 2 steps"
    ]


def test_a_message():
    (violation,) = _check(_CountsRows).violations
    assert violation.hint == ("It counts train calls, not the rows of the experience.")
    assert violation.where == "train_step_counter after 1 calls of 3 rows"
    assert (violation.expected, violation.seen) == ("1", "3")

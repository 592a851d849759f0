"""FakePolicy: scripted actions, counted calls, export."""

import pytest
import tensorflow as tf
from tf_agents.policies import policy_saver

from testing.fakes import FakeEnvironment, FakePolicy, Timeline


@pytest.fixture
def environment():
    return FakeEnvironment()


def _policy(environment, **kwargs):
    specs = environment.time_step_spec(), environment.action_spec()
    return FakePolicy(*specs, **kwargs)


def _act(policy, environment):
    return policy.action(environment.current_time_step()).action.numpy().tolist()


def test_acts_by_the_train_step(environment):
    policy = _policy(environment)
    assert _act(policy, environment) == [0, 0]
    policy.train_step.assign(5)
    assert _act(policy, environment) == [2, 2]


def test_acts_by_script_and_notes_it(environment):
    timeline = Timeline()
    policy = _policy(environment, actions=[1, [0, 2]], timeline=timeline)
    assert _act(policy, environment) == [1, 1]
    assert _act(policy, environment) == [0, 2]
    assert timeline.values("policy.action") == [(1, 1), (0, 2)]
    assert timeline.steps("policy.action") == [0, 1]
    with pytest.raises(IndexError, match="actions has 2 entries"):
        _act(policy, environment)


def test_counts_calls_in_a_graph(environment):
    policy = _policy(environment, timeline=Timeline())

    @tf.function
    def act(n):
        for _ in tf.range(n):
            policy.action(environment.current_time_step())

    act(tf.constant(3))
    assert policy.calls == 3


def test_gives_a_distribution(environment):
    policy = _policy(environment)
    step = policy.distribution(environment.reset())
    assert step.action.sample().numpy().tolist() == [0, 0]


def test_export_tells_how_far_it_was_trained(environment, tmp_path):
    policy = _policy(environment)
    policy.train_step.assign(4)
    policy_saver.PolicySaver(policy).save(str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert loaded.action(environment.reset()).action.numpy().tolist() == [1, 1]
    assert [v.numpy() for v in loaded.model_variables] == [4]


def test_saves_and_restores(environment, tmp_path):
    policy = _policy(environment, timeline=Timeline())
    _act(policy, environment)
    path = tf.train.Checkpoint(p=policy).save(str(tmp_path / "c"))
    other = _policy(environment, timeline=Timeline())
    tf.train.Checkpoint(p=other).restore(path).assert_consumed()
    assert other.calls == 1
    assert repr(other) == "<FakePolicy 'FakePolicy': acted 1 times>"

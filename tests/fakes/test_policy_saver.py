"""FakePolicySaver: notes exports; the real one's interface and checks."""

import functools
import inspect
import json
from unittest import mock

import pytest
import tensorflow as tf
from tf_agents.policies import policy_saver

from testing.fakes import FakeEnvironment, FakePolicy, FakePolicySaver, Timeline

BOTH = pytest.mark.parametrize("saver", [FakePolicySaver, policy_saver.PolicySaver])


@pytest.fixture
def policy():
    environment = FakeEnvironment()
    return FakePolicy(environment.time_step_spec(), environment.action_spec())


def test_notes_exports(policy, tmp_path):
    step = tf.Variable(7, dtype=tf.int64)
    saver = FakePolicySaver(policy, train_step=step)
    saver.save(str(tmp_path / "a"))
    step.assign(9)
    saver.save(str(tmp_path / "b"))
    assert saver.exports == ((str(tmp_path / "a"), 7), (str(tmp_path / "b"), 9))
    assert saver.timeline.steps("policy.save") == [7, 9]
    written = json.loads((tmp_path / "b" / "fake_policy.json").read_text())
    assert written == {"train_step": 9, "variables": [0], "metadata": {}}


@BOTH
def test_makes_its_directory_and_tells_the_train_step(saver, policy, tmp_path):
    step = tf.Variable(3, dtype=tf.int64)
    made = saver(policy, train_step=step, metadata={"m": tf.Variable(2)})
    made.save(str(tmp_path / "deep" / "er"))
    assert list((tmp_path / "deep" / "er").iterdir())
    assert int(made.get_train_step()) == 3
    assert {k: int(v) for k, v in made.get_metadata().items()} == {"m": 2}
    assert len(made.action_input_spec) == 2
    assert made.policy_step_spec.action.dtype == tf.int32


@BOTH
def test_default_train_step_is_minus_one(saver, policy):
    assert int(saver(policy).get_train_step()) == -1


@BOTH
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"policy": "x"}, TypeError, "policy is not a TFPolicy"),
        ({"batch_size": 0}, ValueError, "Expected batch_size == None or python int"),
        ({"train_step": 3}, ValueError, "train_step must be a TensorFlow variable"),
    ],
)
def test_refuses_the_same(saver, policy, arguments, error, message):
    with pytest.raises(error, match=message):
        saver(**{"policy": policy, **arguments})


def test_takes_the_same_arguments():
    fake, real = (
        list(inspect.signature(cls.__init__).parameters)
        for cls in (FakePolicySaver, policy_saver.PolicySaver)
    )
    assert fake[: len(real)] == real


@BOTH
def test_writes_a_checkpoint_of_the_policy(saver, policy, tmp_path):
    policy.train_step.assign(5)
    saver(policy).save_checkpoint(str(tmp_path))
    names = dict(tf.train.list_variables(str(tmp_path / "variables" / "variables")))
    assert any("model_variables" in name for name in names)


def test_replaces_the_real_one(policy, tmp_path):
    timeline = Timeline()
    make = functools.partial(FakePolicySaver, timeline=timeline)
    with mock.patch.object(policy_saver, "PolicySaver", make):
        policy_saver.PolicySaver(policy).save(str(tmp_path))
    assert timeline.count("policy.save") == 1


def test_saves_and_restores_its_count(policy, tmp_path):
    saver = FakePolicySaver(policy)
    saver.save(str(tmp_path / "p"))
    path = tf.train.Checkpoint(s=saver).save(str(tmp_path / "c"))
    other = FakePolicySaver(policy)
    tf.train.Checkpoint(s=other).restore(path).assert_consumed()
    assert other.saves == 1
    assert repr(other) == "<FakePolicySaver 'FakePolicySaver': 1 exports>"

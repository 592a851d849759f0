"""FakeEnvironment: serial numbers, rewards, checkpoints, graphs."""

import numpy as np
import pytest
import tensorflow as tf

from testing.fakes import EnvStep, FakeEnvironment, Timeline


def test_shows_new_serial_numbers_at_each_step():
    environment = FakeEnvironment(batch_size=3)
    assert environment.reset().observation.numpy().tolist() == [0, 1, 2]
    step = environment.step([0, 1, 2])
    assert step.observation.numpy().tolist() == [3, 4, 5]
    assert step.reward.numpy().tolist() == [0.0, 1.0, 2.0]
    assert environment.current_time_step().observation.numpy().tolist() == [3, 4, 5]


def test_every_step_is_one_full_episode():
    environment = FakeEnvironment()
    first = environment.current_time_step()
    last = environment.step([0, 0])
    assert first.is_first().numpy().all()
    assert last.is_last().numpy().all()
    assert first.discount.numpy().tolist() == [1.0, 1.0]
    assert last.discount.numpy().tolist() == [0.0, 0.0]


def test_writes_its_interactions_on_the_timeline():
    timeline = Timeline()
    environment = FakeEnvironment(timeline=timeline, rewards=[5.0, 6.0])
    environment.step([2, 1])
    reset, step = timeline
    assert (reset.kind, reset.step, reset.value) == ("env.reset", 0, (0, 1))
    assert (step.kind, step.step) == ("env.step", 0)
    assert step.value == EnvStep((0, 1), (2, 1), (5.0, 6.0))


@pytest.mark.parametrize(
    ("rewards", "paid"),
    [
        (None, [0, 1]),
        (2.5, [2.5, 2.5]),
        ([7, 8], [7, 8]),
        (np.array([7, 8]), [7, 8]),
        (lambda serials, actions: serials * 10 + actions, [0, 12]),
    ],
)
def test_pays_by_script(rewards, paid):
    environment = FakeEnvironment(rewards=rewards)
    assert environment.step([0, 2]).reward.numpy().tolist() == paid


def test_a_script_of_rewards_that_ends_is_an_error():
    environment = FakeEnvironment(rewards=[1.0, 2.0, 3.0])
    environment.step([0, 0])
    with pytest.raises(
        IndexError, match=r"^rewards has 3 entries, but entry 3 was asked for\."
    ):
        environment.step([0, 0])


def test_rewards_of_a_wrong_shape_are_an_error():
    environment = FakeEnvironment(rewards=lambda serials, actions: [1.0])
    with pytest.raises(ValueError, match=r"^rewards has shape \(1,\)\. Allow"):
        environment.step([0, 0])


@pytest.mark.parametrize("dtype", [tf.int64, tf.float32, tf.float64, tf.int32])
@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_observations_have_the_asked_shape_and_dtype(dtype, shape):
    environment = FakeEnvironment(observation_shape=shape, observation_dtype=dtype)
    observation = environment.reset().observation
    assert observation.dtype == dtype
    assert observation.shape == (2, *shape)
    assert (observation.numpy()[1] == 1).all()
    assert environment.observation_spec().name == "serial"


@pytest.mark.parametrize(
    ("dtype", "first", "largest"),
    [(tf.float32, 2**24 - 3, 2**24), (tf.int32, 2**31 - 4, 2**31 - 1)],
)
def test_serials_that_a_dtype_cannot_tell_apart_are_an_error(dtype, first, largest):
    environment = FakeEnvironment(observation_dtype=dtype, first_serial=first)
    shown = environment.reset().observation.numpy().astype(np.int64).tolist()
    shown += environment.step([0, 0]).observation.numpy().astype(np.int64).tolist()
    assert shown == list(range(first, first + 4))
    with pytest.raises(OverflowError, match=rf"tell apart \({largest}\)"):
        environment.step([0, 0])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"batch_size": 0}, ValueError, r"^batch_size is 0\. Allowed: an integer"),
        ({"batch_size": True}, TypeError, r"^batch_size is True\. Allowed"),
        ({"num_actions": 1.5}, TypeError, r"^num_actions is 1\.5\. Allowed"),
        (
            {"observation_dtype": tf.string},
            ValueError,
            r"^observation_dtype is string\. Allowed: int32, int64",
        ),
    ],
)
def test_refuses_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        FakeEnvironment(**arguments)


def test_counts_calls_and_not_traces_in_a_graph():
    environment = FakeEnvironment()

    @tf.function
    def run(n):
        for _ in tf.range(n):
            environment.step(tf.constant([0, 1]))
        return environment.current_time_step()

    run(tf.constant(3))
    last = run(tf.constant(2, tf.int64))  # Retraced: another dtype.
    assert environment.steps == 5
    assert environment.resets == 1
    assert last.observation.numpy().tolist() == [10, 11]
    assert last.observation.shape == (2,)


def test_goes_on_where_a_checkpoint_left_it(tmp_path):
    environment = FakeEnvironment()
    environment.step([0, 0])
    path = tf.train.Checkpoint(e=environment).save(str(tmp_path / "c"))
    other = FakeEnvironment()
    tf.train.Checkpoint(e=other).restore(path).assert_consumed()
    assert other.current_time_step().observation.numpy().tolist() == [2, 3]
    assert other.current_time_step().is_last().numpy().all()
    assert other.steps == 1


def test_repr_tells_where_it_is():
    environment = FakeEnvironment(batch_size=1, name="world")
    environment.step([0])
    assert repr(environment) == (
        "<FakeEnvironment 'world': batch size 1, 1 steps, 1 resets, "
        "showing interactions [1]>"
    )

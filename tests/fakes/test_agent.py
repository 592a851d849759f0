"""CountingAgent: scripted losses, what it was trained on, checkpoints."""

import pytest
import tensorflow as tf
from tf_agents.trajectories import trajectory

from testing.fakes import CountingAgent, FakeEnvironment, Timeline, TrainCall
from testing.fakes._script import distinct_loss


def _experience(environment, agent, steps=2):
    """`steps` steps of all rows, shape `[batch_size, steps]`."""
    rows = []
    for _ in range(steps):
        now = environment.current_time_step()
        action = agent.collect_policy.action(now)
        rows.append(
            trajectory.from_transition(now, action, environment.step(action[0]))
        )
    return tf.nest.map_structure(lambda *t: tf.stack(t, 1), *rows)


@pytest.fixture
def environment():
    return FakeEnvironment()


def test_notes_what_it_is_trained_on(environment):
    agent = CountingAgent(environment, losses=[0.25])
    agent.train(_experience(environment, agent))
    assert agent.train_calls == (
        TrainCall(
            shape=(2, 2),
            serials=((0, 2), (1, 3)),
            actions=((0, 0), (0, 0)),
            rewards=((0.0, 2.0), (1.0, 3.0)),
            loss=0.25,
        ),
    )


def test_finds_serials_in_observations_of_any_shape():
    environment = FakeEnvironment(
        observation_shape=(2, 3), observation_dtype=tf.float32
    )
    agent = CountingAgent(environment)
    agent.train(_experience(environment, agent))
    assert agent.train_calls[0].serials == ((0, 2), (1, 3))


def test_trains_without_serials(environment):
    spec = environment.time_step_spec()
    spec = spec._replace(observation=tf.TensorSpec((), tf.int64, "context"))
    agent = CountingAgent(time_step_spec=spec, action_spec=environment.action_spec())
    agent.train(_experience(environment, agent))
    assert agent.train_calls[0].serials is None
    assert agent.train_calls[0].shape == (2, 2)


def test_default_losses_are_all_different_and_exact_in_float32(environment):
    losses = [distinct_loss(i) for i in range(5000)]
    assert len(set(losses)) == 5000
    assert tf.constant(losses, tf.float32).numpy().tolist() == losses
    agent = CountingAgent(environment)
    experience = _experience(environment, agent)
    returned = [float(agent.train(experience).loss) for _ in range(3)]
    assert returned == losses[:3]


def test_smoothed_default_losses_show():
    losses = [distinct_loss(i) for i in range(2000)]
    for width in (2, 3, 5):
        windows = [losses[i : i + width] for i in range(len(losses) - width)]
        same = sum(sum(window) / width in window for window in windows)
        assert same < 10


def test_a_script_of_losses_that_ends_is_an_error(environment):
    agent = CountingAgent(environment, losses=[1.0])
    experience = _experience(environment, agent)
    agent.train(experience)
    with pytest.raises(IndexError, match="losses has 1 entries, but entry 1 was"):
        agent.train(experience)


def test_counts_calls_and_not_traces_in_a_graph(environment):
    timeline = Timeline()
    agent = CountingAgent(environment, timeline=timeline)
    train = tf.function(agent.train)
    losses = [float(train(_experience(environment, agent, n)).loss) for n in (2, 2, 3)]
    assert agent.calls == 3
    assert agent.train_step_counter.numpy() == 3
    assert losses == [distinct_loss(i) for i in range(3)]
    assert timeline.steps("agent.train") == [0, 1, 2]
    assert agent.train_calls[2].shape == (2, 3)


def test_counts_in_a_while_loop(environment):
    agent = CountingAgent(environment)
    experience = _experience(environment, agent)

    @tf.function
    def train(n):
        loss = 0.0
        for _ in tf.range(n):
            loss = agent.train(experience).loss
        return loss

    assert float(train(tf.constant(4))) == distinct_loss(3)
    assert agent.calls == 4


def test_refuses_experience_of_another_structure(environment):
    agent = CountingAgent(environment)
    with pytest.raises((TypeError, ValueError), match="training_data_spec"):
        agent.train(_experience(environment, agent)._replace(observation=()))
    assert agent.calls == 0


def test_leaves_the_global_step_alone(environment):
    agent = CountingAgent(environment)
    step = tf.compat.v1.train.get_or_create_global_step()
    before = step.numpy()
    agent.train(_experience(environment, agent))
    assert step.numpy() == before


def test_needs_specs():
    with pytest.raises(TypeError, match=r"^CountingAgent needs an environment"):
        CountingAgent()


def test_goes_on_where_a_checkpoint_left_it(environment, tmp_path):
    agent = CountingAgent(environment)
    experience = _experience(environment, agent)
    agent.train(experience)
    path = tf.train.Checkpoint(a=agent).save(str(tmp_path / "c"))
    other = CountingAgent(environment)
    tf.train.Checkpoint(a=other).restore(path).assert_consumed()
    assert float(other.train(experience).loss) == distinct_loss(1)
    assert other.train_step_counter.numpy() == 2
    assert other.calls == 2


def test_repr_tells_the_last_call(environment):
    agent = CountingAgent(environment, losses=[0.5])
    assert repr(agent) == "<CountingAgent 'CountingAgent': 0 calls>"
    agent.train(_experience(environment, agent, 1))
    assert "1 calls, last TrainCall(shape=(2, 1), serials=((0,), (1,))" in repr(agent)

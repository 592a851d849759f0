"""The fakes at the borders of TF-Agents' own bandit trainer."""

from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.bandits.agents import lin_ucb_agent
from tf_agents.bandits.agents.examples.v2 import trainer
from tf_agents.metrics import export_utils

from testing.fakes import CountingAgent, FakeEnvironment, MockLog, Timeline
from testing.fakes._script import distinct_loss

LOOPS, STEPS, A, BATCH = 3, 4, 2, 3


@pytest.fixture
def run(tmp_path):
    """Runs the trainer with fakes; returns log, timeline, environment and agent."""

    def run(agent=None, environment=None, loops=LOOPS, **kwargs):
        timeline = Timeline()
        environment = environment or FakeEnvironment(
            batch_size=BATCH, timeline=timeline
        )
        agent = agent or CountingAgent(environment, timeline=timeline)
        with mock.patch.object(export_utils, "logging", new_callable=MockLog) as log:
            trainer.train(
                root_dir=str(tmp_path),
                agent=agent,
                environment=environment,
                training_loops=loops,
                steps_per_loop=STEPS,
                async_steps_per_loop=A,
                **kwargs,
            )
        return log, timeline, environment, agent

    return run


def test_counts_logs_and_losses(run):
    log, _, environment, agent = run()
    steps = list(range(LOOPS * A))
    for name in ("NumberOfEpisodes", "AverageEpisodeLength", "AverageReturn", "loss"):
        assert log.steps(name) == steps
    assert log.values("loss") == [distinct_loss(i) for i in steps]
    assert environment.steps == LOOPS * A * STEPS
    assert agent.calls == LOOPS * A


def test_each_train_step_gets_its_driver_run(run):
    _, _, _, agent = run()
    runs = np.arange(LOOPS * A * STEPS * BATCH).reshape(LOOPS * A, STEPS, BATCH)
    assert [np.array(c.serials).T.tolist() for c in agent.train_calls] == runs.tolist()


def test_resumes(run, tmp_path):
    run()
    _, _, _, agent = run(loops=LOOPS + 1, resume_training_loops=True)
    assert agent.calls == (LOOPS + 1) * A


def test_exports_a_policy_that_tells_its_train_step(run, tmp_path):
    run()
    policy = tf.saved_model.load(str(tmp_path / f"policy_{STEPS * A * BATCH}"))
    assert [v.numpy() for v in policy.model_variables] == [A]


def test_environment_trains_a_real_agent(run):
    environment = FakeEnvironment(
        batch_size=BATCH,
        observation_shape=(1,),
        observation_dtype=tf.float32,
        rewards=1.0,
    )
    agent = lin_ucb_agent.LinearUCBAgent(
        environment.time_step_spec(), environment.action_spec()
    )
    log, *_ = run(agent, environment)
    assert log.steps("loss") == list(range(LOOPS * A))

"""Correct trainers, each built in another way. None may be found fault with."""

from __future__ import annotations

import collections
import contextlib
import logging as python_logging
import os
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from absl import logging
from tf_agents.bandits.replay_buffers import bandit_replay_buffer
from tf_agents.drivers import dynamic_step_driver
from tf_agents.metrics import export_utils, tf_metrics
from tf_agents.policies import policy_saver
from tf_agents.utils import common

from testing.fakes import CountingDriver
from tests.faulty import reference
from tests.faulty.reference import Reference, episodes

CORRECT: dict[str, Callable[..., Any]] = {"reference": reference.train}


def correct(train: Callable[..., Any]) -> Callable[..., Any]:
    """Registers a correct trainer."""
    CORRECT[train.__name__] = train
    return train


def _check(agent: Any, environment: Any, *numbers: int) -> None:
    if agent is None or environment is None:
        raise TypeError("agent and environment must be given")
    if numbers[0] < 0 or min(numbers[1:]) < 1:
        raise ValueError(f"{numbers} are not allowed")


@correct
def eager(
    root_dir,
    agent,
    environment,
    training_loops,
    steps_per_loop,
    async_steps_per_loop=None,
    additional_metrics=(),
    save_policy=True,
    resume_training_loops=False,
):
    """One function, eager, of TF-Agents' own parts: data set, driver and metrics."""
    runs = 1 if async_steps_per_loop is None else async_steps_per_loop
    _check(agent, environment, training_loops, steps_per_loop, runs)
    batch = environment.batch_size
    buffer = bandit_replay_buffer.BanditReplayBuffer(
        agent.collect_data_spec, batch, steps_per_loop * runs
    )
    step_metric = tf_metrics.EnvironmentSteps()
    metrics = [
        tf_metrics.NumberOfEpisodes(),
        tf_metrics.AverageReturnMetric(batch_size=batch),
        *additional_metrics,
    ]
    driver = dynamic_step_driver.DynamicStepDriver(
        environment,
        agent.collect_policy,
        [buffer.add_batch, step_metric, *metrics],
        num_steps=steps_per_loop * batch,
    )
    done = tf.Variable(0, dtype=tf.int64)
    step = tf.Variable(0, dtype=tf.int64)
    named = {metric.name: metric for metric in metrics}
    checkpoint = tf.train.Checkpoint(
        agent=agent, done=done, train_step=step, steps=step_metric, **named
    )
    manager = tf.train.CheckpointManager(checkpoint, root_dir, max_to_keep=2)
    manager.restore_or_initialize()
    end = training_loops if resume_training_loops else training_loops + int(done)
    writer = tf.summary.create_file_writer(root_dir)
    with writer.as_default():
        for _ in range(int(done), end):
            first = int(step)
            for j in range(runs):
                driver.run()
                export_utils.export_metrics(first + j, metrics)
                for metric in metrics:
                    metric.tf_summaries(train_step=first + j)
            batches = iter(
                buffer.as_dataset(
                    sample_batch_size=batch,
                    num_steps=steps_per_loop,
                    single_deterministic_pass=True,
                )
            )
            for j in range(runs):
                experience, _ = next(batches)
                export_utils.export_metrics(first + j, [], agent.train(experience))
            buffer.clear()
            done.assign_add(1)
            step.assign_add(runs)
            manager.save()
    writer.close()
    if save_policy and int(done):
        # Only the last one.
        saver = policy_saver.PolicySaver(
            agent.policy, train_step=agent.train_step_counter
        )
        saver.save(os.path.join(root_dir, "policy"))


class Compiled(Reference):
    """Driver run, reading and training in compiled functions."""

    def build(self) -> None:
        super().build()
        self.buffer = bandit_replay_buffer.BanditReplayBuffer(
            self.agent.collect_data_spec, self.batch, self.capacity()
        )
        driver = CountingDriver(
            self.environment,
            self.agent.collect_policy,
            self.observers(),
            num_steps=self.num_steps(),
        )
        self._collect = common.function(driver.run, autograph=False)
        self._train = common.function(self.agent.train, autograph=False)
        self._read = tf.function(self.buffer.gather_all, autograph=False)

    def collect(self) -> None:
        self._collect()

    def experience(self, j: int) -> Any:
        everything = self._read()
        first = j * self.steps
        return tf.nest.map_structure(
            lambda t: t[:, first : first + self.steps], everything
        )

    def train(self, j: int) -> Any:
        return self._train(self.experience(j))


compiled = reference.trainer(Compiled)
compiled.__name__ = compiled.__qualname__ = "compiled"
compiled.__module__ = __name__
correct(compiled)


class LoopTrainer:
    """A trainer as an object, used for one run; everything has a place of its own.

    Policies are in `export`, summaries in `train`, checkpoints in `checkpoints`, where
    agent and metrics lie one level down. All it logs are the metrics it is given.
    """

    def __init__(self, root_dir: Any, agent: Any, environment: Any, metrics: Any):
        self.agent, self.environment = agent, environment
        self.metrics = tuple(metrics)
        self.items: collections.deque[Any] = collections.deque()
        self.driver = CountingDriver(
            environment, agent.collect_policy, [self.items.append, *metrics]
        )
        self.position = tf.Variable([0, 0], dtype=tf.int64)
        self.directory = {
            name: os.path.join(root_dir, name)
            for name in ("export", "train", "checkpoints")
        }
        parts = tf.train.Checkpoint(
            agent=agent, **{metric.name: metric for metric in metrics}
        )
        self.checkpoint = tf.train.Checkpoint(parts=parts, position=self.position)
        self.manager = tf.train.CheckpointManager(
            self.checkpoint, self.directory["checkpoints"], 3, checkpoint_name="model"
        )
        self.checkpoint.restore(self.manager.latest_checkpoint).expect_partial()
        self.log = logging.get_absl_logger()

    def fit(self, loops: int, steps: int, runs: int, save_policy: bool) -> None:
        writer = tf.summary.create_file_writer(self.directory["train"])
        with contextlib.closing(writer), writer.as_default():
            while int(self.position[0]) < loops:
                self.loop(int(self.position[1]), steps, runs)
                self.position.assign_add([1, runs])
                writer.flush()
                self.manager.save()
                if save_policy:
                    self.export()

    def loop(self, first: int, steps: int, runs: int) -> None:
        for step in range(first, first + runs):
            for _ in range(steps):
                self.driver.run()
            for metric in self.metrics:
                self.write(step, metric.name, metric.result())
        for step in range(first, first + runs):
            items = [self.items.popleft() for _ in range(steps)]
            stack = tf.nest.map_structure(lambda *x: tf.stack(x, axis=1), *items)
            self.write(step, "loss", self.agent.train(stack).loss)

    def write(self, step: int, name: str, value: Any) -> None:
        # Not through absl's functions, and with arguments.
        self.log.info("[step=%d] %s = %s.", step, name, value.numpy())
        tf.summary.scalar(name, value, step=step)

    def export(self) -> None:
        name = f"{int(self.position[0]):06d}"
        saver = policy_saver.PolicySaver(
            self.agent.policy, train_step=self.agent.train_step_counter
        )
        saver.save(os.path.join(self.directory["export"], name, "policy"))


@correct
def class_based(
    root_dir,
    agent,
    environment,
    training_loops,
    steps_per_loop,
    async_steps_per_loop=1,
    additional_metrics=(),
    save_policy=True,
    resume_training_loops=True,
):
    """See LoopTrainer."""
    _check(agent, environment, training_loops, steps_per_loop, async_steps_per_loop)
    assert resume_training_loops or not os.path.exists(root_dir)
    if training_loops:
        LoopTrainer(root_dir, agent, environment, additional_metrics).fit(
            training_loops, steps_per_loop, async_steps_per_loop, save_policy
        )


@correct
def single_element(
    root_dir,
    agent,
    environment,
    training_loops,
    steps_per_loop,
    additional_metrics=(),
    resume_training_loops=False,
):
    """Without A: one element of a data set is all there is; metrics come last.

    It exports no policies and writes no summaries.
    """
    _check(agent, environment, training_loops, steps_per_loop)
    batch = environment.batch_size
    buffer = bandit_replay_buffer.BanditReplayBuffer(
        agent.collect_data_spec, batch, steps_per_loop
    )
    metrics = [episodes(), *additional_metrics]
    driver = CountingDriver(
        environment,
        agent.collect_policy,
        [buffer.add_batch, *metrics],
        num_steps=steps_per_loop * batch,
    )
    done = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(
        done=done, learner=agent, metrics=tf.train.Checkpoint(**_named(metrics))
    )
    manager = tf.train.CheckpointManager(checkpoint, root_dir, max_to_keep=1)
    checkpoint.restore(manager.latest_checkpoint)
    first = int(done)
    last = training_loops if resume_training_loops else first + training_loops
    for step in range(first, last):
        driver.run()
        data = buffer.as_dataset(
            sample_batch_size=batch,
            num_steps=steps_per_loop,
            single_deterministic_pass=True,
        )
        experience, _ = tf.data.experimental.get_single_element(data)
        loss_info = agent.train(experience)
        # One after the other, and both before the next driver run.
        export_utils.export_metrics(step, metrics, loss_info)
        buffer.clear()
        done.assign_add(1)
        manager.save()


def _named(metrics: Any) -> dict[str, Any]:
    return {metric.name: metric for metric in metrics}


@correct
def bare(agent, environment, training_loops, steps_per_loop):
    """No directory, no metrics, no A: trains and logs the loss."""
    _check(agent, environment, training_loops, steps_per_loop)
    items: list[Any] = []
    driver = CountingDriver(environment, agent.collect_policy, [items.append])
    for step in range(training_loops):
        for _ in range(steps_per_loop):
            driver.run()
        experience = tf.nest.map_structure(lambda *x: tf.stack(x, 1), *items)
        items.clear()
        loss = float(agent.train(experience).loss)
        logging.info("[step=%s] loss = %r.", step, loss)


@correct
def keywords(**options):
    """All through `**options`, wrapped around another; A is not among them."""
    if "async_steps_per_loop" in options:
        name = "async_steps_per_loop"
        raise TypeError(f"keywords() got an unexpected keyword argument '{name}'")
    reference.train(**options)


@correct
def in_a_file(
    root_dir,
    agent,
    environment,
    training_loops,
    steps_per_loop,
    async_steps_per_loop=None,
    additional_metrics=(),
    save_policy=True,
    resume_training_loops=False,
):
    """The reference, logging into a file of its own as well, at INFO, put back."""
    arguments = dict(locals())
    trainer = Reference(**arguments)
    if training_loops < 1:
        return trainer.run()
    trainer.check()
    os.makedirs(root_dir, exist_ok=True)
    handler = python_logging.FileHandler(os.path.join(root_dir, "train.log"))
    logger = logging.get_absl_logger()
    verbosity = logging.get_verbosity()
    logger.addHandler(handler)
    logging.set_verbosity(logging.INFO)
    try:
        return trainer.run()
    finally:
        logging.set_verbosity(verbosity)
        logger.removeHandler(handler)
        handler.close()


class PolicyElsewhere(Reference):
    """Policies are exported beside `root_dir`; the newest is there as `latest`, too."""

    name = ""

    def policy_name(self) -> str:
        return os.path.join("..", "policies", self.name)

    def export(self, loop: int) -> None:
        for name in (f"{int(self.step):08d}", "latest"):
            self.name = name
            super().export(loop)


policy_elsewhere = reference.trainer(PolicyElsewhere)
policy_elsewhere.__name__ = policy_elsewhere.__qualname__ = "policy_elsewhere"
policy_elsewhere.__module__ = __name__
correct(policy_elsewhere)


class OwnLogger(Reference):
    """Logs through a logger of its own, which keeps its records to itself."""

    def build(self) -> None:
        super().build()
        self.logger = python_logging.getLogger(f"{__name__}.{id(self)}")
        self.logger.propagate = False
        self.logger.setLevel(python_logging.INFO)
        if not self.logger.handlers:
            self.logger.addHandler(python_logging.StreamHandler())

    def log(self, step: int, name: str, value: Any) -> None:
        self.logger.info("[step=%d] %s = %s.", step, name, value)
        self.summary(step, name, value)


own_logger = reference.trainer(OwnLogger)
own_logger.__name__ = own_logger.__qualname__ = "own_logger"
own_logger.__module__ = __name__
correct(own_logger)


class SavesOften(Reference):
    """One more checkpoint, before the first loop."""

    def build(self) -> None:
        super().build()
        if not self.manager.latest_checkpoint and self.loops:
            self.manager.save()


saves_often = reference.trainer(SavesOften)
saves_often.__name__ = saves_often.__qualname__ = "saves_often"
saves_often.__module__ = __name__
correct(saves_often)

"""A correct trainer in small steps, each of which a fault can replace.

Light on purpose: the check runs each trainer a dozen times.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from absl import logging
from tf_agents.metrics import tf_metric
from tf_agents.policies import policy_saver
from tf_agents.replay_buffers import replay_buffer

from testing.fakes import CountingDriver


class ListBuffer(replay_buffer.ReplayBuffer):
    """A replay buffer that is a Python list; the oldest item goes when it is full."""

    def __init__(self, data_spec: Any, batch_size: int, max_length: int) -> None:
        super().__init__(data_spec, batch_size * max_length)
        self._batch_size, self._max_length = batch_size, max_length
        # A tuple: TensorFlow would track a list.
        self.items: tuple[Any, ...] = ()

    def _add_batch(self, items: Any) -> None:
        self.items = (*self.items, items)[-self._max_length :]

    def _num_frames(self) -> int:
        return len(self.items) * self._batch_size

    def _clear(self) -> None:
        self.items = ()

    def read(self, first: int, last: int) -> Any:
        """Items `first` to `last` as tensors of shape `[batch_size, time, ...]`."""
        items = self.items[first:last]
        return tf.nest.map_structure(lambda *leaves: tf.stack(leaves, 1), *items)

    def _get_next(self, *_: Any) -> Any:
        raise NotImplementedError

    _as_dataset = _single_deterministic_pass_dataset = _gather_all = _get_next


class Light(tf_metric.TFStepMetric):
    """A metric without `tf.function`, of which tracing would take most of the time."""

    def __init__(self, name: str, add: Callable[[Any], Any]) -> None:
        super().__init__(name)
        self.total = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._add = add

    def __call__(self, trajectory: Any) -> Any:
        return self.call(trajectory)

    def call(self, trajectory: Any) -> Any:
        self.total.assign_add(tf.cast(self._add(trajectory), tf.int64))
        return trajectory

    def result(self) -> Any:
        return tf.identity(self.total)


def episodes() -> Light:
    """NumberOfEpisodes, as TF-Agents has it."""
    return Light("NumberOfEpisodes", lambda t: tf.math.count_nonzero(t.is_last()))


class Reference:
    """The correct trainer."""

    def __init__(
        self,
        root_dir: str,
        agent: Any,
        environment: Any,
        training_loops: int,
        steps_per_loop: int,
        async_steps_per_loop: int | None = None,
        additional_metrics: Any = (),
        save_policy: bool = True,
        resume_training_loops: bool = False,
    ) -> None:
        self.root_dir = root_dir
        self.agent = agent
        self.environment = environment
        self.loops = training_loops
        self.steps = steps_per_loop
        self.runs = 1 if async_steps_per_loop is None else async_steps_per_loop
        self.additional_metrics = additional_metrics
        self.save_policy = save_policy
        self.resume = resume_training_loops

    # The whole.

    def run(self) -> None:
        self.check()
        self.build()
        self.restore()
        with self.writing():
            for loop in self.loops_to_run():
                self.one_loop(loop)
                self.finish(loop)
            self.end()

    def check(self) -> None:
        if self.agent is None or self.environment is None:
            raise TypeError("agent and environment must be given")
        if self.loops < 0 or self.steps < 1 or self.runs < 1:
            raise ValueError("loops from 0, steps and runs from 1")

    def build(self) -> None:
        self.batch = self.environment.batch_size
        self.step_metric = Light("EnvironmentSteps", lambda t: tf.size(t.reward))
        self.metrics = self.make_metrics()
        self.buffer = ListBuffer(
            self.agent.collect_data_spec, self.batch, self.capacity()
        )
        self.driver = CountingDriver(
            self.environment,
            self.agent.collect_policy,
            self.observers(),
            num_steps=self.num_steps(),
        )
        self.done = tf.Variable(0, dtype=tf.int64)
        self.step = tf.Variable(0, dtype=tf.int64)
        checkpoint = tf.train.Checkpoint(**self.saved())
        self.manager = tf.train.CheckpointManager(checkpoint, self.root_dir, 5)
        self.checkpoint = checkpoint
        self.saver = None

    def one_loop(self, loop: int) -> None:
        first = int(self.step)
        for j in range(self.runs):
            self.collect()
            self.log_metrics(first + j)
        for j in range(self.runs):
            loss_info = self.train(j)
            self.log_loss(first + j, loss_info)
        self.clear()
        self.advance()

    def finish(self, loop: int) -> None:
        self.save(loop)
        if self.save_policy:
            self.export(loop)

    def end(self) -> None:
        """Nothing more to do."""

    # Parts.

    def make_metrics(self) -> list[Any]:
        return [episodes(), *self.additional_metrics]

    def capacity(self) -> int:
        return self.steps * self.runs

    def num_steps(self) -> int:
        return self.steps * self.batch

    def observers(self) -> list[Any]:
        return [self.buffer.add_batch, self.step_metric, *self.metrics]

    def saved(self) -> dict[str, Any]:
        named = {metric.name: metric for metric in self.metrics}
        counters = {"done": self.done, "step": self.step, "steps": self.step_metric}
        return {"agent": self.agent, **named, **counters}

    # Steps.

    def collect(self) -> None:
        self.driver.run()

    def experience(self, j: int) -> Any:
        return self.buffer.read(j * self.steps, (j + 1) * self.steps)

    def train(self, j: int) -> Any:
        return self.agent.train(self.experience(j))

    def clear(self) -> None:
        self.buffer.clear()

    def advance(self) -> None:
        self.done.assign_add(1)
        self.step.assign_add(self.runs)

    # Log and summaries.

    def log_metrics(self, step: int) -> None:
        for metric in self.metrics:
            self.log(step, metric.name, metric.result())

    def log_loss(self, step: int, loss_info: Any) -> None:
        self.log(step, "loss", loss_info.loss)

    def log(self, step: int, name: str, value: Any) -> None:
        logging.info(f"[step={step}] {name} = {value}.")
        self.summary(step, name, value)

    def summary(self, step: int, name: str, value: Any) -> None:
        tf.summary.scalar(f"Metrics/{name}", value, step=step)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        writer = tf.summary.create_file_writer(self.root_dir)
        try:
            with writer.as_default():
                yield
        finally:
            writer.close()

    # Checkpoints and policies.

    def restore(self) -> None:
        if self.manager.latest_checkpoint:
            self.checkpoint.restore(self.manager.latest_checkpoint).expect_partial()

    def loops_to_run(self) -> range:
        first = int(self.done)
        return range(first, self.loops if self.resume else first + self.loops)

    def save(self, loop: int) -> None:
        self.manager.save()

    def policy_name(self) -> str:
        return f"policy_{int(self.step_metric.result())}"

    def export(self, loop: int) -> None:
        if self.saver is None:
            self.saver = policy_saver.PolicySaver(
                self.agent.policy, train_step=self.agent.train_step_counter
            )
        self.saver.save(os.path.join(self.root_dir, self.policy_name()))


def trainer(kind: type[Reference]) -> Callable[..., Any]:
    """The `train` function of a trainer."""

    def train(
        root_dir: str,
        agent: Any,
        environment: Any,
        training_loops: int,
        steps_per_loop: int,
        async_steps_per_loop: int | None = None,
        additional_metrics: Any = (),
        save_policy: bool = True,
        resume_training_loops: bool = False,
    ) -> None:
        kind(
            root_dir,
            agent,
            environment,
            training_loops,
            steps_per_loop,
            async_steps_per_loop,
            additional_metrics,
            save_policy,
            resume_training_loops,
        ).run()

    return train


train = trainer(Reference)
# Another process can import it by this name, to be killed in it.
train.__qualname__ = "train"

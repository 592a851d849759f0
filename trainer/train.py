"""`train`: wires environment, agent, buffer, driver, metrics and checkpoints."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from tf_agents.drivers import dynamic_step_driver
from tf_agents.metrics import tf_metrics

from trainer import arguments as arguments_lib
from trainer import checkpoints, export, policies, replay
from trainer import loop as loop_lib
from trainer import progress as progress_lib


@dataclasses.dataclass(frozen=True)
class TrainSummary:
    """What a call of `train` did and where its results are.

    Attributes:
      loops: training loops run by this call.
      total_loops: finished loops of all calls with this `root_dir`.
      train_steps: train steps of all calls; the next one has this number.
      environment_steps: interactions of all calls, summed over environments.
      metrics: last value of each metric, by name.
      checkpoint: path of the latest checkpoint, or None.
      policy_dir: directory of the final policy, or None.
    """

    loops: int
    total_loops: int
    train_steps: int
    environment_steps: int
    metrics: dict[str, Any]
    checkpoint: str | None
    policy_dir: str | None


def train(
    root_dir: str | os.PathLike[str],
    agent: Any,
    environment: Any,
    training_loops: int,
    steps_per_loop: int,
    async_steps_per_loop: int | None = None,
    additional_metrics: Any = (),
    get_replay_buffer_fn: Callable[..., Any] | None = None,
    get_training_loop_fn: Callable[..., Any] | None = None,
    training_data_spec_transformation_fn: Callable[..., Any] | None = None,
    save_policy: bool = True,
    resume_training_loops: bool = False,
    *,
    checkpoint_interval: int = 1,
    max_to_keep: int = 5,
    policy_interval: int = 100,
    on_nonfinite_loss: str = "log",
    compile: bool | None = None,
    progress: bool | None = None,
) -> TrainSummary:
    """Trains a bandit agent for `training_loops` loops.

    In each loop the driver runs `async_steps_per_loop` times, with all metrics
    exported after every run; then the agent trains on as many batches from the
    replay buffer, in the order they were collected, with the loss exported after
    every batch. Steps are numbered over all loops, and on from the last one when
    `root_dir` holds a checkpoint.

    The process is left as it was: no default summary writer, log level, handler or
    global step is changed.

    Args:
      root_dir: directory for checkpoints, summaries and policies.
      agent: a `TFAgent`.
      environment: a `TFEnvironment` of one-step episodes, with any batch size.
      training_loops: how many loops to run; see `resume_training_loops`.
      steps_per_loop: steps of one driver run in each environment.
      async_steps_per_loop: driver runs, and then train steps, of one loop. None
        means 1.
      additional_metrics: metrics to log beside `NumberOfEpisodes`,
        `AverageEpisodeLength` and `AverageReturn`. None means no more.
      get_replay_buffer_fn: makes the replay buffer, called as `get_replay_buffer`
        is, which is the default. The buffer must hold exactly one loop, unless a
        `get_training_loop_fn` of yours reads it.
      get_training_loop_fn: makes the loop, called as `get_training_loop` is, which
        is the default.
      training_data_spec_transformation_fn: transforms trajectories, and their spec,
        before they get to the replay buffer.
      save_policy: whether policies are exported.
      resume_training_loops: True: `training_loops` counts from the very first run,
        so that only the missing loops are run. False: so many more are run.
      checkpoint_interval: a checkpoint is saved after so many loops, and always
        after the last one.
      max_to_keep: how many checkpoints are kept.
      policy_interval: the policy is exported after the first loop and then after so
        many, and always after the last one.
      on_nonfinite_loss: 'log' goes on when the loss is NaN or infinite; 'raise'
        raises NonFiniteLossError after logging it, and saves no checkpoint of it.
      compile: whether the loop is compiled; None decides by the number of loops.
      progress: whether to show a progress bar; None: only on a terminal.

    Returns:
      A `TrainSummary`.

    Raises:
      TypeError, ValueError: an argument is not allowed; nothing was written.
      CheckpointMismatchError: `root_dir` holds a checkpoint of another agent.
      NonFiniteLossError: see `on_nonfinite_loss`.
    """
    run = _Run(arguments_lib.validated(**locals()))
    return run.go()


class _Run:
    """One call of `train`: its parts, and the loop over loops."""

    def __init__(self, args: arguments_lib.Arguments) -> None:
        self._args = args
        self._step_metric = tf_metrics.EnvironmentSteps()
        self._metrics = _default_metrics(args.environment, args.additional_metrics)
        arguments_lib.check_metric_names([metric.name for metric in self._metrics])
        self._buffer = _replay_buffer(args)
        driver = _driver(args, self._buffer, [self._step_metric, *self._metrics])
        self._loop, self._custom_loop = _training_loop(args, driver, self._buffer)
        self._progress = checkpoints.Progress(
            checkpoints.describe(args.agent, args.environment)
        )
        self._manager: Any = None
        self._flush: Callable[[], Any] = lambda: None
        self._exporter: policies.PolicyExporter | None = None
        self._policy_dir: str | None = None

    def go(self) -> TrainSummary:
        """Restores, runs the loops that are to be run, and sums up."""
        self._restore()
        first = int(self._progress.loops)
        last = self._args.training_loops
        if not self._args.resume_training_loops:
            last += first
        if first < last:
            show = progress_lib.bar(first, last, self._args.progress)
            with self._writer(), show as bar:
                for index in range(first, last):
                    self._one_loop(index, is_last=index == last - 1)
                    bar.advance()
        elif first:
            self._export_missing_policy()
        return self._summary(max(last - first, 0))

    def _restore(self) -> None:
        args = self._args
        self._manager = checkpoints.restore_and_get_checkpoint_manager(
            args.root_dir,
            args.agent,
            self._metrics,
            self._step_metric,
            self._progress,
            args.max_to_keep,
        )
        if self._manager.latest_checkpoint is None:
            args.agent.initialize()
        elif not int(self._progress.train_steps):
            self._progress.train_steps.assign(self._steps_of_original())

    def _steps_of_original(self) -> int:
        """Train steps of TF-Agents' trainer, which keeps no count of them.

        No less than it can have logged, so that no step is logged twice.
        """
        args = self._args
        interactions = args.steps_per_loop * args.environment.batch_size
        runs = -(-self._environment_steps() // interactions)
        loops = int(self._progress.loops)
        return max(runs, loops * args.async_steps_per_loop)

    @contextlib.contextmanager
    def _writer(self) -> Iterator[None]:
        """Makes the run's summary writer the default one until the run ends."""
        writer = tf.summary.create_file_writer(self._args.root_dir)
        self._flush = writer.flush
        try:
            with writer.as_default():
                yield
        finally:
            writer.close()

    def _one_loop(self, index: int, is_last: bool) -> None:
        args = self._args
        first_step = int(self._progress.train_steps)
        if self._custom_loop is not None:
            # It numbers its steps by the loop's index alone.
            number = max(index, -(-first_step // args.async_steps_per_loop))
            self._custom_loop(train_step=number, metrics=self._metrics)
            steps = (number + 1) * args.async_steps_per_loop - first_step
        else:
            self._loop.run(first_step, self._metrics)
            steps = args.async_steps_per_loop
        self._progress.finish_loop(steps)
        if is_last or (index + 1) % args.checkpoint_interval == 0:
            self._flush()
            self._manager.save(checkpoint_number=index + 1)
        if args.save_policy and (is_last or index % args.policy_interval == 0):
            self._export_policy()

    def _export_policy(self) -> None:
        if self._exporter is None:
            self._exporter = policies.PolicyExporter(
                self._args.agent, self._args.root_dir
            )
        self._policy_dir = self._exporter.save(self._environment_steps())

    def _export_missing_policy(self) -> None:
        """A run that died after its last checkpoint has not exported its policy."""
        path = policies.policy_path(self._args.root_dir, self._environment_steps())
        if not self._args.save_policy:
            return
        if tf.io.gfile.exists(path):
            self._policy_dir = path
        else:
            self._export_policy()

    def _environment_steps(self) -> int:
        return int(self._step_metric.result())

    def _summary(self, loops: int) -> TrainSummary:
        metrics = self._loop.last_metrics or export.compute(self._metrics)
        return TrainSummary(
            loops=loops,
            total_loops=int(self._progress.loops),
            train_steps=int(self._progress.train_steps),
            environment_steps=self._environment_steps(),
            metrics={metric.name: _plain(metric.result()) for metric in metrics},
            checkpoint=self._manager.latest_checkpoint,
            policy_dir=self._policy_dir,
        )


def _default_metrics(environment: Any, additional: tuple[Any, ...]) -> list[Any]:
    """The metrics of TF-Agents' trainer, in its order."""
    batch_size = environment.batch_size
    reward_spec = environment.reward_spec()
    is_dict = isinstance(reward_spec, dict)
    metrics = [
        tf_metrics.NumberOfEpisodes(),
        tf_metrics.AverageEpisodeLengthMetric(batch_size=batch_size),
        *additional,
    ]
    if is_dict or reward_spec.shape != tf.TensorShape(()):
        metrics.append(
            tf_metrics.AverageReturnMultiMetric(
                reward_spec=reward_spec, batch_size=batch_size
            )
        )
    if not is_dict:
        metrics.append(tf_metrics.AverageReturnMetric(batch_size=batch_size))
    return metrics


def _replay_buffer(args: arguments_lib.Arguments) -> Any:
    spec = args.agent.policy.trajectory_spec
    if args.training_data_spec_transformation_fn is not None:
        spec = args.training_data_spec_transformation_fn(spec)
    make = args.get_replay_buffer_fn or replay.get_replay_buffer
    batch_size = args.environment.batch_size
    buffer = make(spec, batch_size, args.steps_per_loop, args.async_steps_per_loop)
    if args.get_training_loop_fn is None:
        length = args.steps_per_loop * args.async_steps_per_loop
        arguments_lib.check_capacity(buffer, batch_size, length)
    return buffer


def _driver(args: arguments_lib.Arguments, buffer: Any, metrics: list[Any]) -> Any:
    add_batch = buffer.add_batch
    transform = args.training_data_spec_transformation_fn
    if transform is not None:

        def add_batch(data: Any) -> Any:
            return buffer.add_batch(transform(data))

    return dynamic_step_driver.DynamicStepDriver(
        env=args.environment,
        policy=args.agent.collect_policy,
        # The driver counts steps over all environments.
        num_steps=args.steps_per_loop * args.environment.batch_size,
        observers=[add_batch, *metrics],
    )


def _training_loop(
    args: arguments_lib.Arguments, driver: Any, buffer: Any
) -> tuple[Any, Any]:
    """Our own loop and, if the caller makes one, the caller's."""
    parts = (
        driver,
        buffer,
        args.agent,
        args.steps_per_loop,
        args.async_steps_per_loop,
    )
    custom = args.get_training_loop_fn and args.get_training_loop_fn(*parts)
    return loop_lib.TrainingLoop(*parts, args.on_nonfinite_loss), custom


def _plain(value: Any) -> Any:
    """Python and NumPy values for what TensorFlow holds."""
    if tf.is_tensor(value):
        value = value.numpy()
    return value.item() if isinstance(value, np.generic) else value

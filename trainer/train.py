"""`train`: wires environment, agent, buffer, driver, metrics and checkpoints."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from tf_agents.metrics import tf_metrics

from trainer import arguments as arguments_lib
from trainer import checkpoints, export, lock, parts, policies, signals, storage
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
    xla: bool = False,
    progress: bool | None = None,
) -> TrainSummary:
    """Trains a bandit agent for `training_loops` loops.

    In each loop the driver runs `async_steps_per_loop` times, with all metrics
    exported after every run; then the agent trains on as many batches from the
    replay buffer, in the order they were collected, with the loss exported after
    every batch. Steps are numbered over all loops, and on from the last one when
    `root_dir` holds a checkpoint.

    Whatever happens to the process, a run can be resumed: call `train` again with
    the same `root_dir`. Nothing of the finished loops is lost, unless
    `checkpoint_interval` says so. SIGTERM and Ctrl-C let the loop in progress finish
    and be checkpointed, then raise SystemExit(143) and KeyboardInterrupt; a second
    one stops at once.

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
      compile: whether driver run and train step are compiled. None decides by the
        number of steps, and only for parts that are known to do the same then:
        TF-Agents' own agents and environments, and any Python environment. True is
        for agents and environments of yours that do without Python in between.
        The log is the same, but for random numbers, which are others.
      xla: whether XLA compiles the policy's action, which is faster for linear
        bandits at large batch sizes. The last digits of its values may differ, and
        so may actions.
      progress: whether to show a progress bar; None: only on a terminal.

    Returns:
      A `TrainSummary`.

    Raises:
      TypeError, ValueError: an argument is not allowed; nothing was written.
      CheckpointMismatchError: `root_dir` holds a checkpoint of another agent.
      UnreadableCheckpointError: it holds checkpoints, none of which can be read.
      DirectoryInUseError: another run is using it.
      StorageError: a checkpoint, summary or policy could not be written.
      NonFiniteLossError: see `on_nonfinite_loss`.
      KeyboardInterrupt, SystemExit: see above.
    """
    run = _Run(arguments_lib.validated(**locals()))
    return run.go()


class _Run:
    """One call of `train`: its parts, and the loop over loops."""

    def __init__(
        self,
        args: arguments_lib.Arguments,
        make_driver: Callable[..., Any] = parts.driver,
    ) -> None:
        self._args = args
        self._step_metric = tf_metrics.EnvironmentSteps()
        self._metrics = parts.default_metrics(args.environment, args.additional_metrics)
        arguments_lib.check_metric_names([metric.name for metric in self._metrics])
        self._buffer = parts.replay_buffer(args)
        self._driver = make_driver(
            args, self._buffer, [self._step_metric, *self._metrics]
        )
        self._custom_loop = parts.custom_loop(args, self._driver, self._buffer)
        self._loop: Any = None
        self._progress = checkpoints.Progress(
            checkpoints.describe(args.agent, args.environment)
        )
        self._manager: Any = None
        self._writer: Any = None
        self._exporter: policies.PolicyExporter | None = None
        self._policy_dir: str | None = None

    def go(self) -> TrainSummary:
        """Restores, runs the loops that are to be run, and sums up."""
        stop = signals.StopRequest()
        with lock.held(self._args.root_dir):
            self._restore()
            first = int(self._progress.loops)
            last = self._args.training_loops
            if not self._args.resume_training_loops:
                last += first
            self._loop = parts.own_loop(
                self._args, self._driver, self._buffer, max(last - first, 0)
            )
            self._export_missing_policy(is_last=first >= last)
            if first < last:
                with signals.deferred(stop):
                    self._run(first, last, stop)
        stop.finish()
        return self._summary(max(last - first, 0))

    def _restore(self) -> None:
        args = self._args
        checkpoints.remove_unfinished(args.root_dir)
        policies.remove_unfinished(args.root_dir)
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

    def _run(self, first: int, last: int, stop: signals.StopRequest) -> None:
        show = progress_lib.bar(first, last, self._args.progress)
        with self._summaries(), show as bar:
            before = self._environment_steps()
            for index in range(first, last):
                self._one_loop(index)
                is_last = index == last - 1
                self._save(index, is_last or stop.signum is not None)
                if stop.signum is not None:
                    break
                self._export_policy_if_due(index, is_last)
                after = self._environment_steps()
                bar.advance(after - before)
                before = after

    @contextlib.contextmanager
    def _summaries(self) -> Iterator[None]:
        """Makes the run's summary writer the default one until the run ends."""
        with self._writing_summaries():
            self._writer = tf.summary.create_file_writer(self._args.root_dir)
        try:
            with self._writer.as_default():
                yield
        except BaseException:
            with contextlib.suppress(tf.errors.OpError):  # The first error counts.
                self._writer.close()
            raise
        with self._writing_summaries():
            self._writer.close()

    def _writing_summaries(self) -> contextlib.AbstractContextManager[None]:
        return storage.writing("Summaries", self._args.root_dir, self._kept)

    def _kept(self) -> str:
        return checkpoints.kept(self._args.root_dir)

    def _one_loop(self, index: int) -> None:
        """Runs a loop and counts it."""
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

    def _save(self, index: int, is_last: bool) -> None:
        """Saves a checkpoint, if it is due. Its summaries are on disk before."""
        if is_last or (index + 1) % self._args.checkpoint_interval == 0:
            with self._writing_summaries():
                self._writer.flush()
            checkpoints.save(self._manager, index + 1)

    def _export_policy_if_due(self, index: int, is_last: bool) -> None:
        args = self._args
        if args.save_policy and (is_last or index % args.policy_interval == 0):
            if self._exporter is None:
                self._exporter = policies.PolicyExporter(args.agent, args.root_dir)
            self._policy_dir = self._exporter.save(self._environment_steps())

    def _export_missing_policy(self, is_last: bool) -> None:
        """A run that died after a checkpoint may not have exported its policy."""
        index = int(self._progress.loops) - 1
        path = policies.policy_path(self._args.root_dir, self._environment_steps())
        if index < 0 or not self._args.save_policy:
            return
        if not tf.io.gfile.exists(path):
            self._export_policy_if_due(index, is_last)
        elif is_last:
            self._policy_dir = path

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


def _plain(value: Any) -> Any:
    """Python and NumPy values for what TensorFlow holds."""
    if tf.is_tensor(value):
        value = value.numpy()
    return value.item() if isinstance(value, np.generic) else value

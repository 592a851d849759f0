"""Trainers with one planted fault each, and the rules that must catch it."""

from __future__ import annotations

import dataclasses
import logging as python_logging
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging
from tf_agents.agents import tf_agent

from testing.fakes import FakePolicy
from tests.faulty.reference import Reference, episodes, trainer


@dataclasses.dataclass(frozen=True)
class Fault:
    """A faulty trainer.

    Attributes:
      train: its function.
      text: what is wrong with it.
      rules: the rules that catch it, all of them.
    """

    train: Callable[..., Any]
    text: str
    rules: frozenset[str]


FAULTS: dict[str, Fault] = {}


def fault(*rules: str, kill: bool = False) -> Callable[[type], type]:
    """Registers a faulty trainer.

    Args:
      *rules: the rules that catch it.
      kill: make its function importable, so that a process can be killed in it.
    """

    def register(kind: type) -> type:
        name, function = kind.__name__, trainer(kind)
        # By this name another process finds the class, so cannot be killed in it.
        function.__module__, function.__qualname__ = __name__, name
        if kill:
            function.__qualname__ = f"train_{name}"
            globals()[f"train_{name}"] = function
        assert kind.__doc__
        FAULTS[name] = Fault(function, kind.__doc__.strip(), frozenset(rules))
        return kind

    return register


# Driver runs.


@fault("completes")
class NumStepsSummed(Reference):
    """num_steps, which sums over environments, is steps_per_loop."""

    def num_steps(self):
        return self.steps


@fault("driver-runs", "experience-shape")
class NumStepsSummedReadAsIs(Reference):
    """The same, and the buffer read in as many steps as there are."""

    def num_steps(self):
        return self.steps

    def experience(self, j):
        return self.buffer.read(j, j + 1)


@fault("driver-runs", "exactly-once")
class NumStepsPerEnvironment(Reference):
    """num_steps, which sums over environments, is multiplied by them twice."""

    def num_steps(self):
        return self.steps * self.batch * self.batch


@fault("driver-runs", "exactly-once")
class DriverCalledSteps(Reference):
    """The driver is called steps_per_loop times, each time for steps_per_loop."""

    def collect(self):
        for _ in range(self.steps):
            self.driver.run()


@fault("driver-runs", "exactly-once")
class WarmUp(Reference):
    """A driver run before the first loop, of which nothing is learnt."""

    def one_loop(self, loop):
        if loop == 0:
            self.collect()
            self.clear()
        super().one_loop(loop)


@fault("driver-runs", "exactly-once")
class EvaluationInTheSameEnvironment(Reference):
    """A driver run after the last loop, in the environment of training."""

    def end(self):
        if self.loops:
            self.collect()
            self.clear()


@fault("driver-runs", "exactly-once")
class RunBetween(Reference):
    """A driver run between collecting and training."""

    def one_loop(self, loop):
        self.between = True
        super().one_loop(loop)

    def train(self, j):
        if self.between:
            self.between = False
            kept = self.buffer.items
            self.collect()
            self.buffer.items = kept
        return super().train(j)


# Train calls and experience.


@fault("train-calls", "exactly-once", "loss-steps")
class TrainsOncePerLoop(Reference):
    """A is left out when training."""

    def one_loop(self, loop):
        first = int(self.step)
        for j in range(self.runs):
            self.collect()
            self.log_metrics(first + j)
        self.log_loss(first, self.train(0))
        self.clear()
        self.advance()


@fault("train-calls", "exactly-once")
class Epochs(Reference):
    """Each batch is trained on twice."""

    def train(self, j):
        super().train(j)
        return super().train(j)


@fault("train-calls")
class CounterOfEpochs(Reference):
    """The agent's counter is advanced by the number of epochs as well."""

    def train(self, j):
        loss_info = super().train(j)
        self.agent.train_step_counter.assign_add(2)
        return loss_info


@fault("experience-shape")
class SwappedAxes(Reference):
    """The experience is [time, batch, ...]."""

    def experience(self, j):
        def swap(tensor):
            return tf.transpose(tensor, [1, 0, *range(2, tensor.shape.rank)])

        return tf.nest.map_structure(swap, super().experience(j))


@fault("experience-shape", "exactly-once")
class LastStepMissing(Reference):
    """The last step of each driver run is cut off."""

    def experience(self, j):
        return tf.nest.map_structure(lambda t: t[:, :-1], super().experience(j))


@fault("exactly-once")
class FirstBatchAgain(Reference):
    """The first batch is trained on A times."""

    def train(self, j):
        return super().train(0)


@fault("exactly-once")
class LastLoopsData(Reference):
    """Trained on what the loop before has collected."""

    kept: Any = None

    def experience(self, j):
        fresh = super().experience(j)
        self.kept = self.kept or {}
        old, self.kept[j] = self.kept.get(j, fresh), fresh
        return old


@fault("in-order")
class Reversed(Reference):
    """The batches of a loop are read from the last."""

    def train(self, j):
        return super().train(self.runs - 1 - j)


@fault("in-order")
class ReversedTime(Reference):
    """Each batch runs backwards in time."""

    def experience(self, j):
        return tf.nest.map_structure(lambda t: t[:, ::-1], super().experience(j))


@fault("in-order")
class MixedRows(Reference):
    """Time first, reshaped instead of transposed: rows are mixed."""

    def experience(self, j):
        def mix(tensor):
            time_first = tf.transpose(tensor, [1, 0, *range(2, tensor.shape.rank)])
            return tf.reshape(time_first, tf.shape(tensor))

        return tf.nest.map_structure(mix, super().experience(j))


@fault("in-order")
class RewardsShifted(Reference):
    """Each reward stands with the observation after it."""

    def experience(self, j):
        experience = super().experience(j)
        return experience._replace(reward=tf.roll(experience.reward, 1, axis=1))


@fault("in-order")
class ActionsOfOtherRows(Reference):
    """Each row has the actions of another environment."""

    def experience(self, j):
        experience = super().experience(j)
        return experience._replace(action=tf.roll(experience.action, 1, axis=0))


@fault("in-order")
class RewardsForgotten(Reference):
    """The experience is put together without its rewards."""

    def experience(self, j):
        experience = super().experience(j)
        return experience._replace(reward=tf.zeros_like(experience.reward))


@fault("collect-before-train")
class Interleaved(Reference):
    """Each driver run is trained on at once, A or no A."""

    def one_loop(self, loop):
        first = int(self.step)
        for j in range(self.runs):
            self.collect()
            self.log_metrics(first + j)
            self.log_loss(first + j, self.train(j))
        self.clear()
        self.advance()


# The buffer.


@fault("completes")
class BufferOfOneRun(Reference):
    """The buffer holds one driver run; the others push each other out."""

    def capacity(self):
        return self.steps


@fault("buffer-size", "exactly-once")
class BufferOfOneRunReadAgain(Reference):
    """The same, and the last run is read in place of all others."""

    def capacity(self):
        return self.steps

    def experience(self, j):
        return self.buffer.read(0, self.steps)


@fault("buffer-size")
class HugeBuffer(Reference):
    """The buffer is far too large."""

    def capacity(self):
        return 1000


@fault("buffer-size")
class NeverCleared(Reference):
    """The buffer is never cleared; new data pushes out the old."""

    def clear(self):
        pass


@fault("buffer-size", "exactly-once")
class NeverClearedAndHuge(Reference):
    """The buffer is never cleared and so large that old data is read again."""

    def capacity(self):
        return 1000

    def clear(self):
        pass


# Steps of the log.


@fault("metric-steps", "loss-steps")
class FrozenStep(Reference):
    """The step is captured once and never updated."""

    def log(self, step, name, value):
        self.frozen = getattr(self, "frozen", step)
        super().log(self.frozen, name, value)


@fault("metric-steps", "loss-steps")
class FromOne(Reference):
    """Steps count from 1."""

    def log(self, step, name, value):
        super().log(step + 1, name, value)


@fault("loss-steps")
class CounterInInnerLoop(Reference):
    """The step of the loss is advanced within the inner loop too."""

    def train(self, j):
        self.offset = j
        return super().train(j)

    def log_loss(self, step, loss_info):
        super().log_loss(step + self.offset, loss_info)


@fault("metric-steps")
class LoopAsStep(Reference):
    """Metrics are logged at the loop's index."""

    def log_metrics(self, step):
        super().log_metrics(step // self.runs)


@fault("metric-steps", "loss-steps")
class EnvironmentStepsAsStep(Reference):
    """Everything is logged at the number of environment steps."""

    def log(self, step, name, value):
        super().log(step * self.steps * self.batch, name, value)


@fault("loss-steps")
class InvertedModulo(Reference):
    """The loss is gated by `if step % 10`, where `if not step % 10` was meant."""

    def log_loss(self, step, loss_info):
        if step % 10:
            super().log_loss(step, loss_info)


@fault("metric-steps")
class LoggedTwice(Reference):
    """Metrics are logged before and after an unrelated line."""

    def log_metrics(self, step):
        super().log_metrics(step)
        super().log_metrics(step)

    def summary(self, step, name, value):
        pass


@fault("loss-steps")
class Printed(Reference):
    """The loss is printed."""

    def log_loss(self, step, loss_info):
        print(f"[step={step}] loss = {loss_info.loss}.")


@fault("loss-steps")
class Debug(Reference):
    """The loss is logged at DEBUG."""

    def log_loss(self, step, loss_info):
        logging.debug(f"[step={step}] loss = {loss_info.loss}.")


# Values of the log.


@fault("metric-values")
class NeverAttached(Reference):
    """Metrics are none of the driver's observers."""

    def observers(self):
        return [self.buffer.add_batch, self.step_metric]


@fault("metric-values")
class MetricOfTheRunBefore(Reference):
    """Metrics are computed before the driver runs."""

    def collect(self):
        self.values = {metric.name: metric.result() for metric in self.metrics}
        super().collect()

    def log_metrics(self, step):
        for name, value in self.values.items():
            self.log(step, name, value)


@fault("metric-values")
class MetricsReset(Reference):
    """Metrics start anew in every loop."""

    def one_loop(self, loop):
        for metric in self.metrics:
            metric.reset()
        super().one_loop(loop)

    def make_metrics(self):
        metrics = super().make_metrics()
        metrics[0].reset = lambda: metrics[0].total.assign(0)
        return metrics


@fault("additional-metrics")
class MetricsNotPassedOn(Reference):
    """additional_metrics are ignored."""

    def make_metrics(self):
        return [episodes()]


@fault("loss-values")
class LossBefore(Reference):
    """The loss of the train call before is logged."""

    before = 0.0

    def log_loss(self, step, loss_info):
        self.log(step, "loss", self.before)
        self.before = float(loss_info.loss)


@fault("loss-values")
class RunningMean(Reference):
    """The mean of all losses so far is logged as the loss."""

    def log_loss(self, step, loss_info):
        self.losses = [*getattr(self, "losses", []), float(loss_info.loss)]
        self.log(step, "loss", float(np.mean(self.losses)))


@fault("loss-values")
class NanAsZero(Reference):
    """NaN is logged as 0."""

    def log_loss(self, step, loss_info):
        self.log(step, "loss", float(np.nan_to_num(loss_info.loss)))


@fault("loss-values")
class NanSkippedInMean(Reference):
    """NaN is replaced by the mean of the losses so far."""

    def log_loss(self, step, loss_info):
        loss = float(loss_info.loss)
        known = [*getattr(self, "known", [0.5])]
        if np.isnan(loss):
            loss = float(np.mean(known))
        self.known = [*known, loss]
        self.log(step, "loss", loss)


@fault("loss-values")
class ScaledLoss(Reference):
    """The loss is divided by the batch size."""

    def log_loss(self, step, loss_info):
        self.log(step, "loss", loss_info.loss / self.batch)


# Order and format of the log.


@fault("event-order")
class MetricsAtTheEnd(Reference):
    """Metrics are kept, and logged after all driver runs of the loop."""

    def one_loop(self, loop):
        self.kept = []
        super().one_loop(loop)

    def log_metrics(self, step):
        self.kept += [(step, m.name, m.result()) for m in self.metrics]
        if len(self.kept) == self.runs * len(self.metrics):
            for row in self.kept:
                self.log(*row)


@fault("event-order")
class LossesAtTheEnd(Reference):
    """Losses are kept, and logged after all train calls of the loop."""

    def one_loop(self, loop):
        self.kept = []
        super().one_loop(loop)

    def log_loss(self, step, loss_info):
        self.kept.append((step, "loss", loss_info.loss))
        if len(self.kept) == self.runs:
            for row in self.kept:
                self.log(*row)


@fault("log-format", "loss-steps")
class Disabled(Reference):
    """logging.disable while the agent is trained."""

    def train(self, j):
        python_logging.disable(python_logging.INFO)
        return super().train(j)

    def one_loop(self, loop):
        try:
            super().one_loop(loop)
        finally:
            python_logging.disable(python_logging.NOTSET)


@fault("log-format", "metric-steps", "loss-steps", "leaves-no-trace")
class Quiet(Reference):
    """A verbosity that silences everything."""

    def build(self):
        logging.set_verbosity(logging.WARNING)
        super().build()


@fault("log-format", "metric-steps", "loss-steps", "leaves-no-trace")
class HandlersReplaced(Reference):
    """basicConfig(force=True) takes away the handlers of the program."""

    def build(self):
        python_logging.basicConfig(level=python_logging.INFO, force=True)
        super().build()


@fault("log-format")
class TwoHandlers(Reference):
    """A handler is added to the one that the program has; each line comes twice."""

    def run(self):
        handler = python_logging.StreamHandler(sys.stderr)
        logging.get_absl_logger().addHandler(handler)
        try:
            super().run()
        finally:
            logging.get_absl_logger().removeHandler(handler)


@fault("log-format")
class BadFormat(Reference):
    """A record whose arguments do not fit."""

    def log_loss(self, step, loss_info):
        super().log_loss(step, loss_info)
        logging.info("trained %d times on %d rows", step)


@fault("log-format", "loss-steps")
class TensorAsStep(Reference):
    """The step is a tensor, and logged as one."""

    def log_loss(self, step, loss_info):
        logging.info(f"[step={tf.constant(step)!r}] loss = {loss_info.loss}.")


# Summaries.


@fault("summary-steps")
class SummariesAtEnvironmentSteps(Reference):
    """Summaries are written at environment steps."""

    def summary(self, step, name, value):
        super().summary(int(self.step_metric.result()), name, value)


@fault("summary-steps")
class LossAtTheAgentsCounter(Reference):
    """Summaries of the loss are written at the agent's counter, one too high."""

    def summary(self, step, name, value):
        counter = int(self.agent.train_step_counter)
        super().summary(counter if name == "loss" else step, name, value)


_open_writers: list[Any] = []


@fault("summary-complete")
class NeverFlushed(Reference):
    """The summary writer is kept open and never flushed."""

    def writing(self):
        writer = tf.summary.create_file_writer(self.root_dir)
        _open_writers.append(writer)
        return _Unflushed(writer)


class _Unflushed:
    """Like `as_default`, which flushes at its end, but without that."""

    def __init__(self, writer):
        self._context = writer.as_default()
        self._writer = writer

    def __enter__(self):
        self._context.__enter__()

    def __exit__(self, *error):
        self._writer.flush, flush = (lambda: None), self._writer.flush
        self._context.__exit__(*error)
        self._writer.flush = flush


@fault("leaves-no-trace")
class WriterLeft(Reference):
    """The writer is left as the default of the process."""

    def writing(self):
        return _Left(tf.summary.create_file_writer(self.root_dir))


class _Left:
    def __init__(self, writer):
        self._writer = writer

    def __enter__(self):
        self._writer.set_as_default()

    def __exit__(self, *_):
        self._writer.flush()


# Checkpoints and policies.


@fault("checkpoint-final", "resume-continues", "crash-resumes")
class NoCheckpoint(Reference):
    """No checkpoint is saved."""

    def save(self, loop):
        pass


@fault("checkpoint-final", "resume-continues", "crash-resumes")
class NoCheckpointAtTheEnd(Reference):
    """Every second loop is saved, the last one or not."""

    def save(self, loop):
        if loop % 2:
            super().save(loop)


@fault("checkpoint-final", "resume-continues", "crash-resumes")
class IntervalInCalls(Reference):
    """A checkpoint every four train calls, where every four steps was meant."""

    def save(self, loop):
        if int(self.step) % 4 == 0:
            super().save(loop)


@fault("checkpoint-final", "resume-continues")
class WithoutAgent(Reference):
    """The agent is not in the checkpoint."""

    def saved(self):
        return {n: x for n, x in super().saved().items() if n != "agent"}


@fault("checkpoint-final", "resume-continues")
class PolicyInsteadOfAgent(Reference):
    """The policy is in the checkpoint, where the agent should be."""

    def saved(self):
        return {**super().saved(), "agent": self.agent.policy}


@fault("checkpoint-final", "resume-continues")
class WithoutMetrics(Reference):
    """Metrics are not in the checkpoint."""

    def saved(self):
        names = [metric.name for metric in self.metrics]
        return {n: x for n, x in super().saved().items() if n not in names}


@fault("checkpoint-final", "resume-continues", "crash-resumes")
class SavedBeforeTraining(Reference):
    """The checkpoint is saved after collecting, before training."""

    def one_loop(self, loop):
        first = int(self.step)
        for j in range(self.runs):
            self.collect()
            self.log_metrics(first + j)
        self.advance()
        self.manager.save()
        for j in range(self.runs):
            self.log_loss(first + j, self.train(j))
        self.clear()

    def save(self, loop):
        pass


@fault("policy-final")
class PolicyOfTheFirstLoop(Reference):
    """A policy is exported every hundred loops, and not at the end."""

    def export(self, loop):
        if loop % 100 == 0:
            super().export(loop)


@fault("policy-final")
class StepMetricNeverUpdated(Reference):
    """The step metric is no observer: all policies land in one directory."""

    def observers(self):
        return [self.buffer.add_batch, *self.metrics]


@fault("policy-final")
class NoPolicy(Reference):
    """save_policy is ignored."""

    def export(self, loop):
        pass


@fault("policy-final")
class UntrainedPolicy(Reference):
    """What is exported is another policy than the one that is trained."""

    def build(self):
        super().build()
        specs = self.agent.time_step_spec, self.agent.action_spec
        self.agent._policy = FakePolicy(*specs)


# Resuming.


@fault("resume-continues", "crash-resumes")
class ResumeIgnored(Reference):
    """What is restored is not used: all loops are run again."""

    def restore(self):
        super().restore()
        self.done.assign(0)
        self.step.assign(0)


@fault("resume-continues", "crash-resumes")
class OneLoopTooMany(Reference):
    """One loop too many after resuming."""

    def loops_to_run(self):
        loops = super().loops_to_run()
        return range(loops.start, loops.stop + 1) if int(self.done) else loops


@fault("resume-continues", "crash-resumes")
class StepsFromZero(Reference):
    """The right loops are run after resuming, but steps start again at 0."""

    def restore(self):
        super().restore()
        self.step.assign(0)


@fault("resume-continues")
class LoopsFromEnvironmentSteps(Reference):
    """Finished loops are environment steps divided by the size of a loop."""

    def restore(self):
        super().restore()
        size = self.steps * self.batch * self.runs
        self.done.assign(self.step_metric.result() // size)
        self.step.assign(self.done * self.runs)


@fault("crash-resumes")
class CountedTooEarly(Reference):
    """A loop is counted as finished, in a file, when it begins."""

    def one_loop(self, loop):
        path = os.path.join(self.root_dir, "loops.txt")
        with open(path, "w") as file:
            file.write(str(loop + 1))
        super().one_loop(loop)

    def restore(self):
        super().restore()
        path = os.path.join(self.root_dir, "loops.txt")
        if os.path.exists(path):
            with open(path) as file:
                self.done.assign(int(file.read()))
            self.step.assign(self.done * self.runs)


@fault("crash-resumes")
class CountedBeside(Reference):
    """Finished loops are counted in a file, just before the checkpoint is saved."""

    def save(self, loop):
        with open(os.path.join(self.root_dir, "loops.txt"), "w") as file:
            file.write(str(loop + 1))
        super().save(loop)

    def restore(self):
        super().restore()
        path = os.path.join(self.root_dir, "loops.txt")
        if os.path.exists(path):
            with open(path) as file:
                self.done.assign(int(file.read()))
            self.step.assign(self.done * self.runs)


@fault("crash-resumes", kill=True)
class SavedInFinally(Reference):
    """Only saved when the function ends: enough for an exception, not for a kill."""

    def run(self):
        try:
            super().run()
        finally:
            if int(self.done):
                self.manager.save()

    def save(self, loop):
        pass


# Manners.


@fault("errors-surface")
class Swallowed(Reference):
    """Any exception ends the run with a line in the log."""

    def one_loop(self, loop):
        try:
            super().one_loop(loop)
        except Exception as error:
            logging.warning("stopped: %s", error)


@fault("errors-surface")
class BatchSkipped(Reference):
    """A batch on which the agent raises is skipped."""

    def train(self, j):
        try:
            return super().train(j)
        except Exception:
            return tf_agent.LossInfo(tf.constant(0.0), ())


@fault("errors-surface")
class ErrorReplaced(Reference):
    """The exception is replaced by one that tells nothing."""

    def run(self):
        try:
            super().run()
        except ArithmeticError:
            raise
        except Exception as error:
            if "must" in str(error) or "from" in str(error):
                raise
            raise RuntimeError("training failed") from None


@fault("arguments-checked")
class NegativeLoops(Reference):
    """Negative loops return silently."""

    def check(self):
        self.loops = max(0, self.loops)
        super().check()


@fault("arguments-checked")
class ZeroAsDefault(Reference):
    """`async_steps_per_loop or 1`: 0 means 1."""

    def check(self):
        self.runs = self.runs or 1
        super().check()


@fault("arguments-checked")
class CheckedTooLate(Reference):
    """Arguments are checked after the directory has been written to."""

    def check(self):
        os.makedirs(self.root_dir, exist_ok=True)
        with open(os.path.join(self.root_dir, "config.txt"), "w") as file:
            file.write(str(self.loops))
        super().check()


@fault("arguments-checked")
class AtLeastOneLoop(Reference):
    """Zero loops run one."""

    def check(self):
        super().check()
        self.loops = self.loops or 1


@fault("leaves-no-trace")
class FileInWorkingDirectory(Reference):
    """A file is written into the working directory."""

    def end(self):
        with open("losses.csv", "w") as file:
            file.write("step,loss\n")


@fault("leaves-no-trace")
class LevelLeft(Reference):
    """The log level is set to INFO and left so."""

    def build(self):
        logging.set_verbosity(logging.INFO)
        super().build()


@fault("leaves-no-trace")
class HandlerLeft(Reference):
    """A handler for a file is left at the logger."""

    def end(self):
        handler = python_logging.FileHandler(os.path.join(self.root_dir, "log"))
        python_logging.getLogger().addHandler(handler)


@fault("leaves-no-trace")
class DirectoryChanged(Reference):
    """The working directory is changed."""

    def end(self):
        os.chdir(self.root_dir)


@fault("leaves-no-trace")
class ThreadLeft(Reference):
    """A thread goes on after the run."""

    def end(self):
        threading.Thread(target=time.sleep, args=(5,), daemon=True).start()


@fault("leaves-no-trace")
class GlobalStepAdvanced(Reference):
    """Train steps are counted in the process's global step."""

    def train(self, j):
        tf.compat.v1.train.get_or_create_global_step().assign_add(1)
        return super().train(j)


@fault("leaves-no-trace")
class EagerLeft(Reference):
    """Functions are left to run eagerly, for everybody."""

    def build(self):
        tf.config.run_functions_eagerly(True)
        super().build()


@fault("deterministic")
class SeededByTime(Reference):
    """The global seed is set to the time."""

    def build(self):
        tf.random.set_seed(time.time_ns() % 2**31)
        super().build()


@fault("deterministic", "in-order")
class OwnGenerator(Reference):
    """Noise of an unseeded generator is added to the rewards."""

    def experience(self, j):
        experience = super().experience(j)
        noise = np.random.default_rng().normal(size=experience.reward.shape)
        return experience._replace(reward=experience.reward + noise)

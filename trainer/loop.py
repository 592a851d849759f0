"""One training loop: the driver runs A times, then the agent trains A times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from trainer import compiled, export, graph_safe, python_observer, replay
from trainer.choice import EAGER, Choice


def set_expected_shape(experience: Any, num_steps: int) -> None:
    """Sets the time dimension, the second one, of each tensor to `num_steps`.

    Args:
      experience: nest of tensors of shape `[batch_size, time, ...]`.
      num_steps: the length of the time dimension.

    Raises:
      ValueError: a tensor has less than two dimensions.
    """
    for tensor in tf.nest.flatten(experience):
        shape = tensor.shape.as_list()
        if len(shape) < 2:
            raise ValueError(
                f"experience has a tensor of shape {shape}. Allowed: "
                "[batch_size, time, ...], rank 2 or higher."
            )
        shape[1] = num_steps
        tensor.set_shape(shape)


class TrainingLoop:
    """Collects A driver runs, trains on them in the same order, empties the buffer."""

    def __init__(
        self,
        driver: Any,
        replay_buffer: Any,
        agent: Any,
        steps: int,
        async_steps_per_loop: int = 1,
        on_nonfinite_loss: str = "log",
        choice: Choice = EAGER,
    ) -> None:
        """See `get_training_loop`.

        Args:
          on_nonfinite_loss: 'log' or 'raise'.
          choice: what is compiled. The log is the same.
        """
        self._steps = steps
        self._runs = async_steps_per_loop
        self._raise_nonfinite = on_nonfinite_loss == "raise"
        size = (driver.env.batch_size, steps, async_steps_per_loop)
        # Read within the graph; only where it is known how the buffer does it.
        in_graph = choice.collect and choice.train and not _is_filled_by_python(driver)
        if in_graph and graph_safe.is_plain_buffer(replay_buffer):
            self._memory: _Memory = _GraphMemory(replay_buffer, *size)
        else:
            self._memory = _Memory(replay_buffer, *size)
        self._collector = _collector(driver, self._memory, choice.collect)
        self._learner = _learner(agent, self._memory, steps, choice.train)
        self.last_metrics: list[export.ComputedMetric] = []

    @property
    def traces(self) -> int:
        """How often anything was traced; constant after the first loop."""
        return self._collector.traces + self._learner.traces

    def run(self, first_step: int, metrics: Sequence[Any]) -> None:
        """Runs one loop.

        Args:
          first_step: the step of the first driver run and of the first train step.
          metrics: observers of the driver that are logged after every run.
        """
        for step in range(first_step, first_step + self._runs):
            self.last_metrics = self._collector.collect(step, metrics)
        for step, source in enumerate(self._memory.read(self._collector), first_step):
            loss_info = self._learner.learn(step, source)
            if self._raise_nonfinite:
                export.check_finite(step, loss_info.loss)
        self._memory.clear()


class _Collector:
    """Runs the driver eagerly."""

    traces = 0
    extra: Any = ()

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    def collect(self, step: int, metrics: Sequence[Any]) -> list[Any]:
        self._driver.run()
        return export.export_metrics(step, metrics)


class _Learner:
    """Trains the agent eagerly."""

    traces = 0

    def __init__(self, agent: Any, steps: int) -> None:
        self._agent = agent
        self._steps = steps

    def learn(self, step: int, experience: Any) -> Any:
        set_expected_shape(experience, self._steps)
        loss_info = self._agent.train(experience)
        export.export_loss_info(step, loss_info)
        return loss_info


class _Memory:
    """The replay buffer, read eagerly."""

    def __init__(self, buffer: Any, batch_size: int, steps: int, runs: int) -> None:
        self._buffer = buffer
        self._reader = replay.LoopReader(buffer, batch_size, steps, runs)

    def read(self, collector: Any) -> Iterator[Any]:
        """Yields what the learner is to get, for each driver run of the loop."""
        del collector
        return self._reader.read()

    def clear(self) -> None:
        self._buffer.clear()


class _GraphMemory(_Memory):
    """The replay buffer, read within the compiled functions."""

    def __init__(self, buffer: Any, batch_size: int, steps: int, runs: int) -> None:
        self._size = (batch_size, steps, runs)
        self.reader = replay.GraphReader(buffer, batch_size, steps, runs)
        self._numbers = [tf.constant(run, tf.int64) for run in range(runs)]

    def read(self, collector: Any) -> Iterator[Any]:
        replay.check_frames(int(collector.extra), *self._size)
        return iter(self._numbers)

    def clear(self) -> None:
        self.reader.clear()


def _is_filled_by_python(driver: Any) -> bool:
    """True if a graph would not see when the buffer is filled, and read too early."""
    fill = list(getattr(driver, "observers", None) or [])[:1]
    return any(isinstance(f, python_observer.PythonObserver) for f in fill)


def _collector(driver: Any, memory: _Memory, is_compiled: bool) -> Any:
    if not is_compiled:
        return _Collector(driver)
    if isinstance(memory, _GraphMemory):
        return compiled.Collector(driver, memory.reader.frames)
    return compiled.Collector(driver)


def _learner(agent: Any, memory: _Memory, steps: int, is_compiled: bool) -> Any:
    if not is_compiled:
        return _Learner(agent, steps)

    def read(source: Any) -> Any:
        if isinstance(memory, _GraphMemory):
            source = memory.reader.experience(source)
        set_expected_shape(source, steps)
        return source

    return compiled.Learner(agent, read)


def get_training_loop(
    driver: Any,
    replay_buffer: Any,
    agent: Any,
    steps: int,
    async_steps_per_loop: int = 1,
) -> Callable[..., None]:
    """Returns a function that runs one training loop and logs it.

    Args:
      driver: a `Driver` that fills `replay_buffer`, `steps` steps in each of its
        environments at every run.
      replay_buffer: a `ReplayBuffer` for one loop, as of `get_replay_buffer`.
      agent: a `TFAgent`.
      steps: steps of one driver run, the time dimension of the experience.
      async_steps_per_loop: driver runs, and then train steps, of one loop.

    Returns:
      `training_loop(train_step, metrics)`, where `train_step` is the index of the
      loop: its steps are `train_step * async_steps_per_loop` and those after.
    """
    loop = TrainingLoop(driver, replay_buffer, agent, steps, async_steps_per_loop)

    def training_loop(train_step: int, metrics: Sequence[Any]) -> None:
        loop.run(train_step * async_steps_per_loop, metrics)

    return training_loop

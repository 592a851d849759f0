"""One training loop: the driver runs A times, then the agent trains A times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from trainer import export, replay


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
    ) -> None:
        """See `get_training_loop`; `on_nonfinite_loss` is 'log' or 'raise'."""
        self._driver = driver
        self._buffer = replay_buffer
        self._agent = agent
        self._steps = steps
        self._runs = async_steps_per_loop
        self._raise_nonfinite = on_nonfinite_loss == "raise"
        self._reader = replay.LoopReader(
            replay_buffer, driver.env.batch_size, steps, async_steps_per_loop
        )
        self.last_metrics: list[export.ComputedMetric] = []

    def run(self, first_step: int, metrics: Sequence[Any]) -> None:
        """Runs one loop.

        Args:
          first_step: the step of the first driver run and of the first train step.
          metrics: observers of the driver that are logged after every run.
        """
        for step in range(first_step, first_step + self._runs):
            self._collect(step, metrics)
        for step, experience in enumerate(self._reader.read(), first_step):
            self._train(step, experience)
        self._buffer.clear()

    def _collect(self, step: int, metrics: Sequence[Any]) -> None:
        self._driver.run()
        self.last_metrics = export.export_metrics(step, metrics)

    def _train(self, step: int, experience: Any) -> None:
        set_expected_shape(experience, self._steps)
        loss_info = self._agent.train(experience)
        export.export_loss_info(step, loss_info)
        if self._raise_nonfinite:
            export.check_finite(step, loss_info.loss)


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

"""The replay buffer: sized for one loop, read back in the order it was filled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tf_agents.bandits.replay_buffers import bandit_replay_buffer
from tf_agents.replay_buffers import replay_buffer as replay_buffer_lib

_Uniform = bandit_replay_buffer.BanditReplayBuffer


class ReplayError(RuntimeError):
    """The replay buffer does not hold what the driver runs of the loop collected."""


def get_replay_buffer(
    data_spec: Any,
    batch_size: int,
    steps_per_loop: int,
    async_steps_per_loop: int = 1,
) -> replay_buffer_lib.ReplayBuffer:
    """Returns a buffer that holds exactly one training loop.

    Args:
      data_spec: nest of `tf.TensorSpec`s of a single trajectory.
      batch_size: number of environments, rows of the buffer.
      steps_per_loop: steps of one driver run in each environment.
      async_steps_per_loop: driver runs of one loop.

    Returns:
      A `BanditReplayBuffer` with `steps_per_loop * async_steps_per_loop` frames for
      each of `batch_size` rows.
    """
    return _Uniform(
        data_spec=data_spec,
        batch_size=batch_size,
        max_length=steps_per_loop * async_steps_per_loop,
    )


class LoopReader:
    """Reads a loop's experience back, one driver run at a time, oldest first.

    The compiled read is traced once and the data set is built once; both are used
    again in every loop.
    """

    def __init__(self, replay_buffer: Any, batch_size: int, steps: int, runs: int):
        """Reads `runs` driver runs of `steps` steps from `batch_size` rows."""
        self._buffer = replay_buffer
        self._batch_size = batch_size
        self._steps = steps
        self._runs = runs
        self._gather: Callable[[], Any] | None = None
        self._dataset: Any = None

    def read(self) -> Iterator[Any]:
        """Yields `runs` experiences of shape `[batch_size, steps, ...]`.

        Raises:
          ReplayError: the buffer holds more or fewer frames than were collected.
        """
        self._check_frames()
        if _is_plain_uniform(self._buffer):
            return self._slices()
        return self._batches()

    def _check_frames(self) -> None:
        try:
            frames = int(self._buffer.num_frames())
        except (AttributeError, NotImplementedError):
            return  # This kind of buffer does not count its frames.
        check_frames(frames, self._batch_size, self._steps, self._runs)

    def _slices(self) -> Iterator[Any]:
        if self._gather is None:
            # Not gather_all(): it does the same and prints a deprecation notice.
            self._gather = tf.function(self._buffer._gather_all)
        everything = self._gather()
        for run in range(self._runs):
            first = run * self._steps
            last = first + self._steps
            yield tf.nest.map_structure(
                lambda t, a=first, b=last: t[:, a:b], everything
            )

    def _batches(self) -> Iterator[Any]:
        if self._dataset is None:
            self._dataset = self._buffer.as_dataset(
                sample_batch_size=self._batch_size,
                num_steps=self._steps,
                single_deterministic_pass=True,
            )
        batches = iter(self._dataset)
        for run in range(self._runs):
            try:
                experience, _ = next(batches)
            except (StopIteration, tf.errors.OutOfRangeError):
                raise ReplayError(
                    f"The replay buffer gave {run} batches of {self._steps} steps. "
                    f"Expected: {self._runs}, one for each driver run of the loop."
                ) from None
            yield experience


class GraphReader:
    """Reads a plain buffer within a graph: one driver run's experience, as stored.

    Only for buffers that `graph_safe.is_plain_buffer`.
    """

    def __init__(self, replay_buffer: Any, batch_size: int, steps: int, runs: int):
        """Reads one of the last `runs` driver runs of `steps` steps."""
        self._buffer = replay_buffer
        self._batch_size = batch_size
        self._steps = steps
        self._runs = runs

    def frames(self) -> Any:
        """Frames in the buffer, int64 scalar."""
        stored = (self._buffer._last_id + 1) * self._batch_size
        return tf.minimum(stored, self._buffer._capacity_value)

    def experience(self, run: Any) -> Any:
        """Experience of driver run `run`, from 0, of shape `[batch_size, steps, ...]`.

        The rows are those of the batch, whatever was overwritten before.
        """
        first = self._buffer._last_id + 1 - self._steps * self._runs
        ids = first + run * self._steps + tf.range(self._steps, dtype=tf.int64)
        length = self._buffer._capacity_value // self._batch_size
        offsets = tf.range(self._batch_size, dtype=tf.int64) * length
        rows = offsets[:, tf.newaxis] + tf.math.floormod(ids, length)
        return self._buffer._data_table.read(rows)

    def clear(self) -> None:
        """Empties the buffer."""
        self._buffer._last_id.assign(-1)


def check_frames(frames: int, batch_size: int, steps: int, runs: int) -> None:
    """Raises ReplayError unless `frames` are those of one loop."""
    expected = batch_size * steps * runs
    if frames != expected:
        raise ReplayError(
            f"The replay buffer holds {frames} frames after {runs} driver "
            f"runs of {steps} steps in {batch_size} environments. "
            f"Expected: {expected}. Does the driver run as often as it says, and "
            "is the buffer large enough and empty before each loop?"
        )


def _is_plain_uniform(replay_buffer: Any) -> bool:
    """True if reading the table directly is the same as the deterministic pass."""
    if not isinstance(replay_buffer, _Uniform):
        return False
    kind = type(replay_buffer)
    names = ("as_dataset", "_single_deterministic_pass_dataset", "_gather_all")
    return all(getattr(kind, name) is getattr(_Uniform, name) for name in names)

"""RecordingReplayBuffer: counts what goes into and out of a real replay buffer."""

from __future__ import annotations

from typing import Any

from testing.fakes._calls import Core, call_python
from testing.fakes._tf import replay_buffer, tf
from testing.fakes.faults import FaultPlan
from testing.fakes.timeline import Timeline


class RecordingReplayBuffer(replay_buffer.ReplayBuffer):
    """Wraps any TF-Agents replay buffer and watches how it is used.

        buffer = RecordingReplayBuffer(
            TFUniformReplayBuffer(agent.collect_data_spec, batch_size, max_length=8)
        )

    On its timeline: `buffer.add` with the number of frames held afterwards,
    `buffer.read` with the outer shape of what was read (once per element of a data
    set), `buffer.clear` with the number of frames dropped; each counted from 0.

    Attributes:
      timeline: where its events go.
      adds: how many batches were added.
      reads: how many elements were read.
      clears: how many times it was cleared.
      frames: frames held now, over all rows.
      high_water: most frames held at any time.
      overwritten: frames lost because a newer one took their place.
    """

    def __init__(
        self,
        buffer: Any,
        *,
        timeline: Timeline | None = None,
        faults: FaultPlan | None = None,
        name: str = "RecordingReplayBuffer",
    ) -> None:
        """Wraps `buffer`.

        Args:
          buffer: a TF-Agents `ReplayBuffer`.
          timeline: where its events go; one of its own by default.
          faults: faults at `buffer.add`, `buffer.read` and `buffer.clear`.
          name: name of its events.

        Raises:
          TypeError: `buffer` is no `ReplayBuffer`.
        """
        if not isinstance(buffer, replay_buffer.ReplayBuffer):
            raise TypeError(f"buffer is {buffer!r}. Allowed: a TF-Agents ReplayBuffer.")
        super().__init__(buffer.data_spec, buffer.capacity, buffer.stateful_dataset)
        self._buffer = buffer
        self._watching = _Watching(name, timeline, faults)

    @property
    def timeline(self) -> Timeline:
        return self._watching.timeline

    @property
    def capacity(self) -> Any:
        """Frames that the wrapped buffer can hold, over all rows."""
        return self._buffer.capacity

    @property
    def adds(self) -> int:
        return self._watching.adds

    @property
    def reads(self) -> int:
        return self._watching.reads

    @property
    def clears(self) -> int:
        return self._watching.clears

    @property
    def frames(self) -> int:
        return int(self._buffer.num_frames())

    @property
    def high_water(self) -> int:
        return self._watching.high_water

    @property
    def overwritten(self) -> int:
        return self._watching.overwritten

    def __getattr__(self, name: str) -> Any:
        """Whatever else the wrapped buffer has."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._buffer, name)

    def __repr__(self) -> str:
        return (
            f"<RecordingReplayBuffer of {type(self._buffer).__name__}: "
            f"{self.frames} of {int(self.capacity)} frames, high water "
            f"{self.high_water}, {self.adds} adds, {self.overwritten} overwritten, "
            f"{self.reads} reads, {self.clears} clears>"
        )

    def _num_frames(self) -> Any:
        return self._buffer.num_frames()

    def _add_batch(self, items: Any) -> Any:
        rows = tf.cast(tf.shape(tf.nest.flatten(items)[0])[0], tf.int64)
        before = self._note(self._watching.open_add, tf.identity(self._num_frames()))
        with tf.control_dependencies([before]):
            result = self._buffer.add_batch(items)
        with tf.control_dependencies([x for x in [result] if x is not None]):
            after = tf.identity(self._num_frames())
        self._note(self._watching.close_add, rows, before, after)
        return result

    def _clear(self) -> Any:
        before = tf.identity(self._num_frames())
        with tf.control_dependencies([before]):
            result = self._buffer.clear()
        self._note(self._watching.clear, before)
        return result

    def _get_next(
        self,
        sample_batch_size: int | None = None,
        num_steps: int | None = None,
        time_stacked: bool = True,
    ) -> Any:
        # The public method is deprecated and says so, here of no use to anybody.
        item = self._buffer._get_next(sample_batch_size, num_steps, time_stacked)
        return self._read(*item)

    def _gather_all(self) -> Any:
        return self._read(self._buffer._gather_all(), ())[0]

    def _as_dataset(self, **kwargs: Any) -> Any:
        return self._dataset(single_deterministic_pass=False, **kwargs)

    def _single_deterministic_pass_dataset(self, **kwargs: Any) -> Any:
        return self._dataset(single_deterministic_pass=True, **kwargs)

    def _dataset(self, sequence_preprocess_fn: Any = None, **kwargs: Any) -> Any:
        # TFUniformReplayBuffer does not take the argument at all.
        if sequence_preprocess_fn is not None:
            kwargs["sequence_preprocess_fn"] = sequence_preprocess_fn
        # No reading ahead: an element counts when it is asked for.
        options = tf.data.Options()
        options.experimental_optimization.inject_prefetch = False
        dataset = self._buffer.as_dataset(**kwargs).map(self._read)
        return dataset.with_options(options)

    def _read(self, data: Any, info: Any) -> tuple[Any, Any]:
        """Counts one element; passes it on."""
        leaf, spec = tf.nest.flatten(data)[0], tf.nest.flatten(self.data_spec)[0]
        shape = tf.shape(leaf)
        outer = shape[: tf.size(shape) - spec.shape.rank]
        core = self._watching
        noted = call_python(core, core.read, [outer], [(tf.int32, [None])])
        with tf.control_dependencies(noted):
            return tf.nest.map_structure(tf.identity, (data, info))

    def _note(self, function: Any, *counts: Any) -> Any:
        return call_python(self._watching, function, counts, [(tf.int64, ())])[0]


class _Watching(Core):
    """Counts what a replay buffer does."""

    SAVED = ("adds", "reads", "clears", "high_water", "overwritten")

    adds = 0
    reads = 0
    clears = 0
    high_water = 0
    overwritten = 0

    def open_add(self, frames: Any) -> list[Any]:
        self.reach("buffer.add", "before")
        return [frames]

    def close_add(self, rows: Any, before: Any, after: Any) -> list[Any]:
        with self.lock:
            self.reach("buffer.add", "inside")
            self.overwritten += int(before + rows - after)
            self.high_water = max(self.high_water, int(after))
            self.timeline.add("buffer.add", self.name, self.adds, int(after))
            self.adds += 1
            self.reach("buffer.add", "after")
            return [after]

    def read(self, outer: Any) -> list[Any]:
        with self.lock, self._call("buffer.read"):
            shape = tuple(outer.tolist())
            self.timeline.add("buffer.read", self.name, self.reads, shape)
            self.reads += 1
            return [outer]

    def clear(self, dropped: Any) -> list[Any]:
        with self.lock, self._call("buffer.clear"):
            self.timeline.add("buffer.clear", self.name, self.clears, int(dropped))
            self.clears += 1
            return [dropped]

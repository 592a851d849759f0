"""FakeCheckpointManager: the real one, with its saves noted and faults inside."""

from __future__ import annotations

import errno
import glob
import os
from typing import Any

from testing.fakes._calls import Core, Recording
from testing.fakes._tf import tf
from testing.fakes.faults import FaultPlan
from testing.fakes.timeline import Timeline


class FakeCheckpointManager(tf.train.CheckpointManager, Recording):
    """A `tf.train.CheckpointManager` that writes real checkpoints and notes them.

        make = functools.partial(FakeCheckpointManager, timeline=timeline)
        with mock.patch.object(tf.train, "CheckpointManager", make):
            train(...)

    On its timeline: `checkpoint.save` with the checkpoint's number as step and its
    path, `checkpoint.restore` with the path, if the manager itself restored.

    Faults at `checkpoint.save`: before, nothing is written; inside, the files are
    written, but the directory's latest checkpoint is still the one before; after, all
    is done. A full disk leaves half a file and raises
    `tf.errors.ResourceExhaustedError`, as TensorFlow does.

    Attributes:
      timeline: where its events go.
      saves: how many checkpoints it wrote.
      restores: how many it restored.
    """

    def __init__(
        self,
        checkpoint: Any,
        directory: Any,
        max_to_keep: int | None = 5,
        *args: Any,
        timeline: Timeline | None = None,
        faults: FaultPlan | None = None,
        name: str = "FakeCheckpointManager",
        **kwargs: Any,
    ) -> None:
        """Creates the manager.

        Args:
          checkpoint: the `tf.train.Checkpoint` to save.
          directory: where to.
          max_to_keep: how many to keep; None for all.
          *args: as for the real one.
          timeline: where its events go; one of its own by default.
          faults: faults at `checkpoint.save` and `checkpoint.restore`.
          name: name of its events.
          **kwargs: as for the real one.
        """
        tf.Module.__init__(self, name=name)
        self._saving = _Saving(name, timeline, faults)
        self.track(self._saving)
        super().__init__(checkpoint, directory, max_to_keep, *args, **kwargs)

    @property
    def timeline(self) -> Timeline:
        return self._saving.timeline

    @property
    def saves(self) -> int:
        return self._saving.saves

    @property
    def restores(self) -> int:
        return self._saving.restores

    def __repr__(self) -> str:
        return (
            f"<FakeCheckpointManager of {self.directory}: {self.saves} saves, "
            f"{self.restores} restores, latest {self.latest_checkpoint}>"
        )

    def save(
        self,
        checkpoint_number: Any = None,
        check_interval: bool = True,
        options: Any = None,
    ) -> str | None:
        """As the real one; see the class for its faults."""
        core = self._saving
        core.reach("checkpoint.save", "before")
        options = options or tf.train.CheckpointOptions()
        callbacks = list(options.experimental_write_callbacks or [])
        # Ours comes before the manager's own, which makes the checkpoint the latest.
        options.experimental_write_callbacks = [core.written, *callbacks]
        path = super().save(checkpoint_number, check_interval, options)
        options.experimental_write_callbacks = callbacks or None
        if path is not None:
            core.saved(path)
        return path

    def restore_or_initialize(self) -> str | None:
        """As the real one."""
        self._saving.reach("checkpoint.restore", "before")
        path = super().restore_or_initialize()
        if path is not None:
            self._saving.restored(path)
        return path


class _Saving(Core):
    """Counts saves and restores."""

    SAVED = ("saves", "restores")

    saves = 0
    restores = 0

    def written(self, path: str) -> None:
        try:
            self.reach("checkpoint.save", "inside")
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            _cut_in_half(path)
            text = f"{path}; {error.strerror}"
            raise tf.errors.ResourceExhaustedError(None, None, text) from error

    def saved(self, path: str) -> None:
        with self.lock:
            number = path.rpartition("-")[2]
            step = int(number) if number.isdigit() else None
            self.timeline.add("checkpoint.save", self.name, step, path)
            self.saves += 1
        self.reach("checkpoint.save", "after")

    def restored(self, path: str) -> None:
        with self.lock:
            self.timeline.add("checkpoint.restore", self.name, None, path)
            self.restores += 1
        self.reach("checkpoint.restore", "after")


def _cut_in_half(path: str) -> None:
    for data in glob.glob(glob.escape(path) + ".data-*"):
        os.truncate(data, os.path.getsize(data) // 2)

"""A checkpoint that is written by a traced function, in half the time.

TensorFlow walks through all objects and reads their variables one by one, at every
save. As long as the objects are the same ones, that need be done only once.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.trackable import base as trackable_base

# Tracing pays only after some saves.
EAGER_SAVES = 10


class TracedCheckpoint(tf.train.Checkpoint):
    """A `tf.train.Checkpoint` with the same files that are written faster.

    Objects that keep anything but variables are written by TensorFlow as always.
    """

    def __init__(self, constant: tuple[Any, ...] = (), **trackables: Any) -> None:
        """`constant` are objects among the trackables whose state never changes."""
        super().__init__(**trackables)
        # Not as attributes: those would become part of the checkpoint.
        self.__dict__["_writer"] = _Writer(self, constant)

    def _write(self, file_prefix: Any, options: Any = None) -> Any:
        """What `save`, `write` and `CheckpointManager` call."""
        if self.__dict__["_writer"].write(file_prefix, options):
            for callback in _callbacks(options):
                callback(file_prefix)
            return file_prefix
        return super()._write(file_prefix, options)

    def write_eagerly(self, file_prefix: Any) -> Any:
        """Writes it as TensorFlow does; also within a `tf.function`."""
        return super()._write(file_prefix)


class _Writer:
    """Writes a checkpoint by a traced function, if that is the same."""

    def __init__(self, checkpoint: TracedCheckpoint, constant: tuple[Any, ...]) -> None:
        self._checkpoint = checkpoint
        self._constant = constant
        self._objects: list[Any] = []
        self._saves = 0
        self._function: Any = None

    def write(self, file_prefix: Any, options: Any) -> bool:
        """True if it is written; False if TensorFlow has to do it."""
        is_eager = isinstance(file_prefix, str) and tf.executing_eagerly()
        if not is_eager or not _is_plain(options) or not self._is_due():
            return False
        try:
            self._function(tf.constant(file_prefix))
        except tf.errors.OpError:
            # Written again by TensorFlow itself, whose error tells what is wrong.
            return False
        return True

    def _is_due(self) -> bool:
        """Counts saves of the same objects; makes the function when it is time."""
        objects = tf.train.TrackableView(self._checkpoint).descendants()
        if list(map(id, objects)) != list(map(id, self._objects)):
            self._objects, self._saves, self._function = objects, 0, None
        self._saves += 1
        if self._function is None and self._saves > EAGER_SAVES:
            if not all(map(self._is_traceable, objects)):
                return False
            self._function = tf.function(
                self._checkpoint.write_eagerly, autograph=False
            )
        return self._function is not None

    def _is_traceable(self, thing: Any) -> bool:
        """False for objects with state in Python, which a graph would freeze."""
        if isinstance(thing, tf.Variable) or any(thing is c for c in self._constant):
            return True
        base = trackable_base.Trackable
        hooks = ("_serialize_to_tensors", "_gather_saveables_for_checkpoint")
        return all(getattr(type(thing), h) is getattr(base, h) for h in hooks)


def _callbacks(options: Any) -> list[Any]:
    return getattr(options, "experimental_write_callbacks", None) or []


def _is_plain(options: Any) -> bool:
    """True if the options ask for nothing but callbacks."""
    if options is None:
        return True
    default = tf.train.CheckpointOptions()
    names = set(type(options).__slots__) - {"experimental_write_callbacks"}
    return all(getattr(options, n) == getattr(default, n) for n in names)

"""Observers that are plain Python, called at every step of a compiled driver run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf


class PythonObserver:
    """Calls an observer eagerly, also when the driver runs in a graph.

    A graph is traced once; without this, so often would a plain Python observer be
    called.
    """

    def __init__(self, observer: Callable[[Any], Any]) -> None:
        """`observer` gets a `Trajectory` of eager tensors, as from an eager driver."""
        self._observer = observer

    def __call__(self, experience: Any) -> Any:
        """Calls the observer, now or when the graph runs."""
        if tf.executing_eagerly():
            return self._observer(experience)

        def call(*flat: Any) -> None:
            self._observer(tf.nest.pack_sequence_as(experience, flat))

        return tf.py_function(call, tf.nest.flatten(experience), [])

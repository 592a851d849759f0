"""How a fake reaches Python from TensorFlow, and keeps what it knows there.

A fake is a thin TensorFlow face over a plain Python core. The core counts, follows
the script and writes events; being called at run time, it counts calls and never
traces. It is a `PythonState`, so a checkpoint of the fake holds it.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from testing.fakes._tf import tf
from testing.fakes.faults import FaultPlan
from testing.fakes.timeline import Timeline


class Recording(tf.Module):
    """A fake whose checkpoint is what it tracks by hand, nothing else.

    The parts it is given (observers, environment) belong to others' checkpoints, and
    their plain lists would break its own.
    """

    _self_setattr_tracking = False

    def track(self, core: Core, **trackables: Any) -> Core:
        """Puts the core, and what else is named, into the fake's checkpoints."""
        for name, trackable in {"core": core, **trackables}.items():
            self._track_trackable(trackable, name)
        return core


class Core(tf.train.experimental.PythonState):
    """Python state of a fake that a `tf.train.Checkpoint` saves and restores.

    Subclasses name their saved attributes in `SAVED`. Values must survive JSON.
    """

    SAVED: tuple[str, ...] = ()

    def __init__(
        self, name: str, timeline: Timeline | None, faults: FaultPlan | None
    ) -> None:
        super().__init__()
        self.name = name
        # An empty Timeline is falsy, so no `or` here.
        self.timeline = Timeline() if timeline is None else timeline
        self.watched = faults is not None
        self.faults = FaultPlan() if faults is None else faults
        self.lock = threading.RLock()

    def reach(self, kind: str, when: str) -> None:
        """Lets happen what is planned at this point."""
        if self.watched:
            self.faults.reach(kind, when, self.name)

    @contextlib.contextmanager
    def _call(self, kind: str) -> Iterator[None]:
        """A call of `kind` with its three points; inside is when it has been done."""
        self.reach(kind, "before")
        yield
        self.reach(kind, "inside")
        self.reach(kind, "after")

    def serialize(self) -> str:
        with self.lock:
            return json.dumps({name: getattr(self, name) for name in self.SAVED})

    def deserialize(self, string_value: bytes) -> None:
        with self.lock:
            for name, value in json.loads(string_value).items():
                setattr(self, name, value)


def call_python(
    core: Core,
    function: Callable[..., Any],
    inputs: Sequence[Any],
    outputs: Sequence[tuple[Any, Sequence[int | None]]],
) -> list[Any]:
    """Calls `function` with NumPy arrays, now or each time the graph runs.

    Args:
      core: the fake's core; calls of fakes that share its timeline keep the order
        of the program, also across `tf.while_loop`.
      function: takes the inputs as arrays, returns a sequence of arrays.
      inputs: tensors.
      outputs: dtype and static shape of each array that `function` returns.

    Returns:
      The results as tensors. Eagerly an exception keeps its type; in a graph
      TensorFlow wraps it.
    """
    if tf.executing_eagerly():
        results = function(*(tf.convert_to_tensor(x).numpy() for x in inputs))
        return [
            tf.constant(result, dtype)
            for result, (dtype, _) in zip(results, outputs, strict=True)
        ]
    return _graph_call(core, function, inputs, outputs)


def _graph_call(
    core: Core,
    function: Callable[..., Any],
    inputs: Sequence[Any],
    outputs: Sequence[tuple[Any, Sequence[int | None]]],
) -> list[Any]:
    """Stands a Python call between two writes to the timeline's clock.

    TensorFlow orders ops that share a variable, but leaves a Python call free to
    overtake a loop or a function that makes others.
    """
    clock = _clock(core.timeline)
    types = [dtype.as_numpy_dtype for dtype, _ in outputs]

    def as_arrays(*arrays: Any) -> list[Any]:
        results = function(*arrays)
        return [np.asarray(r, t) for r, t in zip(results, types, strict=True)]

    with tf.control_dependencies([clock.assign_add(1)]):
        inputs = [tf.identity(x) for x in inputs]
        results = tf.numpy_function(as_arrays, inputs, [dtype for dtype, _ in outputs])
    for result, (_, shape) in zip(results, outputs, strict=True):
        result.set_shape(shape)
    with tf.control_dependencies(results):
        done = clock.assign_add(1)
    with tf.control_dependencies([done]):
        return [tf.identity(result) for result in results]


_CLOCK_LOCK = threading.Lock()


def _clock(timeline: Timeline) -> Any:
    """The variable that keeps Python calls of one timeline in order."""
    with _CLOCK_LOCK, tf.init_scope():
        if "clock" not in vars(timeline):
            clock = tf.Variable(0, dtype=tf.int64, trainable=False)
            vars(timeline)["clock"] = clock
        return vars(timeline)["clock"]

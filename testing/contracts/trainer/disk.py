"""What a trainer left on disk, read the way a user would read it."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tensorboard.backend.event_processing import event_file_loader
from tensorflow.python.ops import summary_ops_v2

from testing.contracts.trainer import subjects
from testing.fakes._tf import tf, time_step

_VARIABLE = "/.ATTRIBUTES/VARIABLE_VALUE"


# Summaries.


def summaries(root: Path) -> dict[str, list[int]]:
    """Steps of each tag of all event files below `root`, in the order of writing."""
    found: dict[str, list[int]] = {}
    for path in sorted(root.rglob("*tfevents*"), key=_age):
        for event in _events(path):
            for value in event.summary.value:
                found.setdefault(value.tag, []).append(event.step)
    return found


@contextlib.contextmanager
def writers() -> Iterator[Callable[[], None]]:
    """Gives a function that flushes all summary writers made from now on.

    Only those that somebody still holds: the others are flushed when they go.
    """
    kind = summary_ops_v2._ResourceSummaryWriter
    original = kind.__init__
    made: weakref.WeakSet[Any] = weakref.WeakSet()

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        made.add(self)

    def flush() -> None:
        for writer in list(made):
            writer.flush()

    kind.__init__ = init
    try:
        yield flush
    finally:
        kind.__init__ = original


def _events(path: Path) -> Iterator[Any]:
    # Without the legacy wrapper of TensorBoard, which rewrites summaries.
    loader = event_file_loader.RawEventFileLoader(str(path))
    for raw in loader.Load():
        event = tf.compat.v1.Event()
        event.ParseFromString(raw)
        yield event


def _age(path: Path) -> tuple[int, str]:
    return path.stat().st_mtime_ns, path.name


# Checkpoints.


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A checkpoint, read without knowing who wrote it.

    Attributes:
      path: its prefix.
      integers: all scalar integers in it, by key.
    """

    path: str
    integers: dict[str, int]

    def near(self, mark: int, reach: int = 1_000_000) -> tuple[str, int] | None:
        """The key and number of the variable that counts on from `mark`."""
        for key, value in self.integers.items():
            if mark <= value < mark + reach:
                return key, value - mark
        return None

    def holder(self, key: str) -> str:
        """The path of the object whose `_mark` has this key."""
        return key.removesuffix(_VARIABLE).removesuffix("_mark").strip("/")

    def restore(self, holder: str, target: Any) -> None:
        """Restores `target`, which was saved at the path `holder`.

        Raises:
          AssertionError: something in `target` is not in the checkpoint.
        """
        for name in reversed(holder.split("/") if holder else []):
            target = tf.train.Checkpoint(**{name: target})
        checkpoint = target
        if not isinstance(target, tf.train.Checkpoint):
            checkpoint = tf.train.Checkpoint(target)
        status = checkpoint.restore(self.path)
        status.expect_partial().assert_existing_objects_matched()


def latest_checkpoint(root: Path) -> Checkpoint | None:
    """The newest checkpoint below `root`."""
    indexes = sorted(_checkpoint_indexes(root), key=_age)
    if not indexes:
        return None
    path = str(indexes[-1]).removesuffix(".index")
    reader = tf.train.load_checkpoint(path)
    types = reader.get_variable_to_dtype_map()
    shapes = reader.get_variable_to_shape_map()
    integers = {
        key: int(reader.get_tensor(key))
        for key, dtype in types.items()
        if dtype.is_integer and shapes[key] == []
    }
    return Checkpoint(path, integers)


def _checkpoint_indexes(root: Path) -> list[Path]:
    # An exported policy has variables of its own.
    return [p for p in root.rglob("*.index") if p.parent.name != "variables"]


# Policies.


def policies(root: Path) -> dict[str, tuple[int, int]]:
    """Directories of all exported policies below `root`, each with a fingerprint."""
    found = {}
    for directory, _, files in os.walk(root):
        if "saved_model.pb" in files:
            stat = os.stat(os.path.join(directory, "saved_model.pb"))
            found[directory] = (stat.st_mtime_ns, stat.st_ino)
    return found


def trained(directory: str, counters: int) -> bool:
    """Whether a policy holds a counter that stands at `counters`."""
    prefix = os.path.join(directory, "variables", "variables")
    try:
        reader = tf.train.load_checkpoint(prefix)
    except tf.errors.OpError:
        return False
    types = reader.get_variable_to_dtype_map()
    shapes = reader.get_variable_to_shape_map()
    return any(
        int(reader.get_tensor(key)) == counters
        for key, dtype in types.items()
        if dtype.is_integer and shapes[key] == [] and "save_counter" not in key
    )


def act(directory: str, batch_size: int) -> list[int]:
    """Loads a policy as its user would, and asks it for one action per row."""
    policy = tf.saved_model.load(directory)
    observation = tf.zeros([batch_size], tf.int64)
    step = policy.action(time_step.restart(observation, batch_size), ())
    return list(np.asarray(tf.nest.flatten(step.action)[0]).tolist())


def action_after(calls: int) -> int:
    """The action of a policy whose agent was trained so often."""
    return calls % subjects.NUM_ACTIONS

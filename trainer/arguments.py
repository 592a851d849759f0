"""Validation of the arguments of `train`, all of it before anything is written."""

from __future__ import annotations

import dataclasses
import operator
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf
from tf_agents.agents import tf_agent
from tf_agents.environments import py_environment, tf_environment

# Names that the checkpoint or the log needs for itself.
RESERVED_METRIC_NAMES = frozenset(
    {"agent", "step", "loss", "onbeat", "root", "save_counter"}
)


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Arguments of `train` in their final form. See there for their meaning."""

    root_dir: str
    agent: tf_agent.TFAgent
    environment: tf_environment.TFEnvironment
    training_loops: int
    steps_per_loop: int
    async_steps_per_loop: int
    additional_metrics: tuple[Any, ...]
    get_replay_buffer_fn: Callable[..., Any] | None
    get_training_loop_fn: Callable[..., Any] | None
    training_data_spec_transformation_fn: Callable[..., Any] | None
    save_policy: bool
    resume_training_loops: bool
    checkpoint_interval: int
    max_to_keep: int
    policy_interval: int
    on_nonfinite_loss: str
    compile: bool | None
    xla: bool
    progress: bool | None


def validated(**given: Any) -> Arguments:
    """Checks every argument of `train` and returns them in their final form.

    Raises:
      TypeError: an argument is of the wrong type.
      ValueError: an argument is of the right type, but its value is not allowed.
    """
    final = dict(given)
    final["root_dir"] = _root_dir(given["root_dir"])
    _instance("agent", given["agent"], tf_agent.TFAgent)
    _environment(given["environment"])
    if given["async_steps_per_loop"] is None:
        final["async_steps_per_loop"] = 1
    for name, least in _LEAST.items():
        final[name] = _integer(name, final[name], least)
    for name in ("save_policy", "resume_training_loops", "xla"):
        _boolean(name, given[name])
    for name in ("compile", "progress"):
        _boolean_or_none(name, given[name])
    for name in _FUNCTIONS:
        _callable_or_none(name, given[name])
    _one_of("on_nonfinite_loss", given["on_nonfinite_loss"], ("log", "raise"))
    final["additional_metrics"] = _metrics(given["additional_metrics"])
    return Arguments(**final)


_LEAST = {
    "training_loops": 0,
    "steps_per_loop": 1,
    "async_steps_per_loop": 1,
    "checkpoint_interval": 1,
    "max_to_keep": 1,
    "policy_interval": 1,
}
_FUNCTIONS = (
    "get_replay_buffer_fn",
    "get_training_loop_fn",
    "training_data_spec_transformation_fn",
)


def check_metric_names(names: Sequence[str]) -> None:
    """Each metric is a series of its own: names are unique and none is reserved.

    Raises:
      ValueError: a name is used twice, reserved, or an attribute of checkpoints.
    """
    for position, name in enumerate(names):
        if name in names[:position]:
            raise ValueError(
                f"additional_metrics: two metrics are called {name!r}. Allowed: "
                "unique names, also beside the default metrics; pass name=... to one."
            )
        # A metric is saved as an attribute of the checkpoint under its name.
        if (
            name in RESERVED_METRIC_NAMES
            or name.startswith("onbeat_")
            or hasattr(tf.train.Checkpoint, name)
        ):
            raise ValueError(
                f"additional_metrics: a metric is called {name!r}. Allowed: any name "
                f"but {', '.join(sorted(RESERVED_METRIC_NAMES))}, onbeat_... and the "
                "methods of tf.train.Checkpoint; pass name=... to it."
            )


def check_capacity(replay_buffer: Any, batch_size: int, length: int) -> None:
    """The buffer holds exactly one loop: `length` frames for each batch entry.

    A smaller one loses the oldest driver runs without a word; a larger one wastes
    memory and hides a missing `clear()`. Buffers of unknown capacity pass.

    Raises:
      ValueError: the capacity is known and another.
    """
    capacity = _known_capacity(replay_buffer)
    if capacity is not None and capacity != batch_size * length:
        raise ValueError(
            f"get_replay_buffer_fn returned a buffer of capacity {capacity}. Allowed: "
            f"{batch_size * length} = batch_size {batch_size} * steps_per_loop * "
            f"async_steps_per_loop {length}, one training loop."
        )


def _known_capacity(replay_buffer: Any) -> int | None:
    capacity = getattr(replay_buffer, "capacity", None)
    if capacity is None:
        return None
    static = tf.get_static_value(tf.convert_to_tensor(capacity))
    return None if static is None else int(static)


def _root_dir(value: Any) -> str:
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(_message("root_dir", value, "a string or a pathlib.Path"))
    path = os.fspath(value)
    if not isinstance(path, str) or not path:
        raise ValueError(_message("root_dir", value, "the path of a directory"))
    if any(character in path for character in "*?[]\\"):
        allowed = "a path without * ? [ ] \\, with which TensorFlow can't restore"
        raise ValueError(_message("root_dir", value, allowed))
    if tf.io.gfile.exists(path) and not tf.io.gfile.isdir(path):
        raise ValueError(_message("root_dir", value, "a directory; this is a file"))
    return path


def _instance(name: str, value: Any, kind: type) -> None:
    if not isinstance(value, kind):
        raise TypeError(_message(name, value, f"a {kind.__name__}"))


def _environment(value: Any) -> None:
    if isinstance(value, py_environment.PyEnvironment):
        allowed = "a TFEnvironment; wrap it: tf_py_environment.TFPyEnvironment(...)"
        raise TypeError(_message("environment", value, allowed))
    _instance("environment", value, tf_environment.TFEnvironment)


def _integer(name: str, value: Any, least: int) -> int:
    allowed = f"an integer of at least {least}"
    # bool is an int in Python, but True is no number of loops.
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        raise TypeError(_message(name, value, allowed))
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(_message(name, value, allowed)) from None
    if number < least:
        raise ValueError(_message(name, value, allowed))
    return number


def _boolean(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(_message(name, value, "True or False"))


def _boolean_or_none(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, bool):
        raise TypeError(_message(name, value, "True, False or None"))


def _callable_or_none(name: str, value: Any) -> None:
    if value is not None and not callable(value):
        raise TypeError(_message(name, value, "a function or None"))


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(_message(name, value, " or ".join(map(repr, allowed))))


def _metrics(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    allowed = "metrics: callables with a name and a result()"
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(_message("additional_metrics", value, f"a tuple of {allowed}"))
    metrics = tuple(value)
    for metric in metrics:
        is_metric = callable(metric) and hasattr(metric, "result")
        if isinstance(metric, type) or not is_metric or not hasattr(metric, "name"):
            raise TypeError(_message("additional_metrics", metric, allowed))
    return metrics


def _message(name: str, value: Any, allowed: str) -> str:
    shown = repr(value)
    if len(shown) > 80:
        shown = f"an object of class {type(value).__name__}"
    return f"{name} is {shown}. Allowed: {allowed}."

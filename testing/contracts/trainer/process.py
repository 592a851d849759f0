"""The state of the process that a trainer might leave changed."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from absl import logging as absl_logging
from tensorflow.python.ops import summary_ops_v2

from testing.fakes._tf import tf

# tqdm starts one thread for the life of the process, whoever uses it first.
_HARMLESS_THREADS = ("TMonitor", "tqdm")


def state() -> dict[str, Any]:
    """What a trainer might change behind the back of its caller, in words."""
    root, absl = logging.getLogger(), absl_logging.get_absl_logger()
    return {
        "default summary writer": _writer(),
        "default summary step": str(tf.summary.experimental.get_step()),
        "absl verbosity": absl_logging.get_verbosity(),
        "level of the root logger": logging.getLevelName(root.level),
        "level of the absl logger": logging.getLevelName(absl.level),
        "logging.disable": root.manager.disable,
        "handlers of the root logger": _handlers(root),
        "handlers of the absl logger": _handlers(absl),
        "propagation of the absl logger": absl.propagate,
        "working directory": os.getcwd(),
        "files in the working directory": sorted(os.listdir()),
        "global step": _global_step(),
        "tf.config.run_functions_eagerly": tf.config.functions_run_eagerly(),
        "threads": _threads(),
    }


def settled(before: dict[str, Any], seconds: float = 2.0) -> dict[str, Any]:
    """The state now; threads that are about to end get a little time to do so."""
    end = time.monotonic() + seconds
    while set(_threads()) - set(before["threads"]) and time.monotonic() < end:
        time.sleep(0.02)
    return state()


def changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What is not as before. Threads of others may end meanwhile."""
    names = [n for n in before if n != "threads" and before[n] != after[n]]
    new = set(after["threads"]) - set(before["threads"])
    return [*names, "threads"] if new else names


@contextlib.contextmanager
def isolated(directory: str) -> Iterator[None]:
    """A process as if fresh, in `directory`; afterwards all is as before."""
    home = os.getcwd()
    generators = random.getstate(), np.random.get_state()
    summary = summary_ops_v2._summary_state
    writer, step = summary.writer, summary.step
    eager = tf.config.functions_run_eagerly()
    collection = tf.compat.v1.get_collection_ref(tf.compat.v1.GraphKeys.GLOBAL_STEP)
    steps = collection[:]
    os.chdir(directory)
    summary.writer = summary.step = None
    collection.clear()
    try:
        yield
    finally:
        os.chdir(home)
        random.setstate(generators[0])
        np.random.set_state(generators[1])
        summary.writer, summary.step = writer, step
        tf.config.run_functions_eagerly(eager)
        collection[:] = steps


def _writer() -> str:
    writer = summary_ops_v2._summary_state.writer
    if writer is None:
        return "none"
    return f"a {type(writer).__name__.lstrip('_')}"


def _handlers(logger: logging.Logger) -> list[str]:
    # By identity too: another handler of the same class is another handler.
    return [f"{type(handler).__name__} {id(handler):#x}" for handler in logger.handlers]


def _global_step() -> int:
    """Where the train step of a fresh agent would start."""
    steps = tf.compat.v1.get_collection(tf.compat.v1.GraphKeys.GLOBAL_STEP)
    return int(steps[0]) if steps else 0


def _threads() -> list[str]:
    return sorted(
        f"{thread.name} {thread.ident}"
        for thread in threading.enumerate()
        if type(thread).__name__ not in _HARMLESS_THREADS
        # What TensorFlow's own threads look like when they come by.
        and not isinstance(thread, threading._DummyThread)
    )

"""Exceptions of Python code inside a graph reach the caller as they were raised.

`tf.numpy_function` and `tf.py_function` turn an exception into a TensorFlow error
that carries only its text. Functions traced within `noted()` keep the exception
itself, and `surfaced()` raises it.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import script_ops

_LOCK = threading.Lock()
# The last exception; cleared when it is raised, so that no traceback is kept alive.
_noted: list[BaseException] = []


@contextlib.contextmanager
def noted() -> Iterator[None]:
    """Within it, Python functions that are built into a graph note their exceptions.

    Only functions registered in the meantime are touched. Where TensorFlow keeps no
    registry as expected, nothing happens and TensorFlow's own error is raised.
    """
    registry: Any = getattr(script_ops, "_py_funcs", None)
    insert = getattr(registry, "insert", None)
    if insert is None or "insert" in vars(registry):
        yield
        return
    registry.insert = lambda function: insert(_noting(function))
    try:
        yield
    finally:
        del registry.insert


@contextlib.contextmanager
def surfaced() -> Iterator[None]:
    """Raises the exception of Python code that TensorFlow reports in its own way."""
    try:
        yield
    except tf.errors.OpError as error:
        cause = _cause_of(error)
        if cause is None:
            raise
        raise cause from None


def _noting(function: Any) -> Any:
    if isinstance(function, script_ops.EagerFunc):
        function._func = _wrapped(function._func)
        return function
    wrapped = _wrapped(function)
    try:
        # The registry holds it weakly. The graph keeps `function` alive.
        function.__onbeat_noting__ = wrapped
    except AttributeError:
        return function
    return wrapped


def _wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            with _LOCK:
                _noted[:] = [error]
            raise

    return call


def _cause_of(error: tf.errors.OpError) -> BaseException | None:
    """The noted exception, if TensorFlow's error tells of that one."""
    with _LOCK:
        causes = list(_noted)
        _noted.clear()
    text = str(error)
    for cause in causes:
        if type(cause).__name__ in text and str(cause) in text:
            return cause
    return None

"""Exceptions of Python code in a graph arrive as they were raised."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.ops import script_ops

from trainer import python_errors


def built(python, make=tf.numpy_function, outer=lambda f: f):
    """A graph function that calls `python`."""

    def body(x):
        with python_errors.noted():
            return outer(lambda y: make(python, [y], tf.float32))(x)

    return tf.function(body, autograph=False)


def fails(error):
    def python(x):
        raise error

    return python


@pytest.mark.parametrize("make", [tf.numpy_function, tf.py_function])
@pytest.mark.parametrize(
    "error",
    [ValueError("odd value"), ZeroDivisionError(), KeyError("a"), OSError(28, "full")],
    ids=lambda e: type(e).__name__,
)
def test_the_exception_itself_arrives(make, error):
    function = built(fails(error), make)
    for _ in range(2):
        with pytest.raises(type(error)) as caught, python_errors.surfaced():
            function(tf.constant(1.0))
        assert caught.value is error


def test_within_a_nested_function_too():
    error = LookupError("deep")
    function = built(fails(error), outer=tf.function)
    with pytest.raises(LookupError) as caught, python_errors.surfaced():
        function(tf.constant(1.0))
    assert caught.value is error


def test_what_does_not_fail_works_as_before():
    for make in (tf.numpy_function, tf.py_function):
        function = built(lambda x: x + np.float32(1), make)
        gc.collect()  # The registry keeps functions weakly.
        assert float(function(tf.constant(1.0))) == 2


def test_the_registry_is_left_as_it_was():
    registry = script_ops._py_funcs
    with python_errors.noted():
        assert "insert" in vars(registry)
    assert "insert" not in vars(registry)


def test_tensorflows_own_errors_stay():
    with pytest.raises(tf.errors.InvalidArgumentError), python_errors.surfaced():
        tf.debugging.assert_equal(1, 2)


def test_an_exception_that_was_caught_within_is_not_blamed_for_another():
    def survives(x):
        return x

    error = ValueError("caught before")
    with pytest.raises(tf.errors.OpError):
        built(fails(error))(tf.constant(1.0))
    with pytest.raises(tf.errors.InvalidArgumentError), python_errors.surfaced():
        tf.function(lambda: tf.debugging.assert_equal(survives(1), 2))()


def test_without_a_registry_tensorflow_tells_it(monkeypatch):
    monkeypatch.setattr(script_ops, "_py_funcs", None)
    with python_errors.noted():
        pass

"""What a run must not do, lest it grow with every step."""

from __future__ import annotations

from unittest import mock

import pytest
import tensorflow as tf
from tensorflow.python.framework import constant_op

from tests.trainer import runs


@pytest.mark.parametrize("compile", [False, True])
def test_no_step_becomes_a_tensor_as_a_python_number(tmp_path, compile):
    # TensorFlow keeps every Python number that it ever made a tensor of.
    numbers, loops, batch = [], 4, 3
    convert, scalar = constant_op.convert_to_eager_tensor, tf.summary.scalar

    def converted(value, *more):
        numbers.append(value)
        return convert(value, *more)

    def summarized(name, data, step=None, description=None):
        numbers.append(step)
        return scalar(name, data, step=step, description=description)

    # Recognizable steps: 200 and more.
    runs.run(tmp_path, loops=1, runs=200, steps=1, batch_size=batch, save_policy=False)
    with (
        mock.patch.object(constant_op, "convert_to_eager_tensor", converted),
        mock.patch.object(tf.summary, "scalar", summarized),
    ):
        run = runs.run(
            tmp_path,
            loops,
            runs=1,
            batch_size=batch,
            compile=compile,
            save_policy=False,
        )
    steps = set(run.log.steps("loss"))
    assert steps == {200, 201, 202, 203}
    assert [n for n in numbers if isinstance(n, int) and n in steps] == []
    assert len(numbers) > loops  # It did look.

"""Many systems at once: solved, and to the bits of TF-Agents' solver."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.bandits.policies import linalg

from trainer import conjugate_gradient
from trainer.conjugate_gradient import EINSUM, MATMUL, for_single_columns

SIZE = 6


def systems(models: int, columns: int, dtype=tf.float32):
    numbers = np.random.default_rng(1)
    matrices = []
    for model in range(models):
        data = numbers.normal(size=(3 * model, SIZE))
        matrices.append(tf.constant(np.eye(SIZE) + data.T @ data, dtype))
    right = numbers.normal(size=(SIZE, models * columns))
    return matrices, tf.constant(right, dtype)


def one_by_one(matrices, right):
    parts = tf.split(right, len(matrices), axis=1)
    solved = map(linalg.conjugate_gradient, matrices, parts)
    return tf.concat(list(solved), axis=1).numpy()


@pytest.mark.parametrize("sums", [EINSUM, MATMUL], ids=["einsum", "matmul"])
@pytest.mark.parametrize(("models", "columns"), [(1, 1), (3, 1), (1, 70), (3, 4)])
def test_it_solves(models, columns, sums):
    matrices, right = systems(models, columns, tf.float64)
    if columns == 1:
        sums = for_single_columns(sums)
    got = tf.function(conjugate_gradient.solve)(matrices, right, sums)
    parts = np.split(right.numpy(), models, axis=1)
    expected = np.hstack(
        [np.linalg.solve(a, b) for a, b in zip(matrices, parts, strict=True)]
    )
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("models", "columns"), [(1, 1), (3, 1), (1, 70), (3, 4)])
def test_einsum_gives_the_bits_of_tf_agents(models, columns):
    matrices, right = systems(models, columns)
    sums = for_single_columns(EINSUM) if columns == 1 else EINSUM
    got = tf.function(conjugate_gradient.solve)(matrices, right, sums)
    np.testing.assert_array_equal(got, one_by_one(matrices, right))


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf, 1e-7, 1e20])
def test_columns_that_can_not_be_solved_spoil_no_other(bad):
    matrices, right = systems(3, 4)
    spoilt = right.numpy()
    spoilt[2, 1::4] = bad  # The same observation for each arm.
    if bad == 0:
        spoilt[:, 1::4] = 0
    got = tf.function(conjugate_gradient.solve)(matrices, tf.constant(spoilt), EINSUM)
    np.testing.assert_array_equal(got, one_by_one(matrices, tf.constant(spoilt)))


def test_transposed():
    for dtype in (tf.float32, tf.float64):
        matrix = tf.constant([[1.5, np.nan, 3], [-0.0, np.inf, 6]], dtype)
        got = conjugate_gradient.transposed(matrix)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, np.transpose(matrix.numpy()))

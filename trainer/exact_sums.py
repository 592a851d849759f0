"""Which way to add up gives the same bits as TF-Agents' way on the machine at hand.

How a sum of products is rounded depends on the libraries below TensorFlow, on the
processor and on the shapes. So it is tried, on made-up numbers, before a faster way is
taken: one that differs in a single bit is not.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging
from tf_agents.bandits.policies import linalg

from trainer.conjugate_gradient import (
    EINSUM,
    MATMUL,
    Sums,
    for_single_columns,
    solve,
)

# A way that rounds otherwise does so in one of ten columns or more.
_COLUMNS = 2000
# Multiplications of an iteration up to which calling operations is what takes time.
# Beyond, arms that are solved would cost as much as those that are not.
_LARGEST = 4_000_000


@functools.lru_cache(maxsize=64)
def exact_sums(models: int, size: int, columns: int, dtype: Any) -> Sums | None:
    """The fastest sums for `conjugate_gradient.solve` that round as TF-Agents' do.

    Args:
      models: how many matrices.
      size: rows of each.
      columns: for each matrix.
      dtype: floating, of all tensors.

    Returns:
      The sums; None if none give the same bits, or if there is so much to compute that
      nothing is won.
    """
    if models * size * size * columns > _LARGEST:
        logging.debug("Linear bandit: one arm after another, as there is much to do.")
        return None
    systems = _systems(models, size, columns, dtype)
    expected = one_by_one(*systems)
    for sums in _fastest_first(columns):
        if _add_up_equally(sums, models, size, columns, dtype):
            solve_all = functools.partial(all_at_once, sums)
            got = tf.function(solve_all, autograph=False)(*systems)
            if all(map(_are_equal, expected, got)):
                return sums
    logging.debug(
        "Linear bandit: one arm after another, as all at once would round otherwise."
    )
    return None


def _fastest_first(columns: int) -> tuple[Sums, ...]:
    known = (MATMUL, EINSUM)
    return tuple(map(for_single_columns, known)) if columns == 1 else known


def _add_up_equally(
    sums: Sums, models: int, size: int, columns: int, dtype: Any
) -> bool:
    """Whether they give TF-Agents' bits for some thousand columns."""
    rounds = -(-_COLUMNS // (models * columns))
    numbers = np.random.default_rng(1)
    one, other = numbers.normal(size=(2, rounds, size, models * columns))
    weights = numbers.normal(size=(rounds, size))

    def both_ways(drawn: tuple[Any, Any, Any]) -> tuple[Any, Any]:
        a, b, w = drawn
        parts = [tf.split(matrix, models, axis=1) for matrix in (a, b)]
        known = [
            (EINSUM.by_column(x, y), EINSUM.weighted(w, x), EINSUM.total(x))
            for x, y in zip(*parts, strict=True)
        ]
        weighted = [sums.weighted(w, x) for x in parts[0]]
        tried = (sums.by_column(a, b), tf.concat(weighted, axis=0), sums.total(a))
        return tf.concat([tf.stack(part) for part in known], axis=1), tf.stack(tried)

    @tf.function(autograph=False)
    def all_rounds(*drawn: Any) -> Any:
        return tf.map_fn(both_ways, drawn, fn_output_signature=(dtype, dtype))

    drawn = [tf.constant(values, dtype) for values in (one, other, weights)]
    return _are_equal(*all_rounds(*drawn))


def all_at_once(
    sums: Sums, matrices: Sequence[Any], vectors: Sequence[Any], columns: Any
) -> tuple[Any, Any, Any]:
    """Solutions, and what a linear bandit estimates from them.

    Args:
      sums: how sums are computed.
      matrices: one for each model, of shape `[size, size]`.
      vectors: the same number, of shape `[size]`.
      columns: contexts, those of the first model first, of shape
        `[size, models * columns]`.

    Returns:
      Solutions, shaped as `columns`, means and variances of the reward, of shape
      `[columns, models]`.
    """
    solved = solve(matrices, columns, sums)
    parts = tf.split(solved, len(matrices), axis=1)
    means = [sums.weighted(v, part) for v, part in zip(vectors, parts, strict=True)]
    variances = tf.split(sums.by_column(columns, solved), len(matrices))
    return solved, tf.stack(means, axis=-1), tf.stack(variances, axis=-1)


def one_by_one(
    matrices: Sequence[Any], vectors: Sequence[Any], columns: Any
) -> tuple[Any, Any, Any]:
    """What `all_at_once` gives, computed as TF-Agents' trainer does, eagerly."""
    solved, means, variances = [], [], []
    parts = tf.split(columns, len(matrices), axis=1)
    for matrix, vector, part in zip(matrices, vectors, parts, strict=True):
        solved.append(linalg.conjugate_gradient(matrix, part))
        means.append(tf.einsum("j,jk->k", vector, solved[-1]))
        variances.append(tf.einsum("ij,ij->j", part, solved[-1]))
    return (
        tf.concat(solved, axis=1),
        tf.stack(means, axis=-1),
        tf.stack(variances, axis=-1),
    )


def _systems(
    models: int, size: int, columns: int, dtype: Any
) -> tuple[list[Any], list[Any], Any]:
    """Equations as they come up in training: after hardly any data, and after much."""
    numbers = np.random.default_rng(0)
    data = [numbers.normal(size=(1 + 3 * model, size)) * 3 for model in range(models)]
    matrices = [np.eye(size) + x.T @ x for x in data]
    vectors = numbers.normal(size=(models, size))
    right = numbers.normal(size=(size, models * columns)) * 5
    right[:, 0] = 0  # Solved before it has begun.

    def tensor(values: Any) -> Any:
        return tf.constant(values, dtype)

    return list(map(tensor, matrices)), list(map(tensor, vectors)), tensor(right)


def _are_equal(one: Any, other: Any) -> bool:
    return bool(np.array_equal(one.numpy(), other.numpy(), equal_nan=True))

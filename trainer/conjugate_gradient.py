"""Many systems of linear equations at once, each solved as TF-Agents solves one.

A linear bandit solves `A x = b` for every arm and every observation. TF-Agents does so
arm by arm (`tf_agents.bandits.policies.linalg.conjugate_gradient`), each in a loop of
its own, of operations on numbers so few that nearly all the time goes into calling
them. Here one loop solves them all: their columns lie side by side.

Each number is computed by the same operations in the same order as there, so that the
results are the same to the last bit, if `Sums` are. See `trainer.linear_policy`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

# Columns multiplied at once by `MATMUL`, which computes the square of what it needs.
_BLOCK = 64


@dataclasses.dataclass(frozen=True)
class Sums:
    """A way to compute the sums that linear bandits need, each of shape `[columns]`.

    Attributes:
      by_column: `sum_i a[i, j] * b[i, j]`.
      weighted: `sum_i w[i] * a[i, j]`.
      total: `sum_i a[i, j]`.
    """

    by_column: Callable[[Any, Any], Any]
    weighted: Callable[[Any, Any], Any]
    total: Callable[[Any], Any]


def solve(
    matrices: Sequence[Any], columns: Any, sums: Sums, tolerance: float = 1e-10
) -> Any:
    """Solves `A_k X_k = B_k` for all `k` by conjugate gradients.

    Source: https://en.wikipedia.org/wiki/Conjugate_gradient_method, with the stopping
    rules of TF-Agents: a column is left as it is once its squared residual is at most
    `tolerance`.

    Args:
      matrices: the `A_k`, symmetric and positive definite, of shape `[n, n]`.
      columns: the `B_k` side by side, of shape `[n, len(matrices) * m]`, known
        statically; the same floating dtype.
      sums: how sums over a column are computed.
      tolerance: for the squared residual.

    Returns:
      The `X_k` side by side, shaped and typed as `columns`.
    """
    size = columns.shape[0]
    zero = tf.zeros([columns.shape[1]], columns.dtype)

    def unsolved(i: Any, x: Any, p: Any, r: Any, residual: Any) -> Any:
        largest = tf.reduce_max(tf.sqrt(residual))
        return tf.logical_and(i < size, largest > tolerance)

    def iterate(i: Any, x: Any, p: Any, r: Any, residual: Any) -> tuple[Any, ...]:
        is_open = residual > tolerance
        step = _product(matrices, p)
        length = tf.where(is_open, residual / sums.total(p * step), zero)
        x = tf.where(is_open, x + p * length, x)
        r = r - step * length
        left = sums.by_column(r, r)
        p = r + p * tf.where(is_open, left / residual, zero)
        return i + 1, x, p, r, left

    x = tf.zeros_like(columns)
    r = columns - _product(matrices, x)
    start = (tf.constant(0), x, r, r, sums.by_column(r, r))
    return tf.while_loop(unsolved, iterate, start, parallel_iterations=1)[1]


def _product(matrices: Sequence[Any], columns: Any) -> Any:
    """`A_k P_k` for all `k`, each multiplied by itself, as TF-Agents does."""
    parts = tf.split(columns, len(matrices), axis=1)
    products = [tf.matmul(a, b) for a, b in zip(matrices, parts, strict=True)]
    return tf.concat(products, axis=1)


def _diagonal(a: Any, b: Any) -> Any:
    return tf.linalg.diag_part(tf.matmul(a, b, transpose_a=True))


def _by_column(a: Any, b: Any) -> Any:
    whole, rest = divmod(a.shape[1], _BLOCK)
    sizes = [_BLOCK] * whole + [rest] * bool(rest)
    blocks = zip(tf.split(a, sizes, axis=1), tf.split(b, sizes, axis=1), strict=True)
    return tf.concat([_diagonal(*block) for block in blocks], axis=0)


def transposed(matrix: Any) -> Any:
    """The transpose. With oneDNN, which moves floats only, it takes some 70 us."""
    if matrix.dtype != tf.float32:
        return tf.transpose(matrix)
    return tf.bitcast(tf.transpose(tf.bitcast(matrix, tf.int32)), tf.float32)


# As TF-Agents computes them. With oneDNN, which TensorFlow uses on x86, each call costs
# some 70 us, however small the tensors.
EINSUM = Sums(
    by_column=lambda a, b: tf.einsum("ij,ij->j", a, b),
    weighted=lambda w, a: tf.einsum("j,jk->k", w, a),
    total=lambda a: tf.reduce_sum(a, axis=0),
)
# Fifty times as fast on small tensors, and with oneDNN the same rounding.
MATMUL = Sums(
    by_column=_by_column,
    weighted=lambda w, a: tf.matmul(w[tf.newaxis], a)[0],
    total=EINSUM.total,
)


def for_single_columns(sums: Sums) -> Sums:
    """Adds up as TensorFlow does in a matrix of one column: in another order."""
    return dataclasses.replace(
        sums, total=lambda a: tf.reduce_sum(transposed(a), axis=1)
    )

"""A way to add up is taken only if it gives TF-Agents' bits here."""

from __future__ import annotations

import dataclasses

import pytest
import tensorflow as tf
from absl import logging as absl_logging

from trainer import exact_sums
from trainer.conjugate_gradient import EINSUM, MATMUL

SHAPE = (3, 9, 4)


@pytest.fixture(autouse=True)
def _tried_anew():
    exact_sums.exact_sums.cache_clear()
    yield
    exact_sums.exact_sums.cache_clear()


def one_bit_more(sums, attribute):
    original = getattr(sums, attribute)

    def rounded_otherwise(*args):
        return tf.bitcast(tf.bitcast(original(*args), tf.int32) + 1, tf.float32)

    return dataclasses.replace(sums, **{attribute: rounded_otherwise})


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
@pytest.mark.parametrize("shape", [SHAPE, (3, 9, 1), (1, 2, 100), (1, 1, 1)])
def test_some_way_is_exact(shape, dtype):
    assert exact_sums.exact_sums(*shape, dtype) is not None


@pytest.mark.parametrize("attribute", ["by_column", "weighted", "total"])
def test_one_bit_is_too_much(monkeypatch, attribute):
    monkeypatch.setattr(exact_sums, "MATMUL", one_bit_more(EINSUM, attribute))
    assert exact_sums.exact_sums(*SHAPE, tf.float32) is EINSUM


def test_the_fastest_is_taken_if_it_is_exact(monkeypatch):
    same = dataclasses.replace(EINSUM)
    monkeypatch.setattr(exact_sums, "MATMUL", same)
    assert exact_sums.exact_sums(*SHAPE, tf.float32) is same


def test_none_is_taken_if_none_is_exact(monkeypatch):
    said = []
    monkeypatch.setattr(
        absl_logging, "debug", lambda text, *args: said.append(text % args)
    )
    for name in ("MATMUL", "EINSUM"):
        wrong = one_bit_more({"MATMUL": MATMUL, "EINSUM": EINSUM}[name], "by_column")
        monkeypatch.setattr(exact_sums, name, wrong)
    for _ in range(2):
        assert exact_sums.exact_sums(*SHAPE, tf.float32) is None
    assert said == [
        "Linear bandit: one arm after another, as all at once would round otherwise."
    ]


def test_where_there_is_much_to_compute_nothing_is_tried(monkeypatch):
    monkeypatch.setattr(exact_sums, "one_by_one", lambda *_: pytest.fail("was tried"))
    assert exact_sums.exact_sums(50, 1000, 256, tf.float32) is None


def test_trying_draws_no_random_number():
    def drawn(is_tried):
        tf.random.set_seed(3)
        if is_tried:
            exact_sums.exact_sums(*SHAPE, tf.float32)
        return float(tf.random.uniform([]))

    assert drawn(True) == drawn(False)

"""Each problem's idea of the best arm, and of chance, against what it pays."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from trainer import baseline, problems, tables
from trainer.problems import Problem

BATCH_SIZE = 50


def _three_classes(batch_size: int) -> Problem:
    labels = ["a"] * 6 + ["b"] * 3 + ["c"]
    features = np.arange(20.0).reshape(10, 2)
    table = tables.make_table(features, labels, ["x", "y"])
    return problems.classification(table, batch_size)


MAKERS = {**problems.ENVIRONMENTS, problems.CSV: _three_classes}
EXACT = ("digits", "csv", "wheel", "bernoulli")


def _problem(name: str) -> Problem:
    tf.keras.utils.set_random_seed(7)
    return MAKERS[name](BATCH_SIZE)


@dataclasses.dataclass
class Interactions:
    """What random actions got; arrays of shape `[interactions]`."""

    action: Any
    reward: Any
    best_action: Any
    best_reward: Any


def _act_at_random(problem: Problem, steps: int = 60) -> Interactions:
    environment = problem.environment
    arms = environment.action_spec().maximum + 1
    random = np.random.default_rng(3)
    rows = []
    for _ in range(steps):
        observation = environment.current_time_step().observation
        action = random.integers(arms, size=BATCH_SIZE, dtype=np.int32)
        reward = environment.step(tf.constant(action)).reward
        best = problem.optimal_action(observation), problem.optimal_reward(observation)
        rows.append([action, reward, *best])
    columns = zip(*rows, strict=True)
    return Interactions(*(np.concatenate(column) for column in columns))


@pytest.mark.parametrize("name", MAKERS)
def test_best_arm_pays_best_reward_and_no_other_does(name: str) -> None:
    seen = _act_at_random(_problem(name))

    is_best = seen.action == seen.best_action
    shortfall = seen.best_reward - seen.reward
    assert 0.05 < is_best.mean() < 0.5
    assert shortfall[is_best].mean() == pytest.approx(0, abs=0.05)
    assert shortfall[~is_best].mean() > 0.1


@pytest.mark.parametrize("name", EXACT)
def test_exact_figures_of_chance_are_what_is_measured(name: str) -> None:
    problem = _problem(name)
    exact = problem.random
    measured = baseline.measure_random(problem, interactions=20_000)

    assert exact is not None
    assert exact.source == "exact"
    assert exact.average_return == pytest.approx(measured.average_return, abs=0.01)
    assert exact.regret == pytest.approx(measured.regret, abs=0.01)


def test_where_chance_is_not_known_exactly() -> None:
    unknown = {name for name in MAKERS if _problem(name).random is None}
    assert unknown == MAKERS.keys() - set(EXACT)


def test_metrics_have_names_of_their_own() -> None:
    names = [metric.name for metric in _problem("digits").metrics()]
    assert names == [
        "RegretMetric",
        "SuboptimalArmsMetric",
        "RecentReturn",
        "RecentRegret",
        "RecentAccuracy",
    ]


def test_only_classification_has_an_accuracy() -> None:
    names = [metric.name for metric in _problem("wheel").metrics()]
    assert "RecentAccuracy" not in names


def test_metrics_of_two_runs_share_nothing() -> None:
    problem = _problem("bernoulli")
    first, second = problem.metrics(), problem.metrics()
    assert not {id(metric) for metric in first} & {id(metric) for metric in second}


def test_digits_are_the_real_ones() -> None:
    problem = _problem("digits")

    assert problem.describe == "1,797 rows, 64 features, 10 classes"
    assert sorted(problem.classes) == [str(digit) for digit in range(10)]
    assert sum(problem.classes.values()) == pytest.approx(1)


def test_classes_with_the_most_frequent_first() -> None:
    problem = _three_classes(4)

    assert problem.classes == {"a": 0.6, "b": 0.3, "c": 0.1}
    assert list(problem.classes) == ["a", "b", "c"]


def test_every_row_of_a_table_comes_up() -> None:
    environment = _three_classes(5).environment
    rows = set()
    for _ in range(2):  # One pass.
        observation = environment.current_time_step().observation
        rows |= {float(x) for x in observation[:, 0]}
        environment.step(tf.zeros(5, tf.int32))
    assert len(rows) == 10

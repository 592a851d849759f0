"""JSON lines."""

from __future__ import annotations

import math

import pytest

from tests.cadence.readers.outcome import formats, problems, rows, steps


def test_lines(write):
    path = write(
        '{"step": 0, "loss": 1.5, "done": true, "note": "x", "epoch": 0}\n'
        '{"step": 1, "loss": NaN, "train": {"acc": 0.5, "lr": 1e-3}}\n'
        "some other text\n\n"
        '{"step": 2.0, "loss": "-Infinity", "list": [1, 2]}\n'
        '{"loss": 3}\n{"step": "4", "loss": 3}\n'
    )
    found = [(n, s, v if v == v else "nan", p) for n, s, v, p in rows(path)]
    assert found == [
        ("loss", 0, 1.5, 1),
        ("loss", 1, "nan", 2),
        ("train/acc", 1, 0.5, 2),
        ("train/lr", 1, 0.001, 2),
        ("loss", 2, -math.inf, 5),
        ("loss", 4, 3.0, 7),
    ]
    assert formats(path) == {"jsonl"}
    assert problems(path) == []


@pytest.mark.parametrize("key", ["step", "_step", "global_step", "iteration", "Step"])
def test_step_keys(write, key):
    path = write(f'{{"{key}": 7, "loss": 1, "_timestamp": 17.5}}\n')
    assert [row[:2] for row in rows(path)] == [("loss", 7)]


def test_progress_json_of_stable_baselines3(write):
    path = write('{"time/total_timesteps": 2048, "rollout/ep_len_mean": 7.5}\n')
    assert [row[:3] for row in rows(path)] == [("rollout/ep_len_mean", 2048, 7.5)]


def test_cut_off_and_corrupt(write):
    good = '{"step": 0, "loss": 1}\n'
    assert problems(write(good + '{"step": 1, "lo')) == [("truncated", 2, 1)]
    path = write(good + '{"step": 1, "lo\n{"step": 2\n' + good.replace("0", "3"))
    assert problems(path) == [("corrupt", 2, 2)]
    assert steps(path, "loss") == [0, 3]


def test_nothing_in_it(write):
    assert problems(write('{"a": 1}\n')) == [("empty", 1, 1)]


def test_deep_and_large(write):
    deep = '{"step": 1, "a": ' * 30000 + "1" + "}" * 30000
    huge = '{"step": 2, "loss": 1' + "0" * 400 + "}"
    path = write(f'{{"step": 0, "loss": 1}}\n{deep}\n{huge}\n')
    assert [row[:3] for row in rows(path)] == [("loss", 0, 1.0), ("loss", 2, math.inf)]

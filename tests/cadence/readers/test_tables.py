"""Tables: stable-baselines3, Lightning, and others."""

from __future__ import annotations

import math

import pytest

from tests.cadence.readers import writers
from tests.cadence.readers.outcome import formats, messages, problems, rows, steps

# What PPO with an evaluation callback writes: evaluations in rows of their
# own, what training computed one row later, columns added as they appear.
PPO = """\
time/fps,time/iterations,time/time_elapsed,time/total_timesteps,rollout/ep_rew_mean,\
train/loss,train/n_updates,eval/mean_reward
1043,1,1,2048,21.5,,,
,,,4000,,8.25,10,30.0
881,2,4,4096,26.0,,,
840,3,7,6144,33.25,7.5,20,
"""
# What Lightning's CSVLogger writes: training and epoch rows apart.
LIGHTNING = """\
epoch,lr-Adam,step,train_loss,val_acc,val_loss
,0.001,49,,,
0,,49,0.5,,
0,,63,,0.75,0.25
,0.001,99,,,
1,,99,0.375,,
1,,127,,0.875,0.125
"""


def test_stable_baselines3(write):
    path = write(PPO, "progress.csv")
    assert formats(path) == {"stable-baselines3"}
    assert steps(path, "time/fps") == [2048, 4096, 6144]
    assert steps(path, "train/n_updates") == [4000, 6144]
    assert steps(path, "eval/mean_reward") == [4000]
    assert "time/total_timesteps" not in {row[0] for row in rows(path)}
    assert ("rollout/ep_rew_mean", 4096, 26.0, 4) in rows(path)
    assert problems(path) == []


def test_lightning(write):
    path = write(LIGHTNING, "metrics.csv")
    assert formats(path) == {"lightning"}
    assert steps(path, "train_loss") == [49, 99]
    assert steps(path, "val_loss") == [63, 127]
    assert steps(path, "lr-Adam") == [49, 99]
    assert {row[0] for row in rows(path)} == {
        "lr-Adam",
        "train_loss",
        "val_acc",
        "val_loss",
    }
    assert problems(path) == []


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("step,loss", "3,0.5"),
        ("Step,loss", "3.0,0.5"),
        ("loss,global_step", "0.5,3"),
        ("training_iteration,loss", "3,0.5"),
        ("epoch,loss", "3,0.5"),
        ("Wall time,Step,loss", "1700000000.5,3,0.5"),
        ("step;loss", "3;0.5"),
        ("step\tloss", "3\t0.5"),
        ('"step","loss"', '"3","0.5"'),
        (" step, loss", " 3, 0.5"),
    ],
)
def test_other_tables(write, header, row):
    (only,) = rows(write(f"{header}\n{row}\n", "any.name"))
    assert (only[0].strip(), *only[1:]) == ("loss", 3, 0.5, 2)


def test_odd_cells(write):
    path = write(
        'step,loss,note,loss\n0,nan,"a, b",1\n1,-inf,true,2\n2,1e-3,,50%\nx,1,,\n,1,,\n'
        "3,,,\n\n4,1_0,,\n"
    )
    found = [(n, s, v if v == v else "nan", p) for n, s, v, p in rows(path)]
    assert found == [
        ("loss", 0, "nan", 2),
        ("loss.1", 0, 1.0, 2),
        ("loss", 1, -math.inf, 3),
        ("loss.1", 1, 2.0, 3),
        ("loss", 2, 0.001, 4),
        ("loss.1", 2, 50.0, 4),
    ]
    assert problems(path) == []


def test_header_only(write):
    path = write("step,loss\n", "metrics.csv")
    assert problems(path) == [("empty", 1, 1)]
    assert messages(path) == ["the table has a header and no row."]


def test_repeated_header(write):
    path = write("step,loss\n0,1\nstep,loss\n0,1\nstep,loss\n0,1\n")
    assert problems(path) == [("repeated-header", 3, 2)]
    assert [row[3] for row in rows(path)] == [2, 4, 6]


def test_ragged_rows(write):
    path = write("step,loss\n0,1\n1,2,3\n2\n3,4\n")
    assert problems(path) == [("ragged-row", 3, 2)]
    assert steps(path, "loss") == [0, 3]
    assert messages(path)[0].startswith("a row has 3 cells, the header 2. ")


def test_cut_off(write):
    path = write("step,loss,acc\n0,1,1\n1,2", "metrics.csv")
    assert problems(path) == [("truncated", 3, 1)]
    assert messages(path) == ["the last row ends after 2 of 3 cells."]
    assert problems(write("step,loss\n0,1\n1,2", "metrics.csv")) == []


def test_quote_that_is_never_closed(write):
    body = "".join(f"{i},1\n" for i in range(1000))
    path = write(f'step,loss\n"0,1\n{body}')
    assert steps(path, "loss") == list(range(1000))
    assert problems(path) == [("ragged-row", 2, 1)]


def test_a_csv_writer_that_gains_columns(write):
    moments = [(i, {"a": 1.0} if i < 3 else {"a": 1.0, "b": 2.0}) for i in range(6)]
    path = write(writers.stable_baselines3(moments), "progress.csv")
    assert (steps(path, "a"), steps(path, "b")) == ([0, 1, 2, 3, 4, 5], [3, 4, 5])
    assert problems(path) == []

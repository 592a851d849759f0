"""JSON documents: Hugging Face's trainer state, and lists."""

from __future__ import annotations

import json

import pytest

from tests.cadence.readers import writers
from tests.cadence.readers.outcome import declared, formats, problems, rows, steps

# What `Trainer.save_state` writes after three evaluations.
HISTORY = [
    {"epoch": 0.33, "grad_norm": 1.5, "learning_rate": 4e-05, "loss": 2.5, "step": 10},
    {
        "epoch": 0.67,
        "grad_norm": 1.25,
        "learning_rate": 3e-05,
        "loss": 2.25,
        "step": 20,
    },
    {"epoch": 0.67, "eval_loss": 2.0, "eval_runtime": 1.5, "step": 20},
    {"epoch": 1.0, "grad_norm": 1.125, "learning_rate": 2e-05, "loss": 2.0, "step": 30},
    {"epoch": 1.0, "step": 30, "total_flos": 1e15, "train_loss": 2.25},
]


def state(history, indent=2, **declared):
    members = {"best_metric": None, "eval_steps": 20, "log_history": history}
    members |= {"logging_steps": 10, "max_steps": 30, "save_steps": 500, **declared}
    return json.dumps(members, indent=indent, sort_keys=True)


@pytest.mark.parametrize("indent", [2, None])
def test_trainer_state(write, indent):
    path = write(state(HISTORY, indent), "trainer_state.json")
    assert formats(path) == {"huggingface"}
    assert steps(path, "loss") == [10, 20, 30]
    assert steps(path, "eval_loss") == [20]
    assert ("train_loss", 30, 2.25, 5) in rows(path)
    assert "epoch" not in {row[0] for row in rows(path)}
    assert problems(path) == []
    assert declared(path) == {
        "logging_steps": 10,
        "eval_steps": 20,
        "max_steps": 30,
        "save_steps": 500,
    }


def test_steps_are_not_declared_where_epochs_are_logged(write):
    """`logging_steps` keeps its default there."""
    history = [{"epoch": float(i), "loss": 1.0, "step": 37 * i} for i in range(1, 4)]
    path = write(state(history, logging_steps=500))
    assert "logging_steps" not in declared(path)


def test_ratios_and_nonsense_are_not_declared(write):
    path = write(state(HISTORY, logging_steps=0.5, max_steps=-1, eval_steps=None))
    assert declared(path) == {"save_steps": 500}


def test_bare_nan(write):
    history = [{"loss": float("nan"), "step": 1}]
    (row,) = rows(write(state(history)))
    assert row[2] != row[2]


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
def test_pieces_of_any_size(write, monkeypatch, size):
    monkeypatch.setattr("testing.cadence.readers.blocks.SIZE", max(size, 600))
    moments = [(i, {"löss": i / 7, "x": float("inf")}) for i in range(50)]
    path = write(writers.hugging_face(moments))
    assert steps(path, "löss") == list(range(50))
    assert problems(path) == []


def test_cut_off_anywhere(write):
    text = state(HISTORY)
    whole = rows(write(text))
    for cut in range(text.index("log_history") + 15, len(text) - 1, 7):
        path = write(text[:cut])
        found = rows(path)
        assert found == whole[: len(found)]
        assert [kind for kind, *_ in problems(path)] == ["truncated"]


def test_corrupt(write):
    text = state(HISTORY).replace('"eval_loss": 2.0', '"eval_loss": 2.0 2.0')
    path = write(text)
    assert problems(path) == [("corrupt", 3, 1)]
    assert steps(path, "loss") == [10, 20]


def test_list(write):
    path = write('[\n {"step": 0, "loss": 1},\n {"step": 1, "loss": 2}\n]\n')
    assert rows(path) == [("loss", 0, 1.0, 1), ("loss", 1, 2.0, 2)]
    assert formats(path) == {"json"}
    assert problems(write("[]")) == [("empty", 1, 1)]
    assert problems(write("[")) == [("truncated", 1, 1)]


def test_history_is_not_read_as_a_whole(write):
    """The buffer holds a piece of the file, not all of it."""
    from testing.cadence.readers import documents
    from testing.cadence.readers.blocks import Input

    moments = [(i, {"loss": 1.0}) for i in range(60_000)]
    path = write(writers.hugging_face(moments))
    with Input(str(path)) as source:
        document = documents._Document(source)
        sizes = {len(document._text) for _ in documents._records(document, {})}
    assert path.stat().st_size > 4 * max(sizes)

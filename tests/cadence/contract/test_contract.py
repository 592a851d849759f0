"""Cadences: what is allowed, and how they are written down."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testing.cadence import Cadence, CadenceError, Order, Series

STEPS = st.integers(-(2**62), 2**62)
NAMES = st.text(min_size=1, max_size=12).filter(
    lambda name: not any(0xD800 <= ord(c) <= 0xDFFF for c in name)
)


@st.composite
def plans(draw, name):
    kind = draw(st.sampled_from(["even", "open", "loose", "steps"]))
    if kind == "steps":
        steps = draw(st.sets(STEPS, min_size=1, max_size=5))
        return Series(name, steps=tuple(sorted(steps)))
    if kind == "loose":
        options = st.none() | STEPS
        count = draw(st.none() | st.integers(0, 9))
        return Series(name, draw(options), count=count, last=draw(options))
    count = None if kind == "open" else draw(st.integers(0, 10**6))
    return Series(name, draw(STEPS), draw(st.integers(1, 10**6)), count)


@st.composite
def cadences(draw):
    names = draw(st.lists(NAMES, unique=True, max_size=5))
    order = None
    if draw(st.booleans()):
        order = Order((tuple(names),), draw(st.integers(1, 9)), draw(STEPS))
    others = draw(st.sampled_from(["allowed", "refused"]))
    return Cadence(tuple(draw(plans(name)) for name in names), order, others)


@given(cadences())
def test_toml_holds_all(cadence):
    assert Cadence.from_toml(cadence.to_toml()) == cadence


def test_toml_is_for_people():
    assert Cadence.bandit(5, 4, ["AverageReturn"]).to_toml() == (
        "# The beat of a run: docs/cadence.md of Onbeat explains each line.\n"
        "\n"
        'others = "allowed"\n'
        "\n"
        "[series]\n"
        'AverageReturn = { first = 0, every = 1, count = 20, rule = "metric-steps" }\n'
        'loss = { first = 0, every = 1, count = 20, rule = "loss-steps" }\n'
        "\n"
        "[order]\n"
        "block = 4\n"
        'rule = "event-order"\n'
        "phases = [\n"
        '  ["AverageReturn"],\n'
        '  ["loss"],\n'
        "]\n"
    )


def test_save_and_load(tmp_path):
    cadence = Cadence.bandit(2)
    cadence.save(tmp_path / "cadence.toml")
    assert Cadence.load(tmp_path / "cadence.toml") == cadence


def test_last_stands_for_count():
    assert Series("loss", 0, 5, last=20) == Series("loss", 0, 5, 5)


BAD = {
    "x = 1": "cadence: unknown key 'x'. Allowed: others, series, order.",
    'others = "some"': "others is 'some'. Allowed: 'allowed' or 'refused'.",
    "series = 3": "series is 3. Allowed: a table.",
    "[series]\nloss = 3": "loss is 3. Allowed: a table.",
    "[series]\nloss = { firs = 0 }": "loss: unknown key 'firs'.",
    "[series]\nloss = { first = true }": "loss: first is True. Allowed: an integer.",
    "[series]\nloss = { first = 0.5 }": "loss: first is 0.5. Allowed: an integer.",
    "[series]\nloss = { first = 0, every = 0 }": "every is 0. Allowed: an integer of",
    "[series]\nloss = { every = 2 }": "loss: first is None. Allowed: an integer where",
    "[series]\nloss = { count = -1 }": "count is -1. Allowed: an integer of",
    "[series]\nloss = { first = 0, every = 2, last = 3 }": "last is 3. Allowed: 0 plus",
    "[series]\nloss = { first = 0, every = 2, count = 3, last = 3 }": "last is 3.",
    "[series]\nloss = { steps = 3 }": "steps is 3. Allowed: a list of integers.",
    "[series]\nloss = { steps = [2, 1] }": "steps is [2, 1]. Allowed: rising steps.",
    "[series]\nloss = { steps = [1], count = 1 }": "Allowed: steps alone, or first",
    '[series]\nloss = { rule = "mine" }': "loss: rule is 'mine'. Allowed: ser",
    "[order]\nphases = 3": "order: phases is 3. Allowed: lists of names",
    '[order]\nphases = [["a"], ["a"]]': "Allowed: each name once.",
    '[order]\nblock = 0\nphases = [["a"]]': "block is 0. Allowed: an integer",
    "[series": "no TOML: ",
}


@pytest.mark.parametrize("text", BAD)
def test_bad_toml_is_one_clear_line(tmp_path, text):
    path = tmp_path / "cadence.toml"
    path.write_text(text)
    with pytest.raises(CadenceError, match=re.escape(BAD[text])) as raised:
        Cadence.load(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert "\n" not in str(raised.value)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_cadence_or_an_error(data):
    with contextlib.suppress(CadenceError):
        Cadence.from_toml(data.decode("utf-8", "replace"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((True,), "training_loops is True. Allowed: an integer of at least 0."),
        ((-1,), "training_loops is -1."),
        ((2, 0), "async_steps_per_loop is 0. Allowed: an integer of at least 1."),
        ((2, 1, "AverageReturn"), "Allowed: names in a list or tuple."),
    ],
)
def test_bandit_checks_its_arguments(arguments, words):
    with pytest.raises(CadenceError, match=re.escape(words)):
        Cadence.bandit(*arguments)


def test_none_means_one_step_per_loop():
    assert Cadence.bandit(3, None) == Cadence.bandit(3, 1)

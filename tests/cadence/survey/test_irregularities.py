"""Every irregularity is found, at its place, in every format that can show it."""

from __future__ import annotations

import math

import pytest

from testing.cadence.chunks import Chunk
from testing.cadence.findings import IRREGULARITIES
from testing.cadence.readers import read
from testing.cadence.survey import Survey
from tests.cadence.readers import writers

EVERY = 10
COUNT = 20
NAMES = ("loss", "accuracy")


def healthy():
    """Two series, 20 values each, no two values alike."""
    return [
        (EVERY * (i + 1), {name: i + 0.25 * k for k, name in enumerate(NAMES)})
        for i in range(COUNT)
    ]


def without(moments, name, *numbers):
    """The moments, but `name` is not logged at those `numbers`."""
    return [
        (step, {k: v for k, v in values.items() if k != name or i not in numbers})
        for i, (step, values) in enumerate(moments)
    ]


def changed(values, by=0.5):
    return {name: value + by for name, value in values.items()}


def gap(moments):
    return without(moments, "loss", 7)


def missing_head(moments):
    return without(moments, "loss", 0)


def missing_tail(moments):
    return without(moments, "loss", 18, 19)


def duplicate_step(moments):
    step, values = moments[7]
    return [*moments[:8], (step, changed(values)), *moments[8:]]


def step_back(moments):
    again = [(step, changed(values)) for step, values in moments[5:]]
    return [*moments[:12], *again]


def frozen_step(moments):
    stuck = moments[7][0]
    held = [(stuck, values) for _, values in moments[8:11]]
    return [*moments[:8], *held, *moments[11:]]


def non_finite(moments):
    step, values = moments[7]
    return [*moments[:7], (step, {**values, "loss": math.nan}), *moments[8:]]


def double_line(moments):
    return [*moments[:8], moments[7], *moments[8:]]


# kind -> planted fault, series it shows in, number of the moment, its step,
# which of the values at that step marks the place
PLANTED = {
    "gap": (gap, ["loss"], 80, ("loss", 90, 0)),
    "missing-head": (missing_head, ["loss"], 10, ("loss", 20, 0)),
    "missing-tail": (missing_tail, ["loss"], 190, ("loss", 180, 0)),
    "duplicate-step": (duplicate_step, NAMES, 80, ("loss", 80, 1)),
    "step-back": (step_back, NAMES, 60, ("loss", 60, 1)),
    "frozen-step": (frozen_step, NAMES, 80, ("loss", 80, 1)),
    "non-finite": (non_finite, ["loss"], 80, ("loss", 80, 0)),
    "double-line": (double_line, NAMES, 80, ("loss", 80, 1)),
}


def survey(path):
    found = Survey(str(path))
    for item in read(path):
        found.add(item)
    found.close()
    return found


def written(tmp_path, form, moments, **options):
    write, name = writers.FORMATS[form]
    path = tmp_path / name
    path.write_bytes(write(moments, **options))
    return path


@pytest.mark.parametrize("form", writers.FORMATS)
def test_a_healthy_run_is_clean(tmp_path, form):
    found = survey(written(tmp_path, form, healthy()))
    assert found.findings == ()
    beats = [(b.name, b.count, b.first, b.every, b.last) for b in found.series]
    assert sorted(beats) == [(name, 20, 10, 10, 200) for name in sorted(NAMES)]


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("form", writers.FORMATS)
def test_planted_faults_are_found_in_place(tmp_path, form, kind):
    plant, names, step, (name, at, nth) = PLANTED[kind]
    path = written(tmp_path, form, plant(healthy()))
    found = [f for f in survey(path).findings if f.kind != "declared-cadence"]
    if form == "estimator" and kind == "double-line":
        # One line holds the whole moment: the reader sees that it is repeated.
        assert [(f.kind, f.series, f.spot.place) for f in found] == [(kind, "", 9)]
        return
    assert {f.kind for f in found} == {kind}
    assert sorted(f.series for f in found) == sorted(names)
    first = next(f for f in found if f.series == "loss")
    events = [
        e for item in read(path) if isinstance(item, Chunk) for e in item.events()
    ]
    there = [e for e in events if (e.name, e.step) == (name, at)][nth]
    assert first.spot.step == step
    assert (first.spot.path, first.spot.place) == (str(path), there.source.place)
    assert first.spot.unit == there.source.unit


def table(rows):
    return "".join(f"{row}\n" for row in ["step,loss", *rows]).encode()


ROWS = [f"{step},{step}.5" for step in range(20)]
EVENTS = writers.FORMATS["tensorboard_2"][1]
FILES = {
    "repeated-header": ("metrics.csv", table([*ROWS[:9], "step,loss", *ROWS[9:]]), 11),
    "ragged-row": ("metrics.csv", table([*ROWS, "20,1,2"]), 22),
    "truncated": (EVENTS, writers.tensorboard_2(healthy())[:-9], 41),
    "corrupt": (
        EVENTS,
        writers.tensorboard_2(healthy()).replace(b"accuracy", b"accurazy", 1),
        3,
    ),
    "empty": ("metrics.csv", b"", 1),
}


@pytest.mark.parametrize("kind", FILES)
def test_what_readers_find(tmp_path, kind):
    name, data, place = FILES[kind]
    (tmp_path / name).write_bytes(data)
    found = [f for f in survey(tmp_path / name).findings if f.kind == kind]
    assert [f.spot.place for f in found] == [place]
    assert found[0].seen
    assert found[0].hint.endswith("?")


def test_what_readers_find_is_counted(tmp_path):
    lines = [f"[step={i}] loss = {i}.5.\n" for i in range(1500)]
    path = tmp_path / "run.log"
    path.write_text("".join(f"{line}INFO:absl:{line}" for line in lines))
    (found,) = survey(path).findings
    assert (found.kind, found.spot.place, found.count) == ("double-line", 2, 1500)
    assert found.message == (
        "a line is there twice in a row; counted once. The first of 1,500 places. "
        "Two handlers on one logger?"
    )


DECLARED = {
    "logging_steps is 50, but loss is logged every 10 steps": {"logging_steps": 50},
    "max_steps is 150, but accuracy goes on to step 200": {"max_steps": 150},
    "global_step is 150, but accuracy goes on to step 200": {"global_step": 150},
    "global_step is 250, but loss, logged every 10 steps, ends at step 200": {
        "global_step": 250
    },
}


@pytest.mark.parametrize("words", DECLARED)
def test_declared_cadence(tmp_path, words):
    path = written(tmp_path, "hugging_face", healthy(), **DECLARED[words])
    (found,) = survey(path).findings
    assert found.kind == "declared-cadence"
    assert found.message.startswith(words)


@pytest.mark.parametrize(("every", "found"), [(100, 0), (200, 0), (150, 1)])
def test_declared_checkpoints(tmp_path, every, found):
    folder = tmp_path / "checkpoint-200"
    folder.mkdir()
    options = {"save_steps": every, "max_steps": 1000}
    path = written(folder, "hugging_face", healthy(), **options)
    seen = [f.message for f in survey(path).findings]
    assert len(seen) == found
    assert all("this checkpoint is of step 200" in message for message in seen)


def test_every_irregularity_has_a_planted_fault():
    assert {*PLANTED, *FILES, "declared-cadence"} == set(IRREGULARITIES)

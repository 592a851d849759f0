"""Random cadences, random faults: found at their place, in every format."""

from __future__ import annotations

import itertools
import pickle
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testing.cadence.events import Event
from testing.cadence.readers import read
from testing.cadence.survey import Survey
from testing.cadence.survey.columns import chunks_of
from tests.cadence.readers import writers
from tests.cadence.survey.test_irregularities import changed

NAMES = ["loss", "accuracy", "reward"]
KINDS = [
    "gap",
    "duplicate-step",
    "step-back",
    "frozen-step",
    "double-line",
    "non-finite",
]


@st.composite
def runs(draw):
    """One to three series of one beat, no two values alike."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    first = draw(st.sampled_from([0, 1, 49, 50, 101]))
    every = draw(st.sampled_from([1, 2, 10, 97, 2048]))
    count = draw(st.integers(8, 40))
    return [
        (first + i * every, {name: i + k / 8 for k, name in enumerate(names)})
        for i in range(count)
    ]


def plant(moments, kind, at):
    """The moments with a fault at number `at`; and the step it is found at."""
    before, (step, values), after = moments[:at], moments[at], moments[at + 1 :]
    if kind == "gap":
        return [*before, *after], step
    if kind == "duplicate-step":
        return [*before, (step, values), (step, changed(values, 0.0625)), *after], step
    if kind == "double-line":
        return [*before, (step, values), (step, values), *after], step
    if kind == "non-finite":
        name = next(iter(values))
        return [*before, (step, {**values, name: float("inf")}), *after], step
    if kind == "step-back":
        again = [(s, changed(v, 0.0625)) for s, v in moments[at - 2 :]]
        return [*before, (step, values), *again], moments[at - 2][0]
    held = [(step, v) for _, v in after[:3]]
    return [*before, (step, values), *held, *after[3:]], step


def survey(path):
    found = Survey(str(path))
    for item in read(path):
        found.add(item)
    found.close()
    return found


@pytest.mark.parametrize("form", writers.FORMATS)
@settings(max_examples=20)
@given(moments=runs(), kind=st.sampled_from(KINDS), data=st.data())
def test_in_every_format(tmp_path_factory, form, moments, kind, data):
    write, name = writers.FORMATS[form]
    path = tmp_path_factory.mktemp("run") / name
    options = {"logging_steps": 0} if form == "hugging_face" else {}
    path.write_bytes(write(moments, **options))
    assert survey(path).findings == ()
    at = data.draw(st.integers(2, len(moments) - 5))
    faulty, step = plant(moments, kind, at)
    path.write_bytes(write(faulty, **options))
    found = survey(path).findings
    assert {finding.kind for finding in found} == {kind}
    assert {finding.spot.step for finding in found} <= {step, None}
    assert all(finding.spot.place for finding in found)


@settings(max_examples=100)
@given(moments=runs(), kind=st.sampled_from(KINDS), data=st.data())
def test_however_the_run_is_cut_into_chunks(moments, kind, data):
    at = data.draw(st.integers(2, len(moments) - 5))
    faulty, _ = plant(moments, kind, at)
    events = [Event("log", n, s, v) for s, values in faulty for n, v in values.items()]
    whole = Survey.of(events)
    cuts = data.draw(st.lists(st.integers(0, len(events)), max_size=5))
    pieces = Survey()
    ends = sorted({0, *cuts, len(events)})
    for start, end in itertools.pairwise(ends):
        for chunk in chunks_of(events[start:end]):
            pieces.add(chunk)
    pieces.close()
    assert pieces.findings == whole.findings
    assert pieces.series == whole.series
    digests = [[beat.track.digest for beat in one.series] for one in (pieces, whole)]
    assert digests[0] == digests[1]


@pytest.mark.parametrize("kind", ["missing-head", "missing-tail"])
@pytest.mark.parametrize("form", writers.FORMATS)
@settings(max_examples=10)
@given(moments=runs(), lost=st.integers(1, 3))
def test_heads_and_tails(tmp_path_factory, form, kind, moments, lost):
    write, name = writers.FORMATS[form]
    path = tmp_path_factory.mktemp("run") / name
    options = {"logging_steps": 0} if form == "hugging_face" else {}
    rows = [(step, {**values, "other": step / 3}) for step, values in moments]
    here = range(lost) if kind == "missing-head" else range(len(rows) - lost, len(rows))
    for number in here:
        step, values = rows[number]
        rows[number] = step, {k: v for k, v in values.items() if k != "other"}
    path.write_bytes(write(rows, **options))
    (found,) = survey(path).findings
    assert (found.kind, found.series, found.count) == (kind, "other", lost)


@pytest.mark.parametrize("repeat", [2, 3])
def test_blocks_doubled_across_chunks(repeat):
    events = [Event("log", n, s, s + 0.5) for s in range(9) for n in NAMES]
    doubled = [e for i in range(0, 27, 3) for e in events[i : i + 3] * repeat]
    pieces = Survey()
    for event in doubled:
        for chunk in chunks_of([event]):
            pieces.add(chunk)
    pieces.close()
    assert {(f.kind, f.count) for f in pieces.findings} == {
        ("double-line", 9 * (repeat - 1))
    }


def test_memory_does_not_grow_with_the_run():
    """What is kept of an irregular series has a bound."""
    rng = random.Random(1)

    def size(count):
        survey, step = Survey(), 0
        for _ in range(count // 1000):
            events = []
            for _ in range(1000):
                step = max(0, step + rng.choice([-5, 0, 0, 1, 1, 1, 7, 90, 1000]))
                events.append(Event("log", "x", step, rng.choice([1.0, 2.0])))
            for chunk in chunks_of(events):
                survey.add(chunk)
        return len(pickle.dumps(survey._runs))

    assert size(40_000) < 1.5 * size(10_000) < 200_000

"""A run written in any format is read back event by event."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testing.cadence.chunks import Chunk, Problem
from testing.cadence.readers import read
from tests.cadence.readers import writers

NAMES = ["loss", "Average Return", "eval/accuracy", "x_2"]
NUMBERS = st.floats(width=32)


@st.composite
def runs(draw):
    """Series of their own beats and first steps, some with odd values."""
    moments = {}
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True)):
        first = draw(st.sampled_from([0, 1, 49, 50, 101]))
        every = draw(st.sampled_from([1, 2, 7, 50, 12345]))
        values = draw(st.lists(NUMBERS, min_size=1, max_size=8))
        for index, value in enumerate(values):
            moments.setdefault(first + index * every, {})[name] = value
    return sorted(moments.items())


def key(name, step, value):
    return name, step, "nan" if math.isnan(value) else value


@pytest.mark.parametrize("form", writers.FORMATS)
@settings(max_examples=25)
@given(moments=runs(), crlf=st.booleans(), bom=st.booleans())
def test_same_events(tmp_path_factory, form, moments, crlf, bom):
    write, name = writers.FORMATS[form]
    path = tmp_path_factory.mktemp("run") / name
    data = write(moments)
    if "events" not in name:
        data = data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") if crlf else data
        data = b"\xef\xbb\xbf" + data if bom else data
    path.write_bytes(data)
    items = list(read(path))
    assert not [item for item in items if isinstance(item, Problem)]
    chunks = [item for item in items if isinstance(item, Chunk)]
    events = [event for chunk in chunks for event in chunk.events()]
    seen = [key(event.name, event.step, event.value) for event in events]
    wrote = [
        key(name, step, value)
        for step, values in moments
        for name, value in values.items()
    ]
    assert sorted(seen, key=str) == sorted(wrote, key=str)
    marks = [mark for chunk in chunks for mark in chunk.nonfinite.tolist()]
    assert sum(marks) == sum(not math.isfinite(value) for *_, value in _flat(moments))
    places = [event.source.place for event in events]
    assert places == sorted(places)


def _flat(moments):
    return [(step, n, v) for step, values in moments for n, v in values.items()]

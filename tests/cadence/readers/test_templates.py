"""Known events are read as the message classes would read them."""

from __future__ import annotations

import struct

import pytest

pytest.importorskip("tensorboard")

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tensorboard.compat.proto import event_pb2

from testing.cadence.readers import templates as templates_module
from testing.cadence.readers.templates import Templates
from testing.cadence.readers.tensorboard import Scalars
from tests.cadence.readers import writers

parse = event_pb2.Event.FromString
MAKERS = [writers.simple_value, writers.tensor_value]
BYTES = st.one_of(
    st.binary(max_size=60),
    st.builds(
        lambda make, name, value, step, time: event_pb2.Event(
            wall_time=time, step=step, summary={"value": [make(name, value)]}
        ).SerializeToString(),
        st.sampled_from(MAKERS),
        st.sampled_from(["", "a", "b", "loss", "a" * 130]),
        st.floats(width=32),
        st.one_of(st.integers(0, 300), st.integers(-(2**63), 2**63 - 1)),
        st.floats(),
    ),
)


@st.composite
def mutated(draw):
    data = bytearray(draw(BYTES))
    for _ in range(draw(st.integers(0, 2))):
        if data:
            data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data)


# A tensor that should hold one number, and holds none.
EMPTY = (
    b"\t\0\0\0\0\0\0\0\0\x08\0*\x1e\n\x1c\n\x01\0B\n\x08\x01\x10\0B\x04\0\0\0\0\n\x0b"
    + bytes(11)
)


@settings(max_examples=400)
@example([EMPTY])
@given(st.lists(mutated(), max_size=12))
def test_same_as_the_classes(messages):
    scalars = Scalars()
    templates = Templates(parse, scalars.of)
    for message in messages:
        try:
            event = parse(message)
            found = scalars.of(event)
        except Exception:
            event = None
        known = matched(templates, [message])
        if event is None:
            assert not known
            continue
        if known:
            ((_, name, step, value),) = known
            assert (step, str([(name, value)])) == (event.step, str(found))
        elif len(found) == 1:
            templates.learn(message, found[0])
    # All at once they are what they are one by one.
    alone = [
        (row, *rest)
        for row, message in enumerate(messages)
        for _, *rest in matched(templates, [message])
    ]
    assert str(matched(templates, messages)) == str(alone)


def matched(templates, messages):
    """Row, name, step and value of each known message."""
    known = templates.match(messages)
    names = [known.names[code] for code in known.codes.tolist()]
    columns = (column.tolist() for column in (known.rows, known.steps, known.values))
    rows, steps, values = columns
    return list(zip(rows, names, steps, values, strict=True))


def event(make, name, step, value):
    summary = {"value": [make(name, value)]}
    message = event_pb2.Event(wall_time=1.0, step=step, summary=summary)
    return message.SerializeToString()


@pytest.mark.parametrize("make", MAKERS)
def test_the_second_one_is_known(make):
    templates = Templates(parse, Scalars().of)
    steps = (0, 1, 200, 2**40, 2**62)
    messages = [event(make, "a", step, step % 7 + 0.5) for step in steps]
    assert templates.learn(messages[0], ("a", 0.5))
    assert not templates.learn(messages[1], ("a", 1.5))
    assert matched(templates, messages) == [
        (row, "a", step, step % 7 + 0.5) for row, step in enumerate(steps)
    ]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("make", MAKERS)
def test_a_signalling_nan_is_a_nan(make):
    templates = Templates(parse, Scalars().of)
    message = event(make, "a", 1, 1.5)
    assert templates.learn(message, ("a", 1.5))
    signalling = message.replace(struct.pack("<f", 1.5), b"\x01\x00\xa0\x7f")
    ((_, name, step, value),) = matched(templates, [signalling])
    assert (name, step, str(value)) == ("a", 1, "nan")


def test_names_of_equal_length_are_told_apart():
    templates = Templates(parse, Scalars().of)
    names = [f"metric/{index:04}" for index in range(300)]
    for name in names[:200]:
        assert templates.learn(event(writers.simple_value, name, 3, 1.0), (name, 1.0))
    messages = [event(writers.simple_value, name, 500, 2.0) for name in names]
    assert [row[1] for row in matched(templates, messages)] == names[:200]


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(templates_module, "_KEPT", 10)
    templates = Templates(parse, Scalars().of)
    for index in range(95):
        message = event(writers.simple_value, f"m{index:03}", 1, 1.0)
        templates.learn(message, (f"m{index:03}", 1.0))
    messages = [event(writers.simple_value, f"m{n:03}", 2, 1.0) for n in range(95)]
    known = [row[1] for row in matched(templates, messages)]
    assert known == ["m090", "m091", "m092", "m093", "m094"]

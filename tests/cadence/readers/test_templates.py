"""Known events are read as the message classes would read them."""

from __future__ import annotations

import pytest

pytest.importorskip("tensorboard")

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tensorboard.compat.proto import event_pb2

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


@settings(deadline=None, max_examples=400)
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
        known = templates.match(message)
        if event is None:
            assert known is None
            continue
        if known is not None:
            name, step, value = known
            assert (step, str([(name, value)])) == (event.step, str(found))
        elif len(found) == 1:
            templates.learn(message, found[0])


@pytest.mark.parametrize("make", MAKERS)
def test_the_second_one_is_known(make):
    templates = Templates(parse, Scalars().of)
    messages = [
        event_pb2.Event(
            wall_time=1.0, step=step, summary={"value": [make("a", step + 0.5)]}
        ).SerializeToString()
        for step in (0, 1, 200)
    ]
    templates.learn(messages[0], ("a", 0.5))
    assert [templates.match(message) for message in messages] == [
        ("a", 0, 0.5),
        ("a", 1, 1.5),
        ("a", 200, 200.5),
    ]

"""Whatever a file holds: events, problems, or one clear line."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testing.cadence.chunks import PROBLEMS, Chunk, Declared, Problem
from testing.cadence.events import KINDS
from testing.cadence.readers import UnreadableRun, read
from tests.cadence.readers import writers

MOMENTS = [(i * 10, {"loss": i / 7, "eval/acc": 1e-3 * i}) for i in range(12)]
SAMPLES = [write(MOMENTS) for write, _ in writers.FORMATS.values()]
PIECES = [
    *[b"[step=", b"] ", b" = ", b"step = ", b"\n", b"\r", b"\0", b'"', b"{", b"}"],
    *[b"[", b"]", b",", b":", b"nan", b"9" * 30, b"\xff", b"\xef\xbb\xbf", b"\xff\xfe"],
    *[b"brain.Event:2", b"log_history", b"tf.Tensor(", b"\x1b[31m", b"I1201 04:21:29."],
]


@st.composite
def mutated(draw):
    """A real file with pieces cut out, put in, repeated or changed."""
    data = draw(st.sampled_from(SAMPLES))
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 200)))
        new = draw(
            st.one_of(
                st.just(b""),
                st.sampled_from(PIECES),
                st.binary(max_size=8),
                st.just(data[at:end] * 2),
            )
        )
        data = data[:at] + new + data[end:]
    return data


def check(path, **options):
    """Everything that is read has the form it is promised to have."""
    message = ""
    try:
        for item in read(path, **options):
            check_item(item)
    except UnreadableRun as error:
        message = str(error).replace(str(path), "")
    assert "\n" not in message


def check_item(item):
    if isinstance(item, Chunk):
        check_chunk(item)
    elif isinstance(item, Problem):
        assert item.kind in PROBLEMS
        assert item.message
        assert "\n" not in item.message
        assert item.source.place >= 1
        assert item.count >= 1
    else:
        assert isinstance(item, Declared)


def check_chunk(chunk):
    size = len(chunk)
    assert size
    assert chunk.kind in KINDS
    for column in (chunk.codes, chunk.steps, chunk.places):
        assert (column.dtype, column.shape) == (np.int64, (size,))
    assert (chunk.values.dtype, chunk.values.shape) == (np.float64, (size,))
    assert (chunk.nonfinite.dtype, chunk.nonfinite.shape) == (bool, (size,))
    assert (np.diff(chunk.places) >= 0).all()
    assert chunk.places[0] >= 1
    assert len(set(chunk.series)) == len(chunk.series)
    assert sorted(set(chunk.codes.tolist())) == list(range(len(chunk.series)))
    assert sum(len(part) for part in chunk.split()) == size
    for row, event in enumerate(chunk.events()):
        number = isinstance(event.value, float)
        assert number == (row not in chunk.texts)
        if number:
            assert chunk.nonfinite[row] == (not math.isfinite(event.value))


NAMES = st.sampled_from(["run.log", "events.out.tfevents.1.host"])


@settings(max_examples=400)
@given(data=mutated(), name=NAMES)
def test_mutated_files(tmp_path_factory, data, name):
    path = tmp_path_factory.mktemp("fuzz") / name
    path.write_bytes(data)
    check(path)


@settings(max_examples=150)
@given(data=st.binary(max_size=300), name=NAMES)
def test_random_bytes(tmp_path_factory, data, name):
    path = tmp_path_factory.mktemp("fuzz") / name
    path.write_bytes(data)
    check(path)


@settings(max_examples=100)
@given(data=mutated())
def test_mutated_files_with_a_pattern(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("fuzz") / "run"
    path.write_bytes(data)
    check(path, pattern=r"(?P<name>\w+)\D+(?P<step>\d+)\D+(?P<value>\S+)")


LONG = 10 << 20
RUNAWAY = {
    "nothing": b"x",
    "spaces": b" ",
    "steps": b"step ",
    "open brackets": b"[step=1] a ",
    "digits": b"1",
    "words": b"step a b c d e f ",
    "equals": b"step = 1 = ",
    "pairs": b"step = 1: a = 1, ",
    "pids": b"(pid=1 ",
    "tensors": b"[step=1] a = <tf.Tensor: (((",
    "returns": b"step = 1: a = 1\r",
    "colours": b"\x1b[",
    "quotes": b'step,"',
    "commas": b"step,",
    "objects": b'{"step": 1, "a": ',
    "lists": b"[",
    "list of objects": b'[{"a": ',
    "history": b'{"log_history": [{"a": "',
    "zeros": b"\0",
    "carriage": b"\r",
}


@pytest.mark.parametrize("kind", RUNAWAY)
def test_ten_megabytes_in_one_line(tmp_path, kind):
    """In bounded memory, and in a time that the test's own limit allows."""
    piece = RUNAWAY[kind]
    path = tmp_path / "run.log"
    path.write_bytes(piece * (LONG // len(piece)))
    tracemalloc.start()
    try:
        check(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100 << 20


@pytest.mark.parametrize("form", writers.FORMATS)
def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch, form):
    """Blocks and chunks are small here, so that small files have many of them."""
    monkeypatch.setattr("testing.cadence.readers.blocks.SIZE", 1 << 14)
    monkeypatch.setattr("testing.cadence.readers.builder.ROWS", 1 << 9)
    write, name = writers.FORMATS[form]
    data = write([(i, {"loss": i / 7, "acc": i / 9}) for i in range(300)])
    path = tmp_path / name
    peaks = []
    for times in (4, 4, 40):  # the first time, modules and expressions are loaded
        path.write_bytes(larger(form, data, times))
        peaks.append(peak_of_reading(path))
    assert peaks[2] < 1.5 * peaks[1]


def peak_of_reading(path):
    tracemalloc.start()
    try:
        for _ in read(path):
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def larger(form, data, times):
    """The same file with its events so many times."""
    if form == "json_list":
        return b"[" + b",".join([data[1:-1]] * times) + b"]"
    if form == "hugging_face":
        start, _, rest = data.partition(b'"log_history": [')
        history, _, end = rest.partition(b"\n  ],")
        body = b",".join([history] * times)
        return start + b'"log_history": [' + body + b"\n  ]," + end
    return data * times


def test_nothing_is_executed(tmp_path):
    """No pickle, no YAML, no eval: such a file is refused or read as text."""
    for data in (
        b"cos\nsystem\n(S'touch pwned'\ntR.",
        b"\x80\x04cos\nsystem\n",
        b"[step=0] a = __import__('os').system('touch pwned').\n",
        b"!!python/object/apply:os.system ['touch pwned']\n",
    ):
        path = tmp_path / "run"
        path.write_bytes(data)
        check(path)
    assert [each.name for each in tmp_path.iterdir()] == ["run"]

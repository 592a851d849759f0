"""Event files, whole and broken."""

from __future__ import annotations

import math
import struct
import sys

import pytest

pytest.importorskip("tensorboard")
pytest.importorskip("google_crc32c")

from tensorboard.compat.proto import event_pb2, summary_pb2

from testing.cadence.readers import UnreadableRun, frames
from tests.cadence.readers import writers
from tests.cadence.readers.outcome import events, formats, messages, problems, rows
from tests.cadence.readers.outcome import steps as steps_of

NAME = "events.out.tfevents.1700000000.host.1.0"
MOMENTS = [(i, {"loss": i / 4, "AverageReturn": i * 2.0}) for i in range(200)]
EXPECTED = [(name, i, value) for i, values in MOMENTS for name, value in values.items()]
WRITERS = [writers.tensorboard_1, writers.tensorboard_2, writers.tensorboard_double]


def record(*values, step=0, **fields):
    event = event_pb2.Event(wall_time=1.7e9, step=step, **fields)
    event.summary.value.extend(values)
    return writers.frame(event.SerializeToString())


def version():
    event = event_pb2.Event(wall_time=1.7e9, file_version="brain.Event:2")
    return writers.frame(event.SerializeToString())


@pytest.mark.parametrize("writer", WRITERS)
def test_scalars(write, writer):
    path = write(writer(MOMENTS), NAME)
    assert [row[:3] for row in rows(path)] == EXPECTED
    assert [row[3] for row in rows(path)] == list(range(2, 402))
    assert formats(path) == {"tensorboard"}
    event = events(path)[0]
    assert (event.kind, event.source.unit) == ("summary", "record")
    assert problems(path) == []


@pytest.mark.parametrize("name", ["run", "x.csv", "x.log"])
def test_known_by_content(write, name):
    assert len(rows(write(writers.tensorboard_2(MOMENTS), name))) == 400


def test_step_zero_is_left_out(write):
    data = writers.tensorboard_1([(0, {"a": 1.0}), (1, {"a": 2.0}), (0, {"a": 3.0})])
    assert b"\x10\x00" not in data
    assert [row[1:3] for row in rows(write(data, NAME))] == [(0, 1), (1, 2), (0, 3)]


@pytest.mark.parametrize("step", [1, 127, 128, 16383, 16384, 2**31, 2**56, 2**62, -1])
def test_any_step(write, step):
    moments = [(step, {"a": 1.0}), (step, {"a": 2.5})]
    for writer in WRITERS:
        assert [row[1:3] for row in rows(write(writer(moments), NAME))] == [
            (step, 1.0),
            (step, 2.5),
        ]


@pytest.mark.parametrize("value", [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-40])
def test_any_value(write, value):
    value = struct.unpack("<f", struct.pack("<f", value))[0]
    moments = [(i, {"a": x, "b": x}) for i, x in enumerate([1.0, value, 2.0, value])]
    for writer in WRITERS:
        seen = [str(row[2]) for row in rows(write(writer(moments), NAME))]
        assert seen == [str(x) for _, values in moments for x in values.values()]


def test_integers_and_one_element(write):
    one = writers.tensor_value("c", 5.0)
    one.tensor.tensor_shape.dim.add().size = 1
    values = [writers.tensor_value("a", 3, 3), writers.tensor_value("b", 4, 9), one]
    path = write(version() + b"".join(record(value) for value in values), NAME)
    assert [row[:3] for row in rows(path)] == [
        ("a", 0, 3.0),
        ("b", 0, 4.0),
        ("c", 0, 5),
    ]


def test_several_values_in_one_record(write):
    pair = [writers.simple_value("a", 1.0), writers.simple_value("b", 2.0)]
    path = write(version() + record(*pair, step=7), NAME)
    assert rows(path) == [("a", 7, 1.0, 2), ("b", 7, 2.0, 2)]


def test_what_is_no_scalar_is_passed_over(write):
    histogram = summary_pb2.Summary.Value(tag="h")
    histogram.histo.num = 3
    text = writers.tensor_value("t", 1.0)
    text.metadata.plugin_data.plugin_name = "text"
    later = writers.tensor_value("t", 1.0)
    later.ClearField("metadata")
    known = writers.tensor_value("k", 1.0)
    bare = writers.tensor_value("k", 2.0)
    bare.ClearField("metadata")
    graph = writers.frame(
        event_pb2.Event(wall_time=1.0, graph_def=b"x" * (12 << 20)).SerializeToString()
    )
    body = [record(value) for value in (histogram, text, later, known, bare)]
    start = record(session_log=event_pb2.SessionLog(status=1))
    path = write(version() + start + graph + b"".join(body), NAME)
    assert [row[:3] for row in rows(path)] == [("k", 0, 1.0), ("k", 0, 2.0)]
    assert [row[3] for row in rows(path)] == [7, 8]
    assert problems(path) == []


def test_nothing_in_it(write):
    path = write(version(), NAME)
    assert problems(path) == [("empty", 1, 1)]
    assert problems(write(b"", NAME)) == [("empty", 1, 1)]


def test_same_as_tensorboard(write, tmp_path):
    """Its own accumulator, asked to keep everything."""
    from tensorboard.backend.event_processing import event_accumulator

    path = write(writers.tensorboard_1(MOMENTS), NAME)
    accumulator = event_accumulator.EventAccumulator(str(tmp_path), {"scalars": 0})
    accumulator.Reload()
    for tag in ("loss", "AverageReturn"):
        theirs = [(each.step, each.value) for each in accumulator.Scalars(tag)]
        assert theirs == [row[1:3] for row in rows(path) if row[0] == tag]


@pytest.mark.parametrize("writer", WRITERS)
def test_cut_off_anywhere(write, writer):
    data = writer(MOMENTS[:4])
    ends = _ends(data)
    for cut in range(48, len(data), 3):
        path = write(data[:cut], NAME)
        whole = sum(end <= cut for end in ends)
        expected = [] if cut in ends else [("truncated", whole + 1, 1)]
        assert problems(path) == expected
        assert [row[:3] for row in rows(path)] == EXPECTED[: whole - 1]


def test_cut_off_in_the_first_record(write):
    data = writers.tensorboard_1(MOMENTS)
    for cut in range(1, 40):
        assert problems(write(data[:cut], NAME)) == [("truncated", 1, 1)]


def _ends(data):
    ends, at = [], 0
    while at < len(data):
        at += 16 + int.from_bytes(data[at : at + 8], "little")
        ends.append(at)
    return ends


@pytest.mark.parametrize("writer", WRITERS)
def test_every_flipped_byte_is_found(write, writer):
    data = writer(MOMENTS[:2])
    ends = _ends(data)
    for at in range(40, len(data)):
        broken = data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]
        number = sum(end <= at for end in ends) + 1
        start = ends[number - 2]
        path = write(broken, NAME)
        assert [kind for kind, *_ in problems(path)] == ["corrupt"]
        assert problems(path)[0][1] == number
        seen = [row[:3] for row in rows(path)]
        header = at < start + 12
        rest = [] if header else EXPECTED[number - 1 : 4]
        assert seen == EXPECTED[: number - 2] + rest


def test_messages(write):
    data = writers.tensorboard_1(MOMENTS)
    end = _ends(data)[1]
    assert messages(write(data[: end + 20], NAME)) == [
        "the file ends 20 bytes into record 3."
    ]
    assert messages(write(data[:end] + b"\0" * 5000, NAME)) == [
        "the rest of the file is zeros."
    ]
    assert messages(write(data[:end] + b"x" * 50, NAME)) == [
        "the checksum of a length is wrong: the rest cannot be read."
    ]
    assert messages(write(data[:-1] + b"x", NAME)) == [
        "a checksum is wrong: the record is passed over."
    ]


def test_record_that_is_no_event(write):
    path = write(version() + writers.frame(b"\xff" * 9) + record(step=1), NAME)
    assert problems(path) == [("corrupt", 2, 1)]


@pytest.mark.parametrize(
    "field",
    [{}, {"float_val": [1.0, 2.0]}, {"tensor_content": b"abc"}],
    ids=str,
)
def test_tensor_that_holds_no_single_number(write, field):
    from tensorboard.compat.proto import event_pb2

    event = event_pb2.Event(wall_time=1.0, step=3)
    tensor = event.summary.value.add(tag="loss").tensor
    tensor.MergeFrom(type(tensor)(**{"dtype": 1, **field}))
    broken = writers.frame(event.SerializeToString())
    fine = record(writers.simple_value("loss", 0.5), step=4)
    path = write(version() + broken + fine, NAME)
    assert problems(path) == [("corrupt", 2, 1)]
    assert [row[:3] for row in rows(path)] == [("loss", 4, 0.5)]


def test_large_record_is_checked_and_passed_over(write, monkeypatch):
    monkeypatch.setattr(frames, "_LARGEST", 1000)
    monkeypatch.setattr("testing.cadence.readers.blocks.SIZE", 700)
    large = writers.frame(b"\x1a" + b"x" * 5000)
    data = version() + large + record(writers.simple_value("a", 1.0), step=3)
    assert rows(write(data, NAME)) == [("a", 3, 1.0, 3)]
    broken = data.replace(b"xxx", b"xyx", 1)
    assert problems(write(broken, NAME)) == [("corrupt", 2, 1)]
    assert problems(write(data[:3000], NAME)) == [("truncated", 2, 1)]


@pytest.mark.parametrize("size", [64, 100, 999])
def test_blocks_of_any_size(write, monkeypatch, size):
    monkeypatch.setattr("testing.cadence.readers.blocks.SIZE", size)
    path = write(writers.tensorboard_2(MOMENTS), NAME)
    assert [row[:3] for row in rows(path)] == EXPECTED
    assert problems(path) == []


@pytest.mark.parametrize("module", ["tensorboard.compat.proto", "google_crc32c"])
def test_missing_extra_is_one_line(write, monkeypatch, module):
    path = write(writers.tensorboard_1(MOMENTS), NAME)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UnreadableRun) as error:
        rows(path)
    assert str(error.value).startswith(f"{path}: an event file, and ")
    assert str(error.value).endswith("Try: pip install 'onbeat[tensorboard]'")
    assert "\n" not in str(error.value)


def test_written_by_tensorflow(tmp_path):
    tf = pytest.importorskip("tensorflow")
    with tf.summary.create_file_writer(str(tmp_path / "two")).as_default():
        for step in range(5):
            tf.summary.scalar("loss", 0.5 * step, step=step)
            tf.summary.histogram("h", [1.0, 2.0], step=step)
            tf.summary.text("t", "x", step=step)
    with tf.Graph().as_default():
        writer = tf.compat.v1.summary.FileWriter(str(tmp_path / "one"))
        for step in range(5):
            value = [tf.compat.v1.Summary.Value(tag="loss", simple_value=0.5 * step)]
            writer.add_summary(tf.compat.v1.Summary(value=value), step)
        writer.close()
    for name in ("one", "two"):
        (path,) = (tmp_path / name).iterdir()
        assert [row[:3] for row in rows(path)] == [
            ("loss", step, 0.5 * step) for step in range(5)
        ]
        assert problems(path) == []
        assert steps_of(tmp_path / name, "loss") == [0, 1, 2, 3, 4]

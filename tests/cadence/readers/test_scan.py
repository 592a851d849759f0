"""The scan of whole blocks decides nothing differently than line by line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testing.cadence.chunks import Chunk
from testing.cadence.readers import UnreadableRun, blocks, sieve, text
from testing.cadence.readers.blocks import Input
from testing.cadence.readers.scan import scan, scan_nothing

ABSL = "I1201 04:21:29.123456 140735171155776 export_utils.py:45] "
PREFIXES = st.sampled_from(
    [
        ABSL,
        "I1201 04:21:29.223456 140735171155776 export_utils.py:45] ",
        "I1201 04:21:29.123456 7 a.py:4] ",
        "I1201 04:21:29.123456     7 a.py:4] ",
        "W20241201 04:21:29.123456 77 a.py:4] ",
        "I1201 04:2x:29.123456 77 a.py:4] ",
        "I1201 04:21:29.123456 123456789012345678901 a.py:4] ",
        "I12",
        "INFO:absl:",
        "2024-12-01 04:21:29,123 - root - INFO - ",
        "[rank1]: ",
        "[Rank 1] ",
        "rank=1 ",
        "rank 1 ",
        "(worker pid=77) I1201 04:21:29.123456 140735 a.py:4] ",
        "",
        "  ",
        "    ## ",
        "x=3 ",
        "\x1b[32mI1201 04:21:29.123456 77 a.py:4]\x1b[0m ",
        "10%|#  | 1/10\rI1201 04:21:29.123456 77 a.py:4] ",
        "é ",
    ]
)
STEPS = st.sampled_from(
    [
        "0",
        "7",
        "07",
        "123456",
        "1234567",
        "12345678",
        "9" * 19,
        "9" * 20,
        "",
        "-1",
        "3]",
    ]
)
NAMES = st.sampled_from(
    [
        "loss",
        "AverageReturn",
        "EnvironmentSteps",
        "a b",
        " a",
        "a ",
        "é",
        "a=b",
        "",
        "n" * 8,
        "n" * 9,
        "n" * 64,
        "n" * 65,
        "n" * 300,
        "x [step=3] y",
        "step",
    ]
)
VALUES = st.sampled_from(
    [
        "1",
        "1.",
        "1.5",
        "-1.5",
        "+2",
        ".5",
        "1e-3",
        "1E5",
        "nan",
        "-inf",
        "95%",
        "1.2.3",
        "0.1234567890123456789",
        "1.12345678x",
        "1.1234567890123456x",
        "1." + "0" * 24,
        "1." + "0" * 25,
        "1." + "0" * 25 + "x",
        "12345678",
        "1-2",
        "tf.Tensor(1.5, shape=(), dtype=float32)",
        "[[1 2]",
        "",
        "None",
        "1 x",
        "1,5",
    ]
)
ENDS = st.sampled_from(["\n", ".\n", ".\r\n", " \n", ". \n", "..\n"])
GOOD = (ABSL, "3", "loss", "1.5", ".\n")


def lines(*odd):
    """Lines of the plain form with what is odd in some of its places."""
    parts = [st.just(good) for good in GOOD]
    for index in odd:
        parts[index] = COLUMNS[index]
    return st.builds("{}[step={}] {} = {}{}".format, *parts)


COLUMNS = (PREFIXES, STEPS, NAMES, VALUES, ENDS)
OTHERS = st.sampled_from(
    [
        "\n",
        "hello\n",
        "\t\t Return = 1.5\n",
        "Step = 5 \n",
        "step = 5: loss = 2\n",
        "loss = 2.5, step = 101 (0.4 sec)\n",
        "step by step\n",
        "\r\n",
        "x = 3\n",
    ]
)
HITS = st.one_of(*(lines(index) for index in range(5)), lines(*range(5)))
LINES = st.lists(st.one_of(HITS, OTHERS), max_size=30).flatmap(
    lambda some: st.lists(st.sampled_from(some or ["\n"]), max_size=60)
)


def outcome(path, scan):
    with Input(str(path)) as source:
        try:
            items = list(text.read(source, scan))
        except UnreadableRun:
            return "unreadable"
    chunks = [item for item in items if isinstance(item, Chunk)]
    writers = [chunk.series[code].writer for chunk in chunks for code in chunk.codes]
    events = [repr(event) for chunk in chunks for event in chunk.events()]
    marks = [mark for chunk in chunks for mark in chunk.nonfinite.tolist()]
    problems = [item for item in items if not isinstance(item, Chunk)]
    return events, writers, marks, problems


@settings(max_examples=300)
@given(
    body=LINES,
    size=st.sampled_from([1 << 7, 1 << 20]),
    full=st.sampled_from([1, 1 << 8, 1 << 20]),
    rare=st.sampled_from([0, 64, 256]),
    cut=st.booleans(),
)
def test_same_as_line_by_line(tmp_path_factory, body, size, full, rare, cut):
    path = tmp_path_factory.mktemp("scan") / "run.log"
    data = "".join(body).encode()
    path.write_bytes(data[:-1] if cut else data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "SIZE", size)
        patch.setattr(sieve, "RARE", len(data) + 1)
        expected = outcome(path, scan_nothing)
        patch.setattr(sieve, "FULL", full)
        patch.setattr(sieve, "RARE", rare)
        assert outcome(path, scan) == expected


def test_threads_of_several_words_are_told_apart(tmp_path):
    path = tmp_path / "run.log"
    threads = ["1111111122222222", "2222222211111111", "11111111222222223333", "1"]
    path.write_text(
        "".join(
            f"I1201 04:21:29.123456 {threads[n % 4]} a.py:4] [step={n}] loss = {n}.\n"
            for n in range(40)
        )
    )
    _, writers, _, _ = outcome(path, scan)
    assert writers == threads * 10


def test_a_record_ends_at_a_line_that_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(sieve, "RARE", 0)
    path = tmp_path / "run.log"
    path.write_text("Step = 5\n  loss = 1\nhello\n  size = 2\nStep = 6\n  loss = 3\n")
    events, *_ = outcome(path, scan)
    assert [event.partition(", source")[0] for event in events] == [
        "Event(kind='log', name='loss', step=5, value=1.0",
        "Event(kind='log', name='loss', step=6, value=3.0",
    ]

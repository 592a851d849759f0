"""Logs, with whatever stands around their lines."""

from __future__ import annotations

import math

import pytest

from testing.cadence.chunks import Chunk
from testing.cadence.readers import UnreadableRun, read
from tests.cadence.readers.outcome import events, formats, problems, rows, steps
from tests.cadence.readers.writers import absl_prefix

ABSL = absl_prefix(0)


def series_of(path):
    chunks = [item for item in read(path) if isinstance(item, Chunk)]
    return sorted({series for chunk in chunks for series in chunk.series})


def test_bandit_trainer_with_its_multi_line_records(write):
    path = write(
        f"{ABSL}[step=0] NumberOfEpisodes = 2.\n"
        f"{ABSL}[step=0] loss = 1.5.\n"
        f"{ABSL} \n\t\t NumberOfEpisodes = 2\n\t\t AverageReturn = 0.5\n"
        f"{ABSL}[step=1] NumberOfEpisodes = 4.\n"
    )
    assert rows(path) == [
        ("NumberOfEpisodes", 0, 2.0, 1),
        ("loss", 0, 1.5, 2),
        ("NumberOfEpisodes", 1, 4.0, 6),
    ]
    assert formats(path) == {"absl"}
    assert problems(path) == []


def test_record_with_a_step_in_its_first_line(write):
    path = write(
        f"{ABSL}Step = 200 \n\t\t NumberOfEpisodes = 2\n\t\t AverageReturn = 0.5\n"
        f"{ABSL}done\n\t\t Other = 7\n"
    )
    assert rows(path) == [
        ("NumberOfEpisodes", 200, 2.0, 2),
        ("AverageReturn", 200, 0.5, 3),
    ]


@pytest.mark.parametrize("size", [64, 100, 1 << 20])
def test_record_across_blocks(write, monkeypatch, size):
    monkeypatch.setattr("testing.cadence.readers.blocks.SIZE", size)
    pairs = "".join(f"\t\t m{i} = {i}\n" for i in range(50))
    path = write(f"{ABSL}Step = 7 \n{pairs}{ABSL}[step=8] loss = 1.\n")
    expected = [(f"m{i}", 7, float(i), i + 2) for i in range(50)]
    assert rows(path) == [*expected, ("loss", 8, 1.0, 52)]


def test_record_at_the_end(write):
    assert rows(write(f"{ABSL}Step = 7 \n\t\t a = 1")) == [("a", 7, 1.0, 2)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("step = 200: loss = 1.5", [("loss", 200, 1.5)]),
        ("step = 0: Average Return = 1.25", [("Average Return", 0, 1.25)]),
        ("step = 5, loss = 0.25", [("loss", 5, 0.25)]),
        ("Step: 5, loss: 1.5e-03, acc: 90%", [("loss", 5, 0.0015), ("acc", 5, 90.0)]),
        ("Step 5: loss=0.25 lr=1e-4", [("loss", 5, 0.25), ("lr", 5, 1e-4)]),
        ("Step 5/100: loss = 0.25", [("loss", 5, 0.25)]),
        ("global_step = 5, loss = 0.25", [("loss", 5, 0.25)]),
        (
            "INFO:tensorflow:loss = 2.5, step = 101 (0.432 sec)",
            [("loss", 101, 2.5)],
        ),
        (
            "INFO:tensorflow:Saving dict for global step 100: accuracy = 0.9, "
            "global_step = 100, loss = 0.3",
            [("accuracy", 100, 0.9), ("loss", 100, 0.3)],
        ),
        ("    ## step = 49: loss = 1.5", [("loss", 49, 1.5)]),
        ('    "step = 50: loss = 1.5\\n",', [("loss", 50, 1.5)]),
        (
            "2024-12-01 04:21:29,123 - root - INFO - step = 1: loss = 1.",
            [("loss", 1, 1.0)],
        ),
        (
            "[step=3] loss = tf.Tensor(1.5, shape=(), dtype=float32).",
            [("loss", 3, 1.5)],
        ),
        ("[step=3] loss = tensor(1.5, device='cuda:0').", [("loss", 3, 1.5)]),
        ("[step=3] loss = tensor([1.5]).", [("loss", 3, 1.5)]),
        ("[step=3] loss = array(1.5, dtype=float32).", [("loss", 3, 1.5)]),
        ("[step=3] loss = np.float64(1.5).", [("loss", 3, 1.5)]),
        (
            "[step=3] loss = <tf.Tensor: shape=(), dtype=float32, numpy=1.5>.",
            [("loss", 3, 1.5)],
        ),
        ("[step=3] loss = 2..", [("loss", 3, 2.0)]),
        ("[step=3] loss = -1.5E+3.", [("loss", 3, -1500.0)]),
        ("[step=3] accuracy = 95.5%.", [("accuracy", 3, 95.5)]),
        ("[step=3] loss = inf.", [("loss", 3, math.inf)]),
        ("[step=3] matrix = [[1 2].", [("matrix", 3, "[[1 2]")]),
        ("[step=12345678901] loss = 1.", [("loss", 12345678901, 1.0)]),
        ("\x1b[32mINFO\x1b[0m [step=3] loss = 1.5\x1b[0m", [("loss", 3, 1.5)]),
        ("10%|# | 1/10\r20%|## | 2/10\r[step=3] loss = 1.5.", [("loss", 3, 1.5)]),
    ],
)
def test_forms(write, line, expected):
    assert [row[:3] for row in rows(write(f"hello\n{line}\nbye\n"))] == expected


@pytest.mark.parametrize(
    "line",
    [
        "step by step",
        "num_steps = 20",
        "steps per second = 20",
        "100 steps: 7",
        "[step=3] checkpoint saved",
        "[step=] loss = 1.",
        "[step=99999999999999999999] loss = 1.",
        "Saving checkpoints for step 7 into run-3",
        "step = 3abc: loss = 2",
        "step = 3: time = 12:30:11",
    ],
)
def test_no_events(write, line):
    with pytest.raises(UnreadableRun, match="no line with a step and a value"):
        rows(write(f"{line}\n"))


@pytest.mark.parametrize("word", ["nan", "NaN", "-inf", "Infinity"])
def test_non_finite(write, word):
    path = write(f"[step=0] loss = 1.\n[step=1] loss = {word}.\n")
    (chunk,) = (item for item in read(path) if isinstance(item, Chunk))
    assert chunk.nonfinite.tolist() == [False, True]
    assert not math.isfinite(chunk.value(1))


def test_tensor_with_a_nan_is_non_finite(write):
    path = write(
        "[step=0] a = [1. nan].\n[step=1] a = [info 1].\n[step=2] a = [1 2].\n"
    )
    (chunk,) = (item for item in read(path) if isinstance(item, Chunk))
    assert chunk.nonfinite.tolist() == [True, False, False]


class TestDoubleLines:
    """Both handlers of one process writing every line."""

    def test_two_handlers(self, write):
        body = [f"[step={i}] loss = {i / 7}." for i in range(4)]
        path = write("".join(f"{ABSL}{x}\nINFO:absl:{x}\n" for x in body))
        assert [(row[1], row[3]) for row in rows(path)] == [
            (0, 1), (1, 3), (2, 5), (3, 7),
        ]  # fmt: skip
        assert problems(path) == [("double-line", 2, 4)]

    def test_the_same_handler_twice(self, write):
        path = write(f"{ABSL}[step=0] loss = 1.\n" * 2 + f"{ABSL}[step=1] loss = 1.\n")
        assert [row[1:] for row in rows(path)] == [(0, 1.0, 1), (1, 1.0, 3)]
        assert problems(path) == [("double-line", 2, 1)]

    def test_three_handlers(self, write):
        path = write(
            f"{ABSL}[step=0] a = 1.\nINFO:absl:[step=0] a = 1.\n[step=0] a = 1.\n"
        )
        assert len(rows(path)) == 1
        assert problems(path) == [("double-line", 2, 2)]

    def test_records(self, write):
        record = "Step = 5 \n\t\t loss = 1\n\t\t acc = 2\n"
        path = write(f"{ABSL}{record}INFO:absl:{record}{ABSL}end\n")
        assert [row[3] for row in rows(path)] == [2, 3]
        assert problems(path) == [("double-line", 4, 1)]

    @pytest.mark.parametrize("size", [50, 80, 128, 1000])
    def test_across_blocks(self, write, monkeypatch, size):
        monkeypatch.setattr("testing.cadence.readers.blocks.SIZE", size)
        body = [f"[step={i}] loss = {i / 7}." for i in range(20)]
        path = write("".join(f"{ABSL}{x}\nINFO:absl:{x}\n" for x in body))
        assert steps(path, "loss") == list(range(20))
        assert problems(path) == [("double-line", 2, 20)]

    def test_a_step_logged_twice_is_none(self, write):
        """Another time in the prefix: the trainer called its logger twice."""
        later = absl_prefix(500)
        path = write(f"{ABSL}[step=0] loss = 1.\n{later}[step=0] loss = 1.\n")
        assert steps(path, "loss") == [0, 0]
        assert problems(path) == []

    def test_logged_twice_by_two_handlers(self, write):
        later = absl_prefix(500)
        line = "[step=0] loss = 1.\n"
        path = write(f"{ABSL}{line}INFO:absl:{line}{later}{line}INFO:absl:{line}")
        assert steps(path, "loss") == [0, 0]
        assert problems(path) == [("double-line", 2, 2)]


def test_writers_are_told_apart(write):
    """Threads, ranks and processes, as absl, mpirun, Ray and torchrun name them."""
    prefixes = [ABSL, ABSL.replace("140735171155776", "    7"), "[1,3]<stdout>:"]
    prefixes += ["(Worker pid=77) ", f"[default0]:{ABSL}", "[rank1]: "]
    path = write("".join(f"{prefix}[step=0] loss = 1.5.\n" for prefix in prefixes))
    assert [series.writer for series in series_of(path)] == [
        "1,3",
        "140735171155776",
        "7",
        "Worker pid=77",
        "default0",
        "rank1",
    ]
    assert problems(path) == []


@pytest.mark.parametrize(
    "prefix",
    [
        "(RolloutWorker pid={}) ",
        "(RolloutWorker pid={}) " + ABSL,
        "[Rank {}] ",
        "[rank{}]: ",
        "[worker {}] " + ABSL,
        "rank={} ",
        "local_rank={}, ",
        "[1,{}]<stderr>:",
    ],
)
@pytest.mark.parametrize(
    "form", ["step = 5: loss = 1.5", "loss = 1.5, step = 5", "[step=5] loss = 1.5."]
)
def test_who_writes_is_no_value(write, prefix, form):
    path = write("".join(f"{prefix.format(rank)}{form}\n" for rank in (10, 11, 12)))
    assert [row[:3] for row in rows(path)] == [("loss", 5, 1.5)] * 3
    writers = [series.writer for series in series_of(path)]
    assert [writer[-2:] for writer in writers] == ["10", "11", "12"]


def test_places_survive_crlf_bom_and_utf16(write):
    lines = f"hello\n{ABSL}[step=0] loss = 1.5.\n\n[step=1] lösung = 2.\n"
    expected = [("loss", 0, 1.5, 2), ("lösung", 1, 2.0, 4)]
    crlf = lines.replace("\n", "\r\n")
    assert rows(write(crlf)) == expected
    assert rows(write(b"\xef\xbb\xbf" + crlf.encode())) == expected
    assert rows(write(crlf.encode("utf-16"))) == expected
    assert rows(write(crlf.encode("utf-8")[:-2])) == expected


def test_first_step_any(write):
    for first in (0, 1, 49, 50, 101):
        path = write("".join(f"step = {first + 50 * i}: loss = 1\n" for i in range(3)))
        assert steps(path, "loss") == [first, first + 50, first + 100]


def test_line_longer_than_a_block(write):
    long = "x" * (3 << 20)
    path = write(f"[step=0] a = 1.\n{long}[step=9] a = 9.\n[step=1] a = 1.\n")
    assert rows(path) == [("a", 0, 1.0, 1), ("a", 1, 1.0, 3)]


def test_notebook(write):
    path = write(
        '{\n "cells": [\n  {\n   "source": ["print(\'step = {0}: loss = {1}\')"],\n'
        '   "outputs": [{"text": [\n    "step = 200: loss = 1.5\\n",\n'
        '    "step = 400: loss = 1.25\\n"\n   ]}]\n  }\n ],\n "nbformat": 4\n}\n',
        "run.ipynb",
    )
    assert [row[:3] for row in rows(path)] == [("loss", 200, 1.5), ("loss", 400, 1.25)]


def test_bytes_that_are_no_text(write):
    path = write(b"\xff\xfa junk \xff\n[step=0] loss = 1.\n\x00\x00\n")
    assert [event.step for event in events(path)] == [0]


def test_what_a_progress_bar_wrote_over_names_no_writer(write):
    path = write(f"(worker pid=1) 10%|# | 1/10\r{ABSL}[step=3] loss = 1.5.\n")
    (series,) = series_of(path)
    assert (series.name, ABSL.split()[2]) == ("loss", series.writer)

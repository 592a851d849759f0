"""Logs, as trainers write them."""

from __future__ import annotations

import pytest

from testing.cadence.chunks import Chunk, Problem
from testing.cadence.readers import UnreadableRun, read

ABSL = "I1201 04:21:29.123456 140735171155776 export_utils.py:45] "


def events(path):
    chunks = [item for item in read(path) if isinstance(item, Chunk)]
    return [event for chunk in chunks for event in chunk.events()]


def rows(path):
    return [(e.name, e.step, e.value, e.source.place) for e in events(path)]


def problems(path):
    return [item for item in read(path) if isinstance(item, Problem)]


@pytest.fixture
def log(tmp_path):
    def write(text, name="run.log"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_bandit_trainer(log):
    path = log(
        f"{ABSL}[step=0] NumberOfEpisodes = 2.\n"
        f"{ABSL}hello\n"
        f"{ABSL}[step=0] loss = 1.5.\n"
    )
    assert rows(path) == [("NumberOfEpisodes", 0, 2.0, 1), ("loss", 0, 1.5, 3)]


def test_both_handlers(log):
    body = [f"[step={i}] loss = {i / 7}." for i in range(4)]
    path = log("".join(f"{ABSL}{line}\nINFO:absl:{line}\n" for line in body))
    assert [(row[1], row[3]) for row in rows(path)] == [(0, 1), (1, 3), (2, 5), (3, 7)]
    (problem,) = problems(path)
    assert (problem.kind, problem.source.place, problem.count) == ("double-line", 2, 4)


def test_nothing(log):
    with pytest.raises(UnreadableRun, match="no line with a step and a value"):
        rows(log("hello\n"))

"""Writers of one name: together or apart."""

from __future__ import annotations

import numpy as np
import pytest

from testing.cadence.chunks import Chunk, Series
from testing.cadence.survey import Survey


def survey(rows, size=1000):
    """Surveys rows of writer and step, so many to a chunk."""
    made = Survey("run.log")
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        table = {
            writer: code
            for code, writer in enumerate(dict.fromkeys(w for w, _ in part))
        }
        made.add(
            Chunk(
                "run.log",
                "text",
                tuple(Series("loss", writer) for writer in table),
                np.array([table[writer] for writer, _ in part], np.int64),
                np.array([step for _, step in part], np.int64),
                np.arange(start + 1, start + 1 + len(part)),
                np.arange(start, start + len(part)) / 7,
            )
        )
    made.close()
    return made


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_side_by_side(size):
    found = survey([(w, step) for step in range(9) for w in "ab"], size)
    assert [(b.name, b.count, b.last) for b in found.series] == [
        ("loss (a)", 9, 8),
        ("loss (b)", 9, 8),
    ]
    assert found.findings == ()


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_a_fault_of_one_of_them(size):
    rows = [(w, step) for step in range(9) for w in "ab" if (w, step) != ("b", 5)]
    (finding,) = survey(rows, size).findings
    assert (finding.kind, finding.series, finding.spot.step) == ("gap", "loss (b)", 5)


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_turns(size):
    found = survey([("abc"[step % 3], step) for step in range(30)], size)
    assert [(b.name, b.count, b.every) for b in found.series] == [("loss", 30, 1)]
    assert found.findings == ()


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_a_restarted_process_that_goes_on_is_fine(size):
    found = survey([("a" if step < 5 else "b", step) for step in range(9)], size)
    assert [(b.name, b.count) for b in found.series] == [("loss", 9)]
    assert found.findings == ()


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_a_restarted_process_that_begins_again(size):
    rows = [("a", step) for step in range(9)] + [("b", step) for step in range(9)]
    (finding,) = survey(rows, size).findings
    assert (finding.kind, finding.spot.place) == ("step-back", 10)
    assert finding.hint == "A restart without resume, or two runs in one file?"

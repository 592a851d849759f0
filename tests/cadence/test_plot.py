"""Pictures: drawn for any run, in each form, the same each time."""

from __future__ import annotations

import re
import sys

import pytest

from testing.cadence import plot
from testing.cadence.events import Event
from testing.cadence.survey import Survey
from tests.cadence.runs import bandit

pytest.importorskip("matplotlib")
STARTS = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}


def drawn(path, events, theme="light"):
    survey = Survey.of(events, "runs/first")
    plot.draw(survey, survey.findings, str(path), theme)
    return path.read_bytes()


@pytest.mark.parametrize("theme", plot.THEMES)
@pytest.mark.parametrize("suffix", STARTS)
def test_forms_and_themes(tmp_path, suffix, theme):
    data = drawn(tmp_path / f"beat{suffix}", bandit(drop=(9,)), theme)
    assert data.startswith(STARTS[suffix])
    if suffix == ".svg":
        assert plot.THEMES[theme].paper.encode() in data
        assert plot.THEMES[theme].beat.encode() in data


def texts(data):
    """matplotlib writes each text into a comment beside its outlines."""
    return set(re.findall(r"<!-- (.*?) -->", data.decode()))


def test_names_numbers_and_marks(tmp_path):
    seen = texts(drawn(tmp_path / "beat.svg", bandit(drop=(9,))))
    assert {"first", "loss", "AverageReturn", "20 values, every 1", "step"} <= seen
    assert {"gap (1)", "3 series, 59 values, steps 0 to 19; off: gap"} <= seen


def test_a_clean_run_has_no_legend(tmp_path):
    seen = texts(drawn(tmp_path / "beat.svg", bandit()))
    assert "3 series, 60 values, steps 0 to 19; in order" in seen
    assert not [text for text in seen if text.startswith("gap")]


def test_the_same_run_gives_the_same_picture(tmp_path):
    one = drawn(tmp_path / "one.svg", bandit())
    assert drawn(tmp_path / "two.svg", bandit()) == one


def test_every_kind_can_be_marked(tmp_path):
    steps = [0, 1, 2, 2, 3, 3, 3, 3, 4, 6, 7, 8, 5, 8, 9, 10, 11, 12, 13, 14]
    events = [Event("log", "a", step, n / 7) for n, step in enumerate(steps)]
    events += [Event("log", "b", step, float("nan")) for step in range(4, 9)]
    events += [Event("log", "c", step, step / 7) for step in range(30)]
    seen = texts(drawn(tmp_path / "beat.svg", events))
    kinds = {text.split(" (")[0] for text in seen}
    assert {"frozen-step", "duplicate-step", "step-back", "non-finite"} <= kinds


@pytest.mark.parametrize("count", [1, 2, 40, 200])
def test_any_number_of_series(tmp_path, count):
    names = [f"group/series_{i}" for i in range(count)]
    events = [Event("log", n, s, s / 7) for s in range(0, 90, 10) for n in names]
    seen = texts(drawn(tmp_path / "beat.svg", events))
    assert len([text for text in seen if "series_" in text]) == min(count, plot.MOST)
    assert (f"200 series ({plot.MOST} drawn)" in " ".join(seen)) == (count == 200)


def test_odd_names_and_steps(tmp_path):
    names = ["$x_1^", "a\nb\x1b", "n" * 200, "损失", "<&>"]
    events = [Event("log", name, 2**62, 1.0) for name in names]
    events += [Event("log", "loss", step, 1.0) for step in (-5, 2**62)]
    assert drawn(tmp_path / "beat.png", events).startswith(STARTS[".png"])


def test_no_series(tmp_path):
    with pytest.raises(plot.PlotError, match=r"^runs/first: there is no series"):
        drawn(tmp_path / "beat.svg", [])


def test_matplotlib_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(plot.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(plot.PlotError, match=r"pip install 'onbeat\[plot\]'"):
        plot.check("beat.svg")

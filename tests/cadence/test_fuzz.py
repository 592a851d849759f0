"""Whatever a file holds: an answer or one line, never a traceback."""

from __future__ import annotations

import io
import json
import math
import warnings
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testing.cadence import IRREGULARITIES, Cadence
from testing.cadence.__main__ import main
from testing.cadence.events import Event
from testing.cadence.show import FORMATS, Outcome, render, terminal
from testing.cadence.survey import Survey
from tests.cadence.readers import writers
from tests.cadence.survey.test_irregularities import healthy

STEPS = st.sampled_from([0, 1, 2, 3, 5, 10, -1, 2**62, -(2**62), 2**63 - 1, -(2**63)])
NAMES = st.sampled_from(["loss", "", "a\nb", "\x1b[31m", "<&\x00>", "損失", "epoch"])
VALUES = st.sampled_from([0.0, 0.5, math.nan, math.inf, "text", "[nan]", None])
KINDS = st.sampled_from(["log", "summary", "env.step"])
EVENTS = st.lists(
    st.builds(
        Event, st.sampled_from(["log", "summary", "env.step"]), NAMES, STEPS, VALUES
    ),
    max_size=40,
)


@settings(max_examples=200)
@given(EVENTS)
def test_any_events_can_be_surveyed_shown_and_recorded(events):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        survey = Survey.of(events, "run\x1b.log")
        rules = list(IRREGULARITIES)
        found = survey.series, survey.findings, rules
        outcome = Outcome("describe", "run\x1b.log", survey.events, *found)
        shown = {format: render(outcome, format) for format in FORMATS}
        terminal.show(outcome, io.StringIO())
        cadence = Cadence.infer(events)
        assert Cadence.from_toml(cadence.to_toml()) == cadence
        cadence.check(events)
    assert "\x1b" not in shown["text"] + shown["github"]
    assert len(json.loads(shown["json"])["series"]) == len(survey.series)
    ElementTree.fromstring(shown["junit"].split("\n", 1)[1])


@pytest.mark.parametrize("form", writers.FORMATS)
@settings(max_examples=20)
@given(data=st.data())
def test_mutated_files(tmp_path_factory, form, data):
    write, name = writers.FORMATS[form]
    content = bytearray(write(healthy()))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        piece = data.draw(st.binary(max_size=6))
        content[at : at + data.draw(st.integers(0, 40))] = piece
        if not content:
            break
    path = tmp_path_factory.mktemp("run") / name
    path.write_bytes(content)
    for format in FORMATS:
        assert main(["describe", str(path), "--format", format]) in (0, 1, 2)


@settings(max_examples=100)
@given(content=st.binary(max_size=300))
def test_random_files(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("run") / "run.log"
    path.write_bytes(content)
    assert main(["describe", str(path)]) in (0, 1, 2)
    assert main(["check", str(path), "--training-loops", "2"]) in (0, 1, 2)

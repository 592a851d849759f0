"""What is off in many series at once is said once."""

from __future__ import annotations

from testing.cadence.events import Event
from testing.cadence.findings import Finding, Spot
from testing.cadence.show import Outcome, text
from testing.cadence.show.groups import also, grouped
from testing.cadence.survey import Survey


def finding(kind="gap", series="a", step=3, place=1, seen="s"):
    return Finding(kind, seen, series, Spot(step, "run", place))


def test_one_kind_at_one_step():
    found = [finding(), finding(series="b", place=2), finding(step=4), finding("empty")]
    assert [len(group) for group in grouped(found)] == [2, 1, 1]


def test_findings_about_files_stay_apart():
    found = [finding(series="", place=place) for place in (1, 2)]
    assert len(grouped(found)) == 2


def test_names():
    assert also([finding()]) == ""
    assert also([finding(), finding(series="b")]) == "The same in b."
    many = [finding(series=str(n)) for n in range(9)]
    assert also(many) == "The same in 1, 2, 3, 4, 5, 6 and 2 more."


def test_a_lost_row_of_many_series_is_one_paragraph():
    names = [f"series_{n}" for n in range(40)]
    rows = [(name, step) for step in range(9) if step != 5 for name in names]
    survey = Survey.of(Event("log", name, step, step / 7) for name, step in rows)
    assert len(survey.findings) == 40
    outcome = Outcome("check", "run", 0, survey.series, survey.findings, [])
    assert text.render(outcome).count("gap: ") == 1

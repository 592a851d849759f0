"""docs/check_trainer.md says what the code does."""

from __future__ import annotations

import pathlib

import pytest

from testing.contracts.trainer.texts import CONTRACT
from tests.contracts import golden

ROOT = pathlib.Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "check_trainer.md").read_text(encoding="utf-8")


def test_all_rules_are_listed_in_their_words():
    table = TEXT.partition("## The rules")[2].partition("\n\n`only=")[0]
    rows = [row for row in table.splitlines() if row.startswith("| `")]
    assert rows == [f"| `{name}` | {text} |" for name, text in CONTRACT.items()]


@pytest.mark.parametrize("page", ["docs/check_trainer.md", "README.md"])
def test_the_report_shown_is_a_real_one(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    start = "```text\ntests.faulty.faults.LossBefore"
    report = text.partition(start)[2].partition("\n```")[0]
    golden.check("LossBefore", f"tests.faulty.faults.LossBefore{report}")

"""docs/check_trainer.md says what the code does."""

from __future__ import annotations

import pathlib

from testing.contracts.trainer.texts import CONTRACT
from tests.contracts import golden

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "check_trainer.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_all_rules_are_listed_in_their_words():
    table = TEXT.partition("## The rules")[2].partition("\n\n`only=")[0]
    rows = [row for row in table.splitlines() if row.startswith("| `")]
    assert rows == [f"| `{name}` | {text} |" for name, text in CONTRACT.items()]


def test_the_report_shown_is_a_real_one():
    report = TEXT.partition("```text\n")[2].partition("\n```")[0]
    golden.check("LossBefore", report)

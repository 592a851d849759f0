"""What the check finds in TF-Agents' own trainer, as docs/check_trainer.md lists it."""

from __future__ import annotations

import pathlib

from tf_agents.bandits.agents.examples.v2 import trainer

from testing.contracts import check_trainer

FOUND = {
    "summary-complete": "missing: 1 of Metrics/",
    "policy-final": "none such in: policy_28",
    "resume-continues": "again: 2, 3, 4, 5",
    "arguments-checked": "no error, files: events.out",
    "leaves-no-trace": "default summary writer: a ResourceSummaryWriter",
}
DOCS = pathlib.Path(__file__).parents[2] / "docs" / "check_trainer.md"


def test_these_rules_are_broken_and_no_other():
    report = check_trainer(trainer.train, raises=False)
    seen = {violation.rule: violation.seen for violation in report.violations}
    assert set(seen) == set(FOUND)
    for rule, text in FOUND.items():
        assert text in seen[rule]
    assert report.skipped == ()


def test_the_page_lists_each():
    page = DOCS.read_text(encoding="utf-8")
    section = page.partition("## TF-Agents' own trainer")[2].partition("\n## ")[0]
    for rule in FOUND:
        assert f"| `{rule}` |" in section
    assert section.count("\n| `") == len(FOUND)

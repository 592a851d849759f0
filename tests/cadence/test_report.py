"""Report: what a person reads when a check is done."""

from __future__ import annotations

from testing.cadence.report import Report, Skip, Violation

TEXT = """\
my.train: 1 rule broken (2 kept, 4 not exercised).

  loss-steps: The loss is logged at each step.
    expected  0 1
    seen      0 0
    where     line 2
                the second
    hint      was it captured once?

not exercised:
  summary-steps, summary-complete: no summaries were written
  policy-final: no policy is exported, and there is no argument by the name of
    save_policy to ask for one
  resume: it cannot

note: a process was killed"""


def report() -> Report:
    no_policy = (
        "no policy is exported, and there is no argument by the name of save_policy "
        "to ask for one"
    )
    return Report(
        "my.train",
        violations=(
            Violation(
                "loss-steps",
                "The loss is logged at each step.",
                "0 1",
                "0 0",
                "line 2\n  the second",
                "was it captured once?",
            ),
        ),
        passed=("in-order", "exactly-once"),
        skipped=(
            Skip("summary-steps", "no summaries were written"),
            Skip("policy-final", no_policy),
            Skip("summary-complete", "no summaries were written"),
            Skip("resume", "it cannot"),
        ),
        notes=("a process was killed",),
    )


def test_rules_skipped_for_one_reason_share_a_row():
    assert str(report()) == TEXT


def test_a_report_without_violations_is_ok():
    kept = Report("my.train", passed=("in-order",))
    assert kept.ok
    assert str(kept) == (
        "my.train: every rule that was exercised holds (1 kept, 0 not exercised)."
    )


def test_broken_names_each_rule_once():
    again = (*report().violations, *report().violations)
    assert Report("my.train", violations=again).broken == ("loss-steps",)

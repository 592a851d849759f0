"""The report that every check of Onbeat ends in."""

from __future__ import annotations

import dataclasses
import textwrap


@dataclasses.dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule.

    Attributes:
      rule: its stable name, for example `loss-steps`.
      contract: what must hold, in one sentence.
      expected: what the contract asks for here.
      seen: what was there instead.
      where: log line, file, record or step of the first difference.
      hint: the likely cause, or what to try.
    """

    rule: str
    contract: str
    expected: str
    seen: str
    where: str = ""
    hint: str = ""

    def __str__(self) -> str:
        rows = [
            ("expected", self.expected),
            ("seen", self.seen),
            ("where", self.where),
            ("hint", self.hint),
        ]
        body = [_row(label, text) for label, text in rows if text]
        return "\n".join([f"{self.rule}: {self.contract}", *body])


@dataclasses.dataclass(frozen=True, slots=True)
class Skip:
    """One rule that could not be exercised, and why."""

    rule: str
    reason: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.reason}"


@dataclasses.dataclass(frozen=True)
class Report:
    """What a check found: broken, kept and unexercised rules.

    Attributes:
      subject: what was checked, as a person would name it.
      violations: the broken rules; empty when the contract is kept.
      passed: names of the rules that were exercised and kept.
      skipped: rules that could not be exercised. Never counted as passed.
      notes: what the reader should know about how it was checked.
    """

    subject: str
    violations: tuple[Violation, ...] = ()
    passed: tuple[str, ...] = ()
    skipped: tuple[Skip, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True when no rule is broken. Skipped rules do not count."""
        return not self.violations

    @property
    def broken(self) -> tuple[str, ...]:
        """Names of the broken rules, each once, in the order they were found."""
        return tuple(dict.fromkeys(v.rule for v in self.violations))

    def __str__(self) -> str:
        parts = [self._headline()]
        parts += [_indent(str(violation)) for violation in self.violations]
        if self.skipped:
            parts.append("\n".join(["not exercised:", *self._skipped_rows()]))
        parts += [f"note: {note}" for note in self.notes]
        return "\n\n".join(parts)

    def _skipped_rows(self) -> list[str]:
        """Rules that share a reason share a row."""
        rules: dict[str, list[str]] = {}
        for skip in self.skipped:
            rules.setdefault(skip.reason, []).append(skip.rule)
        return [
            textwrap.fill(
                f"{', '.join(names)}: {reason}",
                width=88,
                initial_indent="  ",
                subsequent_indent="    ",
                break_on_hyphens=False,
            )
            for reason, names in rules.items()
        ]

    def _headline(self) -> str:
        counts = f"{len(self.passed)} kept, {len(self.skipped)} not exercised"
        if self.ok:
            return f"{self.subject}: every rule that was exercised holds ({counts})."
        rules = len(self.broken)
        noun = "rule" if rules == 1 else "rules"
        return f"{self.subject}: {rules} {noun} broken ({counts})."


def _row(label: str, text: str) -> str:
    """Aligns `text`, of one or more lines, behind its label."""
    first, *rest = text.splitlines() or [""]
    pad = " " * 12
    return "\n".join([f"  {label:<9} {first}", *(pad + line for line in rest)])


def _indent(text: str) -> str:
    return "\n".join("  " + line for line in text.splitlines())

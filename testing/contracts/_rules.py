"""What every contract is made of: rules, and a runner that reports them all."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NoReturn

from testing.cadence.report import Report, Skip, Violation


class ContractError(AssertionError):
    """A subject breaks its contract.

    Attributes:
      report: all rules: broken, kept and not exercised.
    """

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report


class Broken(Exception):
    """Raised by a check: its rule does not hold."""

    def __init__(
        self, expected: str, seen: str, where: str = "", hint: str = ""
    ) -> None:
        super().__init__(f"expected {expected}, seen {seen}")
        self.expected, self.seen, self.where, self.hint = expected, seen, where, hint


class NotExercised(Exception):
    """Raised by a check: its rule cannot be tried on this subject."""


def broken(expected: Any, seen: Any, where: str = "", hint: str = "") -> NoReturn:
    """Says that the rule does not hold."""
    raise Broken(_text(expected), _text(seen), where, hint)


def equal(expected: Any, seen: Any, where: str = "", hint: str = "") -> None:
    """Says so unless `seen` equals `expected`."""
    if expected != seen:
        broken(expected, seen, where, hint)


def not_exercised(reason: str) -> NoReturn:
    """Says that the rule cannot be tried, and why."""
    raise NotExercised(reason)


Check = Callable[[Any], None]


@dataclasses.dataclass(frozen=True)
class Rule:
    """One rule: its stable name, what it demands in one sentence, and its check."""

    name: str
    contract: str
    check: Check


class Rulebook:
    """The rules of one contract, in the order of their texts.

    CONTRACT = {"capacity": "The capacity is batch_size * max_length."}
    RULES = Rulebook(CONTRACT)

    @RULES.check("capacity")
    def _capacity(subject): equal(6, subject.buffer.capacity)
    """

    def __init__(self, contract: Mapping[str, str]) -> None:
        self.contract = contract
        self._checks: dict[str, Check] = {}

    def check(self, name: str) -> Callable[[Check], Check]:
        """Makes a function the check of the rule called `name`."""
        if name not in self.contract or name in self._checks:
            raise ValueError(f"{name!r} has no contract text, or a check already.")

        def register(function: Check) -> Check:
            self._checks[name] = function
            return function

        return register

    def __iter__(self) -> Iterator[Rule]:
        for name, text in self.contract.items():
            yield Rule(name, text, self._checks[name])

    def run(
        self,
        subject: Any,
        title: str,
        *,
        only: Collection[str] = (),
        skip: Collection[str] = (),
        raises: bool = True,
    ) -> Report:
        """Tries all rules on `subject`.

        Args:
          subject: what the checks get.
          title: what was checked, as a person would name it.
          only: names of the only rules to try; all if empty.
          skip: names of rules not to try; reported as skipped.
          raises: whether to raise when a rule is broken.

        Raises:
          ContractError: a rule is broken, and `raises` is true.
          ValueError: `only` or `skip` names a rule that does not exist.
        """
        for argument, names in (("only", only), ("skip", skip)):
            _known(argument, names, self.contract)
        violations: list[Violation] = []
        passed: list[str] = []
        skipped: list[Skip] = []
        for rule in self:
            if only and rule.name not in only:
                continue
            if rule.name in skip:
                skipped.append(Skip(rule.name, "left out by the caller"))
                continue
            outcome = _try(rule, subject)
            if outcome is None:
                passed.append(rule.name)
            elif isinstance(outcome, Skip):
                skipped.append(outcome)
            else:
                violations.append(outcome)
        report = Report(title, tuple(violations), tuple(passed), tuple(skipped))
        if raises and not report.ok:
            raise ContractError(report)
        return report


def _known(argument: str, names: Collection[str], contract: Mapping[str, str]) -> None:
    if isinstance(names, str):
        raise TypeError(f"{argument} is {names!r}. Allowed: a collection of rules.")
    unknown = [name for name in names if name not in contract]
    if unknown:
        raise ValueError(
            f"{argument} names {', '.join(map(repr, unknown))}. "
            f"Allowed: {', '.join(contract)}."
        )


def _try(rule: Rule, subject: Any) -> Violation | Skip | None:
    try:
        rule.check(subject)
    except Broken as found:
        return Violation(
            rule.name,
            rule.contract,
            found.expected,
            found.seen,
            found.where,
            found.hint,
        )
    except NotExercised as reason:
        return Skip(rule.name, str(reason))
    except Exception as error:
        seen = _first_line(f"{type(error).__name__}: {error}")
        return Violation(rule.name, rule.contract, "no error", seen, _where(error))
    return None


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), text)


def _where(error: BaseException) -> str:
    """The innermost place that the traceback knows."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)

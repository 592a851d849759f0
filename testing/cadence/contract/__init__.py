"""Cadence: the steps at which each series of a run must appear, and their order."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from testing.cadence.events import Event
    from testing.cadence.report import Report

ALLOWED = "allowed"
REFUSED = "refused"
# What each rule of a cadence asks for.
RULES = {
    "series-present": "Every series that the cadence names is logged.",
    "other-series": "No series is logged that the cadence does not name.",
    "series-steps": "A series is logged at the steps of its cadence, once each.",
    "series-order": "Within a block of steps the series follow in the order of the "
    "cadence.",
    "metric-steps": "Each metric is logged training_loops * async_steps_per_loop "
    "times, at 0, 1, 2, ..., once each.",
    "loss-steps": "The loss is logged training_loops * async_steps_per_loop times, "
    "at 0, 1, 2, ..., once each.",
    "event-order": "In each loop all metrics are logged, step by step, before all "
    "losses.",
}
LOSS = "loss"


class CadenceError(ValueError):
    """A cadence that cannot be. Its text is one line for the user."""


@dataclasses.dataclass(frozen=True, slots=True)
class Series:
    """The steps of one series.

    Attributes:
      name: the series, as it is logged.
      first: the first step; None if it may be any.
      every: the distance from step to step; None if it may vary.
      count: how many values; None if as many as there are.
      last: the last step; None if it may be any. Follows from the others if
        `first`, `every` and `count` are given.
      steps: all steps one by one, for a series without an even beat.
      rule: the rule that is broken where the steps differ.
    """

    name: str
    first: int | None = None
    every: int | None = None
    count: int | None = None
    last: int | None = None
    steps: tuple[int, ...] = ()
    rule: str = "series-steps"

    def __post_init__(self) -> None:
        for field, least in (("first", None), ("every", 1), ("count", 0)):
            _whole(self.name, field, getattr(self, field), least)
        _whole(self.name, "last", self.last, None)
        _rule(self.name, self.rule)
        if self.steps:
            self._check_steps()
        elif self.every is not None:
            self._check_even()

    def _check_steps(self) -> None:
        for step in self.steps:
            _whole(self.name, "steps", step, None)
        if list(self.steps) != sorted(set(self.steps)):
            raise _error(self.name, "steps", list(self.steps), "rising steps")
        others = ("first", "every", "count", "last")
        if any(getattr(self, other) is not None for other in others):
            text = "steps alone, or first, every, count and last"
            raise _error(self.name, "steps", list(self.steps), text)

    def _check_even(self) -> None:
        if self.first is None:
            raise _error(self.name, "first", None, "an integer where every is given")
        if self.count is None and self.last is None:
            return
        every = self.every or 1
        if self.count is None:
            end = self.last or 0
            if end < self.first or (end - self.first) % every:
                text = f"{self.first} plus a multiple of {every}"
                raise _error(self.name, "last", self.last, text)
            object.__setattr__(self, "count", (end - self.first) // every + 1)
        end = self.first + ((self.count or 0) - 1) * every
        if self.last not in (None, end):
            text = f"{end}, which first, every and count make, or nothing"
            raise _error(self.name, "last", self.last, text)
        object.__setattr__(self, "last", end if self.count else None)

    def __str__(self) -> str:
        return f"{self.name} {self.words}"

    @property
    def words(self) -> str:
        """The steps as a person would say them."""
        if self.count == 0:
            return "never"
        if self.steps:
            return f"at {_listed(self.steps)}"
        if self.every is None:
            return self._loose()
        start = [self.first or 0, (self.first or 0) + self.every]
        if self.count is None:
            return f"at {_listed(start)}, ..."
        times = "once" if self.count == 1 else f"{self.count:,} times"
        steps = [(self.first or 0) + self.every * i for i in range(min(self.count, 4))]
        if self.count <= 4:
            return f"at {_listed(steps)} ({times})"
        return f"at {_listed(steps[:3])}, ..., {self.last} ({times})"

    def _loose(self) -> str:
        parts = []
        if self.count is not None:
            parts.append("once" if self.count == 1 else f"{self.count:,} times")
        if self.first is not None:
            parts.append(f"from step {self.first}")
        if self.last is not None and self.count != 1:
            parts.append(f"to step {self.last}")
        return ", ".join(parts) or "at any step"


@dataclasses.dataclass(frozen=True, slots=True)
class Order:
    """The order of the series within blocks of steps.

    Steps are cut into blocks of `block` steps, from `first` on. A block ends
    before the next begins. In each, the phases follow one another; in a phase,
    the steps rise; at a step, the series come in the order they are named in.

    Attributes:
      phases: names of series, phase by phase.
      block: steps in a block: 1, or `async_steps_per_loop` of a bandit trainer.
      first: the step the first block starts at.
      rule: the rule that is broken where the order differs.
    """

    phases: tuple[tuple[str, ...], ...]
    block: int = 1
    first: int = 0
    rule: str = "series-order"

    def __post_init__(self) -> None:
        _whole("order", "block", self.block, 1)
        _whole("order", "first", self.first, None)
        _rule("order", self.rule)
        names = [name for phase in self.phases for name in phase]
        if len(names) != len(set(names)):
            raise _error("order", "phases", list(self.phases), "each name once")

    @property
    def words(self) -> str:
        """The order as a person would say it."""
        phases = ", then ".join(", ".join(phase) for phase in self.phases)
        steps = "step" if self.block == 1 else f"{self.block} steps"
        return f"in each block of {steps}: {phases}"


@dataclasses.dataclass(frozen=True, slots=True)
class Cadence:
    """What a run must log, and when.

        Cadence.bandit(training_loops=5, async_steps_per_loop=4)
        Cadence.infer(events)
        Cadence.load("cadence.toml")
        cadence.check("runs/first").ok

    Attributes:
      series: the series and their steps.
      order: their order; None if it may be any.
      others: whether series may appear that are not named: `allowed` or
        `refused`.

    Raises:
      CadenceError: two series of one name, or `others` is something else.
    """

    series: tuple[Series, ...] = ()
    order: Order | None = None
    others: str = ALLOWED

    def __post_init__(self) -> None:
        names = [series.name for series in self.series]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise _error("cadence", "series", twice[0], "each name once")
        if self.others not in (ALLOWED, REFUSED):
            text = f"{ALLOWED!r} or {REFUSED!r}"
            raise _error("cadence", "others", self.others, text)

    def __getitem__(self, name: str) -> Series:
        for series in self.series:
            if series.name == name:
                return series
        raise KeyError(name)

    @classmethod
    def bandit(
        cls,
        training_loops: int,
        async_steps_per_loop: int | None = 1,
        metrics: Sequence[str] = (),
        *,
        loss: str = LOSS,
    ) -> Cadence:
        """The cadence of the TF-Agents bandit trainer.

        Args:
          training_loops: number of loops, at least 0.
          async_steps_per_loop: driver runs, and train steps, per loop, at least
            1; None means 1.
          metrics: names of metrics that must be logged. Others may be.
          loss: the name the loss is logged under.

        Raises:
          CadenceError: a number is no integer or too small.
        """
        steps = 1 if async_steps_per_loop is None else async_steps_per_loop
        _whole("cadence", "training_loops", training_loops, 0)
        _whole("cadence", "async_steps_per_loop", steps, 1)
        if isinstance(metrics, str):
            text = "names in a list or tuple"
            raise _error("cadence", "metrics", metrics, text)
        count = training_loops * steps
        series = [Series(name, 0, 1, count, rule="metric-steps") for name in metrics]
        series.append(Series(loss, 0, 1, count, rule="loss-steps"))
        phases = (tuple(metrics), (loss,)) if metrics else ((loss,),)
        return cls(tuple(series), Order(phases, steps, rule="event-order"))

    @classmethod
    def infer(cls, events: Iterable[Event]) -> Cadence:
        """The cadence that `events` (of the kinds log and summary) keep.

        Series with an even beat get first, every and count, short ones without
        their steps one by one, long ones first, count and last. The order is
        part of it if the whole run keeps one.
        """
        from testing.cadence.contract.infer import Recorder
        from testing.cadence.survey.columns import chunks_of

        recorder = Recorder()
        for chunk in chunks_of(events):
            recorder.add(chunk)
        return recorder.close()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Cadence:
        """Reads a TOML file. Raises CadenceError, or OSError if there is none."""
        from testing.cadence.contract import toml

        with open(path, "rb") as file:
            return toml.parse(file.read(), os.fspath(path))

    @classmethod
    def from_toml(cls, text: str) -> Cadence:
        """Reads TOML. Raises CadenceError."""
        from testing.cadence.contract import toml

        return toml.parse(text.encode(), "cadence")

    def to_toml(self) -> str:
        """The cadence as TOML that a person can read and change."""
        from testing.cadence.contract import toml

        return toml.dump(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the TOML file."""
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(self.to_toml())

    def check(
        self,
        run: str
        | os.PathLike[str]
        | Sequence[str | os.PathLike[str]]
        | Iterable[Event],
    ) -> Report:
        """Compares a run with the cadence.

        Args:
          run: a file or directory that `readers.read` understands, a list with the
            log of each process, or events.

        Returns:
          A report with the rules of `RULES` that are kept or broken.

        Raises:
          UnreadableRun: nothing can be made of the path.
        """
        from testing.cadence.contract.check import check

        return check(self, run)


def _whole(owner: str, field: str, value: Any, least: int | None) -> None:
    """Raises unless `value` is None or an integer of at least `least`."""
    if value is None:
        return
    fits = isinstance(value, int) and not isinstance(value, bool)
    if not fits or (least is not None and value < least):
        text = "an integer" if least is None else f"an integer of at least {least}"
        raise _error(owner, field, value, text)


def _rule(owner: str, rule: Any) -> None:
    if not isinstance(rule, str) or rule not in RULES:
        raise _error(owner, "rule", rule, ", ".join(RULES))


def _error(owner: str, field: str, value: Any, allowed: str) -> CadenceError:
    return CadenceError(f"{owner}: {field} is {value!r}. Allowed: {allowed}.")


def _listed(steps: Sequence[int]) -> str:
    shown = [str(step) for step in steps[:8]]
    if len(steps) > 8:
        shown += ["...", str(steps[-1])]
    return ", ".join(shown)

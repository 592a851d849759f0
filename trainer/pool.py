"""Shares the driver runs of a loop out among collectors, and gets each one once.

Knows nothing of Ray or TensorFlow: a `Backend` starts and reaches collectors.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from absl import logging

from trainer.collectors import Collected, Failure, Ready


class CollectorError(RuntimeError):
    """Collectors failed, or all of them died.

    Attributes:
      collector: number of the collector that failed last.
    """

    def __init__(self, message: str, collector: int) -> None:
        super().__init__(message)
        self.collector = collector


class Lost(Exception):
    """A collector died; the text says how, as far as it is known."""


class Backend(Protocol):
    """How collectors are started and reached. Handles and refs are the backend's."""

    def start(self, number: int) -> tuple[Any, Any]:
        """Starts a collector. Returns its handle and a ref to its `Ready`."""

    def put(self, values: Sequence[Any]) -> Any:
        """Makes values available to all collectors, once. Returns what `run` takes."""

    def run(self, handle: Any, version: int, values: Any) -> Any:
        """Asks for a driver run, after those asked for before. Returns a ref."""

    def wait(self, refs: Sequence[Any], timeout: float) -> list[Any]:
        """Waits for the first of some refs; none are returned after `timeout` s."""

    def get(self, ref: Any) -> Any:
        """What came of it. Raises Lost."""

    def stop(self, handles: Sequence[Any], *, kindly: bool = False) -> None:
        """Ends collectors, also those that hang; `kindly`: closes environments."""


@dataclasses.dataclass(eq=False)
class _Member:
    slot: int
    number: int
    handle: Any
    due: float  # When to say that it is slow.
    since: float  # When it began with what it is doing.
    is_ready: bool = False
    is_alive: bool = True
    in_loop: bool = False
    runs: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class _Task:
    member: _Member
    run: int | None = None  # None: getting ready.
    version: int = 0


class Pool:
    """Collectors at work.

    Driver run `j` goes to collector `j` modulo their number, so that equal seeds make
    equal runs. When one dies, those left make its unfinished runs of this loop; a
    replacement takes its place as soon as it is ready. What a collector made before
    it died counts; nothing counts twice.
    """

    def __init__(
        self,
        backend: Backend,
        size: int,
        *,
        slow_after: float = 30.0,
        max_replacements: int = 10,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Starts `size` collectors.

        Args:
          backend: starts and reaches them.
          size: how many there are.
          slow_after: after so many seconds it is said whom the loop is waiting for.
          max_replacements: how many collectors are replaced in all.
          clock: tells seconds.
        """
        self._backend = backend
        self._slow_after = slow_after
        self._replacements = max_replacements
        self._clock = clock
        self._next_number = 0
        self._tasks: dict[Any, _Task] = {}
        self._done: dict[int, Collected] = {}
        self._version = 0
        self._values: Any = None
        self._runs = 0
        self._members: list[_Member] = []
        for slot in range(size):
            self._members.append(self._start(slot))

    def begin(self, values: Sequence[Any], runs: int) -> None:
        """Begins a loop of `runs` driver runs with the policy's new values."""
        self._version += 1
        self._runs = runs
        self._done.clear()
        self._values = self._backend.put(values)
        self._look(0.0)
        team = [m for m in self._members if m.is_alive and _can_work(m, self._members)]
        for member in self._members:
            member.in_loop = member in team
        if not team:
            raise self._all_died(self._members[-1], "no collector is left")
        for run in range(runs):
            self._ask(team[run % len(team)], run)

    def result(self, run: int) -> Collected:
        """The experience of driver run `run` of this loop; waits for it.

        Raises:
          CollectorError: agent, policy or environment raised an exception in a
            collector, or all collectors died.
        """
        while run not in self._done:
            due = min(member.due for member in self._busy())
            self._look(max(due - self._clock(), 0.0))
            self._tell_of_slow_ones()
        return self._done.pop(run)

    def close(self) -> None:
        """Ends all collectors."""
        handles = [member.handle for member in self._members]
        self._backend.stop(handles, kindly=not self._tasks)
        self._members.clear()
        self._tasks.clear()
        self._done.clear()

    def _start(self, slot: int) -> _Member:
        number, self._next_number = self._next_number, self._next_number + 1
        handle, ref = self._backend.start(number)
        now = self._clock()
        member = _Member(slot, number, handle, now + self._slow_after, now)
        self._tasks[ref] = _Task(member)
        return member

    def _ask(self, member: _Member, run: int) -> None:
        if not member.runs and member.is_ready:
            self._restart_clock(member)
        member.runs.append(run)
        ref = self._backend.run(member.handle, self._version, self._values)
        self._tasks[ref] = _Task(member, run, self._version)

    def _restart_clock(self, member: _Member) -> None:
        member.since = self._clock()
        member.due = member.since + self._slow_after

    def _look(self, timeout: float) -> None:
        if not self._tasks:
            return
        for ref in self._backend.wait(list(self._tasks), timeout):
            task = self._tasks.pop(ref)
            try:
                self._take(task, self._backend.get(ref))
            except Lost as lost:
                self._lose(task, str(lost))

    def _take(self, task: _Task, outcome: Any) -> None:
        member = task.member
        if isinstance(outcome, Failure):
            raise _failed(task, outcome, self._runs) from outcome.exception()
        if task.run is not None:
            member.runs.remove(task.run)
        self._restart_clock(member)
        if isinstance(outcome, Ready):
            member.is_ready = True
        elif task.run is not None and task.version == self._version:
            self._done[task.run] = outcome

    def _lose(self, task: _Task, reason: str) -> None:
        if task.member.is_alive:
            self._bury(task.member, reason)
        if task.run is None or task.version != self._version:
            return
        survivors = [
            m for m in self._members if m.is_alive and (m.in_loop or m.is_ready)
        ]
        if not survivors:
            raise self._all_died(task.member, reason)
        self._ask(min(survivors, key=lambda m: len(m.runs)), task.run)

    def _bury(self, member: _Member, reason: str) -> None:
        member.is_alive = member.in_loop = False
        self._backend.stop([member.handle])
        logging.warning(
            "Collector %d died: %s. Its unfinished driver runs are made again by the "
            "other collectors.",
            member.number,
            reason,
        )
        if self._replacements > 0:
            self._replacements -= 1
            self._members[member.slot] = self._start(member.slot)

    def _busy(self) -> list[_Member]:
        return [m for m in self._members if m.is_alive and (m.runs or not m.is_ready)]

    def _tell_of_slow_ones(self) -> None:
        now = self._clock()
        for member in self._busy():
            if member.due <= now:
                member.due = now + self._slow_after
                doing = "getting ready"
                if member.is_ready:
                    doing = f"making driver run {member.runs[0] + 1} of {self._runs}"
                logging.warning(
                    "Collector %d has been %s for %.0f s. %s",
                    member.number,
                    doing,
                    now - member.since,
                    "The loop waits for it."
                    if member.runs
                    else "No loop waits for it.",
                )

    def _all_died(self, member: _Member, reason: str) -> CollectorError:
        return CollectorError(
            f"All collectors died, the last one was collector {member.number}: "
            f"{reason}. The checkpoint of the last finished loop is intact: call "
            "again to go on from there. If they died one after the other, look at "
            "memory first, then at the environment's own processes and libraries.",
            member.number,
        )


def _can_work(member: _Member, members: Sequence[_Member]) -> bool:
    """Nobody waits for a replacement; all wait for the first ones."""
    return member.is_ready or member.number < len(members)


def _failed(task: _Task, failure: Failure, runs: int) -> CollectorError:
    doing = "while it made agent and environment"
    if task.run is not None:
        doing = f"in driver run {task.run + 1} of {runs}"
    number = task.member.number
    return CollectorError(
        f"Collector {number} failed {doing}: {failure.summary}\n"
        f"Traceback of collector {number}:\n{failure.trace}",
        number,
    )

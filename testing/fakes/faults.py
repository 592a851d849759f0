"""FaultPlan: faults that happen at the n-th call. No TensorFlow."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import functools
import logging
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from testing.cadence.events import KINDS
from testing.fakes import _series

WHEN = ("before", "inside", "after")


class InjectedFault(RuntimeError):
    """The default error of `FaultPlan.raise_at`."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """One planned fault.

    Attributes:
      effect: `raise`, `nan`, `stall`, `disk full` or `kill`.
      kind: the kind of event it happens at.
      call: the call it happens at, counted from 0.
      when: `before`, `inside` or `after` that call.
      name: only calls of this name are counted; all if None.
    """

    effect: str
    kind: str
    call: int
    when: str = "before"
    name: str | None = None
    act: Callable[[], None] = dataclasses.field(
        default=lambda: None, repr=False, compare=False
    )

    def __str__(self) -> str:
        name = "" if self.name is None else f" of {self.name}"
        return f"{self.effect} {self.when} call {self.call} of {self.kind}{name}"


class FaultPlan:
    """Which faults happen at which call.

    Every fake takes a `faults=`:

        faults = FaultPlan()
        faults.raise_at("agent.train", 3)
        faults.nan_at("env.step", 5)
        agent = CountingAgent(environment, faults=faults)

    A call is one event's worth of work (`driver.run`, `agent.train`, a `log` line, a
    `checkpoint.save`, ...). Calls are counted from 0, per kind, over all parts that
    share the plan; with `name`, over the calls of that name only. Each fault happens
    once. `around` and `around_log` reach the same points in real code.

    Attributes:
      fired: the faults that happened, oldest first.
      pending: those that have not, in the order of planning.
      sleep: how it stalls; replace it in a test of the plan itself.
      kill: how it kills, given a signal; the same.
    """

    def __init__(self) -> None:
        self.sleep: Callable[[float], Any] = time.sleep
        self.kill: Callable[[int], Any] = functools.partial(os.kill, os.getpid())
        self._lock = threading.RLock()
        self._planned: list[Fault] = []
        self._fired: list[Fault] = []
        self._calls: dict[tuple[str, str | None], int] = {}

    # Planning.

    def raise_at(
        self,
        kind: str,
        call: int,
        error: BaseException | None = None,
        *,
        when: str = "before",
        name: str | None = None,
    ) -> None:
        """Raises `error`, by default an `InjectedFault` that says where."""

        def act() -> None:
            where = f"{when} call {call} of {kind}"
            raise error or InjectedFault(f"Injected fault {where}.")

        self._plan(Fault("raise", kind, call, when, name, act))

    def nan_at(self, kind: str, call: int, *, name: str | None = None) -> None:
        """Makes what that call returns NaN: a loss, rewards, a metric's value."""
        self._plan(Fault("nan", kind, call, "inside", name))

    def stall_at(
        self,
        kind: str,
        call: int,
        seconds: float,
        *,
        until: threading.Event | None = None,
        when: str = "before",
        name: str | None = None,
    ) -> None:
        """Waits `seconds`, or until the event is set if that comes first."""

        def act() -> None:
            if until is None:
                self.sleep(seconds)
            else:
                until.wait(seconds)

        self._plan(Fault("stall", kind, call, when, name, act))

    def disk_full_at(
        self, kind: str, call: int, *, when: str = "inside", name: str | None = None
    ) -> None:
        """Raises the OSError of a full disk. Writers leave half a file behind."""

        def act() -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        self._plan(Fault("disk full", kind, call, when, name, act))

    def kill_at(
        self,
        kind: str,
        call: int,
        *,
        when: str = "before",
        name: str | None = None,
        signum: int = signal.SIGKILL,
    ) -> None:
        """Kills the process. Nothing is flushed, no `finally` runs."""
        act = functools.partial(self._kill, signum)
        self._plan(Fault("kill", kind, call, when, name, act))

    def _kill(self, signum: int) -> None:
        self.kill(signum)

    def _plan(self, fault: Fault) -> None:
        if fault.kind not in KINDS:
            allowed = ", ".join(sorted(KINDS))
            raise ValueError(f"kind is {fault.kind!r}. Allowed: {allowed}.")
        if fault.when not in WHEN:
            raise ValueError(f"when is {fault.when!r}. Allowed: {', '.join(WHEN)}.")
        if isinstance(fault.call, bool) or not isinstance(fault.call, int):
            raise TypeError(f"call is {fault.call!r}. Allowed: an integer from 0.")
        if fault.call < 0:
            raise ValueError(f"call is {fault.call!r}. Allowed: an integer from 0.")
        with self._lock:
            self._planned.append(fault)

    # Happening.

    @property
    def fired(self) -> tuple[Fault, ...]:
        with self._lock:
            return tuple(self._fired)

    @property
    def pending(self) -> tuple[Fault, ...]:
        with self._lock:
            return tuple(self._planned)

    def reach(self, kind: str, when: str, name: str = "") -> None:
        """Tells the plan that a call has come so far. `before` starts a new call.

        Raises:
          Whatever is planned there.
        """
        for fault in self._due(kind, when, name):
            fault.act()

    def corrupt(self, kind: str, value: Any, name: str = "") -> Any:
        """The value that the current call returns, or NaN where that is planned.

        Args:
          kind: the kind of call.
          value: a number or a list of numbers.
          name: the call's name.
        """
        if not self._due(kind, "inside", name, nan=True):
            return value
        return [math.nan] * len(value) if isinstance(value, list) else math.nan

    def _due(
        self, kind: str, when: str, name: str, *, nan: bool = False
    ) -> list[Fault]:
        """Takes the faults of this point off the plan."""
        with self._lock:
            keys = {(kind, None), (kind, name)}
            if when == "before":
                for key in keys:
                    self._calls[key] = self._calls.get(key, -1) + 1
            due = [
                fault
                for fault in self._planned
                if (fault.kind, fault.when) == (kind, when)
                and (fault.kind, fault.name) in keys
                and fault.call == self._calls.get((kind, fault.name), -1)
                and (fault.effect == "nan") == nan
            ]
            self._planned = [f for f in self._planned if f not in due]
            self._fired += due
            return due

    # Reaching points in real code.

    @contextlib.contextmanager
    def around(
        self,
        owner: Any,
        attribute: str,
        kind: str,
        *,
        inside: tuple[Any, str] | None = None,
        name_of: Callable[..., str] = lambda *args, **kwargs: "",
    ) -> Iterator[None]:
        """Makes each call of `owner.attribute` a call of this plan, while open.

            with faults.around(tf.train.CheckpointManager, "save", "checkpoint.save"):

        Args:
          owner: module, class or object.
          attribute: name of the function to wrap.
          kind: the kind its calls are counted as.
          inside: owner and name of a function that the call calls; `inside` is
            reached when that one has returned.
          name_of: gets the call's arguments, returns its name.
        """
        original = getattr(owner, attribute)

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            name = name_of(*args, **kwargs)
            self.reach(kind, "before", name)
            result = original(*args, **kwargs)
            self.reach(kind, "after", name)
            return result

        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.object(owner, attribute, call))
            if inside is not None:
                stack.enter_context(self._inside(*inside, kind))
            yield

    @contextlib.contextmanager
    def _inside(self, owner: Any, attribute: str, kind: str) -> Iterator[None]:
        original = getattr(owner, attribute)

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            self.reach(kind, "inside")
            return result

        with mock.patch.object(owner, attribute, call):
            yield

    def around_log(self, logger: logging.Logger | None = None) -> Any:
        """`around` for each record of a logger, by default absl's.

        The name of a call is the series of its line: `loss`, `AverageReturn`, ...
        """

        def name_of(record: logging.LogRecord) -> str:
            series = _series.parse(record.getMessage())
            return "" if series is None else series[1]

        logger = logging.getLogger("absl") if logger is None else logger
        return self.around(logger, "handle", "log", name_of=name_of)

    def __repr__(self) -> str:
        fired = ", ".join(map(str, self.fired)) or "none"
        pending = ", ".join(map(str, self.pending)) or "none"
        return f"<FaultPlan: happened: {fired}; to come: {pending}>"

"""A progress bar on a terminal; nothing in a pipe or in CI."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol


class Bar(Protocol):
    """Counts finished loops."""

    def advance(self, interactions: int) -> None:
        """One more loop is finished, of so many interactions."""


class _NoBar:
    def advance(self, interactions: int) -> None:
        """Shows nothing."""


class _RichBar:
    def __init__(self, progress: Any, task: Any, clock: Callable[[], float]) -> None:
        self._progress = progress
        self._task = task
        self._clock = clock
        self._start = clock()
        self._interactions = 0

    def advance(self, interactions: int) -> None:
        self._interactions += interactions
        seconds = max(self._clock() - self._start, 1e-9)
        self._progress.update(
            self._task, advance=1, rate=shown(self._interactions / seconds)
        )


def shown(rate: float) -> str:
    """Interactions per second, for people."""
    digits = 0 if rate >= 10 else 1
    return f"{rate:,.{digits}f} interactions/s"


@contextlib.contextmanager
def bar(
    first: int,
    last: int,
    show: bool | None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Bar]:
    """Shows loops `first` to `last`, and the speed, while the context is open.

    Args:
      first: loops that were finished before.
      last: loops that will be finished in the end.
      show: None: only if standard error is a terminal and `CI` is not set.
      clock: tells seconds.
    """
    if show is None:
        show = sys.stderr.isatty() and not os.environ.get("CI")
    if not show:
        yield _NoBar()
        return
    # Only here: most runs show no bar.
    import rich.console
    import rich.progress

    columns = (
        rich.progress.TextColumn("training loops"),
        rich.progress.BarColumn(),
        rich.progress.MofNCompleteColumn(),
        rich.progress.TextColumn("{task.fields[rate]}"),
        rich.progress.TimeRemainingColumn(),
    )
    console = rich.console.Console(stderr=True)
    with rich.progress.Progress(*columns, console=console) as progress:
        task = progress.add_task("training loops", total=last, completed=first, rate="")
        yield _RichBar(progress, task, clock)

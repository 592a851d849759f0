"""A progress bar on a terminal; nothing in a pipe or in CI."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Protocol


class Bar(Protocol):
    """Counts finished loops."""

    def advance(self) -> None:
        """One more loop is finished."""


class _NoBar:
    def advance(self) -> None:
        """Shows nothing."""


class _RichBar:
    def __init__(self, progress: object, task: object) -> None:
        self._progress = progress
        self._task = task

    def advance(self) -> None:
        self._progress.advance(self._task)  # type: ignore[attr-defined]


@contextlib.contextmanager
def bar(first: int, last: int, show: bool | None) -> Iterator[Bar]:
    """Shows loops `first` to `last` while the context is open.

    Args:
      first: loops that were finished before.
      last: loops that will be finished in the end.
      show: None: only if standard error is a terminal and `CI` is not set.
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
        rich.progress.TimeRemainingColumn(),
    )
    console = rich.console.Console(stderr=True)
    with rich.progress.Progress(*columns, console=console) as progress:
        task = progress.add_task("training loops", total=last, completed=first)
        yield _RichBar(progress, task)

"""Collectors as Ray actors."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from typing import Any

from trainer import ray_session
from trainer.collectors import Collector, Failure, Ready, Recipe
from trainer.pool import Lost

_KINDLY = 5.0  # Seconds that environments get to close.
_LAST_WORDS = 5  # Lines.


class RayBackend:
    """Starts collectors on Ray and reaches them; see `pool.Backend`.

    Ray itself repeats nothing: only the pool knows what was made already.
    """

    def __init__(
        self, session: ray_session.Session, recipe: Recipe, cpus: float
    ) -> None:
        """Collectors are made from `recipe`; each asks the cluster for `cpus` CPUs.

        Raises:
          TypeError: a function of the recipe can't be sent to another process.
        """
        self._ray = session.ray
        self._logs = session.logs
        self._actor = session.ray.remote(
            num_cpus=cpus,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
        )(Collector)
        self._recipe = session.ray.put(recipe)
        self._handles: dict[Any, Any] = {}  # Of each ref.
        self._pids: dict[Any, int] = {}

    def start(self, number: int) -> tuple[Any, Any]:
        """Starts a collector; Ray finds a place for it when there is one."""
        actor = self._actor.remote(number)
        return actor, self._note(actor, actor.set_up.remote(self._recipe))

    def put(self, values: Sequence[Any]) -> Any:
        """Puts values into the object store, whence each node fetches them once."""
        return self._ray.put(list(values))

    def run(self, handle: Any, version: int, values: Any) -> Any:
        """Queues a driver run."""
        return self._note(handle, handle.run.remote(version, values))

    def wait(self, refs: Sequence[Any], timeout: float) -> list[Any]:
        """Waits for at least one ref, and returns all that are ready by then."""
        ready, _ = self._ray.wait(list(refs), num_returns=1, timeout=timeout)
        if ready:
            ready, _ = self._ray.wait(list(refs), num_returns=len(refs), timeout=0)
        return list(ready)

    def get(self, ref: Any) -> Any:
        """What came of a ref. Raises Lost."""
        errors = self._ray.exceptions
        handle = self._handles.pop(ref)
        try:
            outcome = self._ray.get(ref)
        except errors.RayTaskError as error:  # Not of ours: unpickling, for instance.
            return Failure(_first_line(error), str(error), None)
        except errors.RayError as error:
            raise Lost(_first_line(error) + self._last_words(handle)) from None
        if isinstance(outcome, Ready):
            self._pids[handle] = outcome.pid
        return outcome

    def stop(self, handles: Sequence[Any], *, kindly: bool = False) -> None:
        """Kills collectors; `kindly`: their environments may close first."""
        if kindly and handles:
            closed = [handle.close.remote() for handle in handles]
            self._ray.wait(closed, num_returns=len(closed), timeout=_KINDLY)
        for handle in handles:
            self._ray.kill(handle, no_restart=True)

    def _note(self, handle: Any, ref: Any) -> Any:
        self._handles[ref] = handle
        return ref

    def _last_words(self, handle: Any) -> str:
        """The last lines a collector printed to standard error, where they are kept."""
        if self._logs is None or handle not in self._pids:
            return ""
        pattern = os.path.join(self._logs, f"worker-*-{self._pids[handle]}.err")
        lines: list[str] = []
        for path in glob.glob(pattern):
            with open(path, errors="replace") as file:
                lines += [line.strip() for line in file.readlines()[-_LAST_WORDS:]]
        lines = [line for line in lines if line]
        return f" (its last words: {' / '.join(lines)})" if lines else ""


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".:") if lines else type(error).__name__

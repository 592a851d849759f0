"""Collectors without Ray: in this process, or made up altogether."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import Any

from trainer.collectors import Collected, Collector, Failure, Ready, Recipe
from trainer.pool import Lost


class InProcess:
    """Real collectors in this process, which do their work when they are waited for.

    Attributes:
      puts: the values that were made available, oldest first.
      stopped: numbers of the collectors that were ended.
    """

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self.puts: list[list[Any]] = []
        self.stopped: list[int] = []
        self.numbers: dict[Any, int] = {}

    def start(self, number: int) -> tuple[Any, Any]:
        collector = Collector(number)
        self.numbers[collector] = number
        return collector, lambda: collector.set_up(self._recipe)

    def put(self, values: Sequence[Any]) -> Any:
        self.puts.append(list(values))
        return self.puts[-1]

    def run(self, handle: Any, version: int, values: Any) -> Any:
        return lambda: handle.run(version, values)

    def wait(self, refs: Sequence[Any], timeout: float) -> list[Any]:
        return list(refs[:1])

    def get(self, ref: Any) -> Any:
        return ref()

    def stop(self, handles: Sequence[Any], *, kindly: bool = False) -> None:
        self.stopped += [self.numbers[handle] for handle in handles]


class Scripted:
    """Collectors that do nothing, when and as they are told.

    Attributes:
      now: the time, in seconds.
      choose: called with the numbers of the collectors that have something to do;
        returns which one does it, and whether it dies instead.
      delivered: version, driver run and collector of each result that was fetched.
      stopped: numbers of the collectors that were ended.
      alive: numbers of those that live.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.choose: Callable[[list[int]], tuple[int, bool] | None] = self.first
        self.delivered: list[tuple[int, int]] = []
        self.stopped: list[tuple[int, ...]] = []
        self.alive: set[int] = set()
        self.failing: dict[int, Failure] = {}
        self._queues: dict[int, collections.deque[_Ref]] = {}
        self._versions = 0

    @staticmethod
    def first(numbers: list[int]) -> tuple[int, bool] | None:
        return numbers[0], False

    def clock(self) -> float:
        return self.now

    def start(self, number: int) -> tuple[Any, Any]:
        self.alive.add(number)
        self._queues[number] = collections.deque()
        return number, self._queued(number, Ready(pid=number))

    def put(self, values: Sequence[Any]) -> Any:
        return tuple(values)

    def run(self, handle: int, version: int, values: Any) -> Any:
        return self._queued(handle, Collected(version, (handle, *values)))

    def wait(self, refs: Sequence[Any], timeout: float) -> list[Any]:
        if timeout > 0 and not any(ref.is_ready for ref in refs):
            self._advance(timeout)
        return [ref for ref in refs if ref.is_ready]

    def get(self, ref: Any) -> Any:
        assert ref.is_ready
        assert not ref.is_fetched, "a result is fetched twice"
        ref.is_fetched = True
        if ref.outcome is None:
            raise Lost(f"collector {ref.number} was killed")
        return ref.outcome

    def stop(self, handles: Sequence[Any], *, kindly: bool = False) -> None:
        self.stopped.append(tuple(handles))
        for handle in handles:
            self.kill(handle)

    def kill(self, number: int) -> None:
        self.alive.discard(number)
        for ref in self._queues[number]:
            ref.outcome, ref.is_ready = None, True
        self._queues[number].clear()

    def _queued(self, number: int, outcome: Any) -> _Ref:
        ref = _Ref(number, self.failing.get(number, outcome))
        if number in self.alive:
            self._queues[number].append(ref)
        else:
            ref.outcome, ref.is_ready = None, True
        return ref

    def _advance(self, timeout: float) -> None:
        busy = [number for number in sorted(self.alive) if self._queues[number]]
        chosen = self.choose(busy) if busy else None
        if chosen is None:
            self.now += timeout
        elif chosen[1]:
            self.kill(chosen[0])
        else:
            self._queues[chosen[0]].popleft().is_ready = True


class _Ref:
    def __init__(self, number: int, outcome: Any) -> None:
        self.number = number
        self.outcome = outcome
        self.is_ready = False
        self.is_fetched = False

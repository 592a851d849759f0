"""A timeline that looks around at each event, and ends runs that never would."""

from __future__ import annotations

from collections.abc import Callable

from testing.cadence.events import Event
from testing.fakes.timeline import Timeline

Probe = Callable[[Event], None]


class RunawayError(BaseException):
    """The trainer goes on and on. Not an Exception: nobody shall catch it."""


class Watch(Timeline):
    """A timeline with probes, which see each event when it happens.

    Attributes:
      probes: called with each event, in the thread in which it happens.
    """

    def __init__(self, limit: int) -> None:
        """Lets `limit` events happen; the next raises RunawayError."""
        super().__init__()
        self.probes: list[Probe] = []
        self._limit = limit

    def append(self, event: Event) -> None:
        super().append(event)
        for probe in self.probes:
            probe(event)
        if len(self) > self._limit:
            raise RunawayError(f"stopped after {self._limit} events")

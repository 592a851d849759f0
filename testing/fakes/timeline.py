"""Timeline: the ordered record of what fakes, logs and readers saw."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from testing.cadence.events import Event


class Timeline:
    """An ordered, thread-safe list of `Event`s that can be asked questions.

    Every fake takes a `timeline=`; give several the same one and their events
    stand in the order in which they happened:

        timeline = Timeline()
        agent = CountingAgent(environment, timeline=timeline)
        ...
        assert timeline.steps("log", "loss") == [0, 1, 2]
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._lock = threading.RLock()
        self._events: list[Event] = list(events)
        self._sources: list[Callable[[], Iterable[Event]]] = []

    def add(
        self,
        kind: str,
        name: str = "",
        step: int | None = None,
        value: Any = None,
    ) -> Event:
        """Appends one event and returns it. Raises ValueError for an unknown kind."""
        event = Event(kind, name, step, value)
        self.append(event)
        return event

    def append(self, event: Event) -> None:
        """Appends an event made elsewhere, for example by a reader."""
        with self._lock:
            self._fetch()
            self._events.append(event)

    def attach(self, source: Callable[[], Iterable[Event]]) -> None:
        """Takes events also from `source`, which returns those new since last time.

        It is asked before each event is appended and before events are read, so what
        it delivers stands where it happened. For things that cannot call back, such
        as a file that grows.
        """
        with self._lock:
            self._sources.append(source)

    def _fetch(self) -> None:
        for source in self._sources:
            self._events.extend(source())

    @property
    def events(self) -> tuple[Event, ...]:
        """All events so far, oldest first."""
        with self._lock:
            self._fetch()
            return tuple(self._events)

    def of(self, *kinds: str, name: str | None = None) -> list[Event]:
        """Events of these kinds (of any kind if none is named), oldest first."""
        return [
            event
            for event in self.events
            if (not kinds or event.kind in kinds)
            and (name is None or event.name == name)
        ]

    def count(self, kind: str, name: str | None = None) -> int:
        """How many events there are of this kind and, if given, exact name."""
        return len(self.of(kind, name=name))

    def steps(self, kind: str, name: str | None = None) -> list[int | None]:
        """The steps of those events, oldest first."""
        return [event.step for event in self.of(kind, name=name)]

    def values(self, kind: str, name: str | None = None) -> list[Any]:
        """The values of those events, oldest first."""
        return [event.value for event in self.of(kind, name=name)]

    def kinds(self) -> list[str]:
        """The kind of every event, oldest first: the beat itself."""
        return [event.kind for event in self.events]

    def clear(self) -> None:
        """Forgets everything so far."""
        with self._lock:
            self._fetch()
            self._events.clear()

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __repr__(self) -> str:
        """Counts, then the last few events: what a failing test needs first."""
        events = self.events
        tail = ", ".join(str(event) for event in events[-6:])
        dots = "..., " if len(events) > 6 else ""
        return f"<Timeline of {len(events)} events: {dots}{tail}>"

"""What a reader notes while it reads: first place and number of each problem."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from testing.cadence.chunks import Problem
from testing.cadence.events import Source


@dataclasses.dataclass(slots=True)
class _Note:
    place: int
    message: str
    count: int = 0


class Notes:
    """Problems of one file; equal kinds are counted, not listed."""

    def __init__(self, path: str, format: str, unit: str = "line") -> None:
        self._path = path
        self._format = format
        self._unit = unit
        self._notes: dict[str, _Note] = {}

    def __len__(self) -> int:
        return len(self._notes)

    def add(self, kind: str, place: int, message: str) -> None:
        """Notes a problem; the message of the first of a kind is kept."""
        note = self._notes.setdefault(kind, _Note(place, message))
        note.count += 1

    def problems(self) -> Iterator[Problem]:
        """Yields one problem a kind."""
        for kind, note in self._notes.items():
            source = Source(self._path, self._format, note.place, self._unit)
            yield Problem(kind, source, note.message, note.count)

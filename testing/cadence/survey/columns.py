"""Events in memory as the chunks that readers yield."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from testing.cadence.chunks import Chunk, Series
from testing.cadence.events import Event

ROWS = 1 << 14
KINDS = ("log", "summary")


def chunks_of(events: Iterable[Event]) -> Iterator[Chunk]:
    """Yields events that have a step, in order, as chunks of one file each."""
    pending: list[Event] = []
    key: tuple[str, str] | None = None
    for event in events:
        if event.kind not in KINDS or event.step is None:
            continue
        here = (event.kind, event.source.path if event.source else "")
        if pending and (here != key or len(pending) >= ROWS):
            yield _chunk(pending)
            pending = []
        key = here
        pending.append(event)
    if pending:
        yield _chunk(pending)


def _chunk(events: list[Event]) -> Chunk:
    table: dict[str, int] = {}
    codes = [table.setdefault(event.name, len(table)) for event in events]
    source = events[0].source
    values = [_number(event.value) for event in events]
    return Chunk(
        source.path if source else "",
        source.format if source else "events",
        tuple(Series(name) for name in table),
        np.array(codes, np.int64),
        np.array([event.step for event in events], np.int64),
        np.array([e.source.place if e.source else 0 for e in events], np.int64),
        np.array([math.nan if v is None else v for v in values], np.float64),
        unit=source.unit if source else "line",
        kind=events[0].kind,
        texts={
            row: str(event.value)
            for row, (event, value) in enumerate(zip(events, values, strict=True))
            if value is None
        },
    )


def _number(value: object) -> float | None:
    """A single number as float; None for anything else."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None

"""Expected and seen side by side: the first difference, and what is around it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from testing.contracts.trainer.logs import Line
from testing.contracts.trainer.observe import Run

_BEFORE, _AFTER = 4, 6
_MANY = 12


def difference(expected: Sequence[Any], seen: Sequence[Any]) -> tuple[str, str, int]:
    """Both sequences as text, cut to where they differ first, and that index.

    The first item that differs stands in brackets.
    """
    pairs = zip(expected, seen, strict=False)
    shared = min(len(expected), len(seen))
    at = next((i for i, (e, s) in enumerate(pairs) if e != s), shared)
    return _window(expected, at), _window(seen, at), at


def _window(items: Sequence[Any], at: int) -> str:
    first, last = max(0, at - _BEFORE), at + _AFTER
    if len(items) <= _MANY:
        first, last = 0, len(items)
    shown = [f"[{x}]" if i == at else str(x) for i, x in enumerate(items)]
    parts = ["..."] if first else []
    parts += shown[first:last]
    if at >= len(items):
        parts.append("[nothing]" if not items else "[end]")
    if last < len(items):
        parts.append(f"... ({len(items)} in all)")
    return " ".join(parts)


def some(items: Iterable[Any], limit: int = 8) -> str:
    """The first few of many."""
    found = [str(item) for item in items]
    tail = f", ... ({len(found)} in all)" if len(found) > limit else ""
    return ", ".join(found[:limit]) + tail


def at_line(run: Run, line: Line) -> str:
    """Where a log line is, with the events around it."""
    text = f"{run.title}, log line {line.number}"
    return text + around(run, line.index)


def at_event(run: Run, kind: str, number: int) -> str:
    """Where the n-th event of a kind is, with the events around it."""
    places = [i for i, event in enumerate(run.events) if event.kind == kind]
    if number not in range(len(places)):
        return at_end(run)
    return f"{run.title}, {kind} {number}{around(run, places[number])}"


def at_end(run: Run) -> str:
    """The end of a run, with the events before it."""
    return f"{run.title}, its end{around(run, len(run.events))}"


def around(run: Run, index: int, reach: int = 3) -> str:
    """The events about `index`, one a line, each on a line feed of its own."""
    rows, marked = _beats(run, index)
    if marked is None:
        marked = len(rows)
        rows.append((index, "the end"))
    shown = rows[max(0, marked - reach) : marked + reach]
    lines = [f"{'>' if at == index else ' '} {text}" for at, text in shown]
    return "".join(f"\n  {line}" for line in lines)


def _beats(run: Run, index: int) -> tuple[list[tuple[int, str]], int | None]:
    """Rows of events; steps of the environment in a row share one."""
    rows: list[tuple[int, str]] = []
    marked, steps = None, 0
    counts: Counter[str] = Counter()
    for at, event in enumerate(run.events):
        number, counts[event.kind] = counts[event.kind], counts[event.kind] + 1
        if event.kind == "env.step":
            steps = steps + 1 if steps and at != index else 1
            text = f"env.step x{steps}" if steps > 1 else "env.step"
            if steps > 1:
                rows[-1] = (rows[-1][0], text)
                continue
            rows.append((at, text))
        elif event.kind in ("agent.train", "log"):
            steps = 0
            rows.append((at, _text(event, number)))
        if at == index:
            marked = len(rows) - 1
    return rows, marked


def _text(event: Any, number: int) -> str:
    if event.kind == "agent.train":
        return f"agent.train {number} returned {event.value.loss:.6g}"
    return f"log [step={event.step}] {event.name} = {event.value}"


def first(items: Iterable[Any], wanted: Callable[[Any], bool]) -> Any:
    """The first item that is wanted, or None."""
    return next((item for item in items if wanted(item)), None)

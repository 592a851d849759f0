"""Events in one JSON object: its step, and each number in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from testing.cadence.readers import keys, values
from testing.cadence.readers.builder import Builder

_DEEPEST = 5
_MOST = 1 << 12
# How loggers without a bare NaN write one.
_WORDS = frozenset({"nan", "inf", "-inf", "infinity", "-infinity"})


def add(builder: Builder, record: dict[str, Any], place: int) -> None:
    """Adds the events of `record`; none if it has no step."""
    key = keys.step_key(record)
    if key is None:
        return
    step = values.step(str(record[key]))
    if step is None:
        return
    part = keys.part(record)
    for name, value in numbers(record):
        if name != key and not keys.is_index(name):
            builder.add(f"{part}/{name}" if part else name, step, value, place)


def numbers(
    record: dict[str, Any], prefix: str = "", depth: int = 0
) -> Iterator[tuple[str, float]]:
    """Yields name and value of each number; names of nested ones are paths."""
    for key, value in list(record.items())[:_MOST]:
        name = f"{prefix}{key}"
        if isinstance(value, dict) and depth < _DEEPEST:
            yield from numbers(value, f"{name}/", depth + 1)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield name, _float(value)
        elif isinstance(value, str) and value.lower() in _WORDS:
            yield name, float(value)


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond all floats
        return float("inf") if value > 0 else float("-inf")

"""Reads JSON lines: one object per logged step."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from testing.cadence.chunks import Chunk, Problem
from testing.cadence.readers.blocks import Input
from testing.cadence.readers.builder import Builder
from testing.cadence.readers.notes import Notes
from testing.cadence.readers.objects import add

FORMAT = "jsonl"


def knows(source: Input) -> bool:
    """Whether the first line is an object, and not all of a document."""
    first = load(source.first_line)
    return isinstance(first, dict) and "log_history" not in first


def read(source: Input) -> Iterator[Chunk | Problem]:
    """Yields the chunks of the lines, then what was wrong with them.

    A line that does not begin an object is text that something else wrote.
    """
    builder = Builder(source.path, FORMAT)
    notes = Notes(source.path, FORMAT)
    for place, line, whole in source.lines():
        text = line.strip()
        if text[:1] != "{":
            continue
        found = load(text)
        if isinstance(found, dict):
            add(builder, found, place)
        elif whole:
            notes.add("corrupt", place, "a line begins as an object and is none.")
        else:
            notes.add("truncated", place, "the last line ends within its object.")
        if builder.full:
            yield builder.take()
    if len(builder):
        yield builder.take()
    if not builder.count and not len(notes):
        notes.add("empty", 1, "no object has a step and a number.")
    yield from notes.problems()


def load(text: str) -> Any:
    """What JSON says, `NaN` included; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None

"""Reads lines with the user's own regular expression.

It may backtrack without end, so it is run by the package `regex`, which can
be told to give up, and on no more than `LONGEST_LINE` characters of a line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from testing.cadence.chunks import Chunk, Problem
from testing.cadence.readers import lines, values
from testing.cadence.readers.blocks import Input
from testing.cadence.readers.builder import Builder
from testing.cadence.readers.errors import UnreadableRun

if TYPE_CHECKING:
    import regex

FORMAT = "pattern"
LONGEST_LINE = 1 << 12
# Seconds for one line. A fair expression needs less than a millionth of it.
PATIENCE = 1.0
_UNNAMED = "value"


def compiled(pattern: str | re.Pattern[str]) -> regex.Pattern[str]:
    """Compiles a user's expression.

    Args:
      pattern: must have the groups `step` and `value`; `name` is optional.

    Raises:
      ValueError: it does not compile, or lacks a group.
    """
    import regex

    text = pattern if isinstance(pattern, str) else pattern.pattern
    flags = 0 if isinstance(pattern, str) else pattern.flags & ~re.UNICODE
    try:
        found = regex.compile(text, flags)
    except (regex.error, RecursionError) as error:
        raise ValueError(f"pattern {text!r} does not compile: {error}.") from error
    missing = [name for name in ("step", "value") if name not in found.groupindex]
    if missing:
        groups = " and ".join(f"(?P<{name}>...)" for name in missing)
        raise ValueError(f"pattern {text!r} lacks {groups}. Allowed too: (?P<name>...)")
    return found


def reader(pattern: regex.Pattern[str]) -> Callable[[Input], Iterator[Chunk | Problem]]:
    """The reader that finds events with `pattern`."""

    def read(source: Input) -> Iterator[Chunk | Problem]:
        builder = Builder(source.path, FORMAT)
        for place, line, _ in source.lines():
            for found in _matches(pattern, line[:LONGEST_LINE], source.path, place):
                _add(builder, found, line, place)
            if builder.full:
                yield builder.take()
        if len(builder):
            yield builder.take()
        if not builder.count:
            raise UnreadableRun(f"{source.path}: the pattern matches no line.")

    return read


def _matches(pattern: Any, line: str, path: str, place: int) -> list[Any]:
    try:
        return list(pattern.finditer(line, timeout=PATIENCE))
    except TimeoutError:
        raise UnreadableRun(
            f"{path}:{place}: the pattern took longer than {PATIENCE:g} s on this "
            "line. Nested repeats, such as (a+)+, make it try every way to match."
        ) from None


def _add(builder: Builder, found: Any, line: str, place: int) -> None:
    groups = found.groupdict()
    step = values.step((groups["step"] or "").strip())
    if step is None or groups["value"] is None:
        return
    name = (groups.get("name") or _UNNAMED).strip()
    value = values.scalar(groups["value"])
    builder.add(name, step, value, place, lines.writer(line[: found.start()]))

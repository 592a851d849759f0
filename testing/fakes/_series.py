"""Series lines: `[step=<int>] <name> = <value>.`"""

from __future__ import annotations

import re
from typing import Any

# The value may have several lines, the name may not.
_SERIES = re.compile(r"\[step=(-?\d+)\] ([^\n]+?) = (.*)\.", re.DOTALL)


def parse(line: str) -> tuple[int, str, str] | None:
    """Step, name and value's text of a series line; None for any other line."""
    match = _SERIES.fullmatch(line)
    return None if match is None else (int(match[1]), match[2], match[3])


def number(text: str) -> Any:
    """The number that a value's text stands for, or the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text

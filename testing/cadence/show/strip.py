"""The beat of a series as one line of characters."""

from __future__ import annotations

from collections.abc import Sequence

from testing.cadence.survey.beats import Beat

STEADY, SINGLE, NONE, OFF = "━", "•", " ", "✗"
_PLAIN = str.maketrans({STEADY: "=", SINGLE: ".", OFF: "x"})


def strip(
    beat: Beat, first: int, last: int, width: int, marks: Sequence[int] = ()
) -> str:
    """`width` characters for the steps from `first` to `last`.

    A heavy line where values stand closer than a character is wide, a dot for
    a single value, a cross where something is off, nothing where nothing is.
    """
    span = last - first + 1
    columns = [NONE] * width
    places = _columns(beat.track.cells.starts.tolist(), first, span, width)
    close = _close(beat, span / width)
    for place in places:
        columns[place] = STEADY if close else SINGLE
    for place in _columns(marks, first, span, width):
        columns[place] = OFF
    return "".join(columns)


def _close(beat: Beat, column: float) -> bool:
    """Whether neighbours share a character, or stand in the next one."""
    if beat.every is not None:
        return beat.every <= max(column, 1)
    return beat.count > 1 and (beat.last - beat.first) / (beat.count - 1) <= column


def _columns(steps: Sequence[int], first: int, span: int, width: int) -> set[int]:
    return {min(width - 1, max(0, (step - first) * width // span)) for step in steps}


def plain(text: str) -> str:
    """The strip for a terminal that knows ASCII only."""
    return text.translate(_PLAIN)

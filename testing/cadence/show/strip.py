"""The beat of a series as one line of characters."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from testing.cadence.survey.beats import Beat

STEADY, SINGLE, NONE, OFF = "━", "•", " ", "✗"
_PLAIN = str.maketrans({STEADY: "=", SINGLE: ".", OFF: "x"})


@dataclasses.dataclass(frozen=True, slots=True)
class Axis:
    """A step axis in characters.

    Attributes:
      first: the step at its left end.
      last: the step at its right end.
      width: number of characters.
      column: steps in one character.
    """

    first: int
    last: int
    width: int
    column: float

    @classmethod
    def over(cls, beats: Sequence[Beat], most: int) -> Axis:
        """The axis for all of `beats`: a character for a beat, if `most` allow."""
        first = min(int(beat.track.cells.starts[0]) for beat in beats)
        last = max(beat.track.high for beat in beats)
        finest = min((beat.every for beat in beats if beat.every), default=1)
        width = (last - first) // finest + 1
        if width <= most:
            return cls(first, last, width, finest)
        return cls(first, last, most, (last - first + 1) / most)

    def columns(self, steps: Iterable[int]) -> set[int]:
        """The characters that `steps` fall into."""
        places = (int((step - self.first) / self.column) for step in steps)
        return {min(self.width - 1, max(0, place)) for place in places}


def strip(beat: Beat, axis: Axis, marks: Iterable[int] = ()) -> str:
    """A heavy line where each beat has a value, a dot for a value on its own, a
    cross where something is off, nothing where nothing is."""
    characters = [NONE] * axis.width
    drawn = STEADY if _close(beat, axis.column) else SINGLE
    for place in axis.columns(beat.track.cells.starts.tolist()):
        characters[place] = drawn
    for place in axis.columns(marks):
        characters[place] = OFF
    return "".join(characters)


def _close(beat: Beat, column: float) -> bool:
    """Whether values stand in one character, or in neighbouring ones."""
    if beat.every is not None:
        return beat.every <= column
    return beat.count > 1 and (beat.last - beat.first) / (beat.count - 1) <= column


def plain(text: str) -> str:
    """The strip for a terminal that knows ASCII only."""
    return text.translate(_PLAIN)

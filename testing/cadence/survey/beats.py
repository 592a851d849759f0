"""Beat: what a survey says about one series."""

from __future__ import annotations

import dataclasses

from testing.cadence.survey.track import Track


@dataclasses.dataclass(frozen=True, slots=True)
class Beat:
    """One series of a run.

    Attributes:
      name: its name, with the run or writer before or behind it where a name
        alone would stand for several series.
      bare: the name as logged.
      kind: `log` or `summary`.
      count: number of values.
      first: the first step.
      every: the distance between steps; None if it is irregular or unknown.
      last: the last step.
      gaps: number of beats without a value.
      repeats: number of values at a step that was passed before.
      writer: the process that wrote it, where several wrote side by side.
      track: all that is known.
    """

    name: str
    bare: str
    kind: str
    count: int
    first: int
    every: int | None
    last: int
    gaps: int
    repeats: int
    writer: str
    track: Track = dataclasses.field(repr=False, compare=False)


def beat_of(track: Track, prefix: str, writer: str, kind: str) -> Beat:
    """Sums a track up."""
    gap = track.intervals.gap()
    label = f"{prefix}{track.name}" + (f" ({writer})" if writer else "")
    return Beat(
        name=label,
        bare=track.name,
        kind=kind,
        count=track.count,
        first=track.first,
        every=track.intervals.beat(),
        last=track.last,
        gaps=gap.steps if gap else 0,
        repeats=track.again,
        writer=writer,
        track=track,
    )

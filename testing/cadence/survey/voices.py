"""One name, several writers: one series that they share, or one each?"""

from __future__ import annotations

import copy
import itertools

from testing.cadence.chunks import Chunk, Part
from testing.cadence.survey.batches import Batch, joined
from testing.cadence.survey.track import Echoes, Track

# With more writers than this they are a pool, not processes side by side.
MOST = 64


class Voices:
    """The track of a name, and a track for each writer once there are two.

    Writers that took turns (a restarted process, a pool of threads) keep one
    series between them; writers that ran side by side keep one each.
    """

    def __init__(self, name: str) -> None:
        self.joint = Track(name)
        self._writer: str | None = None
        self._apart: dict[str, Track] = {}

    def add(
        self, chunk: Chunk, parts: list[Part], offset: int
    ) -> tuple[Track, Batch, Echoes] | None:
        """Takes this name's values of a chunk; gives back echoes, if any."""
        if self._writer is None:
            self._writer = parts[0].series.writer
        if self._apart or any(part.series.writer != self._writer for part in parts):
            self._add_apart(chunk, parts, offset)
        batch = joined(chunk, parts, offset)
        echoes = self.joint.add(batch)
        return (self.joint, batch, echoes) if echoes else None

    def _add_apart(self, chunk: Chunk, parts: list[Part], offset: int) -> None:
        if not self._apart and self.joint.count:
            self._apart[self._writer or ""] = copy.deepcopy(self.joint)
        for part in parts:
            writer = part.series.writer
            if writer not in self._apart and len(self._apart) < MOST:
                self._apart[writer] = Track(self.joint.name)
            if writer in self._apart:
                self._apart[writer].add(Batch(chunk, part.rows, part.steps, offset))

    def tracks(self) -> list[tuple[Track, str]]:
        """The series there are, with the writer of each where that matters."""
        joint = self.joint
        joint.repeats.close()
        turns = not (joint.backs.count or joint.repeats.duplicates.count)
        if len(self._apart) in range(2, MOST) and not turns and self._side_by_side():
            for track in self._apart.values():
                track.repeats.close()
            return [(track, writer) for writer, track in self._apart.items()]
        return [(joint, "")]

    def _side_by_side(self) -> bool:
        """Whether one writer began before another had ended."""
        spans = sorted((t.start.place, t.end.place) for t in self._apart.values())
        return any(
            later[0] < earlier[1] for earlier, later in itertools.pairwise(spans)
        )

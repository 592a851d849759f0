"""The values of one series out of one chunk."""

from __future__ import annotations

import dataclasses

import numpy as np

from testing.cadence.chunks import Array, Chunk, Part
from testing.cadence.findings import Spot


@dataclasses.dataclass(frozen=True, slots=True)
class Batch:
    """Values of one series out of one chunk; columns as in `Chunk`.

    Attributes:
      chunk: where they come from.
      rows: their rows in it.
      steps: their steps.
      offset: number of events of the run before this chunk.
    """

    chunk: Chunk
    rows: Array
    steps: Array
    offset: int = 0

    def spot(self, index: int) -> Spot:
        """The place of value `index`."""
        place = int(self.chunk.places[self.rows[index]])
        return Spot(int(self.steps[index]), self.chunk.path, place, self.chunk.unit)


def by_name(chunk: Chunk) -> dict[str, list[Part]]:
    """The parts of a chunk, those of one name and several writers together."""
    parts: dict[str, list[Part]] = {}
    for part in chunk.split():
        if len(part):
            parts.setdefault(part.series.name, []).append(part)
    return parts


def joined(chunk: Chunk, parts: list[Part], offset: int = 0) -> Batch:
    """The values of all `parts`, in file order."""
    if len(parts) == 1:
        return Batch(chunk, parts[0].rows, parts[0].steps, offset)
    rows = np.sort(np.concatenate([part.rows for part in parts]))
    return Batch(chunk, rows, chunk.steps[rows], offset)

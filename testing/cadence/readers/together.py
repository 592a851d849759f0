"""Several logs of one run, one of each process, put in order by their time stamps."""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from testing.cadence.chunks import Chunk, Declared, Problem
from testing.cadence.readers import text
from testing.cadence.readers.blocks import Input
from testing.cadence.readers.errors import UnreadableRun

Item = Chunk | Problem | Declared
# Year where there is one, month, day, time, and what follows the second.
_TIME = re.compile(
    r"(?:\b[IWEF](?:\d{4})?(\d\d)(\d\d)|\b\d{4}-(\d\d)-(\d\d)[T ]?) ?"
    r"(\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?",
    re.A,
)
_UNTIMED = (
    "its lines carry no time, such as 'I1202 05:20:31.653916' or '2026-12-02 "
    "05:20:31,653', so its events can't be put in order with those of other files."
)


def read(
    paths: Sequence[str], read_file: Callable[[str], Iterator[Item]]
) -> Iterator[Item]:
    """Reads logs of one run; their events come in the order of their times.

    Files without any event, as of collectors that only talk, and empty ones are
    passed over. What is at one time comes in the order of `paths`.

    Args:
      paths: the files.
      read_file: yields the items of one of them, in file order.

    Raises:
      UnreadableRun: a file can't be read, none holds an event, or the events of one
        have no time.
    """
    streams = [_Stream(path, index, read_file) for index, path in enumerate(paths)]
    waiting = [stream for stream in streams if stream.next_chunk()]
    if not waiting:
        raise UnreadableRun(f"{', '.join(paths)}: {text.NO_EVENT}")
    heap = [(stream.time, stream.index) for stream in waiting]
    heapq.heapify(heap)
    while heap:
        _, index = heapq.heappop(heap)
        stream = streams[index]
        yield stream.take(heap[0] if heap else None, paths[0])
        if not stream.is_done or stream.next_chunk():
            heapq.heappush(heap, (stream.time, index))
    for stream in streams:
        yield from stream.others


class _Stream:
    """The events of one file, with the times of their lines.

    Attributes:
      index: its place among the files.
      others: what the file holds beside events.
    """

    def __init__(
        self, path: str, index: int, read_file: Callable[[str], Iterator[Item]]
    ) -> None:
        self.index = index
        self.others: list[Item] = []
        self._path = path
        self._items = read_file(path)
        self._clock = _times(path)
        self._place, self._now = 0, ""
        self._chunk: Chunk | None = None
        self._times: list[str] = []
        self._row = 0

    @property
    def time(self) -> str:
        """Of the next event."""
        return self._times[self._row]

    @property
    def is_done(self) -> bool:
        """Whether all events of the chunk at hand were taken."""
        return self._row == len(self._times)

    def next_chunk(self) -> bool:
        """Goes on to the next events; False: there are none."""
        while (item := self._next_item()) is not None:
            if isinstance(item, Chunk) and len(item):
                self._chunk, self._row = item, 0
                self._times = [self._time_of(p) for p in item.places.tolist()]
                return True
            if not (isinstance(item, Problem) and item.kind == "empty"):
                self.others.append(item)
        return False

    def _next_item(self) -> Item | None:
        try:
            return next(self._items, None)
        except UnreadableRun as error:
            if text.NO_EVENT not in str(error):
                raise
            return None

    def take(self, limit: tuple[str, int] | None, run: str) -> Chunk:
        """The next events, as many as come before `limit`, a time and an index."""
        assert self._chunk is not None
        first = self._row
        while not self.is_done:
            if limit is not None and (self.time, self.index) > limit:
                break
            self._row += 1
        self._row = max(self._row, first + 1)
        return _cut(self._chunk, first, self._row, run)

    def _time_of(self, place: int) -> str:
        while self._place < place:
            self._place, stamp = next(self._clock)
            self._now = stamp or self._now
        if not self._now:
            raise UnreadableRun(f"{self._path}: {_UNTIMED}")
        return self._now


def _times(path: str) -> Iterator[tuple[int, str]]:
    """Number and time of each line; years are counted from the first one."""
    year, month_before = 0, ""
    with Input(path) as source:
        for place, line, _ in source.lines():
            found = _TIME.search(line)
            if found is None:
                yield place, ""
                continue
            month, day = found[1] or found[3], found[2] or found[4]
            year += (month_before, month) == ("12", "01")
            month_before = month
            part = (found[6] or "").ljust(6, "0")
            yield place, f"{year:04} {month}{day} {found[5]}.{part}"


def _cut(chunk: Chunk, first: int, last: int, run: str) -> Chunk:
    """Some rows of a chunk, as of the run of another file."""
    rows = np.s_[first:last]
    return Chunk(
        chunk.path,
        chunk.format,
        chunk.series,
        chunk.codes[rows],
        chunk.steps[rows],
        chunk.places[rows],
        chunk.values[rows],
        unit=chunk.unit,
        kind=chunk.kind,
        texts={r - first: t for r, t in chunk.texts.items() if first <= r < last},
        nonfinite=chunk.nonfinite[rows],
        run=os.fspath(run),
    )

"""Survey: goes over a run once and knows every series and what is off."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable

from testing.cadence.chunks import Chunk, Declared, Problem
from testing.cadence.events import Event
from testing.cadence.findings import Finding
from testing.cadence.survey import irregularities
from testing.cadence.survey.batches import by_name
from testing.cadence.survey.beats import Beat, beat_of
from testing.cadence.survey.columns import chunks_of
from testing.cadence.survey.doubles import Doubles
from testing.cadence.survey.voices import Voices

Item = Chunk | Problem | Declared


@dataclasses.dataclass(slots=True)
class _Run:
    """One event directory or one text file."""

    place: str
    kind: str
    voices: dict[str, Voices] = dataclasses.field(default_factory=dict)
    doubles: Doubles = dataclasses.field(default_factory=Doubles)
    events: int = 0

    def add(self, chunk: Chunk) -> None:
        echoes = []
        for name, same in by_name(chunk).items():
            voice = self.voices.get(name)
            if voice is None:
                voice = self.voices[name] = Voices(name)
            found = voice.add(chunk, same, self.events)
            if found:
                echoes.append(found)
        self.events += len(chunk)
        self.doubles.settle(echoes, self.events)


class Survey:
    """What there is to know about a run after one pass, in bounded memory.

    Feed it what `readers.read` yields, then `close()` it:

        survey = Survey("logs")
        for item in readers.read("logs"):
            survey.add(item)
        survey.close()
        survey.series, survey.findings

    Attributes:
      root: the file or directory, as the user named it.
      series: a `Beat` for each series, in order of appearance.
      findings: what is off, by file and place.
      events: number of events.
    """

    def __init__(self, root: str = "") -> None:
        self.root = root
        self.series: tuple[Beat, ...] = ()
        self.findings: tuple[Finding, ...] = ()
        self._runs: dict[tuple[str, str], _Run] = {}
        self._problems: list[Problem] = []
        self._declared: list[Declared] = []

    @classmethod
    def of(cls, events: Iterable[Event], root: str = "") -> Survey:
        """Surveys events in memory; of the kinds `log` and `summary` only."""
        survey = cls(root)
        for chunk in chunks_of(events):
            survey.add(chunk)
        survey.close()
        return survey

    @property
    def events(self) -> int:
        return sum(run.events for run in self._runs.values())

    def add(self, item: Item) -> None:
        """Takes the next thing a reader yields."""
        if isinstance(item, Chunk):
            if len(item):
                self._run_of(item).add(item)
        elif isinstance(item, Problem):
            self._problems.append(item)
        else:
            self._declared.append(item)

    def _run_of(self, chunk: Chunk) -> _Run:
        key = run_key(chunk)
        run = self._runs.get(key)
        if run is None:
            run = self._runs[key] = _Run(*key)
        return run

    def close(self) -> None:
        """No more to come: fills `series` and `findings`."""
        beats: list[Beat] = []
        found = [irregularities.of_problem(problem) for problem in self._problems]
        for run in self._runs.values():
            run.doubles.close()
            mine = self._beats(run)
            beats += mine
            found += irregularities.of_run(mine)
        found += irregularities.of_declared(self._declared, beats)
        self.series = tuple(beats)
        self.findings = tuple(sorted(found, key=_place))

    def _beats(self, run: _Run) -> list[Beat]:
        prefix = self._prefix(run)
        beats = [
            beat_of(track, prefix, writer, run.kind)
            for voice in run.voices.values()
            for track, writer in voice.tracks()
        ]
        # Sorting is stable: series of one row keep the order of their columns.
        return sorted(beats, key=lambda beat: beat.track.born)

    def _prefix(self, run: _Run) -> str:
        if len({place for place, _ in self._runs}) > 1:
            return run_prefix(run.place, self.root)
        return "summary:" if len(self._runs) > 1 and run.kind == "summary" else ""


def run_key(chunk: Chunk) -> tuple[str, str]:
    """The run a chunk belongs to: event files of one directory are one run."""
    place = os.path.dirname(chunk.path) if chunk.kind == "summary" else chunk.path
    return chunk.run or place, chunk.kind


def run_prefix(place: str, root: str) -> str:
    """What tells series of `place` from those of other runs under `root`."""
    relative = os.path.relpath(place, root) if place and root else place
    return "" if relative in ("", ".") else re.sub(r"[\\/]+", "/", relative) + "/"


def _place(finding: Finding) -> tuple[str, int]:
    return finding.spot.path, finding.spot.place

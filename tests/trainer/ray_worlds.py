"""Fakes for collectors on Ray: what they did is in files, which outlive them."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from typing import Any

import numpy as np

from testing.fakes import CountingAgent, FakeEnvironment, FaultPlan

PER_COLLECTOR = 1_000_000  # Serial numbers of a collector.
BATCH_SIZE = 3
STEPS = 4
MADE: list[CountingAgent] = []  # All agents of this process.


@dataclasses.dataclass(frozen=True)
class World:
    """Makes environments and agents, as the trainer asks for them.

    Attributes:
      directory: where each collector notes the interactions it makes.
      faults: of each collector: effect, step at which it happens, further arguments.
      first: serial number of collector 0's first interaction.
      width: numbers in an observation.
    """

    directory: pathlib.Path
    faults: dict[int, tuple[Any, ...]] = dataclasses.field(default_factory=dict)
    first: int = 0
    width: int | None = None

    def environment(self, collector: int) -> FakeEnvironment:
        plan = FaultPlan()
        if collector in self.faults:
            effect, step, *more = self.faults[collector]
            getattr(plan, effect)("env.step", step, *more)
        return FakeEnvironment(
            batch_size=BATCH_SIZE,
            rewards=_Notes(self.directory / f"steps-{collector}.txt"),
            first_serial=self.first + collector * PER_COLLECTOR,
            observation_shape=() if self.width is None else (self.width,),
            faults=plan,
        )

    def agent(self, environment: FakeEnvironment) -> CountingAgent:
        MADE.append(CountingAgent(environment))
        return MADE[-1]

    def stepped(self) -> list[int]:
        """Serial numbers of all interactions that any collector made."""
        paths = self.directory.glob("steps-*.txt")
        return [int(word) for path in paths for word in path.read_text().split()]

    def pids(self) -> dict[int, int]:
        """Process of each collector."""
        paths = self.directory.glob("steps-*.pid")
        return {int(p.stem.split("-")[1]): int(p.read_text()) for p in paths}


class _Notes:
    """Pays the serial number, and writes it down."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path

    def __call__(self, serials: Any, actions: Any) -> Any:
        with self._path.open("a") as file:
            file.write(" ".join(map(str, serials)) + "\n")
        self._path.with_suffix(".pid").write_text(str(os.getpid()))
        return np.asarray(serials, np.float32)


def marked(marker: str) -> dict[int, str]:
    """Processes, but this one, that have `marker` in their environment: their names."""
    found = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if int(process.name) == os.getpid():
                continue
            if marker.encode() in (process / "environ").read_bytes():
                found[int(process.name)] = (process / "comm").read_text().strip()
        except OSError:  # It is gone by now, or is not ours.
            continue
    return found

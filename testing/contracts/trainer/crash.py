"""A crash: a process that is killed where possible, a BaseException elsewhere."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from testing.contracts.trainer import killer
from testing.contracts.trainer.observe import Setting, StopError, observe
from testing.contracts.trainer.signature import Offer
from testing.contracts.trainer.sizes import Sizes
from testing.fakes.faults import FaultPlan


@dataclasses.dataclass(frozen=True)
class Crash:
    """What was seen of a run until it crashed.

    Attributes:
      root: its directory.
      how: in which way it crashed.
      logged: steps by series, in the order of their lines.
      happened: False if the run never came to the point of the crash.
    """

    root: Path
    how: str
    logged: dict[str, list[int]]
    happened: bool


def crash(
    train: Callable[..., Any], offer: Offer, sizes: Sizes, root: Path, call: int
) -> Crash:
    """Runs the trainer in `root` until it crashes in a train call, counted from 0."""
    name = importable(train)
    reason = "train cannot be imported by name, so no process could be killed"
    if name is not None:
        try:
            return _killed(name, offer, sizes, root, call)
        except killer.NotPossible as error:
            reason = str(error)
    return _stopped(offer, sizes, root, call, reason)


def importable(train: Callable[..., Any]) -> tuple[str, str] | None:
    """Module and name by which another process can import `train`."""
    module = getattr(train, "__module__", None)
    name = getattr(train, "__qualname__", "")
    if not module or module == "__main__" or "<" in name:
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return (module, name) if found is train else None


def _killed(
    name: tuple[str, str], offer: Offer, sizes: Sizes, root: Path, call: int
) -> Crash:
    log = root.with_name(f"{root.name}.log")
    killed = killer.kill_in(
        {
            "module": name[0],
            "name": name[1],
            "accepted": offer.accepted,
            "sizes": dataclasses.asdict(sizes),
            "call": call,
            "root": str(root),
            "log": str(log),
        }
    )
    logged: dict[str, list[int]] = {}
    for row in log.read_text().splitlines() if log.exists() else ():
        series, step = json.loads(row)
        logged.setdefault(series, []).append(step)
    how = f"a process was killed (SIGKILL) within train call {call}, counted from 0"
    return Crash(root, how, logged, killed)


def _stopped(offer: Offer, sizes: Sizes, root: Path, call: int, reason: str) -> Crash:
    faults = FaultPlan()
    faults.raise_at("agent.train", call, StopError("crash"), when="inside")
    run = observe(offer, Setting("run that crashes", sizes, faults=faults), root)
    steps = {name: [line.step for line in lines] for name, lines in run.series.items()}
    how = f"a BaseException was raised within train call {call}, as {reason}"
    return Crash(root, how, steps, bool(faults.fired))

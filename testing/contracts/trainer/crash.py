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
class Point:
    """Where a run crashes.

    Attributes:
      text: the place, in words.
      kind, call, when: the place, as a FaultPlan has it.
    """

    text: str
    kind: str
    call: int
    when: str


@dataclasses.dataclass(frozen=True)
class Crash:
    """What was seen of a run until it crashed.

    Attributes:
      root: its directory.
      how: in which way it crashed.
      point: where.
      logged: steps by series, in the order of their lines.
      happened: False if the run never came to the point of the crash.
    """

    root: Path
    how: str
    point: Point
    logged: dict[str, list[int]]
    happened: bool


def points(train_calls_per_loop: int) -> tuple[Point, ...]:
    """Places within the second loop: what is done by then is worth keeping."""
    call = 2 * train_calls_per_loop - 1
    return (
        Point(f"within train call {call}", "agent.train", call, "inside"),
        Point("before the second checkpoint", killer.SAVE, 1, "before"),
    )


def crash(
    train: Callable[..., Any], offer: Offer, sizes: Sizes, root: Path, point: Point
) -> Crash:
    """Runs the trainer in `root` until it crashes at `point`."""
    name = importable(train)
    reason = "train cannot be imported by name"
    if name is not None:
        try:
            return _killed(name, offer, sizes, root, point)
        except killer.NotPossible as error:
            reason = str(error)
    return _stopped(offer, sizes, root, point, reason)


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
    name: tuple[str, str], offer: Offer, sizes: Sizes, root: Path, point: Point
) -> Crash:
    log = root.with_name(f"{root.name}.log")
    killed = killer.kill_in(
        {
            "module": name[0],
            "name": name[1],
            "accepted": offer.accepted,
            "sizes": dataclasses.asdict(sizes),
            "kind": point.kind,
            "call": point.call,
            "when": point.when,
            "root": str(root),
            "log": str(log),
        }
    )
    logged: dict[str, list[int]] = {}
    for row in log.read_text().splitlines() if log.exists() else ():
        series, step = json.loads(row)
        logged.setdefault(series, []).append(step)
    return Crash(root, "a process was killed (SIGKILL)", point, logged, killed)


def _stopped(
    offer: Offer, sizes: Sizes, root: Path, point: Point, reason: str
) -> Crash:
    faults = FaultPlan()
    faults.raise_at(point.kind, point.call, StopError("crash"), when=point.when)
    with killer.saves_counted(faults):
        run = observe(offer, Setting("run that crashes", sizes, faults=faults), root)
    steps = {name: [line.step for line in lines] for name, lines in run.series.items()}
    how = f"a BaseException stood in for a kill, as {reason}"
    return Crash(root, how, point, steps, bool(faults.fired))

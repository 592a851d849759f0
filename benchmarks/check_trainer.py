"""How long check_trainer takes, after the import of TensorFlow.

    python benchmarks/check_trainer.py

Needs `onbeat-trainer` beside `onbeat[tf]`.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

_PROCESSES = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def trainers() -> dict[str, Callable[..., Any]]:
    """What is checked."""
    # This directory has a trainer.py of its own.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if entry != here]
    from tf_agents.bandits.agents.examples.v2 import trainer as theirs

    import trainer as ours

    return {"ours": ours.train, "TF-Agents'": theirs.train}


def seconds(train: Callable[..., Any]) -> tuple[float, float]:
    """Wall clock, and processor time with that of the processes that are killed."""
    from testing.contracts import check_trainer
    from testing.contracts.trainer import killer

    start, used = time.perf_counter(), _processor()
    check_trainer(train, raises=False)
    # Its processor time is known when it has ended.
    killer.stop()
    return time.perf_counter() - start, _processor() - used


def _processor() -> float:
    times = [resource.getrusage(who) for who in _PROCESSES]
    return sum(t.ru_utime + t.ru_stime for t in times)


def main() -> None:
    """Prints one row for each trainer."""
    for name, train in trainers().items():
        wall, processor = seconds(train)
        print(f"{name:12} {wall:5.1f} s, of the processor {processor:5.1f} s")


if __name__ == "__main__":
    main()

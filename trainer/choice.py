"""Which parts of a run are compiled, and why."""

from __future__ import annotations

import dataclasses
from typing import Any

from trainer import graph_safe

# Driver steps and train steps of a run from which on compiling pays: with 48 of them
# it did for each of seven pairs of agent and environment, with 24 not for all.
WORTHWHILE_STEPS = 40


@dataclasses.dataclass(frozen=True)
class Choice:
    """What is compiled.

    Attributes:
      collect: the driver run with metrics and summaries.
      train: the train step, with reading the buffer.
      reason: why, in one line.
    """

    collect: bool
    train: bool
    reason: str


EAGER = Choice(collect=False, train=False, reason="eager: nothing else was asked for")


def choose(
    compile: bool | None,
    driver: Any,
    agent: Any,
    loops: int,
    steps: int,
    runs: int,
) -> Choice:
    """Decides what is compiled.

    Args:
      compile: as for `train`.
      driver: the driver, with its policy and environment. Only TF-Agents' and ours
        can be compiled.
      agent: the agent.
      loops: loops to be run now.
      steps: steps of a driver run.
      runs: driver runs, and train steps, of a loop.

    Returns:
      The choice. It depends on these values and on nothing measured, so that two
      runs of the same program do the same.
    """
    no_collect = graph_safe.unsafe_driver(driver)
    if compile is not None:
        collect = compile and no_collect is None
        return Choice(
            collect=collect,
            train=compile,
            reason=f"compile={compile}: driver run "
            f"{_told(no_collect) if compile else 'eager'}, "
            f"train step {'compiled' if compile else 'eager'}",
        )
    work = loops * runs * (steps + 1)
    if work < WORTHWHILE_STEPS:
        return Choice(
            collect=False,
            train=False,
            reason=f"compile=None: eager, because {work} driver and train steps are "
            f"fewer than {WORTHWHILE_STEPS}; tracing would take longer",
        )
    no_collect = no_collect or graph_safe.unsafe_acting(driver)
    no_train = graph_safe.unsafe_agent(agent)
    return Choice(
        collect=no_collect is None,
        train=no_train is None,
        reason=f"compile=None: driver run {_told(no_collect)}, "
        f"train step {_told(no_train)}",
    )


def _told(obstacle: str | None) -> str:
    return f"eager, because {obstacle}" if obstacle else "compiled"

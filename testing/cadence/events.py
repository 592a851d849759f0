"""Events: what happened in a run, in the words every part of Onbeat shares."""

from __future__ import annotations

import dataclasses
from typing import Any

KINDS = frozenset(
    {
        "env.reset",
        "env.step",
        "driver.run",
        "policy.action",
        "buffer.add",
        "buffer.read",
        "buffer.clear",
        "agent.train",
        "log",
        "summary",
        "checkpoint.save",
        "checkpoint.restore",
        "policy.save",
        "metric.update",
        "metric.result",
    }
)


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """Where an event was read: `place` counts from 1 in units of `unit`.

    Attributes:
      path: the file, as it was named to the reader.
      format: the reader that understood it, for example `absl` or `tensorboard`.
      place: number of the line, record or row.
      unit: `line`, `record` or `row`.
    """

    path: str
    format: str
    place: int
    unit: str = "line"

    def __str__(self) -> str:
        if self.unit == "line":
            return f"{self.path}:{self.place}"
        return f"{self.path}, {self.unit} {self.place}"


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened in a run.

    Attributes:
      kind: one of `KINDS`.
      name: the series (`loss`, `AverageReturn`) or the object it happened to.
      step: the step it was recorded at; None where the kind has none.
      value: a number, or whatever the recorder kept of it.
      source: the place in a file; None for an event seen live.
    """

    kind: str
    name: str = ""
    step: int | None = None
    value: Any = None
    source: Source | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(
                f"kind is {self.kind!r}. Allowed: {', '.join(sorted(KINDS))}."
            )

    def __str__(self) -> str:
        name = f" {self.name}" if self.name else ""
        step = "" if self.step is None else f"@{self.step}"
        value = "" if self.value is None else f" = {self.value}"
        return f"{self.kind}{name}{step}{value}"

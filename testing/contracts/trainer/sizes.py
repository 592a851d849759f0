"""Sizes of the runs. No two are alike, so that a swapped axis shows."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How long a run is.

    Attributes:
      loops: training loops.
      steps: steps of one driver run in each environment.
      runs: driver runs, and then train calls, of one loop: A.
      batch: environments stepped together.
    """

    loops: int
    steps: int
    runs: int
    batch: int

    @property
    def calls(self) -> int:
        """Train calls, and driver runs, in all."""
        return self.loops * self.runs

    @property
    def env_steps(self) -> int:
        """Times that the environment is stepped."""
        return self.calls * self.steps

    @property
    def interactions(self) -> int:
        """Steps of all environments together."""
        return self.env_steps * self.batch

    def but(self, **changed: int) -> Sizes:
        """The same with some sizes changed."""
        return dataclasses.replace(self, **changed)

    def __str__(self) -> str:
        loops = "loop" if self.loops == 1 else "loops"
        return (
            f"{self.loops} {loops}, A = {self.runs}, {self.steps} steps, "
            f"batch of {self.batch}"
        )


def checked(**given: int) -> Sizes:
    """The sizes a user asked for.

    Raises:
      TypeError, ValueError: one is no integer, too small, or equal to another.
    """
    least = {"training_loops": 2, "steps_per_loop": 2, "batch_size": 2}
    for name, value in given.items():
        low = least.get(name, 1)
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} is {value!r}. Allowed: an integer from {low}.")
        if value < low:
            raise ValueError(f"{name} is {value!r}. Allowed: an integer from {low}.")
    if len(set(given.values())) < len(given):
        rows = ", ".join(f"{name}={value}" for name, value in given.items())
        raise ValueError(
            f"Two sizes are equal: {rows}. Allowed: all different, "
            "else a swapped axis would not show."
        )
    return Sizes(
        given["training_loops"],
        given["steps_per_loop"],
        given["async_steps_per_loop"],
        given["batch_size"],
    )

"""What the fakes keep of a call: the `value` of their events. No TensorFlow."""

from __future__ import annotations

from typing import Any, NamedTuple


class EnvStep(NamedTuple):
    """One step of an environment; each field has one entry per batch row.

    Attributes:
      serials: numbers of the interactions that the actions answered.
      actions: the actions taken.
      rewards: the rewards returned.
    """

    serials: tuple[int, ...]
    actions: Any
    rewards: Any


class TrainCall(NamedTuple):
    """One call of `agent.train`.

    Attributes:
      shape: outer shape of the experience, `(batch_size, steps)`.
      serials: per row and step the number of the interaction; None when the
        observations carry no serial numbers.
      actions: per row and step, as the experience had them.
      rewards: per row and step, as the experience had them.
      loss: the loss that the call returned.
    """

    shape: tuple[int, ...]
    serials: Any
    actions: Any
    rewards: Any
    loss: float

"""Scripts: what a fake answers at its n-th call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def at(script: Sequence[Any] | Callable[[int], Any], index: int, what: str) -> Any:
    """The script's entry for call `index`, counted from 0.

    Raises:
      IndexError: the script is a sequence and has ended.
    """
    if callable(script):
        return script(index)
    if index < len(script):
        return script[index]
    raise IndexError(
        f"{what} has {len(script)} entries, but entry {index} was asked for. "
        f"Give more entries, or a function of the index."
    )


def distinct_loss(index: int) -> float:
    """The default loss of train call `index`: different for every call.

    Scrambled, so that a series logged one step late or smoothed never equals it;
    exact in float32.
    """
    # Triangular numbers run through all residues of a power of two.
    triangular = index * (index + 1) // 2
    return index // 1024 + (triangular * 619 + 83) % 1024 / 1024

"""check_trainer: the conformance suite for training loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from testing.contracts.trainer.error import TrainerContractError as TrainerContractError

if TYPE_CHECKING:
    from testing.contracts.trainer.check import check_trainer as check_trainer


def __getattr__(name: str) -> Any:
    """Imports the check, and TensorFlow, when it is first asked for (PEP 562)."""
    if name != "check_trainer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from testing.contracts.trainer import check

    return check.check_trainer

"""Contracts: what trainers and their parts must keep.

Each `check_...` is a plain function that needs no pytest. It tries every rule, also
after one is broken, and returns a `Report`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from testing.contracts._rules import ContractError as ContractError
from testing.contracts.trainer.error import TrainerContractError as TrainerContractError

if TYPE_CHECKING:
    from testing.contracts.agent import check_agent as check_agent
    from testing.contracts.driver import check_driver as check_driver
    from testing.contracts.environment import check_environment as check_environment
    from testing.contracts.replay_buffer import (
        check_replay_buffer as check_replay_buffer,
    )
    from testing.contracts.trainer.check import check_trainer as check_trainer

_LAZY = {
    "check_agent": "agent",
    "check_driver": "driver",
    "check_environment": "environment",
    "check_replay_buffer": "replay_buffer",
    "check_trainer": "trainer.check",
}

__all__ = ["ContractError", "TrainerContractError", *_LAZY]


def __getattr__(name: str) -> Any:
    """Imports a contract, and TensorFlow, when it is first asked for (PEP 562)."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_LAZY[name]}")
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})

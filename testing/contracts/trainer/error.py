"""The error of `check_trainer`. No TensorFlow."""

from __future__ import annotations

from testing.contracts._rules import ContractError


class TrainerContractError(ContractError):
    """A trainer breaks its contract; `report` has all violations."""

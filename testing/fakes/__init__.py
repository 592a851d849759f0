"""Counting and scripted stand-ins for the parts of a training loop.

`MockLog` and `Timeline` need no TensorFlow. The others are real subclasses of
the TF-Agents interfaces and are imported at their first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from testing.fakes.faults import Fault as Fault
from testing.fakes.faults import FaultPlan as FaultPlan
from testing.fakes.faults import InjectedFault as InjectedFault
from testing.fakes.mock_log import MockLog as MockLog
from testing.fakes.timeline import Timeline as Timeline
from testing.fakes.values import EnvStep as EnvStep
from testing.fakes.values import TrainCall as TrainCall

if TYPE_CHECKING:
    from testing.fakes.agent import CountingAgent as CountingAgent
    from testing.fakes.checkpoints import (
        FakeCheckpointManager as FakeCheckpointManager,
    )
    from testing.fakes.driver import CountingDriver as CountingDriver
    from testing.fakes.environment import FakeEnvironment as FakeEnvironment
    from testing.fakes.metric import FakeMetric as FakeMetric
    from testing.fakes.policy import FakePolicy as FakePolicy
    from testing.fakes.policy_saver import FakePolicySaver as FakePolicySaver
    from testing.fakes.replay_buffer import (
        RecordingReplayBuffer as RecordingReplayBuffer,
    )
    from testing.fakes.summary_writer import FakeSummaryWriter as FakeSummaryWriter

_LAZY = {
    "CountingAgent": "agent",
    "CountingDriver": "driver",
    "FakeCheckpointManager": "checkpoints",
    "FakeEnvironment": "environment",
    "FakeMetric": "metric",
    "FakePolicy": "policy",
    "FakePolicySaver": "policy_saver",
    "FakeSummaryWriter": "summary_writer",
    "RecordingReplayBuffer": "replay_buffer",
}

__all__ = [
    "EnvStep",
    "Fault",
    "FaultPlan",
    "InjectedFault",
    "MockLog",
    "Timeline",
    "TrainCall",
    *_LAZY,
]


def __getattr__(name: str) -> Any:
    """Imports a fake that needs TensorFlow when it is first asked for (PEP 562)."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_LAZY[name]}")
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})

"""Fixtures of Onbeat for pytest. Thin: TensorFlow only where a fixture needs it.

The fakes of one test share its `timeline` and its `faults`, and fit together: the
driver steps the environment with the agent's collect policy and fills the buffer.
The marker `onbeat` gives them other sizes and scripts:

    @pytest.mark.onbeat(batch_size=8, steps_per_loop=2, async_steps_per_loop=4)
    def test_my_loop(counting_driver, counting_agent, recording_replay_buffer): ...
"""

from __future__ import annotations

import dataclasses
import logging
import sys
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

pytest_plugins = ["testing.cadence.pytest_fixtures"]

if TYPE_CHECKING:
    from testing.fakes import (
        CountingAgent,
        CountingDriver,
        FakeEnvironment,
        FaultPlan,
        MockLog,
        RecordingReplayBuffer,
        Timeline,
    )

MARKER = (
    "onbeat(batch_size=2, num_actions=3, rewards=None, observation_shape=(), "
    "observation_dtype=None, losses=None, steps_per_loop=2, async_steps_per_loop=1): "
    "sizes and scripts of Onbeat's fixtures"
)
_ENVIRONMENT = {
    "batch_size": 2,
    "num_actions": 3,
    "rewards": None,
    "observation_shape": (),
    "observation_dtype": None,
}
_DEFAULTS = {
    **_ENVIRONMENT,
    "losses": None,
    "steps_per_loop": 2,
    "async_steps_per_loop": 1,
}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Leaves the loggers as the test found them."""
    before = _Loggers.now()
    try:
        return (yield)
    finally:
        before.restore()


@pytest.fixture
def timeline() -> Timeline:
    """An empty `Timeline`, shared by all fakes of the test."""
    from testing.fakes.timeline import Timeline

    return Timeline()


@pytest.fixture
def faults() -> Generator[FaultPlan, None, None]:
    """A `FaultPlan`, shared by all fakes of the test.

    A fault that was planned but never happened fails the test at its end: it has not
    tested what it says.
    """
    from testing.fakes.faults import FaultPlan

    plan = FaultPlan()
    yield plan
    if plan.pending:
        never = ", ".join(map(str, plan.pending))
        pytest.fail(f"Planned faults that never happened: {never}.", pytrace=False)


@pytest.fixture
def mock_log(timeline: Timeline, faults: FaultPlan) -> MockLog:
    """A `MockLog` to put in place of a module's `logging`:

    def test_my_trainer(mock_log, mocker):
        mocker.patch.object(export_utils, "logging", mock_log)
        train(...)
        assert mock_log.steps("loss") == [0, 1, 2]
    """
    from testing.fakes.mock_log import MockLog

    return MockLog(timeline=timeline, faults=faults)


@pytest.fixture
def fake_environment(
    request: pytest.FixtureRequest, timeline: Timeline, faults: FaultPlan
) -> FakeEnvironment:
    """A `FakeEnvironment`."""
    from testing.fakes.environment import FakeEnvironment

    options = {name: _options(request)[name] for name in _ENVIRONMENT}
    return FakeEnvironment(**options, timeline=timeline, faults=faults)


@pytest.fixture
def counting_agent(
    request: pytest.FixtureRequest,
    fake_environment: FakeEnvironment,
    timeline: Timeline,
    faults: FaultPlan,
) -> CountingAgent:
    """A `CountingAgent` for `fake_environment`."""
    from testing.fakes.agent import CountingAgent

    losses = _options(request)["losses"]
    script = {} if losses is None else {"losses": losses}
    return CountingAgent(fake_environment, **script, timeline=timeline, faults=faults)


@pytest.fixture
def recording_replay_buffer(
    request: pytest.FixtureRequest,
    counting_agent: CountingAgent,
    timeline: Timeline,
    faults: FaultPlan,
) -> RecordingReplayBuffer:
    """A `RecordingReplayBuffer` that holds one loop: `steps_per_loop * A` per row."""
    from tf_agents.replay_buffers import tf_uniform_replay_buffer

    from testing.fakes.replay_buffer import RecordingReplayBuffer

    options = _options(request)
    buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
        counting_agent.collect_data_spec,
        options["batch_size"],
        options["steps_per_loop"] * (options["async_steps_per_loop"] or 1),
    )
    return RecordingReplayBuffer(buffer, timeline=timeline, faults=faults)


@pytest.fixture
def counting_driver(
    request: pytest.FixtureRequest,
    fake_environment: FakeEnvironment,
    counting_agent: CountingAgent,
    recording_replay_buffer: RecordingReplayBuffer,
    timeline: Timeline,
    faults: FaultPlan,
) -> CountingDriver:
    """A `CountingDriver` that fills `recording_replay_buffer`."""
    from testing.fakes.driver import CountingDriver

    options = _options(request)
    return CountingDriver(
        fake_environment,
        counting_agent.collect_policy,
        [recording_replay_buffer.add_batch],
        num_steps=options["steps_per_loop"] * options["batch_size"],
        timeline=timeline,
        faults=faults,
    )


@pytest.fixture
def check_trainer() -> Callable[..., Any]:
    """The function `testing.contracts.check_trainer`:

    def test_my_trainer(check_trainer):
        check_trainer(my_project.train)
    """
    from testing.contracts.trainer.check import check_trainer

    return check_trainer


def _options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The defaults, and what the test's `onbeat` markers say; the nearest wins."""
    options = dict(_DEFAULTS)
    for marker in reversed(list(request.node.iter_markers("onbeat"))):
        unknown = sorted(set(marker.kwargs) - set(_DEFAULTS))
        if unknown or marker.args:
            wrong = ", ".join(unknown) or "positional arguments"
            allowed = ", ".join(_DEFAULTS)
            raise ValueError(f"Marker onbeat got {wrong}. Allowed: {allowed}.")
        options.update(marker.kwargs)
    return options


@dataclasses.dataclass
class _Loggers:
    """What a test can do to the loggers: handlers and levels, absl's flags, disable."""

    handlers: dict[str, list[logging.Handler]]
    levels: dict[str, int]
    absl: dict[str, Any]
    disabled: int

    @classmethod
    def now(cls) -> _Loggers:
        loggers = {name: logging.getLogger(name) for name in ("root", "absl")}
        return cls(
            {name: list(logger.handlers) for name, logger in loggers.items()},
            {name: logger.level for name, logger in loggers.items()},
            _absl_flags(),
            logging.root.manager.disable,
        )

    def restore(self) -> None:
        flags = _absl_flags()
        for name, value in flags.items():
            # What absl has when a test is the first to import it.
            before = self.absl.get(name, _ABSL_DEFAULTS[name])
            if value != before:
                getattr(sys.modules["absl.logging"], f"set_{name}")(before)
        # After absl's flags, as setting them sets levels.
        for name, handlers in self.handlers.items():
            logger = logging.getLogger(name)
            if logger.handlers != handlers:
                logger.handlers[:] = handlers
            if logger.level != self.levels[name]:
                logger.setLevel(self.levels[name])
        if logging.root.manager.disable != self.disabled:
            logging.disable(self.disabled)


_ABSL_DEFAULTS = {"verbosity": -1, "stderrthreshold": "fatal"}


def _absl_flags() -> dict[str, Any]:
    """absl's logging flags; none if nobody has imported it."""
    module = sys.modules.get("absl.logging")
    if module is None:
        return {}
    return {name: module.FLAGS[name].value for name in _ABSL_DEFAULTS}

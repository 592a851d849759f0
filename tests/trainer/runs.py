"""Runs of our trainer with fakes at its borders, and what they left behind."""

from __future__ import annotations

import dataclasses
import re
from typing import Any
from unittest import mock

from tf_agents.bandits.replay_buffers import bandit_replay_buffer
from tf_agents.eval import metric_utils
from tf_agents.metrics import export_utils, tf_metrics

import trainer
from testing.fakes import CountingAgent, FakeEnvironment, MockLog, Timeline

METRICS = ("NumberOfEpisodes", "AverageEpisodeLength", "AverageReturn")
BATCH_SIZE = 3
STEPS = 4


class Watched(bandit_replay_buffer.BanditReplayBuffer):
    """A replay buffer that notes how full it was when it was cleared."""

    frames_at_clear: list[int]

    def clear(self) -> Any:
        self.frames_at_clear.append(int(self.num_frames()))
        return super().clear()


def watched(buffer: Any) -> Watched:
    """Makes the trainer's own buffer a watched one."""
    buffer.__class__ = Watched
    buffer.frames_at_clear = []
    return buffer


@dataclasses.dataclass
class Run:
    """One call of `train` with fakes."""

    summary: trainer.TrainSummary
    log: MockLog
    joint: MockLog  # the records that hold all metrics together
    timeline: Timeline
    environment: FakeEnvironment
    agent: CountingAgent
    buffers: list[Any]

    def driver_runs(self, steps: int) -> list[list[tuple[int, ...]]]:
        """Serial numbers by driver run: for each step those of all rows."""
        stepped = [event.value.serials for event in self.timeline.of("env.step")]
        return [stepped[at : at + steps] for at in range(0, len(stepped), steps)]

    def experiences(self) -> list[list[tuple[int, ...]]]:
        """Serial numbers by train call, laid out like `driver_runs`."""
        calls = self.agent.train_calls
        return [[tuple(col) for col in zip(*c.serials, strict=True)] for c in calls]


def run(
    root_dir: Any,
    loops: int = 3,
    runs: int | None = 2,
    steps: int = STEPS,
    batch_size: int = BATCH_SIZE,
    environment: Any = None,
    agent: Any = None,
    watch: bool = True,
    **more: Any,
) -> Run:
    """Calls `trainer.train` with fakes; `more` goes to it as it is.

    A watched buffer is a subclass, which a compiled loop reads in another way.
    """
    timeline = Timeline()
    if environment is None:
        environment = FakeEnvironment(batch_size=batch_size, timeline=timeline)
    if agent is None:
        agent = CountingAgent(environment, timeline=timeline)
    buffers: list[Any] = []

    def buffer(*sizes: Any) -> Any:
        made = trainer.get_replay_buffer(*sizes)
        buffers.append(watched(made) if watch else made)
        return buffers[-1]

    more.setdefault("get_replay_buffer_fn", buffer)
    with (
        mock.patch.object(export_utils, "logging", new_callable=MockLog) as log,
        mock.patch.object(metric_utils, "logging", new_callable=MockLog) as joint,
    ):
        summary = trainer.train(
            root_dir, agent, environment, loops, steps, runs, **more
        )
    return Run(summary, log, joint, agent.timeline, environment, agent, buffers)


def extra_metric(name: str = "Extra") -> Any:
    """A metric beside the default ones."""
    return tf_metrics.EnvironmentSteps(name=name)


def log_values(log: MockLog, name: str) -> list[float]:
    """The logged values of one series."""
    pattern = re.compile(rf"\[step=\d+\] {re.escape(name)} = (.*)\.$")
    found = [pattern.match(line) for line in log.lines]
    return [float(match.group(1)) for match in found if match]

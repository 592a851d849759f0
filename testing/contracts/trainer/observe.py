"""One run of a trainer with fakes at its borders, and all that was seen of it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import io
import os
import sys
import tempfile
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path
from typing import Any

from testing.cadence.events import Event
from testing.contracts.trainer import buffers, disk, logs, process, subjects
from testing.contracts.trainer.signature import Offer
from testing.contracts.trainer.sizes import Sizes
from testing.contracts.trainer.watch import Probe, RunawayError, Watch
from testing.fakes.faults import FaultPlan
from testing.fakes.values import EnvStep, TrainCall

LOSS = "loss"
# What is beside it is looked at too: policies may be put there.
ROOT_DIR = "root_dir"


class StopError(BaseException):
    """Stands for a crash where the process cannot be killed."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """How a run differs from an ordinary one.

    Attributes:
      title: what the run is, for reports.
      sizes: how long it is.
      save_policy, resume: passed to the trainer.
      losses: script of the agent's losses.
      faults: what goes wrong.
      first_serial: number of the environment's first interaction.
      arguments: arguments that replace the ordinary ones.
    """

    title: str
    sizes: Sizes
    save_policy: bool = False
    resume: bool = False
    losses: Callable[[int], float] | None = None
    faults: FaultPlan | None = None
    first_serial: int = 0
    arguments: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Run:
    """What was seen of one run.

    Attributes:
      setting: what it was asked to do.
      root: its directory; the trainer's `root_dir` is in it.
      events: the timeline, with a `log` event for each series line.
      lines: all log records.
      printed: lines written to stdout and stderr.
      error: what it raised.
      train_calls: how often the agent was trained in its life.
      train_counter: where its train step counter stands.
      metric_total: interactions that the additional metric has counted in its life.
      buffers: the replay buffers that it made.
      before, after: the state of the process.
      silenced: reasons for which a log record would not have got through, each with
        the number of events before it.
      exports: after each loop the policies that there were.
      early_summaries: what the event files held when it returned.
      summaries: the same after all writers were flushed.
    """

    setting: Setting
    root: Path
    events: tuple[Event, ...] = ()
    lines: list[logs.Line] = dataclasses.field(default_factory=list)
    printed: list[str] = dataclasses.field(default_factory=list)
    error: BaseException | None = None
    train_calls: int = 0
    train_counter: int = 0
    metric_total: int = 0
    buffers: list[buffers.SeenBuffer] = dataclasses.field(default_factory=list)
    before: dict[str, Any] = dataclasses.field(default_factory=dict)
    after: dict[str, Any] = dataclasses.field(default_factory=dict)
    silenced: list[tuple[int, str]] = dataclasses.field(default_factory=list)
    exports: list[dict[str, tuple[int, int]]] = dataclasses.field(default_factory=list)
    early_summaries: dict[str, list[int]] = dataclasses.field(default_factory=dict)
    summaries: dict[str, list[int]] = dataclasses.field(default_factory=dict)

    @property
    def sizes(self) -> Sizes:
        return self.setting.sizes

    @property
    def title(self) -> str:
        return f"{self.setting.title} ({self.sizes})"

    @functools.cached_property
    def env_steps(self) -> list[EnvStep]:
        """Steps of the environment, oldest first."""
        return [e.value for e in self.events if e.kind == "env.step"]

    @functools.cached_property
    def actions(self) -> dict[int, float]:
        """The action taken in each interaction, by its number."""
        return _by_serial(self.env_steps, "actions")

    @functools.cached_property
    def rewards(self) -> dict[int, float]:
        """What each interaction earned, by its number."""
        return _by_serial(self.env_steps, "rewards")

    @functools.cached_property
    def trained(self) -> list[TrainCall]:
        """Calls of `agent.train`, oldest first."""
        return [e.value for e in self.events if e.kind == "agent.train"]

    @functools.cached_property
    def series(self) -> dict[str, list[logs.Line]]:
        """Series lines by name, in the order of their first line."""
        found: dict[str, list[logs.Line]] = {}
        for line in self.lines:
            if line.name is not None and line.level >= 20:
                found.setdefault(line.name, []).append(line)
        return found

    @property
    def losses(self) -> list[logs.Line]:
        return self.series.get(LOSS, [])

    @property
    def metrics(self) -> dict[str, list[logs.Line]]:
        """Series of the trainer's own metrics."""
        hidden = (LOSS, subjects.METRIC)
        return {n: lines for n, lines in self.series.items() if n not in hidden}

    @functools.cached_property
    def _places(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {"env.step": [], "agent.train": []}
        for index, event in enumerate(self.events):
            if event.kind in places:
                places[event.kind].append(index)
        return places

    def count_before(self, kind: str, index: int) -> int:
        """How many events of that kind came before the event of that index."""
        return bisect_left(self._places[kind], index)

    @property
    def collected(self) -> set[int]:
        """Interactions of the run, with and without what came after the last loop."""
        last = self._places["agent.train"][-1:] or [0]
        steps = {len(self.env_steps), self.count_before("env.step", last[0])}
        return {count * self.sizes.batch for count in steps}

    @functools.cached_property
    def phases(self) -> list[tuple[str, int]]:
        """Stretches of environment steps and of train calls, in turn."""
        found: list[tuple[str, int]] = []
        for event in self.events:
            if event.kind not in ("env.step", "agent.train"):
                continue
            if found and found[-1][0] == event.kind:
                found[-1] = (event.kind, found[-1][1] + 1)
            else:
                found.append((event.kind, 1))
        return found


def observe(
    offer: Offer, setting: Setting, root: Path, tell: Probe | None = None
) -> Run:
    """Calls the trainer once in `root` and returns what was seen.

    Args:
      offer: the trainer.
      setting: what is asked of it.
      root: its directory.
      tell: called with each event when it happens.
    """
    run = Run(setting, root)
    root.mkdir(parents=True, exist_ok=True)
    sizes = setting.sizes
    watch = Watch(limit=1000 + 40 * (sizes.env_steps + sizes.calls))
    if tell is not None:
        watch.probes.append(tell)
    with tempfile.TemporaryDirectory() as cwd, process.isolated(cwd):
        env = subjects.environment(
            sizes.batch, watch, setting.first_serial, setting.faults
        )
        agent = subjects.agent(env, watch, setting.losses, setting.faults)
        metric = subjects.Interactions()
        parts = {
            "agent": agent,
            "environment": env,
            "additional_metrics": (metric,),
        }
        _call(offer, run, watch, parts)
        run.train_calls = agent.calls
        run.train_counter = int(agent.train_step_counter)
        run.metric_total = int(metric.result())
    return run


def _call(offer: Offer, run: Run, watch: Watch, parts: dict[str, Any]) -> None:
    arguments = _arguments(run.setting, run.root) | parts | run.setting.arguments
    output = io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(output))
        stack.enter_context(contextlib.redirect_stderr(output))
        capture = stack.enter_context(logs.captured(watch))
        run.lines = capture.lines
        run.buffers = stack.enter_context(buffers.seen())
        flush = stack.enter_context(disk.writers())
        watch.probes.append(_Looker(run, watch, capture))
        subjects.seed_all(1234)
        run.before = process.state()
        run.error = _error(offer, arguments)
        run.after = process.settled(run.before)
        run.events = watch.events
        _look_at_the_end(run, flush)
    run.printed = output.getvalue().splitlines()


def _arguments(setting: Setting, root: Path) -> dict[str, Any]:
    sizes = setting.sizes
    return {
        "root_dir": os.fspath(root / ROOT_DIR),
        "training_loops": sizes.loops,
        "steps_per_loop": sizes.steps,
        "async_steps_per_loop": sizes.runs,
        "save_policy": setting.save_policy,
        "resume_training_loops": setting.resume,
    }


def _error(offer: Offer, arguments: dict[str, Any]) -> BaseException | None:
    try:
        returned = offer.call(**arguments)
    except (Exception, SystemExit, StopError, RunawayError) as error:
        if isinstance(error, TypeError) and offer.withdraw(error):
            return _error(offer, arguments)
        return error
    if inspect.isgenerator(returned) or inspect.iscoroutine(returned):
        returned.close()
        kind = type(returned).__name__
        return TypeError(f"it returned a {kind}, which nobody runs")
    return None


def _look_at_the_end(run: Run, flush: Callable[[], None]) -> None:
    for seen in run.buffers:
        seen.look_at_the_end()
    run.exports.append(disk.policies(run.root))
    run.early_summaries = disk.summaries(run.root)
    run.summaries = run.early_summaries
    if run.early_summaries:
        flush()
        run.summaries = disk.summaries(run.root)


def _by_serial(steps: list[Any], what: str) -> dict[int, float]:
    return {
        serial: value
        for step in steps
        for serial, value in zip(step.serials, getattr(step, what), strict=True)
    }


class _Looker:
    """Looks at buffers, policies and log levels while the trainer runs."""

    def __init__(self, run: Run, watch: Watch, capture: logs.Capture) -> None:
        self._run = run
        self._capture = capture
        self._watch = watch
        self._last = ""
        self._steps = 0

    def __call__(self, event: Event) -> None:
        if event.kind == "log":
            self._look_at_buffers()
        elif event.kind in ("env.step", "agent.train"):
            self._turn(event.kind)

    def _turn(self, kind: str) -> None:
        self._capture.follow()
        for reason in logs.silenced():
            self._run.silenced.append((len(self._watch), reason))
        if kind == "env.step" and self._last == "agent.train":
            self._run.exports.append(disk.policies(self._run.root))
        self._steps = self._steps + 1 if kind == "env.step" else 0
        self._last = kind

    def _look_at_buffers(self) -> None:
        # TensorFlow called from Python called from a graph may wait for itself.
        if not _in_graph():
            for seen in self._run.buffers:
                seen.look(self._steps)


def _in_graph() -> bool:
    """Whether a graph is what called this Python."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.endswith("script_ops.py"):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False

"""The runs that the rules look at: each is made when first asked for, once."""

from __future__ import annotations

import functools
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from testing.contracts._rules import not_exercised
from testing.contracts.trainer import crash
from testing.contracts.trainer.observe import Run, Setting, observe
from testing.contracts.trainer.signature import Offer
from testing.contracts.trainer.sizes import Sizes
from testing.fakes.faults import FaultPlan

# Loops of the second leg of a resumed run.
MORE = 2
PLANTED = "planted by check_trainer"


class PlantedError(Exception):
    """An error that no trainer can know."""


class Lab:
    """Runs one trainer in many ways.

    Attributes:
      offer: the trainer and the arguments that it takes.
      sizes: of an ordinary run.
      notes: what the reader of the report should know.
      ordinary: the ordinary runs made so far.
    """

    def __init__(
        self, train: Callable[..., Any], offer: Offer, sizes: Sizes, directory: Path
    ) -> None:
        self.offer = offer
        self.sizes = sizes
        self.notes: list[str] = []
        self.ordinary: list[Run] = []
        self._train = train
        self._directory = directory
        if offer.open:
            # Tells what `**kwargs` do not take.
            _ = self.nothing
        if not offer.takes("async_steps_per_loop"):
            self.sizes = sizes.but(runs=1)

    # Ordinary runs.

    @functools.cached_property
    def main(self) -> Run:
        """An ordinary run with A > 1, where the trainer has an A."""
        return self._ordinary(Setting("ordinary run", self.sizes), "main")

    @functools.cached_property
    def repeat(self) -> Run:
        """The same again."""
        return self._ordinary(Setting("same run again", self.sizes), "repeat")

    @functools.cached_property
    def single(self) -> Run:
        """An ordinary run with A = 1 that exports policies."""
        sizes = self.sizes.but(runs=1)
        setting = Setting("run that saves policies", sizes, save_policy=True)
        return self._ordinary(setting, "single")

    def ended(self, run: Run) -> Run:
        """The run, if it ended as it should; else the rule has nothing to look at."""
        if run.error is not None:
            not_exercised(f"the {run.setting.title} raised {type(run.error).__name__}")
        return run

    def both(self) -> list[Run]:
        """The ordinary runs: with A > 1, and with A = 1."""
        runs = [self.ended(self.main)]
        if self.sizes.runs > 1 and self.single.error is None:
            runs.append(self.single)
        return runs

    # Runs that go on from others.

    @functools.cached_property
    def resumed(self) -> Run:
        """The ordinary run, then on to some more loops."""
        sizes = self.sizes.but(loops=self.sizes.loops + MORE)
        root = self._copy(self.ended(self.main).root, "resumed")
        return self._run(self._resume("resumed run", sizes), root)

    @functools.cached_property
    def resized(self) -> Run:
        """The same with another `steps_per_loop`.

        It is so large that all loops so far look like a single one to whoever divides
        environment steps by the size of a loop.
        """
        loops = self.sizes.loops
        sizes = self.sizes.but(loops=loops + 1, steps=self.sizes.steps * loops)
        root = self._copy(self.ended(self.main).root, "resized")
        return self._run(
            self._resume("run resumed with another steps_per_loop", sizes), root
        )

    @functools.cached_property
    def crashes(self) -> list[crash.Crash]:
        """Runs that are killed in their second loop, each at another point."""
        found = []
        for number, point in enumerate(crash.points(self.train_calls_per_loop())):
            root = self._directory / f"crashed_{number}"
            happened = crash.crash(self._train, self.offer, self.sizes, root, point)
            # A trainer need not have a checkpoint manager.
            if happened.happened:
                found.append(happened)
        if found:
            places = " and ".join(each.point.text for each in found)
            self.notes.append(f"crash-resumes: {found[0].how}; {places}.")
        return found

    def recovered(self, crashed: crash.Crash) -> Run:
        """A killed run, resumed."""
        return self._run(self._resume("run after a crash", self.sizes), crashed.root)

    # Runs in which something goes wrong.

    @functools.cached_property
    def agent_error(self) -> Run:
        """The agent raises in its first train call."""
        return self._broken("agent.train", 0)

    @functools.cached_property
    def environment_error(self) -> Run:
        """The environment raises in its second step."""
        return self._broken("env.step", 1)

    @functools.cached_property
    def nan(self) -> Run:
        """The first loss is NaN."""

        def losses(index: int) -> float:
            return math.nan if index == 0 else 0.25 * index

        setting = Setting("run with a NaN loss", self.sizes.but(loops=1), losses=losses)
        return self._run(setting, self._directory / "nan")

    @functools.cached_property
    def nothing(self) -> Run:
        """A run of no loops."""
        return self.with_arguments(training_loops=0)

    def with_arguments(self, **arguments: Any) -> Run:
        """A run with arguments of the caller's."""
        text = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
        name = "".join(c if c.isalnum() else "_" for c in text)
        sizes = self.sizes.but(loops=1)
        setting = Setting(f"run with {text}", sizes, True, arguments=arguments)
        return self._run(setting, self._directory / f"with_{name}")

    def _ordinary(self, setting: Setting, name: str) -> Run:
        run = self._run(setting, self._directory / name)
        self.ordinary.append(run)
        return run

    def _broken(self, kind: str, call: int) -> Run:
        faults = FaultPlan()
        faults.raise_at(kind, call, PlantedError(f"{kind} {call}, {PLANTED}"))
        setting = Setting(
            f"run in which {kind} raises", self.sizes.but(loops=1), faults=faults
        )
        return self._run(setting, self._directory / f"broken_{kind}")

    def _resume(self, title: str, sizes: Sizes) -> Setting:
        # Serial numbers apart from those of the first leg.
        return Setting(title, sizes, resume=True, first_serial=1_000_000)

    def _copy(self, root: Path, name: str) -> Path:
        """A copy, so that runs do not disturb each other."""
        target = self._directory / name
        if root.exists():
            shutil.copytree(root, target)
            _repoint(root, target)
        return target

    def _run(self, setting: Setting, root: Path) -> Run:
        return observe(self.offer, setting, root)

    # What the trainer does not offer.

    def need(self, *names: str) -> None:
        """Skips the rule if the trainer does not take these arguments."""
        for name in names:
            if not self.offer.takes(name):
                not_exercised(f"the trainer takes no {name}")

    def train_calls_per_loop(self) -> int:
        """Train calls of one loop as they were, so that `train-calls` alone tells."""
        calls, left = divmod(len(self.ended(self.main).trained), self.sizes.loops)
        if left or not calls:
            not_exercised("loops cannot be told apart, see train-calls")
        return calls


def _repoint(root: Path, target: Path) -> None:
    """Checkpoint states with absolute paths must not point to the original."""
    for path in target.rglob("checkpoint"):
        if path.is_file():
            path.write_text(path.read_text().replace(str(root), str(target)))

"""Killed anywhere and resumed, a run loses nothing.

Each chain is one directory and many processes: each finishes a loop, gets to the next
and is killed there by SIGKILL at a point of its own. The next process resumes.
"""

from __future__ import annotations

import collections
import json

import numpy as np
import pytest

from tests.trainer.killing import problem, traces
from tests.trainer.killing.server import Server

pytestmark = pytest.mark.slow

SERIES = ("NumberOfEpisodes", "AverageEpisodeLength", "AverageReturn", "loss")


def point(kind: str, when: str, call: int, name: str | None = None, **train) -> dict:
    """A kill, and arguments of `train` for the process that it hits."""
    return {"kind": kind, "when": when, "call": call, "name": name, "train": train}


def around(kind: str, call: int, name: str | None = None, **train) -> list[dict]:
    return [point(kind, when, call, name, **train) for when in ("before", "after")]


def steps(runs: int, compiled: bool) -> list[dict]:
    """Points of the first and the last step of a process's second loop."""
    points = []
    for step in sorted({runs, 2 * runs - 1}):
        if not compiled:
            points += around("driver.run", step)
            points += around("log", step, "joint")
        points += [point("env.step", when, 2 * step) for when in ("inside", "after")]
        points += around("log", step, "AverageReturn")
        for when in ("before", "inside", "after"):
            points.append(point("agent.train", when, step))
        points += around("log", step, "loss")
    return points


def saving(runs: int, compiled: bool) -> list[dict]:
    """Points of what is written at the end of a process's second loop."""
    per_loop = 4 * runs
    exported = {"save_policy": True, "policy_interval": 1}
    return [
        *([] if compiled else around("summary", per_loop)),
        *([] if compiled else around("summary", 2 * per_loop - 1)),
        *([] if compiled else around("buffer.clear", 1)),
        *around("checkpoint.save", 1),
        *around("log", 2, "declare"),
        *around("log", 3, "declare"),
        *around("log", 3, "sweep"),
        *around("policy.save", 1, **exported),
        *around("log", 1, "saved model", **exported),
        *around("log", 1, "rename", **exported),
    ]


def ends(runs: int, compiled: bool) -> list[dict]:
    """Points of a process's first and last steps."""
    last = {"more_loops": 1}
    return [
        *around("log", 0, "lock"),
        *around("log", 0, "find"),
        point("agent.train", "inside", 0),
        point("checkpoint.save", "before", 0),
        *around("log", 0, "rename", save_policy=True, **last),
        *around("log", 0, "unlock", **last),
    ]


CHAINS = [
    pytest.param(make, runs, compiled, id=f"{make.__name__}-A{runs}-compile={compiled}")
    for runs, compiled in ((1, False), (3, False), (3, True))
    for make in (steps, saving, ends)
]


@pytest.fixture(scope="module")
def server():
    server = Server()
    yield server
    server.close()


@pytest.mark.parametrize(("make", "runs", "compiled"), CHAINS)
def test_nothing_is_lost(server, tmp_path, make, runs, compiled):
    points = make(runs, compiled)
    chain = Chain(server, tmp_path / "killed", runs, compiled)
    for at in points:
        chain.kill(at)
    chain.finish()
    whole = Chain(server, tmp_path / "whole", runs, compiled)
    whole.finish(chain.loops)
    chain.check(whole)


class Chain:
    """Processes that resume one another in one directory."""

    def __init__(self, server, directory, runs, compiled):
        directory.mkdir()
        self.root = directory / "root"
        self.loops = 0
        self._directory = directory
        self._server = server
        self._runs = runs
        self._train = {
            "root_dir": str(self.root),
            "async_steps_per_loop": runs,
            "compile": compiled,
            "resume_training_loops": True,
            "save_policy": False,
            "max_to_keep": 2,
            "progress": False,
        }
        self._starts = []  # Finished loops at the start of each process.

    def kill(self, at):
        """Runs a process that dies at a point."""
        at = dict(at)
        train = dict(at.pop("train"))
        more = train.pop("more_loops", 5)
        code = self._process([at], traces.finished_loops(self.root) + more, train)
        assert code == -9, f"{at} was not reached: {self._log(-1).read_text()[-2000:]}"

    def finish(self, loops=None):
        """Runs a process to the end, at least one loop more."""
        self.loops = loops or traces.finished_loops(self.root) + 1
        train = {"save_policy": True, "result": self._result}
        if loops:
            train["max_to_keep"] = loops
        code = self._process([], self.loops, train)
        assert code == 0, self._log(-1).read_text()[-2000:]

    @property
    def _result(self):
        return str(self._directory / "result.json")

    def _log(self, process):
        return self._directory / f"{range(len(self._starts))[process]}.log"

    def _process(self, faults, loops, train):
        self._starts.append(traces.finished_loops(self.root))
        log = str(self._log(-1))
        more = {**self._train, **train, "training_loops": loops}
        return self._server.run(log=log, faults=faults, **more)

    def check(self, whole):
        """Compares what all processes left with one that was never killed."""
        expected = traces.logged(whole._log(0))
        summaries = traces.summarized(whole.root)
        self._check_lines(expected)
        self._check_summaries(summaries)
        latest = f"ckpt-{self.loops}"
        traces.assert_same(
            traces.state(self.root / latest), traces.state(whole.root / latest)
        )
        self._check_policies(whole)
        mine, others = (json.load(open(c._result)) for c in (self, whole))  # noqa: SIM115
        for same in ("total_loops", "train_steps", "environment_steps", "metrics"):
            assert mine[same] == others[same]

    def _check_lines(self, expected):
        """Each process goes on right behind the last finished loop."""
        seen = {name: set() for name in SERIES}
        for process, start in enumerate(self._starts):
            lines = traces.logged(self._log(process))
            for name, pairs in lines.items():
                first = start * self._runs
                assert pairs == expected[name][first : first + len(pairs)], name
                seen[name] |= {step for step, _ in pairs}
        everything = set(range(self.loops * self._runs))
        assert all(steps == everything for steps in seen.values())

    def _check_summaries(self, expected):
        """Once each step, and once more for each time its loop was not finished."""
        found = traces.summarized(self.root)
        assert found.keys() == expected.keys()
        for tag in ("loss", *(f"Metrics/{name}" for name in SERIES[:-1])):
            assert set(found[tag]) == set(expected[tag])
            for (step, _), times in collections.Counter(found[tag]).items():
                loop = step // self._runs
                assert 1 <= times <= 1 + self._unfinished(loop), (tag, step)

    def _unfinished(self, loop):
        """How many processes died in a loop."""
        reached = [*self._starts[1:], self.loops]
        return sum(end == loop for end in reached[:-1])

    def _check_policies(self, whole):
        """Each is of the agent as it was after the loop that it is named after."""
        found = traces.policies(self.root)
        assert f"policy_{self.loops * self._per_loop}" in found
        for name, variables in found.items():
            loops = int(name.removeprefix("policy_")) // self._per_loop
            agent = traces.state(whole.root / f"ckpt-{loops}").values()
            for value in variables.values():
                assert any(np.array_equal(value, other) for other in agent), name
        leftovers = [p.name for p in self.root.iterdir() if p.name.startswith(".")]
        assert leftovers == []

    @property
    def _per_loop(self):
        return self._runs * problem.STEPS * problem.ROWS

"""Compiled or not: the same log, calls, summaries and checkpoints."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from testing.fakes import FakeEnvironment
from tests.trainer import runs

KINDS = ("env.reset", "env.step", "policy.action", "agent.train")


def plain(**more):
    """A run with the default buffer, which compiled loops read in the graph."""
    return {"get_replay_buffer_fn": None, **more}


def outcome(run):
    """All there is to see of a run, in order."""
    calls = [(e.kind, e.name, e.step, e.value) for e in run.timeline.of(*KINDS)]
    return run.log.lines, run.joint.lines, calls, run.summary.metrics


@pytest.mark.parametrize("buffer", [{}, plain()], ids=["own-buffer", "plain-buffer"])
@pytest.mark.parametrize("runs_per_loop", [1, 3])
@pytest.mark.parametrize("steps", [1, 4, 7])
def test_compiled_and_eager_runs_are_the_same(tmp_path, buffer, runs_per_loop, steps):
    eager, compiled = (
        runs.run(
            tmp_path / str(is_compiled),
            loops=3,
            runs=runs_per_loop,
            steps=steps,
            compile=is_compiled,
            **buffer,
        )
        for is_compiled in (False, True)
    )
    assert outcome(compiled) == outcome(eager)
    assert compiled.experiences() == compiled.driver_runs(steps)


@pytest.mark.parametrize("compile", [True, False])
def test_an_exception_of_the_environment_arrives_as_it_was_raised(tmp_path, compile):
    error = ZeroDivisionError("no reward today")

    def rewards(serials, actions):
        if serials[0] > 30:
            raise error
        return np.ones(len(serials))

    environment = FakeEnvironment(batch_size=3, rewards=rewards)
    with pytest.raises(ZeroDivisionError) as caught:
        runs.run(tmp_path, environment=environment, compile=compile)
    assert caught.value is error
    assert tf.train.latest_checkpoint(tmp_path) is not None

"""NaN and infinite losses: logged as they are, stopped at if asked for."""

from __future__ import annotations

import math

import pytest
import tensorflow as tf

import trainer
from testing.fakes import CountingAgent, FakeEnvironment
from tests.trainer import runs

LOSSES = [0.5, 0.25, math.nan, math.inf, -math.inf, 0.125]


def agent_and_environment():
    environment = FakeEnvironment()
    agent = CountingAgent(environment, losses=LOSSES)
    return {"agent": agent, "environment": environment}


def test_they_are_logged_as_they_are(tmp_path):
    run = runs.run(tmp_path, loops=3, **agent_and_environment())
    assert runs.log_values(run.log, "loss") == pytest.approx(LOSSES, nan_ok=True)
    assert run.log.steps("loss") == [0, 1, 2, 3, 4, 5]


def test_raising_stops_before_a_checkpoint_of_it(tmp_path):
    with pytest.raises(
        trainer.NonFiniteLossError, match=r"^The loss at step 2 is nan\."
    ):
        runs.run(tmp_path, on_nonfinite_loss="raise", **agent_and_environment())
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("ckpt-1")

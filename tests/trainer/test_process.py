"""The process is left as it was found, also after an error."""

from __future__ import annotations

import logging as python_logging
import os
import threading

import pytest
import tensorflow as tf
from absl import logging

from testing.fakes import CountingAgent, FakeEnvironment
from tests.trainer import runs


def state():
    """What a trainer might change behind the back of its caller."""
    return {
        "has a default writer": tf.summary.should_record_summaries(),
        "absl verbosity": logging.get_verbosity(),
        "root level": python_logging.getLogger().level,
        "root handlers": list(python_logging.getLogger().handlers),
        "absl handlers": list(logging.get_absl_logger().handlers),
        "working directory": os.getcwd(),
        "threads": set(threading.enumerate()),
        "global step": list(tf.compat.v1.get_collection("global_step")),
        "eager functions": tf.config.functions_run_eagerly(),
    }


def test_nothing_of_the_process_is_changed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = state()
    runs.run(tmp_path / "run")
    assert state() == before
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_nothing_of_the_process_is_changed_by_an_error(tmp_path):
    environment = FakeEnvironment(rewards=_broken_after(2))
    before = state()
    with pytest.raises(ZeroDivisionError, match=r"^reward of interaction"):
        runs.run(tmp_path, environment=environment, compile=False)
    assert state() == before


def test_an_error_keeps_the_last_finished_loops_checkpoint(tmp_path):
    environment = FakeEnvironment(rewards=_broken_after(20))
    with pytest.raises(ZeroDivisionError):
        runs.run(tmp_path, loops=3, environment=environment, compile=False)
    # 2 runs of 4 steps with 2 rows are 16 interactions a loop.
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("ckpt-1")


def test_a_writer_that_was_the_default_is_so_again(tmp_path):
    mine = tf.summary.create_file_writer(str(tmp_path / "mine"))
    with mine.as_default():
        runs.run(tmp_path / "run", loops=1)
        tf.summary.scalar("after", 1.0, step=0)
    mine.close()
    (events,) = (tmp_path / "mine").iterdir()
    assert b"after" in events.read_bytes()
    assert b"AverageReturn" not in events.read_bytes()


def test_the_global_step_of_a_fresh_agent_is_not_made(tmp_path):
    agent = CountingAgent(FakeEnvironment())
    runs.run(tmp_path, loops=1, environment=FakeEnvironment(), agent=agent)
    assert int(agent.train_step_counter) == 2


def _broken_after(interactions):
    def reward(serials, actions):
        if serials[0] >= interactions:
            raise ZeroDivisionError(f"reward of interaction {serials[0]}")
        return serials

    return reward

"""Resident memory of a run after 1,000, 10,000 and 100,000 loops.

Usage: python benchmarks/memory.py [LOOPS] [ASYNC_STEPS_PER_LOOP]

The parts are fakes that keep nothing, so what grows is the trainer's. Every line is
logged (to nowhere) and every summary written; a checkpoint is saved each 100 loops.
"""

from __future__ import annotations

import logging
import os
import pathlib
import re
import sys
import tempfile
import time
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

# Not benchmarks/trainer.py, which stands first in the path.
sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent)

import trainer  # noqa: E402, I001  Before TensorFlow, so that it finds Keras 2.
import tensorflow as tf  # noqa: E402
from absl import logging as absl_logging  # noqa: E402
from tf_agents.agents import tf_agent  # noqa: E402
from tf_agents.bandits.environments import bandit_tf_environment  # noqa: E402
from tf_agents.policies import tf_policy  # noqa: E402
from tf_agents.specs import tensor_spec  # noqa: E402
from tf_agents.trajectories import policy_step, time_step  # noqa: E402

ROWS = 4
STEPS = 2
LINE = re.compile(r"\[step=(\d+)\] loss = ")


class Environment(bandit_tf_environment.BanditTFEnvironment):
    """Always shows zeros and pays 1."""

    def __init__(self) -> None:
        super().__init__(
            time_step.time_step_spec(tf.TensorSpec([3], tf.float32)),
            tensor_spec.BoundedTensorSpec((), tf.int32, 0, 1),
            batch_size=ROWS,
        )

    def _observe(self) -> Any:
        return tf.zeros([ROWS, 3])

    def _apply_action(self, action: Any) -> Any:
        return tf.cast(tf.zeros_like(action), tf.float32) + 1.0


class Policy(tf_policy.TFPolicy):
    """Always acts 0."""

    def _distribution(self, time_step: Any, policy_state: Any) -> Any:
        raise NotImplementedError

    def _action(self, time_step: Any, policy_state: Any, seed: Any = None) -> Any:
        action = tf.zeros_like(time_step.step_type)
        return policy_step.PolicyStep(action, policy_state, ())


class Agent(tf_agent.TFAgent):
    """Learns nothing."""

    def __init__(self, environment: Any) -> None:
        policy = Policy(environment.time_step_spec(), environment.action_spec())
        super().__init__(
            environment.time_step_spec(),
            environment.action_spec(),
            policy,
            policy,
            train_sequence_length=None,
            train_step_counter=tf.Variable(0, dtype=tf.int64),
        )

    def _train(self, experience: Any, weights: Any = None) -> Any:
        self.train_step_counter.assign_add(1)
        return tf_agent.LossInfo(tf.reduce_mean(experience.reward), ())


class Meter(logging.Handler):
    """Takes the log, and measures at some of its lines."""

    def __init__(self, steps: dict[int, int]) -> None:
        super().__init__()
        self._steps = steps
        self._start = time.monotonic()

    def emit(self, record: logging.LogRecord) -> None:
        match = LINE.match(record.getMessage())
        if match and int(match[1]) in self._steps:
            seconds = time.monotonic() - self._start
            loops = self._steps[int(match[1])]
            print(
                f"{loops:>9,} loops  {resident():8.1f} MB  {seconds:8.1f} s", flush=True
            )


def resident() -> float:
    """Resident memory of this process in MB."""
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main(loops: int = 100_000, runs: int = 1) -> None:
    """Trains and prints a line at each power of ten."""
    marks = [10**power for power in range(2, 9) if 10**power <= loops]
    logger = absl_logging.get_absl_logger()
    logger.handlers[:] = [Meter({mark * runs - 1: mark for mark in marks})]
    logger.propagate = False
    absl_logging.set_verbosity(absl_logging.INFO)
    environment = Environment()
    with tempfile.TemporaryDirectory() as root_dir:
        summary = trainer.train(
            root_dir,
            Agent(environment),
            environment,
            loops,
            STEPS,
            runs,
            save_policy=False,
            checkpoint_interval=100,
            compile=True,
            progress=False,
        )
    print(f"{summary.train_steps:,} train steps")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

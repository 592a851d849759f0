"""Checkpoints: what is in them, how a run is resumed, what may not be mixed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from absl import logging

AGENT = "agent"
STEP = "step"
PROGRESS = "onbeat"
_DESCRIPTION_KEY = f"{PROGRESS}/description/.ATTRIBUTES/py_state"
_SAVE_COUNTER_KEY = "save_counter/.ATTRIBUTES/VARIABLE_VALUE"


class CheckpointMismatchError(ValueError):
    """The checkpoint in `root_dir` is of another agent or problem."""


class Description(tf.train.experimental.PythonState):
    """What a checkpoint was made of, as flat text fields; saved as JSON."""

    def __init__(self, fields: dict[str, str]) -> None:
        self.fields = fields

    def serialize(self) -> str:
        """The fields as JSON, for the checkpoint."""
        return json.dumps(self.fields, sort_keys=True)

    def deserialize(self, string_value: str) -> None:
        """Keeps the fields of this run; those saved were compared before."""


class Progress(tf.Module):
    """How far a run has come, counted and not derived. Saved with each checkpoint.

    Attributes:
      loops: finished training loops, of all runs in the directory.
      train_steps: steps logged by them; the next one has this number.
      description: what the run is made of.
    """

    def __init__(self, fields: dict[str, str] | None = None) -> None:
        super().__init__(name=PROGRESS)
        self.loops = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.train_steps = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.description = Description(fields or {})

    def finish_loop(self, train_steps: int) -> None:
        """Counts one more finished loop of `train_steps` steps."""
        self.loops.assign_add(1)
        self.train_steps.assign_add(train_steps)


def describe(agent: Any, environment: Any) -> dict[str, str]:
    """The fields that must not change between a checkpoint and its resumption."""
    variables = [
        f"{variable.name} {variable.dtype.name}{variable.shape.as_list()}"
        for variable in agent.policy.variables()
    ]
    return {
        "agent class": type(agent).__name__,
        "policy variables": ", ".join(variables),
        "observation spec": str(environment.observation_spec()),
        "action spec": str(environment.action_spec()),
        "reward spec": str(environment.reward_spec()),
        "batch size of the environment": str(environment.batch_size),
    }


def restore_and_get_checkpoint_manager(
    root_dir: str,
    agent: Any,
    metrics: Sequence[Any],
    step_metric: Any,
    progress: Progress | None = None,
    max_to_keep: int = 5,
) -> tf.train.CheckpointManager:
    """Restores the latest checkpoint in `root_dir`, if any, and returns its manager.

    Args:
      root_dir: where checkpoints are, or will be.
      agent: the `TFAgent` to save and restore.
      metrics: metrics to save and restore, each under its name.
      step_metric: the metric that counts environment steps.
      progress: loops and train steps to save and restore. In a checkpoint without
        them, as TF-Agents' trainer writes, loops are the checkpoints ever saved.
      max_to_keep: how many checkpoints are kept.

    Returns:
      A `tf.train.CheckpointManager` for `root_dir`. Nothing is written yet.

    Raises:
      CheckpointMismatchError: the latest checkpoint is of another agent or problem.
    """
    trackables = {metric.name: metric for metric in metrics}
    trackables |= {AGENT: agent, STEP: step_metric}
    if progress is not None:
        trackables[PROGRESS] = progress
    checkpoint = tf.train.Checkpoint(**trackables)
    manager = tf.train.CheckpointManager(checkpoint, root_dir, max_to_keep=max_to_keep)
    latest = manager.latest_checkpoint
    if latest is None:
        logging.info("Did not find a pre-existing checkpoint. Starting from scratch.")
        return manager
    logging.info("Restoring checkpoint from %s.", latest)
    _restore(latest, checkpoint, agent, progress)
    logging.info("Successfully restored to step %s.", step_metric.result())
    return manager


def _restore(
    path: str, checkpoint: tf.train.Checkpoint, agent: Any, progress: Progress | None
) -> None:
    reader = tf.train.load_checkpoint(path)
    if progress is not None:
        _check_description(path, reader, progress.description.fields)
    try:
        # The agent first and alone: TensorFlow restores what fits and is silent
        # about the rest.
        status = tf.train.Checkpoint(**{AGENT: agent}).restore(path)
        status.expect_partial().assert_existing_objects_matched()
        checkpoint.restore(path).expect_partial()
    except (AssertionError, ValueError) as error:
        raise CheckpointMismatchError(
            f"Checkpoint {path} does not fit this run: {_first_line(error)} "
            "Use another root_dir, or the agent, environment and metrics it was "
            "written with."
        ) from error
    if progress is not None and not reader.has_tensor(_DESCRIPTION_KEY):
        progress.loops.assign(_loops_of_original(reader))


def _check_description(path: str, reader: Any, now: dict[str, str]) -> None:
    if not reader.has_tensor(_DESCRIPTION_KEY):
        return
    saved = json.loads(reader.get_tensor(_DESCRIPTION_KEY))
    different = [name for name in now if saved.get(name, now[name]) != now[name]]
    if different:
        rows = [_difference(name, saved[name], now[name]) for name in different]
        raise CheckpointMismatchError(
            f"Checkpoint {path} is of another run. Different: {'; '.join(rows)}. "
            "Use another root_dir, or what the checkpoint was written with."
        )


def _difference(name: str, saved: str, now: str) -> str:
    return f"{name}: saved {_short(saved)}, now {_short(now)}"


def _short(text: str, limit: int = 160) -> str:
    return text if len(text) <= limit else f"{text[:limit]}..."


def _loops_of_original(reader: Any) -> int:
    """TF-Agents' trainer saves once a loop and keeps no other count of loops."""
    if not reader.has_tensor(_SAVE_COUNTER_KEY):
        return 0
    return int(reader.get_tensor(_SAVE_COUNTER_KEY))


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return _short(lines[0]) if lines else type(error).__name__

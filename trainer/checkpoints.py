"""Checkpoints: what is in them, how a run is resumed, what may not be mixed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from absl import logging
from tensorflow.core.protobuf import trackable_object_graph_pb2
from tf_agents.metrics import tf_metrics

from trainer import found, storage, traced_checkpoint

AGENT = "agent"
STEP = "step"
PROGRESS = "onbeat"
RECENT = f"{PROGRESS}_"  # Starts the name of what a metric averages.
_DESCRIPTION_KEY = f"{PROGRESS}/description/.ATTRIBUTES/py_state"
_GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
_UNCHANGED = "All checkpoints are as they were."
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

    One that can't be read is passed over, with a warning, for the one before.

    Args:
      root_dir: where checkpoints are, or will be.
      agent: the `TFAgent` to save and restore.
      metrics: metrics to save and restore, each under its name.
      step_metric: the metric that counts environment steps.
      progress: loops and train steps to save and restore. In a checkpoint without
        them, as TF-Agents' trainer writes, loops are the checkpoints ever saved.
      max_to_keep: how many checkpoints are kept.

    Returns:
      A `tf.train.CheckpointManager` for `root_dir`. No checkpoint is written yet.

    Raises:
      CheckpointMismatchError: the latest checkpoint is of another agent or problem.
      UnreadableCheckpointError: there are checkpoints, none of which can be read.
      StorageError: `root_dir` can't be written, which a fall-back has to.
    """
    trackables = {metric.name: metric for metric in metrics}
    trackables |= _recent(metrics)
    trackables |= {AGENT: agent, STEP: step_metric}
    if progress is not None:
        trackables[PROGRESS] = progress
    constant = () if progress is None else (progress.description,)
    checkpoint = traced_checkpoint.TracedCheckpoint(constant, **trackables)
    latest = found.latest_readable(root_dir)
    if latest is None:
        logging.info("Did not find a pre-existing checkpoint. Starting from scratch.")
    else:
        logging.info("Restoring checkpoint from %s.", latest)
        _restore(latest, checkpoint, trackables, progress)
        logging.info("Successfully restored to step %s.", step_metric.result())
        with storage.writing("The state of checkpoints", root_dir, lambda: _UNCHANGED):
            found.declare(root_dir, latest)
    return tf.train.CheckpointManager(checkpoint, root_dir, max_to_keep=max_to_keep)


def _recent(metrics: Sequence[Any]) -> dict[str, Any]:
    """What averages are taken of, by name in the checkpoint.

    TF-Agents keeps it in objects that TensorFlow does not look into: without this an
    average starts anew with each process.
    """
    found_in: dict[str, Any] = {}
    for metric in metrics:
        deques = {
            f"{name}_{index}": {"head": leaf._head, "buffer": leaf._buffer}
            for name, value in sorted(vars(metric).items())
            for index, leaf in enumerate(tf.nest.flatten(value))
            if isinstance(leaf, tf_metrics.TFDeque)
        }
        if deques:
            found_in[f"{RECENT}{metric.name}"] = tf.train.Checkpoint(**deques)
    return found_in


def save(manager: tf.train.CheckpointManager, number: int) -> None:
    """Saves checkpoint `number`; nothing is left of it if that fails.

    Raises:
      StorageError: it could not be written. The one before is still the latest.
    """
    directory = manager.directory
    before = tf.train.latest_checkpoint(directory)

    with storage.writing(f"Checkpoint {number}", directory, lambda: kept(directory)):
        try:
            manager.save(checkpoint_number=number)
        except BaseException:
            if tf.train.latest_checkpoint(directory) == before:
                found.remove_number(directory, number)
            raise


def kept(directory: str) -> str:
    """A sentence that says from where the next run goes on."""
    latest = tf.train.latest_checkpoint(directory)
    if latest is None:
        return "There is no checkpoint yet; the next run starts from scratch."
    return f"Kept: {latest}; the next run goes on from there."


def remove_unfinished(directory: str) -> None:
    """Deletes what processes that died while saving left in `directory`."""
    with storage.writing("The directory", directory, lambda: _UNCHANGED):
        found.remove_unfinished(directory)


def _restore(
    path: str,
    checkpoint: tf.train.Checkpoint,
    trackables: dict[str, Any],
    progress: Progress | None,
) -> None:
    reader = tf.train.load_checkpoint(path)
    if progress is not None:
        _check_description(path, reader, progress.description.fields)
    saved = _saved_names(reader)
    _warn_of_changed_metrics(path, saved, set(trackables))
    # One by one: TensorFlow restores what fits and is silent about the rest.
    for name in trackables:
        if name in saved or name == AGENT:
            _restore_whole(path, name, trackables[name])
    checkpoint.restore(path).expect_partial()
    if progress is not None and PROGRESS not in saved:
        progress.loops.assign(_loops_of_original(reader))


def _restore_whole(path: str, name: str, trackable: Any) -> None:
    try:
        status = tf.train.Checkpoint(**{name: trackable}).restore(path)
        status.expect_partial().assert_existing_objects_matched()
    except (AssertionError, ValueError, tf.errors.OpError) as error:
        what = f"{name}: {storage.reason(error)}"
        raise CheckpointMismatchError(
            f"Checkpoint {path} does not fit this run: {what}. Use another root_dir, "
            "or the agent, environment and metrics it was written with."
        ) from error


def _saved_names(reader: Any) -> set[str]:
    """Names of what was saved together, from the graph of objects."""
    if not reader.has_tensor(_GRAPH_KEY):
        return set()
    graph = trackable_object_graph_pb2.TrackableObjectGraph.FromString(
        reader.get_tensor(_GRAPH_KEY)
    )
    return {child.local_name for child in graph.nodes[0].children}


def _warn_of_changed_metrics(path: str, saved: set[str], now: set[str]) -> None:
    def metrics(names: set[str]) -> list[str]:
        own = {AGENT, STEP, PROGRESS, "save_counter"}
        return sorted(n for n in names - own if not n.startswith(RECENT))

    for name in metrics(now - saved):
        logging.warning(
            "Metric %s is not in checkpoint %s. It starts from scratch.", name, path
        )
    for name in metrics(saved - now):
        logging.warning(
            "Metric %s of checkpoint %s is not among this run's. Its value will be "
            "lost with the next checkpoint.",
            name,
            path,
        )


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
    saved, now = storage.shortened(saved), storage.shortened(now)
    return f"{name}: saved {saved}, now {now}"


def _loops_of_original(reader: Any) -> int:
    """TF-Agents' trainer saves once a loop and keeps no other count of loops."""
    if not reader.has_tensor(_SAVE_COUNTER_KEY):
        return 0
    return int(reader.get_tensor(_SAVE_COUNTER_KEY))

"""Which checkpoints a directory holds, and which of them can be read."""

from __future__ import annotations

import contextlib
import os
import re
import time

import tensorflow as tf
from absl import logging

from trainer import storage

_STATE_FILE = "checkpoint"
_INDEX = re.compile(r"ckpt-(\d+)\.index")
# What a process that dies while it saves leaves behind.
_UNFINISHED = re.compile(
    r"ckpt-\d+(_temp/?|\..*tempstate\d*)|checkpoint\.tmp[0-9a-f]{32}"
)


class UnreadableCheckpointError(RuntimeError):
    """`root_dir` holds checkpoints, but none of them can be read."""


def latest_readable(directory: str) -> str | None:
    """The newest checkpoint that can be read as a whole.

    The state file says which is the newest; those it does not name come last. One
    that is torn, corrupt or gone is passed over with a warning.

    Returns:
      Its path without extension. None if no checkpoint was ever completed there.

    Raises:
      UnreadableCheckpointError: there are checkpoints, none of which can be read.
    """
    declared = _declared(directory)
    faults: dict[str, str] = {}
    for path in _candidates(directory, declared or []):
        fault = _fault(path)
        if fault is None:
            if faults:
                logging.warning(
                    "Checkpoint %s can't be read. Falling back to the one before, %s.",
                    _listed(faults),
                    path,
                )
            return path
        faults[path] = fault
    # The state file is written last: without one a single torn checkpoint is the
    # first, and nothing was ever finished.
    if declared is None and len(faults) <= 1:
        for path, fault in faults.items():
            logging.warning(
                "Checkpoint %s was never completed (%s). Starting from scratch.",
                path,
                fault,
            )
        return None
    raise UnreadableCheckpointError(
        f"No checkpoint in {directory} can be read: {_listed(faults)}. Nothing was "
        "changed. Restore one from a backup, or use another root_dir to start anew."
    )


def declare(directory: str, latest: str) -> None:
    """Makes `latest` the newest checkpoint of the state file, if it is not.

    Those that the directory holds beside it stay known, so that they are deleted in
    their turn.
    """
    declared = _declared(directory)
    if declared and declared[0] == latest:
        return
    number = _number(latest)
    older = [path for path in _on_disk(directory) if _number(path) < number]
    paths = [*reversed(older), latest]
    tf.__internal__.train.update_checkpoint_state(
        directory,
        latest,
        all_model_checkpoint_paths=paths,
        # Without times the manager takes them for some it has to keep for ever.
        all_model_checkpoint_timestamps=[time.time()] * len(paths),
        last_preserved_timestamp=0.0,
        save_relative_paths=True,
    )


def remove_unfinished(directory: str) -> None:
    """Deletes what processes that died while saving left there."""
    for name in _names(directory):
        if _UNFINISHED.fullmatch(name):
            remove(os.path.join(directory, name.rstrip("/")))


def remove_number(directory: str, number: int) -> None:
    """Deletes what there is of checkpoint `number`, which failed to be saved.

    Quietly: the disk has already shown that it does not work.
    """
    mine = re.compile(rf"ckpt-{number}(\.(index|data-.*)|_temp/?)(\.tempstate\d*)?")
    with contextlib.suppress(OSError, tf.errors.OpError):
        for name in _names(directory):
            if mine.fullmatch(name):
                remove(os.path.join(directory, name.rstrip("/")))


def remove(path: str) -> None:
    """Deletes a file or a directory, if there is one."""
    if tf.io.gfile.isdir(path):
        tf.io.gfile.rmtree(path)
    elif tf.io.gfile.exists(path):
        tf.io.gfile.remove(path)


def _declared(directory: str) -> list[str] | None:
    """Paths that the state file names, newest first; None if there is no file."""
    file = os.path.join(directory, _STATE_FILE)
    if not tf.io.gfile.exists(file):
        return None
    try:
        state = tf.train.get_checkpoint_state(directory)
    except (ValueError, tf.errors.OpError):  # ValueError: torn, in several ways.
        state = None
    if state is None:
        logging.warning("%s is torn; looking for checkpoints without it.", file)
        return []
    paths = [state.model_checkpoint_path, *reversed(state.all_model_checkpoint_paths)]
    return list(dict.fromkeys(paths))


def _candidates(directory: str, declared: list[str]) -> list[str]:
    return list(dict.fromkeys([*declared, *_on_disk(directory)]))


def _on_disk(directory: str) -> list[str]:
    """Paths of checkpoints that have an index file, newest first."""
    found = [match for name in _names(directory) if (match := _INDEX.fullmatch(name))]
    found.sort(key=lambda match: int(match.group(1)), reverse=True)
    return [os.path.join(directory, f"ckpt-{match.group(1)}") for match in found]


def _names(directory: str) -> list[str]:
    return tf.io.gfile.listdir(directory) if tf.io.gfile.isdir(directory) else []


def _number(path: str) -> int:
    tail = path.rpartition("-")[2]
    return int(tail) if tail.isdigit() else 0


def _fault(path: str) -> str | None:
    """Why the checkpoint can't be read; None if it can. Reads all of it."""
    try:
        reader = tf.train.load_checkpoint(path)
        for name in reader.get_variable_to_shape_map():
            reader.get_tensor(name)  # Compares the checksum.
    # What TensorFlow raises for a torn file goes up to IndexError.
    except Exception as error:
        return storage.reason(error)
    return None


def _listed(faults: dict[str, str]) -> str:
    return "; ".join(f"{path} ({fault})" for path, fault in faults.items())

"""What processes left behind: log lines, summaries, checkpoints, policies."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import numpy as np
import tensorflow as tf

LINE = re.compile(r"\[step=(\d+)\] (\w+) = (.*)\.$")


def logged(log: pathlib.Path) -> dict[str, list[tuple[int, str]]]:
    """Step and value of each line, by series."""
    series: dict[str, list[tuple[int, str]]] = {}
    for text in log.read_text().splitlines():
        if match := LINE.search(text):
            series.setdefault(match[2], []).append((int(match[1]), match[3]))
    return series


def summarized(root_dir: pathlib.Path) -> dict[str, list[tuple[int, float]]]:
    """Step and value of each scalar, by tag, of all event files."""
    series: dict[str, list[tuple[int, float]]] = {}
    for path in sorted(root_dir.glob("events.out.tfevents.*")):
        try:
            for event in tf.compat.v1.train.summary_iterator(str(path)):
                for value in event.summary.value:
                    number = float(tf.make_ndarray(value.tensor))
                    series.setdefault(value.tag, []).append((event.step, number))
        except tf.errors.DataLossError:
            pass  # The process died in the middle of a record, the file's last.
    return series


def finished_loops(root_dir: pathlib.Path) -> int:
    """Loops of the latest checkpoint."""
    latest = tf.train.latest_checkpoint(str(root_dir))
    return 0 if latest is None else int(latest.rpartition("-")[2])


def state(checkpoint: pathlib.Path | str) -> dict[str, Any]:
    """All that a checkpoint, or the variables of a policy, hold, by name."""
    reader = tf.train.load_checkpoint(str(checkpoint))
    return {
        name: reader.get_tensor(name)
        for name in reader.get_variable_to_shape_map()
        # How often it was saved differs, and is of no use to anybody.
        if not name.startswith(("save_counter", "_CHECKPOINTABLE"))
    }


def policies(root_dir: pathlib.Path) -> dict[str, dict[str, Any]]:
    """The variables of each exported policy, by the name of its directory."""
    return {
        path.name: state(path / "variables" / "variables")
        for path in root_dir.glob("policy_*")
    }


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Two states are equal to the last bit."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)

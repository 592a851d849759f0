"""Traced or not: the same checkpoint, whenever that is certain."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from trainer.traced_checkpoint import EAGER_SAVES, TracedCheckpoint

MANY = EAGER_SAVES + 3


class Text(tf.train.experimental.PythonState):
    """State in Python, which a graph would freeze."""

    def __init__(self, text):
        self.text = text

    def serialize(self):
        return self.text

    def deserialize(self, string_value):
        self.text = string_value


def content(path):
    reader = tf.train.load_checkpoint(path)
    names = sorted(reader.get_variable_to_shape_map())
    return {name: np.asarray(reader.get_tensor(name)).tolist() for name in names}


@pytest.fixture
def traces(monkeypatch):
    """How often a checkpoint was traced."""
    seen = []
    write = TracedCheckpoint.write_eagerly

    def counted(self, prefix):
        seen.append(prefix)
        return write(self, prefix)

    monkeypatch.setattr(TracedCheckpoint, "write_eagerly", counted)
    return seen


def saved(checkpoint, directory, times, change=lambda: None):
    """Checkpoint files of so many saves, each after a change."""
    manager = tf.train.CheckpointManager(checkpoint, directory, max_to_keep=None)
    paths = []
    for _ in range(times):
        change()
        paths.append(manager.save())
    assert manager.checkpoints[-times:] == paths
    return paths


def test_the_files_hold_the_same_as_tensorflows(tmp_path, traces):
    variable, text = tf.Variable([1.0, 2.0]), Text("constant")
    parts = {"a": tf.Module(), "text": text}
    parts["a"].v = variable
    mine = TracedCheckpoint((text,), **parts)
    theirs = tf.train.Checkpoint(**parts)
    for times, path in enumerate(
        saved(mine, tmp_path, MANY, lambda: variable.assign_add([1.0, 1.0])), 1
    ):
        theirs.save_counter.assign(times)
        now = variable.numpy()
        variable.assign([1.0 + times, 2.0 + times])
        assert content(path) == content(theirs.write(str(tmp_path / f"{times}-too")))
        variable.assign(now)
    assert len(traces) == 1


def test_state_in_python_is_never_frozen(tmp_path, traces):
    text = Text("")

    def change():
        text.text += "x"

    paths = saved(TracedCheckpoint(text=text), tmp_path, MANY, change)
    key = "text/.ATTRIBUTES/py_state"
    assert [len(content(path)[key]) for path in paths] == list(range(1, MANY + 1))
    assert traces == []


def test_a_variable_that_came_later_is_saved(tmp_path, traces):
    module = tf.Module()
    module.first = tf.Variable(1)
    checkpoint = TracedCheckpoint(module=module)
    saved(checkpoint, tmp_path, MANY)
    module.second = tf.Variable(2)
    path = saved(checkpoint, tmp_path, 1)[-1]
    assert content(path)["module/second/.ATTRIBUTES/VARIABLE_VALUE"] == 2
    saved(checkpoint, tmp_path, MANY)
    assert len(traces) == 2


def test_a_replaced_variable_is_saved(tmp_path):
    module = tf.Module()
    module.v = tf.Variable(1)
    checkpoint = TracedCheckpoint(module=module)
    saved(checkpoint, tmp_path, MANY)
    module.v = tf.Variable(7)
    path = saved(checkpoint, tmp_path, 1)[-1]
    assert content(path)["module/v/.ATTRIBUTES/VARIABLE_VALUE"] == 7


def test_an_error_is_tensorflows_own(tmp_path):
    checkpoint = TracedCheckpoint(v=tf.Variable(1))
    saved(checkpoint, tmp_path, MANY)
    (tmp_path / "file").write_text("")
    with pytest.raises((OSError, tf.errors.OpError)) as plain:
        tf.train.Checkpoint(v=tf.Variable(1)).write(str(tmp_path / "file" / "x"))
    with pytest.raises(type(plain.value)) as caught:
        checkpoint.write(str(tmp_path / "file" / "x"))
    assert "Graph execution error" not in str(caught.value)


def test_other_options_are_left_to_tensorflow(tmp_path, traces):
    checkpoint = TracedCheckpoint(v=tf.Variable(1))
    options = tf.train.CheckpointOptions(experimental_io_device="/CPU:0")
    for number in range(MANY):
        checkpoint.write(str(tmp_path / str(number)), options=options)
    assert traces == []


def test_it_restores_what_it_wrote(tmp_path):
    variable = tf.Variable(3)
    path = saved(TracedCheckpoint(v=variable), tmp_path, MANY)[-1]
    other = tf.Variable(0)
    TracedCheckpoint(v=other).restore(path).assert_consumed()
    assert int(other) == 3


def test_nothing_of_its_own_gets_into_the_checkpoint(tmp_path):
    path = saved(TracedCheckpoint(v=tf.Variable(3)), tmp_path, MANY)[-1]
    names = {name for name, _ in tf.train.list_variables(path)}
    assert names == {
        "_CHECKPOINTABLE_OBJECT_GRAPH",
        "save_counter/.ATTRIBUTES/VARIABLE_VALUE",
        "v/.ATTRIBUTES/VARIABLE_VALUE",
    }

"""What is missing is said in one line, before anything else goes wrong."""

from __future__ import annotations

import importlib.util
import os
import sys
import types

import pytest

from trainer import _tensorflow


def test_what_is_not_installed_is_named_with_the_command_to_type(monkeypatch):
    monkeypatch.delitem(sys.modules, "tf_agents")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError) as caught:
        _tensorflow.prepare()
    message = str(caught.value)
    assert message.startswith("tf_agents")
    assert message.endswith("pip install onbeat-trainer")
    assert "\n" not in message


@pytest.mark.parametrize("version", ["2.16.0", "2.21.0", "3.0.0-rc1"])
def test_tensorflow_imported_with_keras_3_is_an_error(monkeypatch, version):
    fake = types.SimpleNamespace(__version__=version)
    monkeypatch.setitem(sys.modules, "tensorflow", fake)
    monkeypatch.delenv("TF_USE_LEGACY_KERAS", raising=False)
    with pytest.raises(ImportError, match=r"^TensorFlow was imported before trainer"):
        _tensorflow.prepare()


@pytest.mark.parametrize(
    ("version", "legacy"), [("2.15.1", ""), ("2.16.0", "1"), ("2.21.0", "true")]
)
def test_tensorflow_imported_with_keras_2_is_fine(monkeypatch, version, legacy):
    fake = types.SimpleNamespace(__version__=version)
    monkeypatch.setitem(sys.modules, "tensorflow", fake)
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", legacy)
    _tensorflow.prepare()


def test_keras_2_is_switched_on_before_tensorflow_is_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "tensorflow")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "0")
    _tensorflow.prepare()
    assert os.environ["TF_USE_LEGACY_KERAS"] == "1"

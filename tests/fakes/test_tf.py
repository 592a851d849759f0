"""The TensorFlow guard, and fakes that load it only when asked for."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

import testing.fakes
from testing.fakes import _tf


def _python(code, **environment):
    env = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, "-c", code], env=env, text=True, capture_output=True
    )


def test_missing_tensorflow_is_one_clear_line():
    code = (
        "import sys; sys.modules['tensorflow'] = None; import testing.fakes as f\n"
        "f.MockLog\n"
        "try: f.CountingAgent\n"
        "except ImportError as error: print(error)"
    )
    assert _python(code).stdout == _tf.INSTALL + "\n"


def test_keras_3_is_refused():
    tensorflow = SimpleNamespace(
        __version__="2.21.0", keras=SimpleNamespace(__version__="3.12.0")
    )
    with pytest.raises(ImportError, match=r"TensorFlow 2\.21\.0 runs with Keras 3\.12"):
        _tf.check_keras(tensorflow)


@pytest.mark.parametrize("keras", [{"__version__": "2.15.0"}, {}])
def test_keras_2_is_accepted(keras):
    _tf.check_keras(
        SimpleNamespace(__version__="2.15.1", keras=SimpleNamespace(**keras))
    )


def test_missing_tf_keras_tells_what_to_install():
    class Tensorflow:
        __version__ = "2.21.0"

        @property
        def keras(self):
            raise ImportError("Keras cannot be imported.")

    with pytest.raises(ImportError, match=r"pip install 'tf-keras==2\.21\.\*'"):
        _tf.check_keras(Tensorflow())


def test_legacy_keras_is_switched_on_before_the_import(monkeypatch):
    monkeypatch.setattr(sys, "modules", {})
    monkeypatch.delenv("TF_USE_LEGACY_KERAS", raising=False)
    _tf.switch_on_legacy_keras()
    assert os.environ["TF_USE_LEGACY_KERAS"] == "1"


def test_legacy_keras_is_left_alone_after_the_import(monkeypatch):
    monkeypatch.setattr(sys, "modules", {"tensorflow": None})
    monkeypatch.delenv("TF_USE_LEGACY_KERAS", raising=False)
    _tf.switch_on_legacy_keras()
    assert "TF_USE_LEGACY_KERAS" not in os.environ


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'CountingAgents'"):
        testing.fakes.CountingAgents  # noqa: B018


def test_every_public_name_can_be_imported():
    for name in testing.fakes.__all__:
        assert getattr(testing.fakes, name).__name__ == name
    assert set(testing.fakes.__all__) <= set(dir(testing.fakes))

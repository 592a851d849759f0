"""Makes sure that TensorFlow, TF-Agents and Keras 2 are there, or says what to do.

TF-Agents 0.19 is written for Keras 2. TensorFlow 2.16 and later bring Keras 3 and
hand out Keras 2 (`tf-keras`) only if `TF_USE_LEGACY_KERAS` is set before TensorFlow
is imported.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import sys

_INSTALL = (
    "trainer needs TensorFlow 2.15 to 2.21, tf-keras and TF-Agents 0.19 "
    "(Python 3.10 or 3.11): pip install onbeat-trainer"
)
_TOO_LATE = (
    "TensorFlow was imported before trainer, with Keras 3; TF-Agents needs Keras 2. "
    "Import trainer first, or set TF_USE_LEGACY_KERAS=1 before importing TensorFlow."
)


def prepare() -> None:
    """Switches Keras 2 on. Raises ImportError, in one line, if that can't be done."""
    missing = [
        name
        for name in ("tensorflow", "tf_agents", "tf_keras")
        if name not in sys.modules and importlib.util.find_spec(name) is None
    ]
    if missing:
        problem = f"{', '.join(missing)} not found. {_INSTALL}"
        if _is_command():
            sys.exit(f"python -m trainer: {problem}")
        raise ImportError(problem)
    if "tensorflow" not in sys.modules:
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
        if _is_command():
            # Or a screenful about missing GPUs comes before the command's own lines.
            os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    elif _has_keras_3():
        raise ImportError(_TOO_LATE)


def _is_command() -> bool:
    """Whether this is `python -m trainer`, not somebody's import."""
    return ("-m", "trainer") in itertools.pairwise(sys.orig_argv)


def _has_keras_3() -> bool:
    version = getattr(sys.modules["tensorflow"], "__version__", "0.0")
    major, minor = (int(part) for part in version.split(".")[:2])
    legacy = os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true")
    return (major, minor) >= (2, 16) and not legacy

"""The one place where the fakes and the contracts import TensorFlow.

TF-Agents 0.19 needs Keras 2. From TensorFlow 2.16 on that is the package
`tf-keras`, and only if `TF_USE_LEGACY_KERAS=1` is set before Keras is loaded. So
every module of the fakes takes TensorFlow from here.
"""

from __future__ import annotations

import os
import sys
from typing import Any

__all__ = [
    "array_spec",
    "bandit_tf_environment",
    "bernoulli_py_environment",
    "driver",
    "dynamic_step_driver",
    "nest_utils",
    "policy_saver",
    "policy_step",
    "py_environment",
    "replay_buffer",
    "tensor_spec",
    "tf",
    "tf_agent",
    "tf_environment",
    "tf_metric",
    "tf_policy",
    "tf_py_environment",
    "tfp",
    "time_step",
    "trajectory",
]

INSTALL = "The fakes need TensorFlow and TF-Agents. Try: pip install 'onbeat[tf]'"
KERAS_3 = (
    "TensorFlow {tensorflow} runs with Keras {keras}, but TF-Agents needs Keras 2. "
    "Set TF_USE_LEGACY_KERAS=1 before TensorFlow is imported, "
    "for example at the top of conftest.py."
)
NO_TF_KERAS = (
    "TensorFlow {tensorflow} brings no Keras 2, which TF-Agents needs. "
    "Try: pip install 'tf-keras=={minor}.*'"
)


def switch_on_legacy_keras() -> None:
    """Chooses Keras 2, if TensorFlow has not been imported yet."""
    if "tensorflow" not in sys.modules:
        os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")


def check_keras(tensorflow: Any) -> None:
    """Raises ImportError unless `tensorflow.keras` is Keras 2."""
    version = tensorflow.__version__
    try:
        # Some releases of Keras 2 do not tell their version here.
        keras = getattr(tensorflow.keras, "__version__", "2.")
    except ImportError as error:
        minor = ".".join(version.split(".")[:2])
        text = NO_TF_KERAS.format(tensorflow=version, minor=minor)
        raise ImportError(text) from error
    if not keras.startswith("2."):
        raise ImportError(KERAS_3.format(tensorflow=version, keras=keras))


switch_on_legacy_keras()

try:
    import tensorflow as tf
except ImportError as missing:
    raise ImportError(INSTALL) from missing

check_keras(tf)

try:
    import tensorflow_probability as tfp
    from tf_agents.agents import tf_agent
    from tf_agents.bandits.environments import (
        bandit_tf_environment,
        bernoulli_py_environment,
    )
    from tf_agents.drivers import driver, dynamic_step_driver
    from tf_agents.environments import (
        py_environment,
        tf_environment,
        tf_py_environment,
    )
    from tf_agents.metrics import tf_metric
    from tf_agents.policies import policy_saver, tf_policy
    from tf_agents.replay_buffers import replay_buffer
    from tf_agents.specs import array_spec, tensor_spec
    from tf_agents.trajectories import policy_step, time_step, trajectory
    from tf_agents.utils import nest_utils
except ModuleNotFoundError as missing:
    raise ImportError(INSTALL) from missing

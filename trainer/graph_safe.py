"""What may be built into a graph without asking: it does the same there as eagerly.

Code that counts or collects in Python runs only once, when a graph is traced. So
only TF-Agents' own classes, as they are, are taken to be safe; whatever else there
is, a person has to vouch for it (`compile=True`).
"""

from __future__ import annotations

from typing import Any

from tf_agents.bandits.replay_buffers import bandit_replay_buffer
from tf_agents.drivers import dynamic_step_driver
from tf_agents.environments import tf_py_environment
from tf_agents.metrics import tf_metric

# TF-Agents' classes, and those of this package.
_TRUSTED = ("tf_agents.", f"{__name__.rpartition('.')[0]}.")
_Uniform = bandit_replay_buffer.BanditReplayBuffer


def unsafe_agent(agent: Any) -> str | None:
    """Why the agent's train step is not known to be safe, or None if it is."""
    return _foreign("agent", agent, ("train", "_train", "_loss"))


def unsafe_driver(driver: Any) -> str | None:
    """Why the driver can't be compiled, or None if it can."""
    if isinstance(driver, dynamic_step_driver.DynamicStepDriver):
        return None
    if _acts_elsewhere(driver):
        return None
    return f"driver {type(driver).__name__} is no DynamicStepDriver"


def unsafe_acting(driver: Any) -> str | None:
    """Why its policy or environment are not known to be safe, or None if they are."""
    if _acts_elsewhere(driver):
        return None
    return unsafe_policy(driver.policy) or unsafe_environment(driver.env)


def _acts_elsewhere(driver: Any) -> bool:
    """True if the driver calls neither policy nor environment, as with collectors."""
    return bool(getattr(driver, "acts_elsewhere", False))


def unsafe_policy(policy: Any) -> str | None:
    """Why the policy's action is not known to be safe, or None if it is."""
    names = ("action", "_action", "distribution", "_distribution")
    return _foreign("policy", policy, names)


def unsafe_environment(environment: Any) -> str | None:
    """Why stepping the environment is not known to be safe, or None if it is.

    A Python environment within a `TFPyEnvironment` is: it is called at each step.
    """
    if type(environment) is tf_py_environment.TFPyEnvironment:
        return _changed("environment", environment, ("step", "_step"))
    names = ("step", "_step", "_apply_action", "_observe", "_current_time_step")
    return _foreign("environment", environment, names)


def is_safe_observer(observer: Any) -> bool:
    """True for metrics, which TF-Agents always compiles, and for its buffer."""
    if is_plain_add_batch(observer):
        return True
    if not isinstance(observer, tf_metric.TFStepMetric):
        return False
    return type(observer).__call__ is tf_metric.TFStepMetric.__call__


def has_safe_result(metric: Any) -> bool:
    """True if a metric's result and summaries can be computed in a graph."""
    # Metrics of several values iterate over them, which a graph does not allow.
    several = isinstance(metric, tf_metric.TFMultiMetricStepMetric)
    if several or not is_safe_observer(metric):
        return False
    return _foreign("metric", metric, ("result", "tf_summaries")) is None


def is_plain_buffer(buffer: Any) -> bool:
    """True for TF-Agents' uniform buffer itself, not changed in any way."""
    names = ("add_batch", "_add_batch", "clear", "_clear", "num_frames")
    return type(buffer) is _Uniform and not _changed("buffer", buffer, names)


def is_plain_add_batch(observer: Any) -> bool:
    """True for the `add_batch` of a plain buffer."""
    name = getattr(observer, "__name__", None)
    return name == "add_batch" and is_plain_buffer(getattr(observer, "__self__", None))


def _foreign(what: str, thing: Any, methods: tuple[str, ...]) -> str | None:
    kind = type(thing)
    if not _is_trusted(kind):
        return f"{what} {kind.__name__} is not of TF-Agents"
    return _changed(what, thing, methods)


def _changed(what: str, thing: Any, methods: tuple[str, ...]) -> str | None:
    """Why `thing` is not what its class says: somebody replaced a method."""
    for name in methods:
        method = getattr(type(thing), name, None)
        if name in vars(thing) or (method and not _is_trusted(method)):
            return f"{name} of {what} {type(thing).__name__} was replaced"
    return None


def _is_trusted(thing: Any) -> bool:
    module = getattr(thing, "__module__", None)
    return isinstance(module, str) and module.startswith(_TRUSTED)

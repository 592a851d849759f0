"""FakeEnvironment: a bandit environment whose observations carry serial numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from testing.fakes import _script
from testing.fakes._calls import Core, Recording, call_python
from testing.fakes._tf import (
    bandit_tf_environment,
    tensor_spec,
    tf,
    tf_environment,
    time_step,
)
from testing.fakes.faults import FaultPlan
from testing.fakes.timeline import Timeline
from testing.fakes.values import EnvStep

SERIAL = "serial"

Rewards = float | Sequence[Any] | Callable[[Any, Any], Any] | None

_FIRST, _LAST = 0, 2


class FakeEnvironment(bandit_tf_environment.BanditTFEnvironment, Recording):
    """A bandit environment that numbers its interactions.

    Like every TF-Agents bandit environment it gives one full episode per step. Each
    observation is the serial number of the interaction it opens: `batch_size` new
    numbers per step, so what an agent is trained on can be traced back to the very
    step and row that produced it.

        environment = FakeEnvironment(batch_size=3)
        environment.reset().observation             # [0, 1, 2]
        environment.step([0, 0, 0]).observation     # [3, 4, 5]

    On its timeline: `env.reset` with the numbers shown, `env.step` with an `EnvStep`.

    Attributes:
      timeline: where its events go.
      steps: how many times it was stepped.
      resets: how many times it was reset.
    """

    def __init__(
        self,
        *,
        batch_size: int = 2,
        num_actions: int = 3,
        rewards: Rewards = None,
        observation_shape: Sequence[int] = (),
        observation_dtype: Any = None,
        first_serial: int = 0,
        timeline: Timeline | None = None,
        faults: FaultPlan | None = None,
        name: str = "FakeEnvironment",
    ) -> None:
        """Creates the environment.

        Args:
          batch_size: rows per step.
          num_actions: actions are int32 scalars, 0 to `num_actions - 1`.
          rewards: what an interaction pays, float32. By default its serial number. A
            number pays every one the same; a sequence is indexed by serial number;
            a function gets the serial numbers and the actions, each of shape
            `[batch_size]`, and returns rewards of that shape.
          observation_shape: shape of one observation. Each element is the serial.
          observation_dtype: int64 by default. Agents that compute with observations,
            such as LinUCB, want `tf.float32` and shape `(1,)` or longer.
          first_serial: the first serial number.
          timeline: where its events go; one of its own by default.
          faults: faults at `env.step`, also NaN rewards, and at `env.reset`.
          name: name of its events.

        Raises:
          TypeError, ValueError: an argument is not what it should be.
        """
        _positive("batch_size", batch_size)
        _positive("num_actions", num_actions)
        dtype = tf.as_dtype(observation_dtype or tf.int64)
        _numeric("observation_dtype", dtype)
        observation = tf.TensorSpec(tuple(observation_shape), dtype, SERIAL)
        tf.Module.__init__(self, name=name)
        # Not the parent's: it keeps the time step in variables, this one in Python.
        tf_environment.TFEnvironment.__init__(
            self,
            time_step_spec=time_step.time_step_spec(observation),
            action_spec=tensor_spec.BoundedTensorSpec(
                (), tf.int32, 0, num_actions - 1, "action"
            ),
            batch_size=batch_size,
        )
        world = _World(name, timeline, faults)
        world.script(batch_size, rewards, first_serial, observation)
        self._world = world
        self.track(world)

    @property
    def timeline(self) -> Timeline:
        return self._world.timeline

    @property
    def steps(self) -> int:
        return self._world.steps

    @property
    def resets(self) -> int:
        return self._world.resets

    def __repr__(self) -> str:
        return (
            f"<FakeEnvironment {self.name!r}: batch size {self.batch_size}, "
            f"{self.steps} steps, {self.resets} resets, "
            f"showing interactions {self._world.current or 'none'}>"
        )

    # Not compiled, unlike the parent's: an exception keeps its type.
    def _reset(self) -> Any:
        return self._time_step(*self._call(self._world.reset, []))

    def _current_time_step(self) -> Any:
        return self._time_step(*self._call(self._world.look, []))

    def _step(self, action: Any) -> Any:
        return self._time_step(*self._call(self._world.step, [action]))

    def _observe(self) -> Any:
        return self._current_time_step().observation

    def _apply_action(self, action: Any) -> Any:
        return self._step(action).reward

    def _call(self, function: Callable[..., Any], inputs: Sequence[Any]) -> list[Any]:
        outputs = [
            (spec.dtype, [self.batch_size, *spec.shape])
            for spec in self.time_step_spec()
        ]
        return call_python(self._world, function, inputs, outputs)

    def _time_step(self, *leaves: Any) -> Any:
        return time_step.TimeStep(*leaves)


class _World(Core):
    """What happens in a FakeEnvironment, without TensorFlow."""

    SAVED = ("next_serial", "current", "reward", "step_type", "steps", "resets")

    def script(
        self, batch_size: int, rewards: Rewards, first_serial: int, shown: tf.TensorSpec
    ) -> None:
        self.batch_size = batch_size
        self.rewards = rewards
        self.shape = (batch_size, *shown.shape)
        self.dtype = shown.dtype.as_numpy_dtype
        self.largest = _largest_serial(shown.dtype)
        self.next_serial = first_serial
        self.current: list[int] = []
        self.reward: list[float] = []
        self.step_type = _FIRST
        self.steps = 0
        self.resets = 0

    def reset(self) -> tuple[Any, ...]:
        with self.lock, self._call("env.reset"):
            self._show(_FIRST, [0.0] * self.batch_size)
            shown = tuple(self.current)
            self.timeline.add("env.reset", self.name, self.resets, shown)
            self.resets += 1
            return self._seen()

    def look(self) -> tuple[Any, ...]:
        with self.lock:
            return self._seen() if self.current else self.reset()

    def step(self, actions: Any) -> tuple[Any, ...]:
        if actions.shape != (self.batch_size,):
            raise ValueError(
                f"actions have shape {actions.shape}. Allowed: ({self.batch_size},), "
                f"one action per row."
            )
        with self.lock:
            if not self.current:
                self.reset()
            with self._call("env.step"):
                return self._interact(actions)

    def _interact(self, actions: Any) -> tuple[Any, ...]:
        serials = self.current
        rewards = self._pay(np.asarray(serials), actions)
        rewards = self.faults.corrupt("env.step", rewards, self.name)
        value = EnvStep(tuple(serials), tuple(actions.tolist()), tuple(rewards))
        self._show(_LAST, rewards)
        self.timeline.add("env.step", self.name, self.steps, value)
        self.steps += 1
        return self._seen()

    def _pay(self, serials: Any, actions: Any) -> list[float]:
        script = self.rewards
        if script is None:
            rewards = serials
        elif callable(script):
            rewards = script(serials, actions)
        elif isinstance(script, Sequence | np.ndarray):
            rewards = [_script.at(script, int(s), "rewards") for s in serials]
        else:
            rewards = [script] * self.batch_size
        array = np.asarray(rewards, np.float32)
        if array.shape != (self.batch_size,):
            raise ValueError(
                f"rewards has shape {array.shape}. Allowed: ({self.batch_size},), "
                f"one reward per row."
            )
        return list(array.tolist())

    def _show(self, step_type: int, reward: list[float]) -> None:
        end = self.next_serial + self.batch_size
        if end - 1 > self.largest:
            raise OverflowError(
                f"Serial number {end - 1} is more than the observations' dtype can "
                f"tell apart ({self.largest}). Use a wider observation_dtype."
            )
        self.current = list(range(self.next_serial, end))
        self.next_serial = end
        self.reward, self.step_type = reward, step_type

    def _seen(self) -> tuple[Any, ...]:
        """Step types, rewards, discounts and observations."""
        rows = [self.step_type] * self.batch_size
        discount = float(self.step_type == _FIRST)
        serials = np.array(self.current, self.dtype)
        serials = serials.reshape(-1, *[1] * (len(self.shape) - 1))
        observation = np.broadcast_to(serials, self.shape)
        return rows, self.reward, [discount] * self.batch_size, observation


def _largest_serial(dtype: Any) -> int:
    """The largest n such that all of 0 to n are different in `dtype`."""
    if dtype.is_integer:
        return int(dtype.max)
    return int(2 ** (np.finfo(dtype.as_numpy_dtype).nmant + 1))


def _positive(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} is {value!r}. Allowed: an integer from 1.")
    if value < 1:
        raise ValueError(f"{name} is {value!r}. Allowed: an integer from 1.")


def _numeric(name: str, dtype: Any) -> None:
    if dtype not in (tf.int32, tf.int64, tf.float16, tf.float32, tf.float64):
        raise ValueError(
            f"{name} is {dtype.name}. Allowed: int32, int64, float16, float32, float64."
        )

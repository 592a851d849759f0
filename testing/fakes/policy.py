"""FakePolicy: a policy that acts by script and counts its calls."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from testing.fakes import _script
from testing.fakes._calls import Core, call_python
from testing.fakes._tf import nest_utils, policy_step, tf, tf_policy, tfp
from testing.fakes.faults import FaultPlan
from testing.fakes.timeline import Timeline

Actions = Sequence[Any] | Callable[[int], Any] | None


class FakePolicy(tf_policy.TFPolicy):
    """A policy without a network.

    Without a script it acts `train_step mod num_actions` for every row, so its
    actions (also those of an exported copy) tell how far the agent was trained.

    On its timeline: `policy.action` with the actions, counted from 0. A policy
    without timeline, script and faults is pure TensorFlow and can be exported with
    `PolicySaver` for use in another process.

    Attributes:
      timeline: where its events go; None when it keeps none.
      calls: how many times it acted; 0 when it keeps no events.
      train_step: variable, int64; how often the agent was trained.
    """

    def __init__(
        self,
        time_step_spec: Any,
        action_spec: Any,
        *,
        actions: Actions = None,
        train_step: Any = None,
        timeline: Timeline | None = None,
        faults: FaultPlan | None = None,
        name: str = "FakePolicy",
    ) -> None:
        """Creates the policy.

        Args:
          time_step_spec: a `TimeStep` of tensor specs.
          action_spec: a bounded tensor spec.
          actions: the action of each call, as a sequence or a function of the call's
            index; a scalar for all rows, or one per row.
          train_step: the variable to follow; one of its own by default.
          timeline: where its events go.
          faults: faults at `policy.action`.
          name: name of its events.
        """
        super().__init__(time_step_spec, action_spec, name=name)
        if train_step is None:
            train_step = tf.Variable(0, dtype=tf.int64, trainable=False)
        self.train_step = train_step
        self._acting = None
        if any(x is not None for x in (timeline, actions, faults)):
            self._acting = _Acting(name, timeline, faults)
            self._acting.actions = actions

    @property
    def timeline(self) -> Timeline | None:
        return None if self._acting is None else self._acting.timeline

    @property
    def calls(self) -> int:
        return 0 if self._acting is None else self._acting.calls

    def __repr__(self) -> str:
        return f"<FakePolicy {self.name!r}: acted {self.calls} times>"

    def _action(self, time_step: Any, policy_state: Any, seed: Any = None) -> Any:
        if self._acting is not None:
            action = self._counted(self._acting, time_step)
        else:
            outer = nest_utils.get_outer_shape(time_step, self.time_step_spec)
            action = tf.nest.map_structure(
                lambda spec: self._default(spec, outer), self.action_spec
            )
        return policy_step.PolicyStep(action, policy_state, ())

    def _counted(self, acting: _Acting, time_step: Any) -> Any:
        """The action as Python chooses it."""
        rows = time_step.step_type
        specs = tf.nest.flatten(self.action_spec)
        outputs = [(spec.dtype, rows.shape + spec.shape) for spec in specs]
        act = functools.partial(acting.act, specs)
        leaves = call_python(acting, act, [self.train_step, rows], outputs)
        return tf.nest.pack_sequence_as(self.action_spec, leaves)

    def _distribution(self, time_step: Any, policy_state: Any) -> Any:
        step = self._action(time_step, policy_state)
        action = tf.nest.map_structure(tfp.distributions.Deterministic, step.action)
        return step._replace(action=action)

    def _default(self, spec: Any, outer: Any) -> Any:
        """`train_step` within the bounds of `spec`, for every row."""
        low = tf.cast(spec.minimum, spec.dtype)
        count = tf.cast(spec.maximum, tf.float64) - tf.cast(spec.minimum, tf.float64)
        step = tf.math.floormod(tf.cast(self.train_step, tf.float64), count + 1)
        value = low + tf.cast(step, spec.dtype)
        return tf.broadcast_to(value, tf.concat([outer, spec.shape], 0))


class _Acting(Core):
    """Counts actions and follows the script."""

    SAVED = ("calls",)

    actions: Actions = None
    calls = 0

    def act(self, specs: Sequence[Any], train_step: Any, rows: Any) -> list[Any]:
        with self.lock, self._call("policy.action"):
            index, self.calls = self.calls, self.calls + 1
            actions = [_default(spec, int(train_step), rows.shape) for spec in specs]
            if self.actions is not None:
                scripted = _script.at(self.actions, index, "actions")
                actions = [_like(scripted, leaf) for leaf in actions]
            value = [leaf.tolist() for leaf in actions]
            self.timeline.add(
                "policy.action",
                self.name,
                index,
                tuple(value[0]) if len(value) == 1 else tuple(map(tuple, value)),
            )
            return actions


def _like(scripted: Any, leaf: Any) -> Any:
    return np.broadcast_to(np.asarray(scripted, leaf.dtype), leaf.shape)


def _default(spec: Any, train_step: int, outer: tuple[int, ...]) -> Any:
    """What the same policy without script and timeline does."""
    low, high = np.asarray(spec.minimum), np.asarray(spec.maximum)
    step = np.mod(np.float64(train_step), np.float64(high) - np.float64(low) + 1)
    dtype = spec.dtype.as_numpy_dtype
    action = low.astype(dtype) + step.astype(dtype)
    return np.broadcast_to(action, (*outer, *spec.shape))

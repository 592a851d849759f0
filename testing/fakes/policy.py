"""FakePolicy: a policy that acts by script and counts its calls."""

from __future__ import annotations

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
        outer = nest_utils.get_outer_shape(time_step, self.time_step_spec)
        action = tf.nest.map_structure(
            lambda spec: self._default(spec, outer), self.action_spec
        )
        if self._acting is not None:
            leaves = tf.nest.flatten(action)
            outputs = [(leaf.dtype, leaf.shape) for leaf in leaves]
            leaves = call_python(self._acting, self._acting.act, leaves, outputs)
            action = tf.nest.pack_sequence_as(action, leaves)
        return policy_step.PolicyStep(action, policy_state, ())

    def _distribution(self, time_step: Any, policy_state: Any) -> Any:
        step = self._action(time_step, policy_state)
        action = tf.nest.map_structure(tfp.distributions.Deterministic, step.action)
        return step._replace(action=action)

    def _default(self, spec: Any, outer: Any) -> Any:
        """`train_step` within the bounds of `spec`, for every row."""
        low = np.asarray(spec.minimum, spec.dtype.as_numpy_dtype)
        # In floating point: an integer range may have no room for its own size.
        size = np.float64(spec.maximum) - np.float64(spec.minimum) + 1
        step = tf.math.floormod(tf.cast(self.train_step, tf.float64), size)
        value = low + tf.cast(step, spec.dtype)
        if spec.shape.rank:
            outer = tf.concat([outer, spec.shape], 0)
        return tf.broadcast_to(value, outer)


class _Acting(Core):
    """Counts actions and follows the script."""

    SAVED = ("calls",)

    actions: Actions = None
    calls = 0

    def act(self, *default: Any) -> list[Any]:
        with self.lock, self._call("policy.action"):
            index, self.calls = self.calls, self.calls + 1
            actions = list(default)
            if self.actions is not None:
                scripted = _script.at(self.actions, index, "actions")
                actions = [_like(scripted, leaf) for leaf in default]
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

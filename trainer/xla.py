"""The policy's action compiled by XLA, where that is possible.

XLA fuses operations, which makes long chains of small ones faster. Sums are then
rounded in another order, so the last digits may differ, and with them, now and then,
an action.
"""

from __future__ import annotations

import warnings
from typing import Any

import tensorflow as tf
from absl import logging

from trainer import linear_policy

# XLA draws these without regard to TensorFlow's seeds, anew in every process.
_RANDOM = ("Random", "Multinomial", "ParameterizedTruncatedNormal", "TruncatedNormal")


class XlaAction:
    """`policy.action`, by XLA if it can; else without it, and the log says why."""

    def __init__(self, policy: Any, environment: Any) -> None:
        """Nothing is compiled before the first call."""
        self._policy = policy
        self._batch_size = environment.batch_size
        self._given = (
            _batched(environment.time_step_spec(), environment.batch_size),
            _batched(policy.policy_state_spec, environment.batch_size),
        )
        self._action: Any = None

    def __call__(self, time_step: Any, policy_state: Any) -> Any:
        """The `PolicyStep` for time steps of shape `[batch_size, ...]`."""
        if self._action is None:
            with tf.init_scope():
                self._action = self._chosen()
        return self._action(time_step, policy_state)

    def _chosen(self) -> Any:
        def flat_action(*flat: Any) -> Any:
            return self._policy.action(*tf.nest.pack_sequence_as(self._given, flat))

        compiled = tf.function(flat_action, autograph=False, jit_compile=True)
        obstacle = self._obstacle(compiled)
        if obstacle is None:
            return lambda *given: compiled(*tf.nest.flatten(given))
        logging.warning(
            "xla=True: the action of %s is compiled without XLA, because %s.",
            type(self._policy).__name__,
            obstacle,
        )
        return linear_policy.fast_action(self._policy, self._batch_size)

    def _obstacle(self, compiled: Any) -> str | None:
        """Why XLA can't do it. Nothing is run to find out."""
        specs = tf.nest.flatten(self._given)
        try:
            concrete = compiled.get_concrete_function(*specs)
            drawn = _random_operations(concrete.graph)
            if drawn:
                return f"it draws random numbers ({', '.join(drawn)})"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # Without a device named TensorFlow draws a random number itself.
                compiled.experimental_get_compiler_ir(*specs)(
                    stage="hlo", device_name=tf.constant(0.0).device
                )
        except (tf.errors.OpError, ValueError, TypeError, NotImplementedError) as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            return lines[0].rstrip(".")
        return None


def _batched(spec: Any, batch_size: int) -> Any:
    return tf.nest.map_structure(
        lambda s: tf.TensorSpec([batch_size, *s.shape], s.dtype), spec
    )


def _random_operations(graph: Any) -> list[str]:
    """Kinds of stateful random operations in a graph and the functions it calls."""
    definition = graph.as_graph_def()
    nodes = [*definition.node]
    for function in definition.library.function:
        nodes.extend(function.node_def)
    return sorted({node.op for node in nodes if node.op.startswith(_RANDOM)})

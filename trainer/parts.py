"""Makes the parts of a run: metrics, replay buffer, driver and training loop."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from absl import logging
from tf_agents.drivers import dynamic_step_driver
from tf_agents.metrics import tf_metrics
from tf_agents.specs import tensor_spec

from trainer import arguments as arguments_lib
from trainer import choice, graph_safe, python_observer, replay, xla
from trainer import driver as driver_lib
from trainer import loop as loop_lib


def default_metrics(environment: Any, additional: tuple[Any, ...]) -> list[Any]:
    """The metrics of TF-Agents' trainer, in its order."""
    batch_size = environment.batch_size
    reward_spec = environment.reward_spec()
    is_dict = isinstance(reward_spec, dict)
    metrics = [
        tf_metrics.NumberOfEpisodes(),
        tf_metrics.AverageEpisodeLengthMetric(batch_size=batch_size),
        *additional,
    ]
    if is_dict or reward_spec.shape != tf.TensorShape(()):
        metrics.append(
            tf_metrics.AverageReturnMultiMetric(
                reward_spec=reward_spec, batch_size=batch_size
            )
        )
    if not is_dict:
        metrics.append(tf_metrics.AverageReturnMetric(batch_size=batch_size))
    return metrics


def replay_buffer(args: arguments_lib.Arguments) -> Any:
    """The buffer for one loop; the caller's, if there is a function for it."""
    spec = args.agent.policy.trajectory_spec
    if args.training_data_spec_transformation_fn is not None:
        spec = args.training_data_spec_transformation_fn(spec)
    make = args.get_replay_buffer_fn or replay.get_replay_buffer
    batch_size = args.environment.batch_size
    buffer = make(spec, batch_size, args.steps_per_loop, args.async_steps_per_loop)
    if args.get_training_loop_fn is None:
        length = args.steps_per_loop * args.async_steps_per_loop
        arguments_lib.check_capacity(buffer, batch_size, length)
    return buffer


def add_batch(args: arguments_lib.Arguments, buffer: Any) -> Callable[..., Any]:
    """The observer that fills the buffer."""
    transform = args.training_data_spec_transformation_fn
    if transform is None:
        return buffer.add_batch
    return lambda data: buffer.add_batch(transform(data))


def observers(
    args: arguments_lib.Arguments, buffer: Any, metrics: list[Any]
) -> list[Callable[..., Any]]:
    """What a driver tells of each step: the buffer, then the metrics."""
    fill = add_batch(args, buffer)
    if not args.compile or not _is_traceable(args):
        fill = _safe(fill)
    return [fill, *map(_safe, metrics)]


def _is_traceable(args: arguments_lib.Arguments) -> bool:
    """False for transformations that do with values what graphs can't.

    TF-Agents' own `drop_arm_observation` copies tensors by `copy.deepcopy`.
    """
    transform = args.training_data_spec_transformation_fn
    if transform is None:
        return True
    spec = args.agent.policy.trajectory_spec
    batched = tensor_spec.add_outer_dim(spec, args.environment.batch_size)
    try:
        tf.function(transform, autograph=False).get_concrete_function(batched)
    except Exception:  # Whatever it is, Python gets to see it if it is real.
        return False
    return True


def driver(args: arguments_lib.Arguments, buffer: Any, metrics: list[Any]) -> Any:
    """The driver of one run; it fills the buffer, then tells the metrics."""
    # Loops of the caller's get what TF-Agents' trainer gives them.
    kind: Any = dynamic_step_driver.DynamicStepDriver
    if args.get_training_loop_fn is None:
        kind = functools.partial(driver_lib.LeanDriver, action=_action(args))
    return kind(
        env=args.environment,
        policy=args.agent.collect_policy,
        # The driver counts steps over all environments.
        num_steps=args.steps_per_loop * args.environment.batch_size,
        observers=observers(args, buffer, metrics),
    )


def _action(args: arguments_lib.Arguments) -> Any:
    if not args.xla:
        return None
    return xla.XlaAction(args.agent.collect_policy, args.environment)


def _safe(observer: Any) -> Any:
    if graph_safe.is_safe_observer(observer):
        return observer
    return python_observer.PythonObserver(observer)


def custom_loop(args: arguments_lib.Arguments, driver: Any, buffer: Any) -> Any:
    """The caller's training loop, or None."""
    return args.get_training_loop_fn and args.get_training_loop_fn(
        driver,
        buffer,
        args.agent,
        args.steps_per_loop,
        args.async_steps_per_loop,
    )


def own_loop(
    args: arguments_lib.Arguments, driver: Any, buffer: Any, loops: int
) -> loop_lib.TrainingLoop:
    """Our own training loop, compiled if that pays for so many loops."""
    size = (args.steps_per_loop, args.async_steps_per_loop)
    chosen = choice.choose(args.compile, driver, args.agent, loops, *size)
    if loops:
        logging.debug("%s.", chosen.reason)
    return loop_lib.TrainingLoop(
        driver, buffer, args.agent, *size, args.on_nonfinite_loss, chosen
    )

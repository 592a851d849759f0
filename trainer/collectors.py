"""A collector: makes driver runs in a process of its own, with a copy of the policy.

Nothing here knows Ray; `ray_backend` puts a `Collector` into a worker process.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import pickle
import random
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from trainer import choice, compiled, parts, replay
from trainer.arguments import Arguments

# Shape and dtype of each variable, to see that two policies are the same.
Signature = tuple[tuple[tuple[int, ...], str], ...]


@dataclasses.dataclass(frozen=True)
class Recipe:
    """What every collector is made from.

    Attributes:
      agent_fn: makes the agent; called with the environment.
      environment_fn: makes the environment; see `make_environment`.
      args: of the learner, without what only the learner uses.
      share: driver runs of a loop that one collector makes.
      signature: of the learner's policy.
      seed: collector `c` seeds all random numbers with `seed + c`; None: it does not.
      threads: TensorFlow's threads within an operation, one operation at a time;
        None leaves both to TensorFlow.
    """

    agent_fn: Callable[[Any], Any]
    environment_fn: Callable[..., Any]
    args: Arguments
    share: int
    signature: Signature
    seed: int | None = None
    threads: int | None = None


@dataclasses.dataclass(frozen=True)
class Ready:
    """A collector has made its agent and environment, in process `pid`."""

    pid: int


@dataclasses.dataclass(frozen=True)
class Collected:
    """The experience of one driver run.

    Attributes:
      version: of the policy that acted.
      arrays: the parts of the trajectory, each of shape `[batch_size, steps, ...]`.
    """

    version: int
    arrays: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Failure:
    """An exception in a collector, in a form that gets through to the learner.

    Attributes:
      summary: its type and text.
      trace: the traceback as text.
      pickled: the exception itself, or None if it can't be pickled.
    """

    summary: str
    trace: str
    pickled: bytes | None

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """What there is to tell of `error`."""
        summary = "".join(traceback.format_exception_only(error)).strip()
        trace = "".join(traceback.format_exception(error)).strip()
        return cls(summary, trace, _pickled(error))

    def exception(self) -> BaseException | None:
        """The exception itself, if it can be had."""
        if self.pickled is None:
            return None
        try:
            found = pickle.loads(self.pickled)
        except Exception:  # Classes that unpickle only where they were made.
            return None
        return found if isinstance(found, BaseException) else None


class Collector:
    """Makes driver runs, one after the other.

    Its environment lives as long as it does; the policy's variables come with the
    first driver run of each loop.
    """

    def __init__(self, number: int) -> None:
        """`number` tells it from all other collectors of the run."""
        self._number = number
        self._version = -1
        self._environment: Any = None
        self._variables: list[tf.Variable] = []
        self._drive: Callable[[], list[tf.Tensor]] = list

    def set_up(self, recipe: Recipe) -> Ready | Failure:
        """Makes agent and environment."""
        try:
            self._set_up(recipe)
        except Exception as error:
            return Failure.of(error)
        return Ready(os.getpid())

    def run(self, version: int, values: Sequence[Any]) -> Collected | Failure:
        """Makes one driver run.

        Args:
          version: of the policy. A new one is taken over, one it has is not.
          values: the values of `policy_variables`, in their order.
        """
        try:
            if version != self._version:
                for variable, value in zip(self._variables, values, strict=True):
                    variable.assign(value)
                self._version = version
            return Collected(version, tuple(t.numpy() for t in self._drive()))
        except Exception as error:
            return Failure.of(error)

    def close(self) -> None:
        """Closes the environment, if it can be closed."""
        close = getattr(self._environment, "close", None)
        if close is not None:
            close()

    def _set_up(self, recipe: Recipe) -> None:
        _use_threads(recipe.threads)
        if recipe.seed is not None:
            _seed(recipe.seed + self._number)
        environment = make_environment(recipe.environment_fn, self._number)
        self._environment = environment
        agent = recipe.agent_fn(environment)
        self._variables = policy_variables(agent)
        _check_same(recipe.signature, signature(self._variables))
        args = dataclasses.replace(recipe.args, agent=agent, environment=environment)
        self._drive = _drive(args, recipe.share)


def _drive(args: Arguments, share: int) -> Callable[[], list[tf.Tensor]]:
    """A driver run; returns its experience, flat, each `[batch_size, steps, ...]`."""
    steps, batch_size = args.steps_per_loop, args.environment.batch_size
    spec = args.agent.collect_policy.trajectory_spec
    buffer = replay.get_replay_buffer(spec, batch_size, steps)
    driver = parts.driver(args, buffer, [])
    reader = replay.GraphReader(buffer, batch_size, steps, 1)

    def drive() -> list[tf.Tensor]:
        driver.run()
        return list(tf.nest.flatten(reader.experience(tf.constant(0, tf.int64))))

    size = (args.training_loops, steps, share)
    chosen = choice.choose(args.compile, driver, args.agent, *size)
    return compiled.Compiled(drive) if chosen.collect else drive


def make_environment(environment_fn: Callable[..., Any], collector: int) -> Any:
    """Calls `environment_fn`, with `collector=...` if it has such a parameter."""
    try:
        parameters = inspect.signature(environment_fn).parameters
    except (TypeError, ValueError):  # Some callables have no signature.
        return environment_fn()
    if "collector" in parameters:
        return environment_fn(collector=collector)
    return environment_fn()


def policy_variables(agent: Any) -> list[tf.Variable]:
    """What makes a copy of the collect policy act like the original.

    The train step counter is among them: rates of exploration often follow it
    without the policy owning it.
    """
    variables = [*agent.collect_policy.variables()]
    counter = agent.train_step_counter
    if isinstance(counter, tf.Variable) and not any(v is counter for v in variables):
        variables.append(counter)
    return variables


def signature(variables: Sequence[Any]) -> Signature:
    """Shapes and dtypes of variables."""
    return tuple((tuple(v.shape.as_list()), v.dtype.name) for v in variables)


def _check_same(learner: Signature, here: Signature) -> None:
    if learner != here:
        raise ValueError(
            f"agent_fn made another policy here than on the learner: {_shown(here)} "
            f"instead of {_shown(learner)}. Allowed: an agent_fn that always makes the "
            "same variables."
        )


def _shown(variables: Signature) -> str:
    text = ", ".join(f"{dtype}{list(shape)}" for shape, dtype in variables)
    return text if len(text) <= 200 else f"{text[:200]}... ({len(variables)} variables)"


def _use_threads(threads: int | None) -> None:
    if threads is None:
        return
    try:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        # Policies are chains of small operations, which threads would only hand on.
        tf.config.threading.set_inter_op_parallelism_threads(1)
    except RuntimeError:
        pass  # TensorFlow is in use already, as in a collector of a test.


def _seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % 2**32)
    tf.random.set_seed(seed)


def _pickled(error: BaseException) -> bytes | None:
    try:
        return pickle.dumps(error)
    except Exception:  # Whatever an exception of someone's may hold.
        return None

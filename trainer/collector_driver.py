"""A driver whose runs are made elsewhere: it tells its observers of them in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tf_agents.drivers import driver

from trainer import collectors, whole_runs
from trainer import driver as driver_lib
from trainer.pool import Pool


class CollectorDriver(driver.Driver):
    """Stands in for the driver of a training loop of A runs.

    The first run of a loop sends the policy's variables to the collectors and asks
    for all runs of the loop; run `j` then waits for the j-th one and shows its steps
    to the observers, as the driver that made it would have: to TF-Agents' own metrics
    and buffer all at once, then to others one by one. In a `tf.function` it
    shows the run that `prepare` has waited for, since a graph can't wait.

    Attributes:
      acts_elsewhere: True: policy and environment are not called in this process.
      interactions: how many came back, summed over environments.
      bytes_sent: of policy variables, once for each loop.
      bytes_received: of experience.
    """

    acts_elsewhere = True

    def __init__(
        self,
        env: Any,
        agent: Any,
        observers: Sequence[Callable[..., Any]],
        pool: Pool,
        steps: int,
        runs: int,
    ) -> None:
        """Creates the driver.

        Args:
          env: an environment like those of the collectors; never stepped.
          agent: the agent whose collect policy acts in the collectors.
          observers: called after every step with a `Trajectory` of shape
            `[batch_size, ...]`.
          pool: the collectors.
          steps: steps of one run in each environment.
          runs: driver runs of one training loop.
        """
        super().__init__(env, agent.collect_policy, observers)
        self._known: list[driver_lib.Watcher] = []
        self._at_once: list[Callable[..., Any]] = []  # For each of the known ones.
        self._others: list[driver_lib.Watcher] = []
        for observer in observers:
            self._watch(observer, steps)
        self._variables = collectors.policy_variables(agent)
        self._spec = agent.collect_policy.trajectory_spec
        self._shapes = [
            (env.batch_size, steps, *spec.shape.as_list())
            for spec in tf.nest.flatten(self._spec)
        ]
        self._dtypes = [spec.dtype for spec in tf.nest.flatten(self._spec)]
        self._staged: list[tf.Variable] = []
        self._pool = pool
        self._steps = steps
        self._runs = runs
        self._next = 0
        self.interactions = 0
        self.bytes_sent = 0
        self.bytes_received = 0

    def run(
        self,
        time_step: Any = None,
        policy_state: Any = None,
        maximum_iterations: Any = None,
    ) -> tuple[None, tuple[()]]:
        """Waits for the next run and shows it to the observers.

        The arguments are those of any driver; where a run begins is the collectors'
        own business, so they must be left out.

        Raises:
          CollectorError: see `Pool.result`.
          RuntimeError: it is built into a graph without `prepare`.
        """
        if not (time_step is policy_state is maximum_iterations is None):
            raise ValueError("run() of collectors takes no arguments.")
        run = tf.nest.pack_sequence_as(self._spec, self._fetched())
        if tf.executing_eagerly():
            is_simple = bool(whole_runs.is_one_step_episodes(run))
            self._show_known(run) if is_simple else self._loop(self._known, run)
        else:
            done = tf.cond(
                whole_runs.is_one_step_episodes(run),
                lambda: self._show_known(run),
                lambda: self._loop(self._known, run),
            )
            run = driver_lib.after([done.op], run)
        self._loop(self._others, run)
        return None, ()

    def _watch(self, observer: Callable[..., Any], steps: int) -> None:
        update = whole_runs.whole_run_update(observer, steps)
        watcher = driver_lib.Watcher(observer)
        if update is None:
            self._others.append(watcher)
        else:
            self._known.append(watcher)
            # One trace for all runs.
            self._at_once.append(tf.function(update, autograph=False))

    def _show_known(self, run: Any) -> Any:
        """Shows a whole run at once."""
        for update in self._at_once:
            update(run)
        return tf.constant(self._steps)

    def _loop(self, watchers: Sequence[driver_lib.Watcher], run: Any) -> Any:
        """Shows a run step by step; returns how many steps that were."""
        if not watchers:
            return tf.constant(self._steps)

        def show(step: Any) -> Any:
            trajectory = tf.nest.map_structure(lambda t: t[:, step], run)
            seen = [watcher(trajectory) for watcher in watchers]
            return driver_lib.after(seen, tf.convert_to_tensor(step))

        if tf.executing_eagerly() or self._steps <= driver_lib.UNROLLED_STEPS:
            return [show(step) for step in range(self._steps)][-1] + 1
        (steps,) = tf.while_loop(
            lambda step: step < self._steps,
            lambda step: (show(step) + 1,),
            (tf.constant(0),),
            parallel_iterations=1,
        )
        return steps

    def prepare(self) -> None:
        """Waits for the next run, to be shown by a graph. Raises as `run` does."""
        arrays = self._fetch()
        if not self._staged:
            with tf.init_scope():
                self._staged = [tf.Variable(a, trainable=False) for a in arrays]
            return
        for variable, array in zip(self._staged, arrays, strict=True):
            variable.assign(array)

    def _fetched(self) -> list[Any]:
        if tf.executing_eagerly():
            arrays = zip(self._fetch(), self._dtypes, strict=True)
            return [tf.convert_to_tensor(array, dtype) for array, dtype in arrays]
        if not self._staged:
            raise RuntimeError(
                "The driver of collectors can't wait within a tf.function. Call its "
                "prepare() before each run, or run it eagerly."
            )
        return [variable.read_value() for variable in self._staged]

    def _fetch(self) -> list[Any]:
        """Waits for the next run and returns its experience."""
        if self._next == 0:
            values = [variable.numpy() for variable in self._variables]
            self.bytes_sent += _size(values)
            self._pool.begin(values, self._runs)
        collected = self._pool.result(self._next)
        self._next = (self._next + 1) % self._runs
        arrays = [np.asarray(array) for array in collected.arrays]
        self._check(arrays)
        self.bytes_received += _size(arrays)
        self.interactions += self._steps * self.env.batch_size
        return arrays

    def _check(self, arrays: Sequence[Any]) -> None:
        expected = list(zip(self._shapes, self._dtypes, strict=True))
        seen = [(array.shape, tf.as_dtype(array.dtype)) for array in arrays]
        if seen != expected:
            raise ValueError(
                f"A collector sent experience of {_shown(seen)}. Expected: "
                f"{_shown(expected)}. Does environment_fn always make environments of "
                "the same batch size and specs?"
            )


def _size(arrays: Sequence[Any]) -> int:
    return sum(int(array.nbytes) for array in arrays)


def _shown(parts: Sequence[tuple[Any, Any]]) -> str:
    return ", ".join(f"{dtype.name}{list(shape)}" for shape, dtype in parts)

"""`train` with the driver runs of each loop made side by side, on Ray."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
from collections.abc import Callable
from typing import Any

from absl import logging

from trainer import arguments as arguments_lib
from trainer import collectors, parts, ray_backend, ray_session
from trainer.collector_driver import CollectorDriver
from trainer.pool import CollectorError as CollectorError
from trainer.pool import Pool
from trainer.train import TrainSummary, _Run


def train(
    root_dir: str | os.PathLike[str],
    agent_fn: Callable[[Any], Any],
    environment_fn: Callable[..., Any],
    training_loops: int,
    steps_per_loop: int,
    async_steps_per_loop: int | None = None,
    *,
    num_collectors: int,
    address: str | None = None,
    seed: int | None = None,
    slow_after: float = 30.0,
    max_replacements: int = 10,
    cpus_per_collector: float | None = None,
    additional_metrics: Any = (),
    get_replay_buffer_fn: Callable[..., Any] | None = None,
    get_training_loop_fn: Callable[..., Any] | None = None,
    training_data_spec_transformation_fn: Callable[..., Any] | None = None,
    save_policy: bool = True,
    resume_training_loops: bool = False,
    checkpoint_interval: int = 1,
    max_to_keep: int = 5,
    policy_interval: int = 100,
    on_nonfinite_loss: str = "log",
    compile: bool | None = None,
    xla: bool = False,
    progress: bool | None = None,
) -> TrainSummary:
    """Trains a bandit agent as `trainer.train` does, with runs collected in parallel.

    Within a loop the policy does not change, so its `async_steps_per_loop` driver
    runs can be made side by side without changing what is learned. Collectors, each
    with its own environment and a copy of the policy, make them; this process, the
    learner, gets the policy's variables to them at the start of a loop, takes the
    runs in the order 0, 1, ... through metrics, summaries and replay buffer, and
    trains. Log lines, steps, summaries, checkpoints and resumption are those of
    `trainer.train`.

    Driver run `j` is made by collector `j % num_collectors`. A collector that dies
    is replaced for the loops to come, by one with the next unused number and a new
    environment; its unfinished runs of this loop are made again by the others. When
    all die in one loop, the call fails and can be repeated to go on from the last
    checkpoint.

    Args:
      root_dir: see `trainer.train`. Only the learner writes there.
      agent_fn: makes the agent, called with the environment; here and in each
        collector. Its policies always have the same variables.
      environment_fn: makes the environment; here and in each collector. If it has a
        parameter called `collector` it gets the collector's number, unique within
        this call: 0, 1, ..., and the next ones for replacements. Here it gets 0; this
        environment only tells its specs and is never stepped.
      training_loops: see `trainer.train`.
      steps_per_loop: steps of one driver run in each environment of a collector.
      async_steps_per_loop: driver runs, and then train steps, of one loop. None
        means 1. More collectors than that would have nothing to do.
      num_collectors: how many collectors there are.
      address: of a Ray cluster to join; `auto` looks for one. None starts Ray on this
        machine, on its loopback interface alone, and stops it in the end.
      seed: collector `c` seeds the random numbers of Python, NumPy and TensorFlow
        with `seed + c` before it makes its environment. None: it does not.
      slow_after: after so many seconds a warning says which collector the loop is
        waiting for.
      max_replacements: how many collectors are replaced in all.
      cpus_per_collector: CPUs that a collector asks of Ray. None: 1 in a cluster,
        none on this machine alone, where there may be more collectors than CPUs.
      additional_metrics: see `trainer.train`, as for all that follow.
      get_replay_buffer_fn: see `trainer.train`.
      get_training_loop_fn: the loop it makes gets a driver that must run exactly
        `async_steps_per_loop` times a loop.
      training_data_spec_transformation_fn: applied here, not in collectors.
      save_policy: see `trainer.train`.
      resume_training_loops: see `trainer.train`.
      checkpoint_interval: see `trainer.train`.
      max_to_keep: see `trainer.train`.
      policy_interval: see `trainer.train`.
      on_nonfinite_loss: see `trainer.train`.
      compile: see `trainer.train`; in collectors as well.
      xla: see `trainer.train`; in collectors.
      progress: see `trainer.train`.

    Returns:
      A `TrainSummary`.

    Raises:
      ImportError: Ray is not installed.
      ConnectionError: there is no cluster at `address`.
      CollectorError: agent, policy or environment raised an exception in a
        collector, which is the cause, or all collectors died.
      Others: as `trainer.train`.
    """
    given = dict(locals())
    own = _validated({name: given.pop(name) for name in _OWN})
    ray_session.require_ray()
    environment = collectors.make_environment(environment_fn, 0)
    given |= {"agent": agent_fn(environment), "environment": environment}
    args = arguments_lib.validated(**given)
    _check_sendable(own)
    if not args.training_loops:
        return _Run(args).go()
    with ray_session.connected(address) as session:
        return _train(args, own, session)


_OWN = (
    "agent_fn",
    "environment_fn",
    "num_collectors",
    "address",
    "seed",
    "slow_after",
    "max_replacements",
    "cpus_per_collector",
)


def _train(
    args: arguments_lib.Arguments, own: dict[str, Any], session: ray_session.Session
) -> TrainSummary:
    size = _useful(own["num_collectors"], args.async_steps_per_loop)
    cpus = own["cpus_per_collector"]
    if cpus is None:
        cpus = 0 if session.is_local else 1
    threads = max(1, (os.cpu_count() or 1) // size if session.is_local else int(cpus))
    recipe = collectors.Recipe(
        own["agent_fn"],
        own["environment_fn"],
        _for_collectors(args),
        -(-args.async_steps_per_loop // size),
        collectors.signature(collectors.policy_variables(args.agent)),
        own["seed"],
        threads,
    )
    backend = ray_backend.RayBackend(session, recipe, cpus)
    limits = {name: own[name] for name in ("slow_after", "max_replacements")}
    with contextlib.closing(Pool(backend, size, **limits)) as pool:
        return run(args, pool)


def _for_collectors(args: arguments_lib.Arguments) -> arguments_lib.Arguments:
    """Without what stays here, much of which can't be sent."""
    return dataclasses.replace(
        args,
        agent=None,
        environment=None,
        additional_metrics=(),
        get_replay_buffer_fn=None,
        get_training_loop_fn=None,
        training_data_spec_transformation_fn=None,
    )


def run(args: arguments_lib.Arguments, pool: Pool) -> TrainSummary:
    """Trains with the collectors of `pool`, whatever they are."""

    def driver(args: Any, buffer: Any, metrics: list[Any]) -> CollectorDriver:
        observers = parts.observers(args, buffer, metrics)
        size = args.steps_per_loop, args.async_steps_per_loop
        return CollectorDriver(args.environment, args.agent, observers, pool, *size)

    return _Run(args, driver).go()


def _useful(collectors: int, runs: int) -> int:
    if collectors > runs:
        logging.warning(
            "num_collectors is %d, but a loop has only %d driver runs "
            "(async_steps_per_loop) to share out. So many collectors are started.",
            collectors,
            runs,
        )
    return min(collectors, runs)


def _validated(own: dict[str, Any]) -> dict[str, Any]:
    for name in ("agent_fn", "environment_fn"):
        if not callable(own[name]):
            raise TypeError(arguments_lib._message(name, own[name], "a function"))
    checked = dict(own)
    for name, least in {"num_collectors": 1, "max_replacements": 0}.items():
        checked[name] = arguments_lib._integer(name, own[name], least)
    if own["seed"] is not None:
        checked["seed"] = arguments_lib._integer("seed", own["seed"], 0)
    _check_address(own["address"])
    _number("slow_after", own["slow_after"])
    if own["cpus_per_collector"] is not None:
        _number("cpus_per_collector", own["cpus_per_collector"], zero=True)
    return checked


def _check_address(address: Any) -> None:
    message = arguments_lib._message("address", address, "HOST:PORT, 'auto' or None")
    if address is not None and not isinstance(address, str):
        raise TypeError(message)
    if address == "" or (address and "://" in address):
        raise ValueError(message)


def _check_sendable(own: dict[str, Any]) -> None:
    # Ray's own copy, which is what will send them.
    cloudpickle = importlib.import_module("ray.cloudpickle")
    for name in ("agent_fn", "environment_fn"):
        try:
            cloudpickle.dumps(own[name])
        except Exception as error:  # Whatever the objects it refers to may raise.
            raise TypeError(
                f"{name} can't be sent to another process: {error}. Allowed: a "
                "function that makes what it needs, or gets it from its module, and "
                "refers to no agent, environment, tensor, lock or open file made here."
            ) from error


def _number(name: str, value: Any, *, zero: bool = False) -> None:
    allowed = f"a number {'from' if zero else 'above'} 0"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(arguments_lib._message(name, value, allowed))
    if value < 0 or (value == 0 and not zero):
        raise ValueError(arguments_lib._message(name, value, allowed))

"""How fast a loop of fakes is against the real loop, and what an event costs.

    python benchmarks/fakes.py

Ratios tell more than seconds: both sides run on the same machine in one process.
"""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tf_agents.bandits.agents import lin_ucb_agent
from tf_agents.bandits.replay_buffers import bandit_replay_buffer
from tf_agents.drivers import dynamic_step_driver

from testing.fakes import CountingAgent, CountingDriver, FakeEnvironment, Timeline

A, BATCH, STEPS, ROUNDS, SECONDS = 4, 8, 2, 4, 1.0


def per_call(function: Callable[[], Any], seconds: float = SECONDS) -> float:
    """The fastest call within some seconds, after two to warm up."""
    function()
    function()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


def event_cost() -> float:
    """Seconds for one `Timeline.add`."""
    timeline = Timeline()

    def many() -> None:
        timeline.clear()
        for step in range(10_000):
            timeline.add("log", "loss", step, 0.5)

    return per_call(many, 1.0) / 10_000


def parts(real: bool) -> tuple[Any, Any, Any]:
    """Driver, agent and a real buffer; all but the buffer real or fake."""
    environment = FakeEnvironment(
        batch_size=BATCH,
        rewards=1.0,
        observation_shape=(7,),
        observation_dtype=tf.float32,
    )
    specs = environment.time_step_spec(), environment.action_spec()
    agent = lin_ucb_agent.LinearUCBAgent(*specs) if real else CountingAgent(environment)
    buffer = bandit_replay_buffer.BanditReplayBuffer(
        agent.collect_data_spec, BATCH, STEPS * A
    )
    make = dynamic_step_driver.DynamicStepDriver if real else CountingDriver
    driver = make(
        environment, agent.collect_policy, [buffer.add_batch], num_steps=BATCH * STEPS
    )
    return driver, agent, buffer


def loop(run: Any, agent: Any, buffer: Any, read: Any) -> Callable[[], None]:
    """One training loop: A driver runs, A train calls, clear."""

    def once() -> None:
        for _ in range(A):
            run()
        for experience in read():
            agent.train(experience)
        buffer.clear()

    return once


def slices(buffer: Any) -> Callable[[], list[Any]]:
    """Reads all, cut into the experience of each train call."""

    def read() -> list[Any]:
        everything = buffer._gather_all()
        return [
            tf.nest.map_structure(
                lambda t, j=j: t[:, j * STEPS : (j + 1) * STEPS], everything
            )
            for j in range(A)
        ]

    return read


def dataset(buffer: Any) -> Callable[[], Any]:
    """Reads as TF-Agents' trainer does: a new data set each loop."""

    def read() -> Any:
        batches = buffer.as_dataset(
            sample_batch_size=BATCH, num_steps=STEPS, single_deterministic_pass=True
        )
        return (experience for experience, _ in batches)

    return read


def made(real: bool, compiled: str, as_dataset: bool) -> Callable[[], None]:
    """One loop; `compiled` is `nothing`, `runs` or `loop`."""
    driver, agent, buffer = parts(real)
    # Without arguments: binding defaults takes TensorFlow 0.1 ms a call.
    run = tf.function(lambda: driver.run()) if compiled == "runs" else driver.run
    if as_dataset:
        read = dataset(buffer)
    elif compiled == "loop":
        return tf.function(loop(run, agent, buffer, slices(buffer)))
    else:
        read = tf.function(slices(buffer))
    return loop(run, agent, buffer, read)


def main() -> None:
    print(f"one Timeline event: {event_cost() * 1e6:.2f} us")
    print(f"one loop: A = {A}, batch {BATCH}, {STEPS} steps, real BanditReplayBuffer")
    print("data set rebuilt each loop, as TF-Agents does:")
    # A data set cannot be made in a compiled loop.
    show([(False, "nothing"), (False, "runs")], as_dataset=True)
    print("buffer read by gather_all:")
    fakes = [(False, "nothing"), (False, "runs"), (False, "loop")]
    show([*fakes, (True, "loop")], as_dataset=False)


def show(ways: list[tuple[bool, str]], as_dataset: bool) -> None:
    """Measures each way and the real, eager loop in turn; prints the fastest."""
    ways = [(True, "nothing"), *ways]
    loops = [made(*way, as_dataset) for way in ways]
    rounds = [[per_call(each) for each in loops] for _ in range(ROUNDS)]
    best = [min(times) for times in zip(*rounds, strict=True)]
    for (real, compiled), seconds in zip(ways, best, strict=True):
        name = f"{'real' if real else 'fake'}, {compiled} compiled"
        print(
            f"  {name:<24}{seconds * 1e3:8.2f} ms{1 / seconds:8.1f} loops/s"
            f"{best[0] / seconds:7.1f} times as fast"
        )


if __name__ == "__main__":
    main()

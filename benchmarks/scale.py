"""How throughput grows with collectors, what crosses the network, what stays in memory.

    python benchmarks/scale.py            # about six minutes on two cores
    python benchmarks/scale.py --quick    # a loop each
    python benchmarks/scale.py --only working

Two environments: one waits 5 ms a step, as a remote simulator does; one costs 5 ms of
CPU. LinUCB, batch 8, 200 steps a driver run, A = 8, everything logged, summarised and
checkpointed. Each run has a process of its own. Its first loop, with the start of Ray
and tracing, is not counted: throughput is interactions by the time from the end of the
first loop to the end of the last one.

Prints the tables of docs/scale.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
# Not benchmarks/, whose trainer.py would stand first. Collectors need it too.
sys.path[0] = str(HERE.parent)
os.environ["PYTHONPATH"] = str(HERE.parent)

import trainer  # noqa: E402, I001  Before TensorFlow, so that it finds Keras 2.
import numpy as np  # noqa: E402
from absl import logging as absl_logging  # noqa: E402
from tf_agents.bandits.agents import lin_ucb_agent  # noqa: E402
from tf_agents.bandits.environments import bandit_py_environment  # noqa: E402
from tf_agents.environments import tf_py_environment  # noqa: E402
from tf_agents.specs import array_spec  # noqa: E402
from trainer import collector_driver, distributed, pool, ray_backend  # noqa: E402

BATCH_SIZE = 8
FEATURES, ARMS = 10, 5
STEPS, RUNS = 200, 8
SECONDS = 0.005  # Of a step.
COLLECTORS = {"waiting": (0, 1, 2, 4, 8), "working": (0, 1, 2, 4)}


class Environment(bandit_py_environment.BanditPyEnvironment):
    """Pays for the arm that the first feature names, and takes its time."""

    def __init__(self, kind: str) -> None:
        self._take_time = {"waiting": time.sleep, "working": work, "quick": int}[kind]
        self._random = np.random.default_rng(0)
        super().__init__(
            array_spec.ArraySpec((FEATURES,), np.float32, "observation"),
            array_spec.BoundedArraySpec((), np.int32, 0, ARMS - 1, "action"),
        )

    @property
    def batched(self) -> bool:
        return True

    @property
    def batch_size(self) -> int:
        return BATCH_SIZE

    def _observe(self) -> Any:
        shape = (BATCH_SIZE, FEATURES)
        self._observation = self._random.random(shape, dtype=np.float32)
        return self._observation

    def _apply_action(self, action: Any) -> Any:
        self._take_time(SECONDS)
        best = (self._observation[:, 0] * ARMS).astype(np.int32)
        return (action == best).astype(np.float32)


def work(seconds: float) -> None:
    """Costs so many seconds of CPU, however many processes share it."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def make_agent(environment: Any) -> Any:
    """A light agent, so that what is measured is the collecting."""
    return lin_ucb_agent.LinearUCBAgent(
        environment.time_step_spec(),
        environment.action_spec(),
        use_eigendecomp=True,
    )


@dataclasses.dataclass(frozen=True)
class Maker:
    """Makes the environment of a kind."""

    kind: str

    def __call__(self) -> Any:
        return tf_py_environment.TFPyEnvironment(Environment(self.kind))


###############################################################################
# One measurement, in a process of its own


class Meter(logging.Handler):
    """Notes what there is to measure at the end of each loop, told by its last loss."""

    def __init__(self, runs: int) -> None:
        super().__init__()
        self._runs = runs
        self.seconds: list[float] = []
        self.megabytes: list[float] = []
        self.loopback: list[int] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if " loss = " not in text:
            return
        step = int(text.partition("=")[2].partition("]")[0])
        if (step + 1) % self._runs == 0:
            self.seconds.append(time.perf_counter())
            self.megabytes.append(private())
            self.loopback.append(loopback())


def private() -> float:
    """Memory of this process in MB, without what it shares with Ray's store."""
    with open("/proc/self/statm") as file:
        resident, shared = map(int, file.read().split()[1:3])
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE") / 1e6


def loopback() -> int:
    """Bytes that went over the loopback interface since the machine started."""
    return int(pathlib.Path("/sys/class/net/lo/statistics/rx_bytes").read_text())


class Waits:
    """Sums up how long the learner waits for collectors, and what they send."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.sent = 0
        self.received = 0
        self.driver: Any = None
        self._patch(pool.Pool, "result", self._timed)
        self._patch(ray_backend.RayBackend, "put", self._measured_put)
        self._patch(ray_backend.RayBackend, "get", self._measured_get)
        self._patch(collector_driver.CollectorDriver, "__init__", self._kept)

    def _patch(self, owner: Any, name: str, wrapper: Any) -> None:
        setattr(owner, name, wrapper(getattr(owner, name)))

    def _timed(self, result: Any) -> Any:
        def timed(pool: Any, run: int) -> Any:
            start = time.perf_counter()
            try:
                return result(pool, run)
            finally:
                self.seconds += time.perf_counter() - start

        return timed

    def _measured_put(self, put: Any) -> Any:
        def measured(backend: Any, values: Any) -> Any:
            self.sent += serialized(list(values))
            return put(backend, values)

        return measured

    def _measured_get(self, get: Any) -> Any:
        def measured(backend: Any, ref: Any) -> Any:
            outcome = get(backend, ref)
            self.received += serialized(outcome)
            return outcome

        return measured

    def _kept(self, init: Any) -> Any:
        def kept(driver: Any, *args: Any) -> None:
            self.driver = driver
            init(driver, *args)

        return kept


def serialized(value: Any) -> int:
    """Bytes of `value` as Ray sends it."""
    import ray

    context = ray._private.worker.global_worker.get_serialization_context()
    return context.serialize(value).total_bytes


def measure(kind: str, collectors: int, loops: int, steps: int = STEPS) -> dict:
    """Runs a case; no collectors: the single-process trainer."""
    meter, waits = Meter(RUNS), Waits()
    logger = absl_logging.get_absl_logger()
    logger.handlers[:] = [meter]
    logger.propagate = False
    absl_logging.set_verbosity(absl_logging.INFO)
    size = {
        "training_loops": loops,
        "steps_per_loop": steps,
        "async_steps_per_loop": RUNS,
        "save_policy": False,
        "progress": False,
        "compile": True,
    }
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as root_dir:
        if collectors:
            distributed.train(
                root_dir, make_agent, Maker(kind), num_collectors=collectors, **size
            )
        else:
            environment = Maker(kind)()
            trainer.train(root_dir, make_agent(environment), environment, **size)
    return _measured(meter, waits, start, steps)


def _measured(meter: Meter, waits: Waits, start: float, steps: int) -> dict:
    loops = len(meter.seconds) - 1
    seconds = meter.seconds[-1] - meter.seconds[0]
    row: dict = {
        "interactions_per_second": loops * RUNS * steps * BATCH_SIZE / seconds,
        "first_loop": meter.seconds[0] - start,
        "loop": seconds / loops,
        "megabytes": meter.megabytes,
    }
    if waits.driver is not None:
        every = loops + 1
        row |= {
            "sent": waits.driver.bytes_sent / every,
            "received": waits.driver.bytes_received / every,
            "sent_serialized": waits.sent / every,
            "received_serialized": waits.received / every,
            "loopback": (meter.loopback[-1] - meter.loopback[0]) / loops,
            "waited": waits.seconds / every,
        }
    return row


def in_own_process(*case: Any) -> dict:
    """What `measure` gives, in a new process."""
    command = [sys.executable, str(HERE / "scale.py"), "--one", json.dumps(case)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{case}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


###############################################################################
# All of them


def formula() -> dict[str, int]:
    """Bytes of a loop: the policy's variables, and the trajectories."""
    # LinUCB, float32: for each arm a matrix and its eigenvectors; its eigenvalues and
    # two vectors; a count. The train step, int64.
    policy = 4 * ARMS * (2 * FEATURES**2 + 3 * FEATURES + 1) + 8
    # Observation, action, reward, discount, step type, next step type.
    interaction = 4 * (FEATURES + 5)
    return {"sent": policy, "received": RUNS * STEPS * BATCH_SIZE * interaction}


def measure_all(kinds: list[str], loops: int) -> dict:
    """Every case, in turn."""
    rows = {}
    for kind in kinds:
        for number in COLLECTORS[kind]:
            rows[f"{kind} {number}"] = in_own_process(kind, number, loops)
            print(kind, number, told(rows[f"{kind} {number}"]), flush=True)
    return rows


def told(row: dict) -> str:
    """One line of what was measured."""
    parts = {name: value for name, value in row.items() if name != "megabytes"}
    return ", ".join(f"{name} {value:,.4g}" for name, value in parts.items())


def throughput_table(rows: dict, kind: str) -> str:
    """Interactions per second, and how much faster than one collector."""
    lines = [f"| collectors | {kind}, interactions/s | times one |", "|---|---|---|"]
    one = rows[f"{kind} 1"]["interactions_per_second"]
    for number in COLLECTORS[kind]:
        rate = rows[f"{kind} {number}"]["interactions_per_second"]
        name = number or "none: `trainer.train`"
        lines.append(f"| {name} | {rate:,.0f} | {rate / one:.2f} |")
    return "\n".join(lines)


def bytes_table(rows: dict, kind: str) -> str:
    """Bytes of a loop, by formula and measured."""
    seen, expected = rows[f"{kind} 4"], formula()
    lines = [
        "| bytes a loop | formula | counted | as Ray sends it |",
        "|---|---|---|---|",
    ]
    for name in ("sent", "received"):
        cells = [expected[name], seen[name], seen[f"{name}_serialized"]]
        lines.append(f"| {name} | " + " | ".join(f"{c:,.0f}" for c in cells) + " |")
    return "\n".join(lines)


def memory(loops: int) -> str:
    """Private memory of the learner over many short loops."""
    seen = in_own_process("quick", 2, loops, 2)["megabytes"]
    marks = [n for n in (10, 100, 300, 1000, 3000, 10_000) if n <= loops]
    return ", ".join(f"{seen[n - 1]:.1f} MB after {n:,} loops" for n in marks)


def main() -> None:
    """Parses the command line and does as it says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one loop each")
    parser.add_argument("--only", choices=[*COLLECTORS, "memory"], help="one part")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(*json.loads(arguments.one))))
        return
    kinds = [arguments.only] if arguments.only else list(COLLECTORS)
    if arguments.only != "memory":
        rows = measure_all(kinds, 2 if arguments.quick else 3)
        print(*(throughput_table(rows, kind) for kind in kinds), sep="\n\n")
        print("", bytes_table(rows, kinds[0]), sep="\n")
    if arguments.only in (None, "memory"):
        print("Learner:", memory(100 if arguments.quick else 3000))


if __name__ == "__main__":
    main()

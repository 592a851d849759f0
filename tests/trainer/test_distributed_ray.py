"""The distributed trainer on Ray itself, with collectors and learners that are killed.

What does not need Ray is tested in `test_distributed.py` and `test_pool.py`.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from typing import Any
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.metrics import export_utils, tf_metrics

import trainer
from testing.fakes import MockLog
from tests.trainer import ray_worlds
from tests.trainer.ray_worlds import BATCH_SIZE, PER_COLLECTOR, STEPS, World
from trainer import distributed, pool, ray_session

pytest.importorskip("ray")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]
REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PATIENCE = 120.0  # Seconds; a test that needs as long has failed.


class Run:
    """A call of `distributed.train`, and what can be seen of it."""

    def __init__(self, directory: pathlib.Path, **faults: Any) -> None:
        self.world = World(directory, **faults)
        self.root = directory / "root"
        self.agent: Any = None
        self.warnings: list[str] = []
        self.log = MockLog()

    def train(self, loops: int, a: int, num_collectors: int, **more: Any) -> Any:
        made = len(ray_worlds.MADE)

        def note(text: str, *args: Any) -> None:
            self.warnings.append(text % args)

        with (
            mock.patch.object(export_utils, "logging", self.log),
            mock.patch.object(pool.logging, "warning", note),
        ):
            try:
                return distributed.train(
                    self.root,
                    self.world.agent,
                    self.world.environment,
                    loops,
                    STEPS,
                    a,
                    num_collectors=num_collectors,
                    **({"save_policy": False} | more),
                )
            finally:
                self.agent = ray_worlds.MADE[made]

    def trained(self) -> list[np.ndarray]:
        """Serial numbers of each train call, `[batch_size, steps]`."""
        return [np.array(call.serials) for call in self.agent.train_calls]


@pytest.fixture
def marker(monkeypatch):
    """A mark that all processes started from here on carry; none outlives the test."""
    mark = f"onbeat-test-{uuid.uuid4().hex}"
    monkeypatch.setenv("ONBEAT_TEST_MARK", mark)
    yield mark
    kill_marked(mark)


def kill_marked(mark: str) -> None:
    for pid in ray_worlds.marked(mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wait_until(true: Any, what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE} s"
        time.sleep(0.2)


def check_trained_once(run: Run, loops: int, a: int) -> None:
    assert run.log.steps("loss") == list(range(loops * a))
    assert run.log.steps("AverageReturn") == list(range(loops * a))
    calls = run.trained()
    assert [call.shape for call in calls] == [(BATCH_SIZE, STEPS)] * (loops * a)
    serials = np.concatenate([call.ravel() for call in calls]).tolist()
    assert len(set(serials)) == len(serials)
    assert set(serials) <= set(run.world.stepped())
    # A FakePolicy acts by how often its agent was trained: none older than its loop.
    actions = [set(np.ravel(c.actions)) for c in run.agent.train_calls]
    assert actions == [{n // a * a % 3} for n in range(loops * a)]


class Listening(tf_metrics.EnvironmentSteps):
    """Looks who listens on which addresses whenever it is asked for its result."""

    def __init__(self, marker: str) -> None:
        super().__init__(name="Listening")
        self._marker = marker
        self.addresses: set[str] = set()
        self.names: set[str] = set()

    def result(self) -> Any:
        if tf.executing_eagerly():
            found = ray_worlds.marked(self._marker)
            self.names |= set(found.values())
            for pid in [*found, os.getpid()]:
                self.addresses |= listening(pid)
        return super().result()


def listening(pid: int) -> set[str]:
    """Addresses on which a process accepts connections."""
    sockets = set()
    for entry in pathlib.Path(f"/proc/{pid}/fd").glob("*"):
        try:
            target = os.readlink(entry)
        except OSError:
            continue
        if target.startswith("socket:["):
            sockets.add(target[8:-1])
    found = set()
    for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in sockets:
                raw = bytes.fromhex(words[1].split(":")[0])
                parts = [raw[i : i + 4][::-1] for i in range(0, len(raw), 4)]
                found.add(socket.inet_ntop(family, b"".join(parts)))
    return found


def test_two_collectors_one_of_them_slow(tmp_path, marker):
    run = Run(tmp_path, faults={1: ("stall_at", 2, 3.0)})
    listener = Listening(marker)
    home = set(pathlib.Path.home().glob(".ray/*"))
    before = signal.getsignal(signal.SIGTERM), dict(os.environ)
    summary = run.train(
        3, 4, 2, slow_after=1.0, additional_metrics=[listener], compile=False
    )
    assert summary.environment_steps == 3 * 4 * STEPS * BATCH_SIZE
    check_trained_once(run, 3, 4)
    assert sorted(run.world.stepped()) == sorted(np.ravel(run.trained()).tolist())
    makers = [{int(s) // PER_COLLECTOR for s in c.ravel()} for c in run.trained()]
    assert makers == [{0}, {1}] * 6
    # On a busy machine the other one may be slow too, and this one be told late.
    slow = re.compile(r"Collector 1 has been making driver run 2 of 4 for [123] s\.")
    assert any(slow.match(warning) for warning in run.warnings), run.warnings
    # Ray was here, kept to itself, and has gone.
    assert {"raylet", "gcs_server"} <= listener.names
    assert listener.addresses
    assert listener.addresses <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}
    assert (signal.getsignal(signal.SIGTERM), dict(os.environ)) == before
    assert set(pathlib.Path.home().glob(".ray/*")) == home
    wait_until(lambda: not ray_worlds.marked(marker), "all processes of Ray ended")


def test_a_collector_that_is_killed_in_a_run(tmp_path):
    # In its second run of the second loop.
    run = Run(tmp_path, faults={1: ("kill_at", 3 * STEPS + 1)})
    run.train(4, 4, 2)
    check_trained_once(run, 4, 4)
    makers = [int(c.ravel()[0]) // PER_COLLECTOR for c in run.trained()]
    assert makers[:7] == [0, 1, 0, 1, 0, 1, 0]
    assert makers[7] == 0  # Made again by the other one.
    assert 1 not in makers[8:]
    died = [w for w in run.warnings if "died" in w]
    assert len(died) == 1
    assert died[0].startswith("Collector 1 died: ")


def test_all_collectors_are_killed_and_the_run_is_resumed(tmp_path):
    faults = dict.fromkeys((0, 1), ("kill_at", 2 * STEPS + 1))
    run = Run(tmp_path, faults=faults)
    with pytest.raises(pool.CollectorError, match=r"^All collectors died, the last on"):
        run.train(5, 4, 2)
    assert tf.train.latest_checkpoint(str(run.root)).endswith("ckpt-1")
    assert run.log.steps("loss") == [0, 1, 2, 3]
    # What is there is enough to go on from, in one process even.
    world = World(tmp_path, first=500_000)
    environment = world.environment(0)
    agent = world.agent(environment)
    summary = trainer.train(
        run.root, agent, environment, 3, STEPS, 4, resume_training_loops=True
    )
    assert (summary.loops, summary.total_loops, agent.calls) == (2, 3, 12)
    calls = [np.array(call.serials) for call in agent.train_calls]
    both = [s for call in [*run.trained(), *calls] for s in call.ravel()]
    assert len(both) == len(set(both)) == 3 * 4 * STEPS * BATCH_SIZE


def test_an_environment_that_raises(tmp_path):
    run = Run(tmp_path, faults={1: ("raise_at", STEPS + 1, ValueError("no such arm"))})
    with pytest.raises(pool.CollectorError) as caught:
        run.train(5, 4, 2)
    text = str(caught.value)
    first, second = text.splitlines()[:2]
    assert first == "Collector 1 failed in driver run 4 of 4: ValueError: no such arm"
    assert second == "Traceback of collector 1:"
    assert "faults.py" in text
    assert isinstance(caught.value.__cause__, ValueError)


class Large(World):
    """A policy of 24 MB, and experience of as much."""

    def agent(self, environment: Any) -> Any:
        agent = super().agent(environment)
        agent.collect_policy.large = tf.Variable(tf.range(3_000_000, dtype=tf.int64))
        return agent


def test_policy_and_experience_too_large_for_one_message(tmp_path, monkeypatch):
    # Ray's limit is 512 MB; what passes under this one needs no message.
    monkeypatch.setenv("RAY_max_grpc_message_size", str(5 * 2**20))
    run = Run(tmp_path)
    run.world = Large(tmp_path, width=250_000)
    run.train(2, 1, 1)
    assert run.log.steps("loss") == [0, 1]
    assert len(run.world.stepped()) == 2 * STEPS * BATCH_SIZE


def start_learner(directory: pathlib.Path, loops: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.trainer.ray_learner", directory, str(loops)],
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd=REPOSITORY,
    )


def wait_for_checkpoint(root: pathlib.Path, learner: subprocess.Popen[bytes]) -> None:
    def is_there() -> bool:
        assert learner.poll() is None, learner.stderr.read().decode()
        return tf.train.latest_checkpoint(str(root)) is not None

    wait_until(is_there, "a checkpoint")


def check_resumed(tmp_path: pathlib.Path) -> None:
    path = tf.train.latest_checkpoint(str(tmp_path / "root"))
    done = int(path.rpartition("-")[2])
    run = Run(tmp_path, first=500_000)
    summary = run.train(done + 1, 2, 1, resume_training_loops=True)
    assert (summary.loops, summary.total_loops) == (1, done + 1)
    assert run.log.steps("loss") == [2 * done, 2 * done + 1]


def test_the_learner_is_killed_and_resumed(tmp_path, marker):
    learner = start_learner(tmp_path, 10_000)
    wait_for_checkpoint(tmp_path / "root", learner)
    learner.kill()
    learner.wait()
    # Ray's own agents follow later.
    gone = ("raylet", "gcs_server", "ray::Collector")
    wait_until(
        lambda: not set(ray_worlds.marked(marker).values()) & set(gone),
        "collectors follow their learner",
    )
    check_resumed(tmp_path)


def test_ctrl_c_ends_after_the_loop_and_leaves_no_process(tmp_path, marker):
    learner = start_learner(tmp_path, 10_000)
    wait_for_checkpoint(tmp_path / "root", learner)
    os.killpg(learner.pid, signal.SIGINT)  # As a terminal does, to all of them.
    _, errors = learner.communicate(timeout=PATIENCE)
    assert learner.returncode in (1, 130, -signal.SIGINT), errors.decode()
    assert errors.decode().rstrip().endswith("KeyboardInterrupt")
    assert "died" not in errors.decode()
    wait_until(lambda: not ray_worlds.marked(marker), "no process is left")


# Ray stays on the loopback interface, as it does by itself on other systems.
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_AUTH_MODE": "disabled"}


@pytest.fixture
def cluster(marker):
    """A Ray cluster that somebody started."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"]
    start += [f"--port={port}", "--num-cpus=2", "--include-dashboard=false"]
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as directory:
        process = subprocess.Popen(
            [*start, "--disable-usage-stats"],
            env=os.environ | LOOPBACK | {"RAY_TMPDIR": directory},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

        def is_up() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        wait_until(is_up, "the cluster is up")
        yield f"127.0.0.1:{port}", process
        process.terminate()
        process.wait(timeout=PATIENCE)
        kill_marked(marker)


def test_a_cluster_is_joined_and_left_as_it_is(tmp_path, cluster, monkeypatch):
    import ray

    address, process = cluster
    with ray_session.connected(None):
        pass  # What this leaves behind must not be shown to the cluster.
    for name, value in LOOPBACK.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(ray._private.ray_constants, "ENABLE_RAY_CLUSTER", False)
    run = Run(tmp_path)
    run.train(2, 2, 2, address=address)
    check_trained_once(run, 2, 2)
    assert process.poll() is None
    assert not ray.is_initialized()


def test_the_command_line(tmp_path, marker):
    """With a table of which the collectors are not told the path."""
    table = tmp_path / "flowers.csv"
    rows = "".join(f"{i % 7},{i % 2},{'ab'[i % 2]}\n" for i in range(40))
    table.write_text(f"noise,tell,kind\n{rows}")
    command = [sys.executable, "-m", "trainer", "--environment=csv", "--seed=1"]
    command += [f"--data_path={table}", "--label_column=kind", "--num_collectors=2"]
    command += ["--training_loops=3", f"--root_dir={tmp_path / 'run'}"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "6 train steps, 384 interactions" in done.stdout.replace("\n", " ")
    log = (tmp_path / "run" / "train.log").read_text()
    assert [f"[step={n}] loss" in log for n in range(7)] == [True] * 6 + [False]
    wait_until(lambda: not ray_worlds.marked(marker), "no process is left")

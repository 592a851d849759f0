"""Real processes: signals from outside, two runs at a time, disks that fail."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time

import pytest

import trainer
from tests.trainer import runs
from tests.trainer.killing import traces
from tests.trainer.killing.server import Server

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server():
    server = Server()
    yield server
    server.close()


def request(tmp_path, loops, faults=()):
    return {
        "log": str(tmp_path / "log"),
        "root_dir": str(tmp_path / "root"),
        "training_loops": loops,
        "async_steps_per_loop": 2,
        "resume_training_loops": True,
        "save_policy": False,
        "faults": list(faults),
    }


@pytest.mark.parametrize(
    ("signum", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, -signal.SIGINT)]
)
def test_a_signal_ends_the_process_with_the_usual_code(server, tmp_path, signum, code):
    at = {"kind": "agent.train", "call": 2, "when": "inside", "signum": signum}
    assert server.run(**request(tmp_path, 9, [at])) == code
    # The second loop was finished and saved, the third not begun.
    assert traces.finished_loops(tmp_path / "root") == 2
    logged = traces.logged(tmp_path / "log")
    assert [step for step, _ in logged["loss"]] == [0, 1, 2, 3]
    assert [step for step, _ in logged["AverageReturn"]] == [0, 1, 2, 3]
    summaries = traces.summarized(tmp_path / "root")
    assert [step for step, _ in summaries["loss"]] == [0, 1, 2, 3]
    assert not (tmp_path / "root" / "onbeat.lock").exists()


def test_a_second_sigterm_kills(server, tmp_path):
    at = {"kind": "agent.train", "call": 2, "signum": signal.SIGTERM}
    twice = [at | {"when": when} for when in ("before", "inside")]
    assert server.run(**request(tmp_path, 9, twice)) == -signal.SIGTERM
    assert traces.finished_loops(tmp_path / "root") == 1
    assert server.run(**request(tmp_path, 2)) == 0
    assert traces.finished_loops(tmp_path / "root") == 2


def test_a_running_trainer_keeps_its_directory_until_it_is_killed(server, tmp_path):
    child = server.start(**request(tmp_path, 10**6))
    deadline = time.monotonic() + 120
    while traces.finished_loops(tmp_path / "root") < 1:
        assert time.monotonic() < deadline, (tmp_path / "log").read_text()
        time.sleep(0.1)
    with pytest.raises(
        trainer.DirectoryInUseError,
        match=rf"process {child} on host {re.escape(os.uname().nodename)}",
    ):
        runs.run(tmp_path / "root")
    os.kill(child, signal.SIGKILL)
    assert server.wait(child) == -signal.SIGKILL
    loops = traces.finished_loops(tmp_path / "root") + 1
    assert server.run(**request(tmp_path, loops)) == 0
    text = (tmp_path / "log").read_text()
    assert f"of process {child} on host" in text


UNSHARE = ("unshare", "--map-root-user", "--mount")


def can_mount(directory) -> bool:
    try:
        command = [*UNSHARE, "mount", "-t", "tmpfs", "tmpfs", str(directory)]
        return subprocess.run(command, check=False).returncode == 0
    except OSError:
        return False


def test_real_full_and_read_only_disks(tmp_path):
    if not can_mount(tmp_path):
        pytest.skip("needs mount namespaces: unshare --map-root-user --mount")
    root, log, result = (str(tmp_path / name) for name in ("root", "log", "result"))
    server = Server(*UNSHARE)
    code = server.run(scenario="on_a_small_disk", root_dir=root, log=log, result=result)
    server.close()
    assert code == 0, (tmp_path / "log").read_text()[-2000:]
    with open(result) as file:
        first, full, no_policy, read_only, last = json.load(file)
    assert first["error"] is None
    assert re.match(
        rf"(Checkpoint 3|Summaries) could not be written to {root}: .*No space left on "
        rf"device.* Kept: {root}/ckpt-2; the next run goes on from there\.$",
        full["error"],
    )
    assert {"ckpt-2.index", "checkpoint"} <= set(full["files"])
    assert not [name for name in full["files"] if name.startswith("ckpt-3")]
    assert re.match(
        rf"The policy could not be written to {root}/policy_12: .*No space left on "
        r"device.* The checkpoint is saved; the next run exports the policy from it\.$",
        no_policy["error"],
    )
    assert "ckpt-3.index" in no_policy["files"]
    assert not [name for name in no_policy["files"] if "policy" in name]
    assert re.match(
        rf"The lock of the run could not be written to {root}/onbeat\.lock: "
        r"Read-only file system\. Nothing was done\.$",
        read_only["error"],
    )
    assert last["error"] is None
    assert {"policy_16", "ckpt-4.index"} <= set(last["files"])
    steps = [step for step, _ in traces.logged(tmp_path / "log")["loss"]]
    assert sorted(set(steps)) == [0, 1, 2, 3]

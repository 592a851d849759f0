"""Processes to be killed in: forked from one that has TensorFlow imported already.

Importing TensorFlow takes seconds; forking a process that has imported it and done
nothing else takes none. (Forking one in which TensorFlow has worked is not safe.)
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

SECONDS = 300
SAVE = "checkpoint.save"
_SURVIVED, _FAILED, _NOT_IMPORTED = 3, 4, 5
_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from testing.contracts.trainer import killer; killer.serve()"
)


class NotPossible(Exception):
    """No process can be killed here; the text says why."""


_server: subprocess.Popen[str] | None = None
_lock = threading.Lock()


def start() -> None:
    """Starts the process to fork from, in the background, if it does not run."""
    global _server
    if not hasattr(os, "fork"):
        raise NotPossible("this system cannot fork a process to kill")
    with _lock:
        if _server is None or _server.poll() is not None:
            path = json.dumps([os.path.abspath(entry) for entry in sys.path])
            _server = subprocess.Popen(
                [sys.executable, "-c", _BOOT, path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            atexit.register(stop)


def stop() -> None:
    """Ends it."""
    global _server
    with _lock:
        if _server is not None:
            server, _server = _server, None
            for pipe in (server.stdin, server.stdout):
                if pipe is not None:
                    pipe.close()
            server.wait()


def kill_in(job: Mapping[str, Any]) -> bool:
    """Runs a trainer in a process that kills itself on the way.

    Args:
      job: see `_work`.

    Returns:
      True if it was killed, False if it ended by itself before.

    Raises:
      NotPossible: the trainer cannot be imported there, or there is no process.
    """
    start()
    job = {**job, "path": [os.path.abspath(p) for p in sys.path], "cwd": os.getcwd()}
    with _lock:
        answer = _ask(json.dumps(job))
    if answer == _NOT_IMPORTED:
        raise NotPossible("train could not be imported in another process")
    return answer < 0


def _ask(line: str) -> int:
    server = _server
    if server is None or server.stdin is None or server.stdout is None:
        raise NotPossible("the process to fork from has ended")
    try:
        server.stdin.write(line + "\n")
        server.stdin.flush()
        answer = server.stdout.readline()
    except OSError:
        answer = ""
    if not answer:
        raise NotPossible("the process to fork from has ended")
    return int(answer)


# In the other process.


def serve() -> None:
    """Forks for each job on stdin and answers with the exit code on stdout."""
    from testing.contracts.trainer import observe  # noqa: F401  imports TensorFlow

    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os._exit(_work(json.loads(line)))
        print(_wait(child), flush=True)


def _wait(child: int) -> int:
    """The exit code of a process, as `subprocess` gives it."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return _FAILED


def _work(job: dict[str, Any]) -> int:
    """Runs the trainer, which is killed on the way."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    sys.path[:] = job["path"]
    try:
        os.chdir(job["cwd"])
        train: Any = importlib.import_module(job["module"])
        for part in job["name"].split("."):
            train = getattr(train, part)
    except BaseException:
        return _NOT_IMPORTED
    try:
        _run(train, job)
    except BaseException:
        return _FAILED
    return _SURVIVED


def _run(train: Any, job: dict[str, Any]) -> None:
    import tempfile
    from pathlib import Path

    from testing.contracts.trainer.observe import Setting, observe
    from testing.contracts.trainer.signature import Offer
    from testing.contracts.trainer.sizes import Sizes
    from testing.fakes.faults import FaultPlan

    # What a killed process leaves behind is cleared away with the caller's files.
    tempfile.tempdir = os.path.dirname(job["root"])
    faults = FaultPlan()
    faults.kill_at(job["kind"], job["call"], when=job["when"])
    offer = Offer(train)
    offer.accepted = job["accepted"]
    setting = Setting("run to be killed", Sizes(**job["sizes"]), faults=faults)
    with open(job["log"], "a", buffering=1) as log, saves_counted(faults):
        observe(offer, setting, Path(job["root"]), tell=_teller(log))


def saves_counted(faults: Any) -> Any:
    """Makes each save of a checkpoint manager a call of the plan."""
    from testing.fakes._tf import tf

    return faults.around(tf.train.CheckpointManager, "save", SAVE)


def _teller(log: Any) -> Any:
    def tell(event: Any) -> None:
        if event.kind == "log":
            print(json.dumps([event.name, event.step]), file=log)

    return tell

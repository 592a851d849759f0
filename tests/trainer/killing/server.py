"""Forks processes that train, with TensorFlow imported once and for all.

Run as a program it reads requests, one JSON object a line, and answers each with one.
TensorFlow is imported but never used here, so that a forked child can use it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

# A child that hangs dies by itself.
PATIENCE = 300


class Server:
    """The other side of the program: starts it, asks it to fork."""

    def __init__(self, *prefix: str) -> None:
        """`prefix` is a command that runs commands, such as `unshare -m`."""
        self._process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "tests.trainer.killing.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"TF_USE_LEGACY_KERAS": "1"},
        )

    def start(self, **request: Any) -> int:
        """Forks a child that does `scenarios.start(**request)`; returns its id."""
        return self._ask({"start": request})

    def wait(self, child: int) -> int:
        """Return code of a child, negative if a signal ended it."""
        return self._ask({"wait": child})

    def run(self, **request: Any) -> int:
        """`start` and `wait`."""
        return self.wait(self.start(**request))

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _ask(self, question: dict[str, Any]) -> int:
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return int(json.loads(self._process.stdout.readline()))


def main() -> None:
    from tests.trainer.killing import scenarios

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # A job in the background is started with Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for line in iter(sys.stdin.readline, ""):
        question = json.loads(line)
        if "wait" in question:
            _, status = os.waitpid(question["wait"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = os.fork()
            if not answer:
                signal.alarm(PATIENCE)
                scenarios.start(**question["start"])
                return
        answers.write(f"{json.dumps(answer)}\n")
        answers.flush()


if __name__ == "__main__":
    main()

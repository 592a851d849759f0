"""Plants one fault at a time into a copy of `trainer/` and lets the tests find it.

Usage: .venv/bin/python scripts/planted_faults.py [NAME ...]

Prints a table (fault, caught, first failing test) and exits 1 if one was not caught.
A fault whose code is no longer there is an error: bring this table up to date.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TESTS = ("tests/trainer",)
LEFT_OUT = ("test_tf_agents_own.py", "test_main.py", "test_problems.py")


@dataclasses.dataclass(frozen=True)
class Fault:
    """Replaces `old`, which stands exactly once in `trainer/<file>`, by `new`."""

    name: str
    file: str
    old: str
    new: str


FAULTS = [
    Fault(
        "metric steps all 0",
        "loop.py",
        "export.export_metrics(step, metrics)",
        "export.export_metrics(0, metrics)",
    ),
    Fault(
        "loss step +1",
        "loop.py",
        "export.export_loss_info(step, loss_info)",
        "export.export_loss_info(step + 1, loss_info)",
    ),
    Fault(
        "all steps -7",
        "loop.py",
        "        for step in range(first_step,",
        "        first_step -= 7\n        for step in range(first_step,",
    ),
    Fault(
        "buffer x2",
        "replay.py",
        "max_length=steps_per_loop * async_steps_per_loop",
        "max_length=steps_per_loop * async_steps_per_loop * 2",
    ),
    Fault(
        "buffer x1000",
        "replay.py",
        "max_length=steps_per_loop * async_steps_per_loop",
        "max_length=steps_per_loop * async_steps_per_loop * 1000",
    ),
    Fault("never cleared", "loop.py", "self._buffer.clear()", "pass"),
]


def main(names: list[str]) -> int:
    """Plants the named faults, or all, and returns the exit code."""
    chosen = [fault for fault in FAULTS if not names or fault.name in names]
    missed = 0
    for fault in chosen:
        test = first_failing_test(fault)
        missed += test is None
        print(f"{fault.name:<34} {test or 'NOT CAUGHT'}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} caught")
    return int(missed > 0)


def first_failing_test(fault: Fault) -> str | None:
    """The test that catches the fault, or None."""
    with tempfile.TemporaryDirectory() as directory:
        copy = pathlib.Path(directory) / "copy"
        ignored = shutil.ignore_patterns(".git", ".venv*", "*cache*", "benchmarks")
        shutil.copytree(ROOT, copy, ignore=ignored)
        plant(fault, copy)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
            + [f"--ignore={TESTS[0]}/{name}" for name in LEFT_OUT]
            + ["-m", "not slow", *TESTS],
            cwd=copy,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode == 0:
        return None
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return found.group(1) if found else f"exit {done.returncode}: {done.stdout[-300:]}"


def plant(fault: Fault, copy: pathlib.Path) -> None:
    """Changes the one place in the copy."""
    path = copy / "trainer" / fault.file
    source = path.read_text()
    if source.count(fault.old) != 1:
        raise SystemExit(
            f"Fault {fault.name!r}: {fault.old!r} stands {source.count(fault.old)} "
            f"times in trainer/{fault.file}. Expected: once. Bring FAULTS up to date."
        )
    path.write_text(source.replace(fault.old, fault.new))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

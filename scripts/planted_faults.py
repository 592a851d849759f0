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
TESTS = [
    f"tests/trainer/test_{name}.py"
    for name in ("beat", "resume", "summaries", "process", "nonfinite", "arguments")
]


@dataclasses.dataclass(frozen=True)
class Edit:
    """Replaces `old`, which stands exactly once in `trainer/<file>`, by `new`."""

    file: str
    old: str
    new: str


@dataclasses.dataclass(frozen=True)
class Fault:
    """One mistake, made wherever the eager and the compiled loop part ways."""

    name: str
    edits: tuple[Edit, ...]


def fault(name: str, *edits: tuple[str, str, str]) -> Fault:
    return Fault(name, tuple(Edit(*edit) for edit in edits))


LOG_METRICS = "export_utils.export_metrics(step=step, metrics=computed)"
LOG_LOSS = "export_utils.export_metrics(step=step, metrics=[], loss_info=loss_info)"
COLLECT = "for step in range(first_step, first_step + self._runs):"
LEARN = "loss_info = self._learner.learn(step, source)"
LENGTH = "max_length=steps_per_loop * async_steps_per_loop"
NO_LOSS = "__import__('tf_agents.agents.tf_agent', fromlist=['_']).LossInfo(0.0, ())"
ONE_LOOP = "                self._one_loop(index)\n"
SAVE = "self._save(index, is_last or stop.signum is not None)\n"
HOLD = """held = []
        log, export.log_metrics = export.log_metrics, lambda *a: held.append(a)
        """
RELEASE = """export.log_metrics = log
        for arguments in held:
            log(*arguments)
        self._memory.clear()"""

FAULTS = [
    fault(
        "metric steps all 0",
        ("export.py", LOG_METRICS, LOG_METRICS.replace("=step", "=0")),
    ),
    fault(
        "loss step +1", ("export.py", LOG_LOSS, LOG_LOSS.replace("=step", "=step + 1"))
    ),
    fault("all steps -7", ("loop.py", COLLECT, "first_step -= 7\n        " + COLLECT)),
    fault(
        "loss before metrics",
        ("loop.py", COLLECT, HOLD + COLLECT),
        ("loop.py", "self._memory.clear()", RELEASE),
    ),
    fault("buffer x2", ("replay.py", LENGTH, LENGTH + " * 2")),
    fault("buffer x1000", ("replay.py", LENGTH, LENGTH + " * 1000")),
    fault("never cleared", ("loop.py", "self._memory.clear()", "pass")),
    fault(
        "agent never trained",
        ("loop.py", "self._agent.train(experience)", NO_LOSS),
        ("compiled.py", "train(self._read(source))", NO_LOSS),
    ),
    fault(
        "policy never exported",
        ("train.py", "self._exporter.save(self._environment_steps())", "None"),
    ),
    fault(
        "no summary writer",
        ("train.py", "self._writer.as_default()", "contextlib.nullcontext()"),
    ),
    fault(
        "no metric summaries",
        ("export.py", "metric.tf_summaries(train_step=uncached(step))", "pass"),
        ("compiled.py", " metric.tf_summaries(train_step=step)", " pass"),
    ),
    fault(
        "multi-line record dropped",
        ("export.py", "metric_utils.log_metrics(computed)", "pass"),
    ),
    fault(
        "agent left out of the checkpoint",
        ("checkpoints.py", "{AGENT: agent, STEP: step_metric}", "{STEP: step_metric}"),
    ),
    fault(
        "metrics left out of the checkpoint",
        ("checkpoints.py", "{metric.name: metric for metric in metrics}", "{}"),
    ),
    fault(
        "checkpoint before the loop body",
        ("train.py", ONE_LOOP, ""),
        ("train.py", SAVE, SAVE + ONE_LOOP),
    ),
    fault(
        "trains only once when A > 1",
        (
            "loop.py",
            LEARN,
            "if step > first_step:\n                break\n            " + LEARN,
        ),
    ),
    fault(
        "resumed steps restart at 0",
        (
            "train.py",
            "            self._restore()\n",
            "            self._restore()\n"
            "            self._progress.train_steps.assign(0)\n",
        ),
    ),
    fault(
        "resume check removed",
        (
            "checkpoints.py",
            "_check_description(path, reader, progress.description.fields)",
            "pass",
        ),
    ),
    fault(
        "one checkpoint kept",
        ("checkpoints.py", "max_to_keep=max_to_keep)", "max_to_keep=1)"),
    ),
    fault(
        "driver one step too many",
        (
            "parts.py",
            "num_steps=args.steps_per_loop * args.environment.batch_size",
            "num_steps=args.steps_per_loop * args.environment.batch_size + 1",
        ),
    ),
    fault(
        "stale first batch reused",
        ("replay.py", "first = run * self._steps", "first = 0"),
        ("replay.py", "ids = first + run * self._steps", "ids = first"),
    ),
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
            [
                sys.executable,
                "-m",
                "pytest",
                "-x",
                "-q",
                "-p",
                "no:cacheprovider",
                *TESTS,
            ],
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
    """Makes the fault's edits in the copy."""
    for edit in fault.edits:
        path = copy / "trainer" / edit.file
        source = path.read_text()
        if source.count(edit.old) != 1:
            raise SystemExit(
                f"Fault {fault.name!r}: {edit.old!r} does not stand exactly once in "
                f"trainer/{edit.file}. Bring FAULTS up to date."
            )
        path.write_text(source.replace(edit.old, edit.new))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""Rules of manners: errors, arguments, the process, determinism."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterator
from typing import Any

from testing.cadence.events import Event
from testing.contracts._rules import broken, not_exercised
from testing.contracts.trainer import compare, process
from testing.contracts.trainer.lab import PLANTED, Lab
from testing.contracts.trainer.observe import Run
from testing.contracts.trainer.rulebook import RULES
from testing.contracts.trainer.watch import RunawayError

# Time, host and process in the name of an event file.
_FRESH = re.compile(r"tfevents\..*")
# What is not the trainer's own code.
_FOREIGN = tuple(
    os.sep + os.path.join(*part.split("/"), "")
    for part in ("site-packages", "testing/contracts", "testing/fakes")
)
_NONSENSE: tuple[tuple[str, Any], ...] = (
    ("training_loops", -1),
    ("steps_per_loop", 0),
    ("steps_per_loop", -2),
    ("async_steps_per_loop", 0),
    ("async_steps_per_loop", -1),
    ("agent", None),
    ("environment", None),
)


@RULES.check("errors-surface")
def _errors_surface(lab: Lab) -> None:
    lab.ended(lab.main)
    runs = {"agent.train": lab.agent_error, "environment.step": lab.environment_error}
    happened = {what: run for what, run in runs.items() if _fired(run)}
    if not happened:
        not_exercised("neither agent nor environment came to raise")
    for what, run in happened.items():
        if run.error is not None and _is_planted(run.error):
            continue
        seen = "the trainer returned as if nothing had happened"
        if run.error is not None:
            seen = f"{type(run.error).__name__}: {_first_line(run.error)}"
        broken(
            f"the exception that {what} raised",
            seen,
            compare.at_end(run),
            "let it pass, or raise another one from it",
        )


def _fired(run: Run) -> bool:
    return run.setting.faults is not None and bool(run.setting.faults.fired)


def _is_planted(error: BaseException) -> bool:
    """Whether it is our error, or tells of it: graphs wrap what Python raises."""
    known: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        now = todo.pop()
        if now is None or id(now) in known:
            continue
        if PLANTED in str(now):
            return True
        known.add(id(now))
        # `from None` hides what was before, from people as well.
        todo += [now.__cause__, None if now.__suppress_context__ else now.__context__]
    return False


@RULES.check("arguments-checked")
def _arguments_checked(lab: Lab) -> None:
    _zero_loops(lab.nothing)
    for name, value in _NONSENSE:
        if lab.offer.takes(name):
            _refused(lab.with_arguments(**{name: value}), name, value)


def _zero_loops(run: Run) -> None:
    # Who raises has done nothing either.
    done = [*_doings(run)]
    if done:
        broken("zero loops do nothing", compare.some(done), run.setting.title)


def _refused(run: Run, name: str, value: Any) -> None:
    done = [*_doings(run), *_files(run)]
    runaway = isinstance(run.error, RunawayError)
    if run.error is not None and not done and not runaway:
        return
    seen = [] if run.error is not None else ["no error"]
    if runaway:
        seen.append("it never ends")
    elif run.error is not None:
        seen.append(f"{type(run.error).__name__}, but too late")
    broken(
        f"{name}={value!r} raises before anything is done",
        compare.some([*seen, *done]),
        run.setting.title,
        "check all arguments before the first driver run and the first file",
    )


def _doings(run: Run) -> Iterator[str]:
    if run.env_steps:
        yield f"{len(run.env_steps)} steps of the environment"
    if run.trained:
        yield f"{len(run.trained)} train calls"
    if run.series:
        yield f"lines of {', '.join(run.series)}"
    if any(run.exports):
        yield "an exported policy"
    if any(run.root.rglob("*.index")):
        yield "a checkpoint"


def _files(run: Run) -> Iterator[str]:
    files = [p for p in run.root.rglob("*") if p.is_file()]
    if files and not any(run.root.rglob("*.index")):
        names = {_FRESH.sub("tfevents", path.name) for path in files}
        yield f"files: {compare.some(sorted(names), 3)}"


@RULES.check("leaves-no-trace")
def _leaves_no_trace(lab: Lab) -> None:
    runs = [lab.main, lab.single, lab.agent_error]
    for run in runs:
        changed = process.changed(run.before, run.after)
        if changed:
            name = changed[0]
            before, after = _changed(run.before[name], run.after[name])
            more = f"; also changed: {', '.join(changed[1:])}" if changed[1:] else ""
            broken(
                f"{name}: {before}",
                f"{name}: {after}{more}",
                f"{run.title}, when the trainer had "
                + ("returned" if run.error is None else "raised"),
                _trace_hint(name),
            )


def _changed(before: Any, after: Any) -> tuple[Any, Any]:
    """Of two lists only what differs."""
    if not isinstance(before, list):
        return before, after
    gone = [x for x in before if x not in after]
    new = [x for x in after if x not in before]
    return _list(gone, "nothing else"), _list(new, "fewer")


def _list(items: list[Any], empty: str) -> str:
    return compare.some(items) or empty


def _trace_hint(name: str) -> str:
    if "writer" in name or "summary" in name:
        return "use `with writer.as_default():` and close the writer"
    if name.startswith("files"):
        return "write below root_dir only"
    if "thread" in name:
        return "join threads before returning"
    if "global step" in name:
        return "count in a variable of your own"
    return "put it back in a finally clause, or leave it to the program"


@RULES.check("deterministic")
def _deterministic(lab: Lab) -> None:
    first, again = lab.ended(lab.main), lab.ended(lab.repeat)
    expected, seen = _beats(first), _beats(again)
    if expected == seen:
        return
    at = compare.difference(expected, seen)[2]
    broken(
        expected[at] if at < len(expected) else "the end",
        seen[at] if at < len(seen) else "the end",
        f"event {at} of two runs with the same seeds"
        + compare.around(again, at if at < len(seen) else len(seen)),
        "does it draw from a generator of its own, seed one with the time, "
        "or go through a set?",
    )


def _beats(run: Run) -> list[str]:
    return [_beat(event) for event in run.events]


def _beat(event: Event) -> str:
    return str(event)


@RULES.check("completes")
def _completes(lab: Lab) -> None:
    if not lab.ordinary:
        not_exercised("no rule asked for an ordinary run")
    for run in lab.ordinary:
        if run.error is not None:
            text = _first_line(run.error)
            broken(
                f"{run.sizes.env_steps} steps, {run.sizes.calls} train calls, "
                "and no exception",
                f"{type(run.error).__name__} after {len(run.env_steps)} steps, "
                f"{len(run.trained)} train calls: {text}",
                f"{_place(run.error)}{compare.at_end(run)}",
                _raised_hint(run),
            )


def _raised_hint(run: Run) -> str:
    sizes = run.sizes
    first = next((n for kind, n in run.phases if kind == "env.step"), 0)
    # Whole driver runs, but short ones.
    if first and first % sizes.runs == 0 and first < sizes.runs * sizes.steps:
        return (
            f"{first} steps before the first train call, where "
            f"{sizes.runs * sizes.steps} are due: a driver's num_steps sums over "
            "all environments: steps_per_loop * batch_size"
        )
    if "which nobody runs" in str(run.error):
        return "wrap it, so that a plain call trains: run it in the lambda"
    if "Sequence" in str(run.error) or "OutOfRange" in type(run.error).__name__:
        return "the buffer gives fewer batches than A: is it sized for a whole loop?"
    return "run it with these sizes and its own agent: does it raise there too?"


def _place(error: BaseException) -> str:
    """The line of the trainer that an error comes from, if there is one."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not any(part in f.filename for part in _FOREIGN)]
    if not own:
        return ""
    return f"{os.path.basename(own[-1].filename)}:{own[-1].lineno}; "


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    text = lines[0] if lines else ""
    return text if len(text) <= 160 else f"{text[:160]}..."

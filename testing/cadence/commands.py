"""What the subcommands of `onbeat` do."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence

from testing.cadence import readers
from testing.cadence.contract import Cadence, CadenceError
from testing.cadence.contract.check import Checker
from testing.cadence.contract.infer import Recorder
from testing.cadence.differences import differences
from testing.cadence.findings import IRREGULARITIES, Finding
from testing.cadence.show import Outcome, render
from testing.cadence.survey import Item, Survey

KEPT, VIOLATED, UNREADABLE = 0, 1, 2
# A cadence speaks about steps; these are off under any cadence.
_ALWAYS = frozenset(
    {
        "double-line",
        "repeated-header",
        "ragged-row",
        "truncated",
        "corrupt",
        "empty",
        "non-finite",
        "declared-cadence",
    }
)


class _Stop(Exception):
    """Ends a command with one line and status 2."""


def run(arguments: argparse.Namespace) -> int:
    """Runs the subcommand; returns the exit status."""
    name = arguments.command
    if arguments.version:
        return _version()
    if name is None:
        return _fail("onbeat", "no command. See onbeat --help")
    try:
        _check_ignored(getattr(arguments, "ignore", []))
        return _COMMANDS[name](arguments)
    except (_Stop, CadenceError, readers.UnreadableRun) as error:
        return _fail(f"onbeat {name}", str(error))
    except BrokenPipeError:
        raise
    except OSError as error:
        return _fail(f"onbeat {name}", f"{error.filename}: {error.strerror}")


def _fail(program: str, message: str) -> int:
    sys.stdout.flush()
    line = " ".join(message.split()).rstrip(".")
    print(f"{program}: {line}.", file=sys.stderr)
    return UNREADABLE


def _version() -> int:
    from importlib import metadata

    try:
        print(f"onbeat {metadata.version('onbeat')}")
    except metadata.PackageNotFoundError:
        print("onbeat, not installed")
    return KEPT


def _check_ignored(kinds: Iterable[str]) -> None:
    for kind in kinds:
        if kind not in IRREGULARITIES:
            allowed = ", ".join(sorted(IRREGULARITIES))
            raise _Stop(f"--ignore is {kind!r}. Allowed: {allowed}")


def _describe(arguments: argparse.Namespace) -> int:
    survey = Survey(_root(arguments.run))
    for item in _items(arguments.run, arguments.pattern, arguments.more):
        survey.add(item)
    survey.close()
    findings = _kept(survey.findings, arguments.ignore)
    return _show(_outcome(arguments, survey, findings), arguments.format)


def _record(arguments: argparse.Namespace) -> int:
    recorder = Recorder(_root(arguments.run))
    for item in _items(arguments.run, arguments.pattern, arguments.more):
        recorder.add(item)
    cadence = recorder.close()
    findings = _kept(recorder.survey.findings, arguments.ignore)
    if arguments.output == "-":
        _write(cadence.to_toml())
    else:
        cadence.save(arguments.output)
    if not findings:
        return KEPT
    outcome = _outcome(arguments, recorder.survey, findings)
    sys.stdout.flush()
    print(render(outcome, "text"), end="", file=sys.stderr)
    print("Recorded all the same: look at it before you trust it.", file=sys.stderr)
    return VIOLATED


def _check(arguments: argparse.Namespace) -> int:
    cadence = _cadence(arguments)
    root = _root(arguments.run)
    survey, checker = Survey(root), Checker(cadence or Cadence(), root)
    for item in _items(arguments.run, arguments.pattern, arguments.more):
        survey.add(item)
        checker.add(item)
    survey.close()
    broken = checker.close()
    governed = {series.name for series in cadence.series} if cadence else set()
    bare = {beat.name: beat.bare for beat in survey.series}
    other = [
        finding
        for finding in _kept(survey.findings, arguments.ignore)
        if finding.kind in _ALWAYS
        or not ({finding.series, bare.get(finding.series)} & governed)
    ]
    outcome = _outcome(arguments, survey, [*broken, *other])
    outcome = dataclasses.replace(
        outcome,
        rules=[*checker.rules, *outcome.rules],
        skipped=checker.skipped,
    )
    return _show(outcome, arguments.format)


def _cadence(arguments: argparse.Namespace) -> Cadence | None:
    loops, steps = arguments.training_loops, arguments.async_steps_per_loop
    if arguments.against is not None:
        if loops is not None or steps is not None or arguments.metric:
            raise _Stop("--against and --training-loops exclude each other")
        return Cadence.load(arguments.against)
    if loops is not None:
        return Cadence.bandit(loops, steps, arguments.metric)
    if steps is not None or arguments.metric:
        raise _Stop("--async-steps-per-loop and --metric need --training-loops")
    return None


def _diff(arguments: argparse.Namespace) -> int:
    surveys = []
    for path in (arguments.run, arguments.other):
        survey = Survey(_root(path))
        for item in _items(path, arguments.pattern):
            survey.add(item)
        survey.close()
        surveys.append(survey)
    found = differences(*surveys)
    outcome = Outcome(
        "diff",
        f"{arguments.run} and {arguments.other}",
        sum(survey.events for survey in surveys),
        surveys[0].series,
        found,
        ["same-beat"],
    )
    return _show(outcome, arguments.format)


def _plot(arguments: argparse.Namespace) -> int:
    from testing.cadence import plot

    survey = Survey(_root(arguments.run))
    try:
        plot.check(arguments.output)
        for item in _items(arguments.run, arguments.pattern, arguments.more):
            survey.add(item)
        survey.close()
        findings = _kept(survey.findings, arguments.ignore)
        plot.draw(survey, findings, arguments.output, arguments.theme)
    except plot.PlotError as error:
        raise _Stop(str(error)) from error
    return KEPT


def _root(path: str) -> str:
    return "/dev/stdin" if path == "-" else path


def _items(path: str, pattern: str | None, more: Sequence[str] = ()) -> Iterator[Item]:
    progress = Progress(path)
    try:
        if more:
            _check_files([path, *more])
            yield from readers.read_together([path, *more], pattern=pattern)
        else:
            yield from readers.read(_root(path), pattern=pattern, progress=progress)
    except ValueError as error:
        raise _Stop(f"--pattern: {error}") from error
    finally:
        progress.clear()


def _check_files(paths: Sequence[str]) -> None:
    for path in paths:
        if not os.path.isfile(path):
            raise _Stop(f"{path}: several runs were named, so each must be a file")
        if paths.count(path) > 1:
            raise _Stop(f"{path}: named twice")


class Progress:
    """Says how far a long read is, on a terminal only."""

    def __init__(self, path: str, patience: float = 1.0) -> None:
        self._path = path
        self._due = time.monotonic() + patience
        self._shown = False
        self._on = sys.stderr.isatty()

    def __call__(self, done: int, total: int) -> None:
        """Takes the bytes read and the bytes there are, 0 if unknown."""
        now = time.monotonic()
        if not self._on or now < self._due:
            return
        self._due = now + 0.2
        self._shown = True
        share = f"{100 * done // total} %" if total else f"{done >> 20} MB"
        print(f"\r\x1b[Kreading {self._path}: {share}", end="", file=sys.stderr)
        sys.stderr.flush()

    def clear(self) -> None:
        """Wipes the line."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr)
            sys.stderr.flush()
        self._shown = False


def _kept(findings: Sequence[Finding], ignored: Sequence[str]) -> list[Finding]:
    return [finding for finding in findings if finding.kind not in ignored]


def _outcome(
    arguments: argparse.Namespace, survey: Survey, findings: Sequence[Finding]
) -> Outcome:
    rules = [kind for kind in IRREGULARITIES if kind not in arguments.ignore]
    return Outcome(
        arguments.command,
        arguments.run,
        survey.events,
        survey.series,
        findings,
        rules,
    )


def _show(outcome: Outcome, format: str) -> int:
    if outcome.command == "describe" and format == "text" and sys.stdout.isatty():
        from testing.cadence.show import terminal

        terminal.show(outcome, sys.stdout)
    else:
        _write(render(outcome, format))
    return VIOLATED if outcome.findings else KEPT


def _write(text: str) -> None:
    """Writes to standard output, whatever its encoding can hold."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


_COMMANDS = {
    "describe": _describe,
    "record": _record,
    "check": _check,
    "diff": _diff,
    "plot": _plot,
}

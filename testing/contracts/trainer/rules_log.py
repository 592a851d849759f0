"""Rules of the log: steps, values, order, format."""

from __future__ import annotations

import itertools
import logging
import math
import re
from collections.abc import Sequence
from typing import Any

from testing.contracts._rules import broken, not_exercised
from testing.contracts.trainer import compare
from testing.contracts.trainer.lab import Lab
from testing.contracts.trainer.logs import ATTEMPT, Line
from testing.contracts.trainer.observe import LOSS, Run
from testing.contracts.trainer.rulebook import RULES
from testing.contracts.trainer.subjects import METRIC

# Metrics of TF-Agents that count interactions, one episode each.
_COUNTERS = (METRIC, "NumberOfEpisodes", "EnvironmentSteps")


@RULES.check("metric-steps")
def _metric_steps(lab: Lab) -> None:
    for run in lab.both():
        # A trainer may have no metrics but those it is given.
        metrics = run.metrics or _given(run)
        if not metrics and not lab.offer.takes("additional_metrics"):
            not_exercised("the trainer logs no metric and takes no additional_metrics")
        if not metrics:
            _no_lines(run, "metric")
        for name, lines in metrics.items():
            _steps(run, name, lines)


def _given(run: Run) -> dict[str, list[Line]]:
    return {name: lines for name, lines in run.series.items() if name == METRIC}


@RULES.check("loss-steps")
def _loss_steps(lab: Lab) -> None:
    for run in lab.both():
        if not run.losses:
            _no_lines(run, LOSS)
        _steps(run, LOSS, run.losses)


def _no_lines(run: Run, what: str) -> None:
    form = "NAME" if what == "metric" else what
    broken(
        f"{run.sizes.calls} INFO records '[step=<int>] {form} = <value>.'",
        "none of that form in the log",
        run.title,
        _missing_hint(run, what),
    )


def _missing_hint(run: Run, what: str) -> str:
    printed = [row for row in run.printed if "=" in row or what.lower() in row.lower()]
    if printed:
        return f"{len(printed)} lines were printed, none logged, as {printed[0]!r}"
    if run.silenced:
        return f"silenced: {run.silenced[0][1]}"
    quiet = [x for x in run.lines if x.name and x.level < logging.INFO]
    if quiet:
        level = logging.getLevelName(quiet[0].level)
        return f"logged at {level}, which nobody sees by default: {quiet[0].text!r}"
    alike = _alike(run, LOSS if what == LOSS else METRIC)
    if alike:
        return f"of another form: {alike.text.splitlines()[0]!r}"
    if what == "metric":
        return "are the metrics given to export_utils.export_metrics?"
    return "is the loss logged after agent.train?"


def _alike(run: Run, name: str) -> Line | None:
    """A line that has the name and some number, or what looks like a step."""
    named = re.compile(rf"(?=.*\d).*{name}", re.IGNORECASE | re.DOTALL)
    lines = [line for line in run.lines if named.match(line.text)]
    lines += [x for x in run.lines if x.name is None and ATTEMPT.match(x.text)]
    return lines[0] if lines else None


def _steps(run: Run, name: str, lines: Sequence[Line]) -> None:
    due = list(range(run.sizes.calls))
    seen = [line.step for line in lines]
    if seen == due:
        return
    expected, found, at = compare.difference(due, seen)
    where = compare.at_line(run, lines[at]) if at < len(lines) else compare.at_end(run)
    broken(
        f"{name} at steps {expected}",
        f"{name} at steps {found}",
        where,
        _steps_hint(run, lines),
    )


def _steps_hint(run: Run, lines: Sequence[Line]) -> str:
    seen = [line.step for line in lines]
    count, runs, batch = run.sizes.calls, run.sizes.runs, run.sizes.batch
    if len(seen) == 2 * count and sorted(seen)[::2] == sorted(seen)[1::2]:
        loggers = ", ".join(sorted({line.logger for line in lines}))
        return f"each line comes twice, from logger(s) {loggers}"
    if len(seen) != count:
        missing = sorted(set(range(count)) - set(seen))
        if missing and len(seen) < count:
            return f"no line for step(s) {compare.some(missing)}: is logging gated?"
        return "lines too many: once for each driver run or train call"
    if len(set(seen)) == 1:
        return "the step never changes: was it captured once, when a closure was made?"
    if seen == list(range(1, count + 1)):
        return "one too high: is the step advanced before it is logged?"
    steps = {b - a for a, b in itertools.pairwise(seen)}
    if steps <= {run.sizes.steps * batch, run.sizes.steps, batch}:
        return "these are environment steps, not the index of the driver run"
    if steps == {0, 1} and runs > 1:
        return "these are loops: the step is loop * A + the run's index"
    return "the step is loop * A + j, counted over all loops"


@RULES.check("metric-values")
def _metric_values(lab: Lab) -> None:
    looked = False
    for run in lab.both():
        for name in _COUNTERS:
            for line in run.series.get(name, ()):
                looked = True
                _counter(run, line)
    if not looked:
        not_exercised(f"none of {', '.join(_COUNTERS)} was logged")


def _counter(run: Run, line: Line) -> None:
    batch = run.sizes.batch
    now = run.count_before("env.step", line.index) * batch
    due = {now, _interactions_after(run, line.step)}
    if line.value in due:
        return
    hint = "is the metric one of the driver's observers?"
    if line.value and line.value == now - run.sizes.steps * batch:
        hint = "one driver run late: is it computed before driver.run() returns?"
    broken(
        f"{line.name} = {now}: interactions so far",
        f"{line.name} = {line.value}",
        compare.at_line(run, line),
        hint,
    )


def _interactions_after(run: Run, step: int) -> int:
    """Interactions after driver run `step`, whenever that is logged."""
    return (step + 1) * run.sizes.steps * run.sizes.batch


@RULES.check("loss-values")
def _loss_values(lab: Lab) -> None:
    looked = False
    for run in lab.both():
        for line in run.losses:
            looked = True
            _loss(run, line)
    if not looked:
        not_exercised("no loss was logged")
    _nan(lab.nan)


def _loss(run: Run, line: Line) -> None:
    calls = [call.loss for call in run.trained]
    latest = run.count_before("agent.train", line.index) - 1
    by_step = line.step if line.step in range(len(calls)) else latest
    due = [calls[i] for i in (by_step, latest) if 0 <= i < len(calls)]
    if any(_same(line.value, loss) for loss in due):
        return
    broken(
        f"loss = {due[0]:.6g}" if due else "no loss before the first train call",
        f"loss = {line.value}",
        compare.at_line(run, line),
        _loss_hint(calls, latest, [other.value for other in run.losses], line.value),
    )


def _loss_hint(
    calls: Sequence[float], latest: int, values: Sequence[Any], value: Any
) -> str:
    if 0 <= latest < len(calls) and math.isnan(calls[latest]):
        return "NaN is replaced before it is logged: log it as it is"
    if not isinstance(value, (int, float)):
        return "no number: log the loss itself, loss_info.loss"
    if len(values) > 2 and _all_same(values[1:], calls):
        return "every loss is one step late: is it logged before agent.train returns?"
    means = [sum(calls[: n + 1]) / (n + 1) for n in range(len(calls))]
    if len(values) > 2 and _all_same(values, means):
        return "each is the mean of all losses so far: log the loss itself"
    return "log loss_info.loss as agent.train returned it, neither smoothed nor scaled"


def _nan(run: Run) -> None:
    # To raise is no way to hide it.
    if run.error is None:
        for line in run.losses:
            _loss(run, line)


@RULES.check("event-order")
def _event_order(lab: Lab) -> None:
    looked = False
    for run in lab.both():
        for name, lines in run.series.items():
            kind = "agent.train" if name == LOSS else "env.step"
            size = 1 if name == LOSS else run.sizes.steps
            # Else a line could be about any of them: see driver-runs, train-calls.
            if _count(run, kind) in (run.sizes.calls * size, len(lines) * size):
                looked = True
                _in_turn(run, lines, kind, size)
    if not looked:
        not_exercised("driver runs and train calls do not fit the lines of the log")


def _count(run: Run, kind: str) -> int:
    return len(run.trained if kind == "agent.train" else run.env_steps)


def _in_turn(run: Run, lines: Sequence[Line], kind: str, size: int) -> None:
    one_each = len(lines) * size == _count(run, kind)
    for number, line in enumerate(lines):
        _placed(run, line, kind, size, number if one_each else line.step)


def _placed(run: Run, line: Line, kind: str, size: int, turn: int) -> None:
    seen = run.count_before(kind, line.index)
    if seen == (turn + 1) * size:
        return
    what = "train call" if kind == "agent.train" else "driver run"
    late = seen > (turn + 1) * size
    broken(
        f"'[step={line.step}] {line.name}' right after {what} {turn}",
        f"it comes {'after' if late else 'before'} {what} "
        f"{seen // size - 1 if late else seen // size}",
        compare.at_line(run, line),
        "logged too late: log after each one, not after all of the loop"
        if late
        else "logged too early: log after it has returned",
    )


@RULES.check("additional-metrics")
def _additional_metrics(lab: Lab) -> None:
    lab.need("additional_metrics")
    for run in lab.both():
        if not run.metrics:
            not_exercised("the trainer logs no default metric, see metric-steps")
        lines = run.series.get(METRIC, [])
        due = [line.step for line in next(iter(run.metrics.values()))]
        seen = [line.step for line in lines]
        if seen == due:
            continue
        expected, found, at = compare.difference(due, seen)
        place = compare.at_line(run, lines[at]) if at < len(lines) else run.title
        broken(
            f"{METRIC}, as the default metrics, at steps {expected}",
            f"{METRIC} at steps {found}",
            place,
            "are additional_metrics observed and exported with the default ones?",
        )


@RULES.check("log-format")
def _log_format(lab: Lab) -> None:
    for run in lab.both():
        for line in run.lines:
            _formatted(run, line)
        if run.silenced:
            index, reason = run.silenced[0]
            broken(
                "INFO records get through during the whole run",
                reason,
                f"{run.title}{compare.around(run, index - 1)}",
                "leave levels and logging.disable to the program",
            )


def _formatted(run: Run, line: Line) -> None:
    if line.failed:
        broken(
            "a record that can be formatted",
            line.text,
            compare.at_line(run, line),
            "do the arguments fit the % signs? logging prints this to stderr only",
        )
    if line.copies and line.name is not None:
        broken(
            f"'{line.text}' once on the console",
            f"{line.copies + 1} times",
            compare.at_line(run, line),
            f"the trainer adds {line.copies} handler(s): leave that to the program",
        )
    if line.name is None and line.level >= logging.INFO and ATTEMPT.match(line.text):
        broken(
            "'[step=<int>] <name> = <value>.'",
            repr(line.text.splitlines()[0]),
            compare.at_line(run, line),
            "log through tf_agents.metrics.export_utils, with an int as step",
        )


def _all_same(seen: Sequence[Any], due: Sequence[float]) -> bool:
    return all(map(_same, seen, due))


def _same(seen: Any, due: float) -> bool:
    if not isinstance(seen, (int, float)):
        return False
    if math.isnan(due):
        return math.isnan(seen)
    return bool(seen == due or math.isclose(seen, due, rel_tol=1e-5, abs_tol=1e-7))

"""Rules of the data flow: environment, buffer, agent."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

from testing.contracts._rules import broken, not_exercised
from testing.contracts.trainer import compare
from testing.contracts.trainer.buffers import SeenBuffer
from testing.contracts.trainer.lab import Lab
from testing.contracts.trainer.observe import Run
from testing.contracts.trainer.rulebook import RULES
from testing.fakes.values import TrainCall


@RULES.check("driver-runs")
def _driver_runs(lab: Lab) -> None:
    for run in lab.both():
        sizes = run.sizes
        if len(run.env_steps) == sizes.env_steps:
            continue
        seen = [count for kind, count in run.phases if kind == "env.step"]
        due = [sizes.runs * sizes.steps] * sizes.loops
        expected, found, at = compare.difference(due, seen)
        broken(
            f"{sizes.env_steps} steps, loop by loop: {expected}",
            f"{len(run.env_steps)} steps, loop by loop: {found}",
            compare.at_event(run, "env.step", sum(seen[: at + 1]) - 1),
            _driver_hint(run),
        )


def _driver_hint(run: Run) -> str:
    sizes, seen = run.sizes, len(run.env_steps)
    per_run = seen / sizes.calls
    if per_run == sizes.steps * sizes.batch:
        return (
            "batch_size times too many: is num_steps, which sums over all "
            "environments, taken per environment?"
        )
    if per_run == -(-sizes.steps // sizes.batch):
        return (
            "a driver's num_steps sums over all environments: "
            "pass steps_per_loop * batch_size"
        )
    if per_run == sizes.steps**2:
        return "is the driver run steps_per_loop times, with num_steps too?"
    if seen > sizes.env_steps and (seen - sizes.env_steps) % sizes.steps == 0:
        extra = (seen - sizes.env_steps) // sizes.steps
        return f"{extra} driver run(s) too many: before, between or after the loops?"
    if seen < sizes.env_steps and (sizes.env_steps - seen) % sizes.steps == 0:
        return f"{(sizes.env_steps - seen) // sizes.steps} driver run(s) too few"
    return "do num_steps and the number of driver runs fit steps_per_loop and A?"


@RULES.check("train-calls")
def _train_calls(lab: Lab) -> None:
    for run in lab.both():
        sizes = run.sizes
        if len(run.trained) != sizes.calls:
            _wrong_calls(run)
        if run.train_counter != run.train_calls:
            broken(
                f"agent.train_step_counter at {run.train_calls} "
                f"after {run.train_calls} train calls",
                f"at {run.train_counter}",
                f"{run.title}, its end",
                "agent.train advances its counter by itself: does the trainer too?",
            )


def _wrong_calls(run: Run) -> None:
    sizes, calls = run.sizes, len(run.trained)
    seen = [count for kind, count in run.phases if kind == "agent.train"]
    expected, found, at = compare.difference([sizes.runs] * sizes.loops, seen)
    hint = "one train call for each driver run"
    if sizes.runs > 1 and calls == sizes.loops:
        hint = "one call a loop: is A left out when training?"
    elif calls > sizes.calls and calls % sizes.calls == 0:
        hint = f"{calls // sizes.calls} calls for each batch: epochs?"
    broken(
        f"{sizes.calls} calls, loop by loop: {expected}",
        f"{calls} calls, loop by loop: {found}",
        compare.at_event(run, "agent.train", sum(seen[: at + 1]) - 1),
        hint,
    )


@RULES.check("experience-shape")
def _experience_shape(lab: Lab) -> None:
    for run in lab.both():
        due = (run.sizes.batch, run.sizes.steps)
        for number, call in enumerate(_some_trained(run)):
            if call.shape != due:
                broken(
                    f"outer shape {due}: [batch_size, steps_per_loop]",
                    f"outer shape {call.shape}",
                    compare.at_event(run, "agent.train", number),
                    _shape_hint(call.shape, due),
                )


def _shape_hint(seen: tuple[int, ...], due: tuple[int, ...]) -> str:
    if seen == due[::-1]:
        return "the axes are swapped: [time, batch]?"
    if seen[0] != due[0]:
        return "rows are environments: is sample_batch_size the environment's?"
    return "is num_steps, the time dimension, steps_per_loop when reading the buffer?"


@RULES.check("exactly-once")
def _exactly_once(lab: Lab) -> None:
    for run in lab.both():
        trained = _trained_serials(run)
        collected = Counter(s for step in run.env_steps for s in step.serials)
        lost = collected - trained
        repeated = trained - collected
        if not lost and not repeated:
            continue
        late = min([*lost, *repeated])
        broken(
            f"{collected.total()} interactions, each trained on once",
            f"{lost.total()} lost, {repeated.total()} too many; "
            f"lost: {compare.some(sorted(lost)) or 'none'}; "
            f"repeated: {compare.some(sorted(repeated)) or 'none'}",
            compare.at_event(run, "agent.train", _call_of(run, late)),
            _once_hint(run, lost, repeated),
        )


def _once_hint(run: Run, lost: Counter[int], repeated: Counter[int]) -> str:
    if not run.trained:
        return "agent.train is never called"
    if not lost:
        return "the same batch is trained on several times"
    if not repeated:
        return "data is overwritten, dropped, or never read: how large is the buffer?"
    return (
        "some data is trained on again where other data was due: is the data set "
        "read on from batch to batch, and the buffer cleared after each loop?"
    )


def _call_of(run: Run, serial: int) -> int:
    """The train call that was, or should have been, trained on an interaction."""
    for number, step in enumerate(run.env_steps):
        if serial in step.serials:
            return number // run.sizes.steps
    return 0


@RULES.check("in-order")
def _in_order(lab: Lab) -> None:
    for run in lab.both():
        places = {
            serial: (number, row)
            for number, step in enumerate(run.env_steps)
            for row, serial in enumerate(step.serials)
        }
        before = -1
        _some_trained(run)
        for loop, number, call in _by_loop(run):
            if call.shape != (run.sizes.batch, run.sizes.steps):
                not_exercised(
                    "rows and time cannot be told apart, see experience-shape"
                )
            times = _times(run, number, call, places)
            before = before if loop else -1
            if times and times[0] < before:
                _wrong_order(run, number, times[0], before)
            before = times[0] if times else before
            _of_its_own(run, number, call)


def _of_its_own(run: Run, number: int, call: TrainCall) -> None:
    """Each observation stands with the action taken on it and what that earned."""
    for what, kept, seen in (
        ("action", run.actions, call.actions),
        ("reward", run.rewards, call.rewards),
    ):
        for serial, value in _pairs(call.serials, seen):
            due = kept.get(serial, value)
            if not math.isclose(value, due, rel_tol=1e-5, abs_tol=1e-6):
                broken(
                    f"{what} {due:.6g} with interaction {serial}",
                    f"{what} {value:.6g}{_whose(kept, value)}",
                    compare.at_event(run, "agent.train", number),
                    f"is the {what} that of another step or row, or changed?",
                )


def _whose(kept: dict[int, float], value: float) -> str:
    """The interaction a value belongs to, where there is only one."""
    owners = [serial for serial, other in kept.items() if other == value]
    return f", that of interaction {owners[0]}" if len(owners) == 1 else ""


def _pairs(serials: Any, values: Any) -> Iterator[tuple[int, float]]:
    """Each interaction of an experience with its value; nothing without serials."""
    for row, cells in zip(serials or (), values, strict=False):
        yield from zip(row, cells, strict=False)


def _by_loop(run: Run) -> Iterator[tuple[bool, int, TrainCall]]:
    """Train calls; the flag tells whether one goes on in the loop of the last."""
    number = 0
    for kind, count in run.phases:
        if kind == "agent.train":
            for position in range(count):
                yield position > 0, number, run.trained[number]
                number += 1


def _times(
    run: Run, number: int, call: TrainCall, places: dict[int, tuple[int, int]]
) -> list[int]:
    """Steps of the environment that an experience holds, if its rows are sound."""
    where = compare.at_event(run, "agent.train", number)
    for row in call.serials or ():
        found = [places[serial] for serial in row if serial in places]
        if len({column for _, column in found}) > 1:
            broken(
                "in each row of an experience one environment's interactions",
                f"interactions {compare.some(row)} in one row, "
                f"of environments {compare.some(c for _, c in found)}",
                where,
                "are batch and time mixed by a reshape, or rows by a shuffle?",
            )
        steps = [step for step, _ in found]
        if any(b - a != 1 for a, b in itertools.pairwise(steps)):
            broken(
                "in each row one step after the other",
                f"steps {compare.some(steps)} of the environment in one row",
                where,
                "is the data set shuffled, or reversed?",
            )
    rows = [places[row[0]][0] for row in call.serials or () if row[0] in places]
    return [min(rows)] if rows else []


def _wrong_order(run: Run, number: int, seen: int, before: int) -> None:
    steps = run.sizes.steps
    broken(
        f"batch {number} of driver run {before // steps} or later",
        f"of driver run {seen // steps}",
        compare.at_event(run, "agent.train", number),
        "are the batches read in reverse, or sampled at random?",
    )


@RULES.check("collect-before-train")
def _collect_before_train(lab: Lab) -> None:
    for run in lab.both():
        if not run.trained:
            not_exercised("agent.train was never called")
        turns = [count for kind, count in run.phases if kind == "agent.train"]
        if len(turns) == run.sizes.loops:
            continue
        expected, found, at = compare.difference(
            [run.sizes.runs] * run.sizes.loops, turns
        )
        broken(
            f"{run.sizes.loops} turns of collecting, then training; "
            f"train calls in each: {expected}",
            f"{len(turns)} turns; train calls in each: {found}",
            compare.at_event(run, "agent.train", sum(turns[:at])),
            "all A driver runs of a loop come first, then its A train calls",
        )


@RULES.check("buffer-size")
def _buffer_size(lab: Lab) -> None:
    looked = False
    for run in lab.both():
        for buffer in run.buffers:
            if buffer.used:
                looked = True
                _capacity(run, buffer)
                _emptied(run, buffer)
    if not looked:
        not_exercised("no replay buffer of TF-Agents was seen in use")


def _capacity(run: Run, buffer: SeenBuffer) -> None:
    sizes = run.sizes
    due, seen = sizes.steps * sizes.runs * sizes.batch, buffer.capacity()
    if seen != due:
        broken(
            f"capacity {due}: {sizes.steps * sizes.runs} for each of "
            f"{sizes.batch} environments",
            f"capacity {seen} of {buffer.name}",
            run.title,
            "larger hides a missing clear(), smaller loses data: "
            "max_length is steps_per_loop * A",
        )


def _emptied(run: Run, buffer: SeenBuffer) -> None:
    hint = "is clear() called at the end of each loop?"
    turns = [count for kind, count in run.phases if kind == "agent.train"]
    # Else loops cannot be told apart, see collect-before-train.
    if len(turns) == run.sizes.loops:
        for steps, frames in buffer.frames:
            if frames > steps * run.sizes.batch:
                broken(
                    f"{steps * run.sizes.batch} frames after {steps} steps of a loop",
                    f"{frames} frames in {buffer.name}",
                    run.title,
                    hint,
                )
    if buffer.left:
        broken(
            "an empty buffer at the end",
            f"{buffer.left} frames in {buffer.name}",
            compare.at_end(run),
            hint,
        )


def _trained_serials(run: Run) -> Counter[int]:
    return Counter(
        serial for call in run.trained for row in call.serials or () for serial in row
    )


def _some_trained(run: Run) -> list[TrainCall]:
    if not run.trained:
        not_exercised("agent.train was never called")
    return run.trained

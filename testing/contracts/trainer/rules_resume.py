"""Rules of resuming: after a run that ended, and after one that was killed."""

from __future__ import annotations

from testing.contracts._rules import broken, not_exercised
from testing.contracts.trainer import compare, disk, killer
from testing.contracts.trainer.crash import Crash
from testing.contracts.trainer.lab import MORE, Lab
from testing.contracts.trainer.observe import LOSS, Run
from testing.contracts.trainer.rulebook import RULES
from testing.contracts.trainer.subjects import AGENT_MARK, METRIC


@RULES.check("resume-continues")
def _resume_continues(lab: Lab) -> None:
    lab.need("root_dir", "resume_training_loops")
    first, then = lab.ended(lab.main), lab.resumed
    _went_on(then)
    _loops(lab, then)
    for name in first.series:
        _steps_go_on(first, then, name)
    _state_goes_on(lab, first, then)
    _resized(first, lab.resized)


def _went_on(run: Run) -> None:
    if run.error is not None:
        broken(
            "it goes on",
            _error(run.error),
            compare.at_end(run),
            "can a second process restore what the first one saved?",
        )


def _loops(lab: Lab, then: Run) -> None:
    per_loop, seen = lab.train_calls_per_loop(), len(then.trained)
    due = MORE * per_loop
    if seen == due:
        return
    hint = "do training_loops count from the very first run when resuming?"
    if seen == then.sizes.loops * per_loop:
        hint = "it starts anew: is what is restored used to find the first loop?"
    elif seen == due + per_loop:
        hint = "one loop too many: the checkpoint counts finished loops, go on there"
    elif seen == due - per_loop:
        hint = "one loop too few: go on with the loop after the last finished one"
    elif seen == 0:
        hint = "are training_loops taken for what is still to do?"
    broken(
        f"{MORE} more loops: {due} train calls",
        f"{seen} train calls",
        compare.at_end(then),
        hint,
    )


def _steps_go_on(first: Run, then: Run, name: str) -> None:
    before = [line.step for line in first.series[name]]
    lines = then.series.get(name, [])
    # Where steps are wrong in one go, there is nothing to go on from.
    if before != list(range(before[0], before[0] + len(before))):
        return
    if len(before) != first.sizes.calls:
        return
    start = before[-1] + 1
    due = list(range(start, start + MORE * first.sizes.runs))
    seen = [line.step for line in lines]
    if seen == due:
        return
    expected, found, at = compare.difference(due, seen)
    where = compare.at_line(then, lines[at]) if at < len(lines) else then.title
    hint = "steps go on from the last one of the first run"
    if seen and seen[0] == before[0]:
        hint = "steps start again: is the loop's index counted from the first run?"
    broken(f"{name} at steps {expected}", f"{name} at steps {found}", where, hint)


def _state_goes_on(lab: Lab, first: Run, then: Run) -> None:
    due = first.train_calls + len(then.trained)
    if then.train_calls != due:
        broken(
            f"the agent trained {due} times, in both runs together",
            f"{then.train_calls} times",
            compare.at_end(then),
            "is the agent in the checkpoint, and restored before the first loop?",
        )
    batch = first.sizes.batch
    totals = [n + len(then.env_steps) * batch for n in first.collected]
    # A metric that is wrong in one run is another rule's matter.
    sound = first.metric_total in first.collected
    if METRIC in then.series and sound and then.metric_total not in totals:
        broken(
            f"{METRIC} = {totals[0]}, of both runs together",
            f"{METRIC} = {then.metric_total}",
            compare.at_end(then),
            "are the metrics in the checkpoint, and restored before the first loop?",
        )


def _resized(first: Run, run: Run) -> None:
    """Another `steps_per_loop` may be refused, but no step may come again."""
    if run.error is not None:
        return
    for name in first.series:
        before = {line.step for line in first.series[name]}
        # A step that never changes is another rule's matter.
        if len(before) != first.sizes.calls:
            continue
        again = [line for line in run.series.get(name, ()) if line.step in before]
        if again:
            broken(
                f"no step of {name} again, also with another steps_per_loop",
                f"again: {compare.some(line.step for line in again)}",
                compare.at_line(run, again[0]),
                "finished loops are derived from environment steps: "
                "count them in the checkpoint",
            )


@RULES.check("crash-resumes")
def _crash_resumes(lab: Lab) -> None:
    lab.need("root_dir", "resume_training_loops")
    if not lab.ended(lab.main).losses:
        not_exercised("no loss is logged, so that no step can be missed")
    if not lab.crashes:
        not_exercised("the run never came to a point at which to crash")
    for crashed in lab.crashes:
        saved = _saved_train_calls(crashed)
        then = lab.recovered(crashed)
        _went_on(then)
        for name in lab.main.series:
            _all_there(lab, name, crashed, then)
        _all_learnt(lab, crashed, saved, then)


def _all_there(lab: Lab, name: str, crashed: Crash, then: Run) -> None:
    usual = [line.step for line in lab.main.series[name]]
    if len(set(usual)) != lab.sizes.calls:
        return  # Steps that are wrong without a crash are another rule's matter.
    before = crashed.logged.get(name, [])
    seen = [line.step for line in then.series.get(name, ())]
    lost = sorted(set(usual) - set(before) - set(seen))
    text = f"before: {compare.some(before) or 'none'}; "
    text += f"then: {compare.some(seen) or 'none'}"
    if lost:
        broken(
            f"{name} at all steps {compare.some(usual)}",
            f"{text}; lost: {compare.some(lost)}",
            _after(then, crashed),
            "is a loop counted as finished, or skipped, before it is saved?",
        )
    first = _unfinished_loop(lab, crashed) * lab.sizes.runs
    finished = usual[:first]
    again = [step for step in seen if step in finished]
    beyond = [step for step in seen if step not in usual]
    if again or beyond:
        broken(
            f"{name} goes on at step {usual[first]}, the unfinished loop's",
            f"{text}; " + (f"again: {compare.some(again)}" if again else "more steps"),
            _after(then, crashed),
            "save a checkpoint after each loop, and go on after the last one saved",
        )


def _unfinished_loop(lab: Lab, crashed: Crash) -> int:
    """The loop in which it crashed; a loop is unfinished until it is saved."""
    if crashed.point.kind != killer.SAVE:
        return 1
    # Not all save just once a loop.
    return max(0, len(crashed.logged.get(LOSS, ())) - 1) // lab.sizes.runs


def _saved_train_calls(crashed: Crash) -> int | None:
    """Train calls of the agent in the latest checkpoint, if it is in there."""
    checkpoint = disk.latest_checkpoint(crashed.root)
    found = checkpoint and checkpoint.near(AGENT_MARK)
    return found[1] if found else None


def _all_learnt(lab: Lab, crashed: Crash, saved: int | None, then: Run) -> None:
    """Loops that are counted as finished must be in the agent that was saved."""
    due = len(lab.main.trained)
    if saved is None or saved + len(then.trained) >= due:
        return
    broken(
        f"an agent trained {due} times in the end",
        f"{saved} times in the checkpoint and {len(then.trained)} times after it",
        _after(then, crashed),
        "finished loops are counted apart from the checkpoint: count them in it",
    )


def _after(then: Run, crashed: Crash) -> str:
    return f"{then.title}; crashed {crashed.point.text}: {crashed.how}"


def _error(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"raised {type(error).__name__}: {text[0] if text else ''}"

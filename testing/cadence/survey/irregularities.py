"""Irregularities: what is off in a run, with no contract to compare it with.

docs/cadence.md gives the precise meaning of each.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from testing.cadence.chunks import Declared, Problem
from testing.cadence.findings import Finding, Spot, Tally
from testing.cadence.survey.beats import Beat
from testing.cadence.survey.track import INDEXES

# A series may start this many beats after its partners and still be taken for
# one whose head is missing; a later one is meant to start late.
HEAD_BEATS = 3
HEAD_SHARE = 0.1
_EVALUATION = re.compile(
    r"(?<![a-z])(?:eval|val|valid|validation|evaluation|test)(?![a-z])", re.I
)
# stable-baselines3 writes these one row late or not at all, by design.
_SB3_MARKS = frozenset({"time/iterations", "time/fps", "time/total_timesteps"})
_SB3_LATE = ("train/", "rollout/", "eval/")
# Not a number by definition while all returns are equal.
_CHECKPOINT = re.compile(r"checkpoint-\d+$")
_MAY_BE_NAN = ("explained_variance",)


_PROBLEM_HINTS = {
    "double-line": "Two handlers on one logger?",
    "repeated-header": "A second run appended to the file?",
    "ragged-row": "Written by two processes, or have the columns changed?",
    "truncated": "Still being written, or was its writer killed?",
    "corrupt": "Damaged on disk or on its way, or written by two processes?",
    "empty": "Did the run end before it logged, or log elsewhere?",
}


def of_problem(problem: Problem) -> Finding:
    """What a reader found, as a finding."""
    source = problem.source
    spot = Spot(None, source.path, source.place, source.unit)
    seen = problem.message
    if problem.count > 1:
        seen += f" The first of {problem.count:,} places."
    hint = _PROBLEM_HINTS.get(problem.kind, "")
    return Finding(problem.kind, seen, spot=spot, count=problem.count, hint=hint)


def of_run(beats: Sequence[Beat]) -> list[Finding]:
    """All that is off in the series of one run."""
    names = {beat.bare for beat in beats}
    sb3 = bool(names & _SB3_MARKS)
    found = [finding for beat in beats for finding in _of_series(beat)]
    found += _gaps(beats, sb3)
    for partners in _partners(beats):
        found += _heads_and_tails(partners, sb3)
    return found


def _of_series(beat: Beat) -> Iterator[Finding]:
    if _stood_still(beat):
        yield _frozen_throughout(beat)
    else:
        yield from _tallied(beat, "double-line", beat.track.doubles, _double)
        repeats = beat.track.repeats
        if not _evaluated_again(beat):
            yield from _tallied(beat, "duplicate-step", repeats.duplicates, _duplicate)
        yield from _tallied(beat, "frozen-step", repeats.frozen, _frozen)
    yield from _tallied(beat, "step-back", beat.track.backs, _back)
    if not beat.bare.endswith(_MAY_BE_NAN):
        yield from _tallied(beat, "non-finite", beat.track.nonfinite, _nonfinite)


def _tallied(
    beat: Beat,
    kind: str,
    tally: Tally,
    words: Callable[[Beat, Tally, Spot], tuple[str, str]],
) -> Iterator[Finding]:
    if tally.count and tally.first is not None:
        seen, hint = words(beat, tally, tally.first)
        yield Finding(kind, seen, beat.name, tally.first, tally.count, hint)


def _stood_still(beat: Beat) -> bool:
    still = beat.first == beat.last and not beat.track.backs.count
    return beat.count > 2 and still and not beat.track.intervals.total


def _evaluated_again(beat: Beat) -> bool:
    """Whether the one repeat is an evaluation after training has ended."""
    again = beat.track.repeats.duplicates
    hugging_face = beat.kind == "summary" or beat.track.format == "huggingface"
    return (
        hugging_face
        and again.count == 1
        and again.first is not None
        and again.first.step == beat.last == beat.track.high
        and bool(_EVALUATION.search(beat.bare))
    )


def _frozen_throughout(beat: Beat) -> Finding:
    return Finding(
        "frozen-step",
        f"{beat.name}: all {beat.count:,} values are at step {beat.first}.",
        beat.name,
        beat.track.start,
        beat.count - 1,
        "Is the step counter never incremented, or never passed on?",
    )


def _double(beat: Beat, tally: Tally, spot: Spot) -> tuple[str, str]:
    seen = f"{beat.name} is written twice at step {spot.step}, {spot.short}"
    return seen + _more(tally), "Two handlers or two writers for one logger?"


def _duplicate(beat: Beat, tally: Tally, spot: Spot) -> tuple[str, str]:
    seen = f"{beat.name} has a second value at step {spot.step}, {spot.short}"
    if 2 * tally.count >= beat.count - 1 and tally.count > 1:
        return seen + _more(tally), "Do two processes write into one file?"
    return seen + _more(tally), "Is it logged twice per step, or the step set late?"


def _frozen(beat: Beat, tally: Tally, spot: Spot) -> tuple[str, str]:
    seen = f"{beat.name} stays at step {spot.step} from {spot.short} on"
    return seen + _more(tally, "value"), "Is the step counter not incremented?"


def _back(beat: Beat, tally: Tally, spot: Spot) -> tuple[str, str]:
    high = beat.track.back_from
    seen = f"{beat.name}: steps fall back from {high} to {spot.step} at {spot.short}"
    return seen + _more(tally), _why_back(beat, spot)


def _why_back(beat: Beat, spot: Spot) -> str:
    if beat.track.back_file:
        return "Did the run resume from an older checkpoint, or are these two runs?"
    if spot.step is not None and spot.step <= beat.first:
        return "A restart without resume, or two runs in one file?"
    return "Resumed from an older checkpoint, or written out of order?"


def _nonfinite(beat: Beat, tally: Tally, spot: Spot) -> tuple[str, str]:
    seen = f"{beat.name} is not finite at step {spot.step}, {spot.short}"
    return seen + _more(tally, "value"), "Diverged, or divided by zero?"


def _more(tally: Tally, noun: str = "place") -> str:
    return "." if tally.count == 1 else f" ({tally.count:,} {noun}s in all)."


def _gaps(beats: Sequence[Beat], sb3: bool) -> Iterator[Finding]:
    late = [beat for beat in beats if sb3 and beat.bare.startswith("train/")]
    for beat in beats:
        gap = beat.track.intervals.gap()
        # With an evaluation callback sb3 moves a whole row of train/ values.
        if not gap or (len(late) > 1 and beat in late and _all_miss(late, gap.before)):
            continue
        missing = gap.before + (beat.every or 0)
        steps = "step is" if gap.steps == 1 else "steps are"
        seen = (
            f"{beat.name} jumps from step {gap.before} to {gap.at.step} at "
            f"{gap.at.short}; {gap.steps:,} {steps} missing"
        )
        more = f" at {gap.places:,} places." if gap.places > 1 else "."
        spot = gap.at._replace(step=missing)
        hint = "A value not logged, or lines lost?"
        yield Finding("gap", seen + more, beat.name, spot, gap.places, hint)


def _all_miss(beats: Sequence[Beat], before: int) -> bool:
    gaps = [beat.track.intervals.gap() for beat in beats]
    return all(gap is not None and gap.before == before for gap in gaps)


def _partners(beats: Sequence[Beat]) -> list[list[Beat]]:
    """Groups of even series of one writer that share interval and phase."""
    groups: dict[tuple[int, int, str], list[Beat]] = {}
    for beat in beats:
        if beat.every and not beat.track.backs.count and beat.bare not in INDEXES:
            key = (beat.every, beat.first % beat.every, beat.writer)
            groups.setdefault(key, []).append(beat)
    return [group for group in groups.values() if len(group) > 1]


def _heads_and_tails(partners: Sequence[Beat], sb3: bool) -> Iterator[Finding]:
    """Series that end, or start, inside the span of the widest."""
    widest = max(partners, key=lambda beat: beat.last - beat.first)
    if widest.count < 3:
        return
    for beat in partners:
        # Both ends shifted alike is another way to count, not a loss.
        if beat.first > widest.first and beat.last <= widest.last:
            late = sb3 and beat.bare.startswith(_SB3_LATE)
            if not late and not _starts_late(beat, widest, partners):
                yield _head(beat, widest)
        if beat.last < widest.last and beat.first >= widest.first:
            yield _tail(beat, widest)


def _starts_late(beat: Beat, widest: Beat, partners: Sequence[Beat]) -> bool:
    """Whether it is natural that `beat` starts after `widest`."""
    beats = (beat.first - widest.first) // (beat.every or 1)
    if beats > max(HEAD_BEATS, HEAD_SHARE * widest.count):
        return True
    with_it = [other for other in partners if other.first == beat.first]
    if beats > 1 and len(with_it) > 1:
        return True
    early = [other for other in partners if other.first < beat.first]
    evaluated = all(_EVALUATION.search(other.name) for other in early)
    return evaluated and not _EVALUATION.search(beat.name)


def _head(beat: Beat, widest: Beat) -> Finding:
    return Finding(
        "missing-head",
        f"{beat.name} starts at step {beat.first}, {beat.track.start.short}; "
        f"{widest.name}, of the same beat, at {widest.first}.",
        beat.name,
        beat.track.start._replace(step=widest.first),
        (beat.first - widest.first) // (beat.every or 1),
        "Is the first value not logged?",
    )


def _tail(beat: Beat, widest: Beat) -> Finding:
    return Finding(
        "missing-tail",
        f"{beat.name} ends at step {beat.last}, {beat.track.end.short}; "
        f"{widest.name}, of the same beat, at {widest.last}.",
        beat.name,
        beat.track.end._replace(step=beat.last + (beat.every or 0)),
        (widest.last - beat.last) // (beat.every or 1),
        "Stopped within a loop, not flushed, or still running?",
    )


def of_declared(
    declared: Iterable[Declared], beats: Sequence[Beat]
) -> Iterator[Finding]:
    """Compares what files declare with what was logged in them."""
    files: dict[str, dict[str, int]] = {}
    for one in declared:
        files.setdefault(one.path, {})[one.name] = one.value
    for path, said in files.items():
        mine = [beat for beat in beats if beat.track.start.path == path]
        for name, series in (("logging_steps", "loss"), ("eval_steps", "eval_loss")):
            if name in said:
                yield from _declared_every(name, said[name], series, mine)
        yield from _declared_end(said, mine)
        yield from _declared_save(said, path)


def _declared_every(
    name: str, every: int, series: str, beats: Sequence[Beat]
) -> Iterator[Finding]:
    beat = next((beat for beat in beats if beat.bare == series), None)
    if beat is None or beat.every == every or beat.count < 2:
        return
    if beat.count == 2 and beat.first == 1:
        return  # logging_first_step: no beat yet
    real = "irregularly" if beat.every is None else f"every {beat.every} steps"
    yield Finding(
        "declared-cadence",
        f"{name} is {every}, but {beat.name} is logged {real}, "
        f"from {beat.track.start.short} on.",
        beat.name,
        beat.track.start,
        hint="Was the run resumed with other arguments, or the file edited?",
        expected=f"{beat.name} every {every} steps",
    )


def _declared_end(said: dict[str, int], beats: Sequence[Beat]) -> Iterator[Finding]:
    """No step is later than the state's own, and no beat before it is missing."""
    # A state on the way has fewer steps than max_steps; so has one that stopped
    # early. More it cannot have.
    for name in ("max_steps", "global_step"):
        late = [b for b in beats if name in said and b.track.high > said[name]]
        if late:
            yield _too_late(name, said[name], late)
            return
    every, end = said.get("logging_steps", 0), said.get("global_step", 0)
    loss = next((beat for beat in beats if beat.bare == "loss"), None)
    if loss and loss.every == every and end - loss.last >= every:
        yield Finding(
            "declared-cadence",
            f"global_step is {end}, but loss, logged every {every} steps, ends at "
            f"step {loss.last}, {loss.track.end.short}.",
            loss.name,
            loss.track.end._replace(step=loss.last + every),
            (end - loss.last) // every,
            "Were records lost?",
            expected=f"loss up to step {end // every * every}",
        )


def _too_late(name: str, most: int, late: Sequence[Beat]) -> Finding:
    beat = late[0]
    return Finding(
        "declared-cadence",
        f"{name} is {most}, but {beat.name} goes on to step {beat.track.high}, "
        f"{beat.track.end.short}.",
        beat.name,
        beat.track.end,
        len(late),
        "Was the run resumed with other arguments, or the file edited?",
        expected=f"no step above {most}",
    )


def _declared_save(said: dict[str, int], path: str) -> Iterator[Finding]:
    """A checkpoint is saved at a multiple of save_steps, or at the end."""
    step, every = said.get("global_step"), said.get("save_steps")
    saved = _CHECKPOINT.search(os.path.dirname(os.path.abspath(path)))
    if step is None or every is None or not saved:
        return
    if step % every and step != said.get("max_steps"):
        yield Finding(
            "declared-cadence",
            f"save_steps is {every}, but this checkpoint is of step {step}.",
            spot=Spot(step, path),
            hint="Saved by hand, or resumed with other arguments?",
            expected=f"checkpoints every {every} steps",
        )

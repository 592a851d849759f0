"""What differs between the beats of two runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from testing.cadence.findings import Finding
from testing.cadence.survey import Survey
from testing.cadence.survey.beats import Beat

RULE = "same-beat"
CONTRACT = "Both runs log the same series at the same steps."
_FIELDS = ("first", "every", "last", "count")


def differences(before: Survey, after: Survey) -> list[Finding]:
    """One finding for each series that differs, in the order of the first run."""
    old = {beat.name: beat for beat in before.series}
    new = {beat.name: beat for beat in after.series}
    names = list(dict.fromkeys([*old, *new]))
    found = [_compare(old.get(name), new.get(name)) for name in names]
    return [
        dataclasses.replace(one, contract=CONTRACT) for one in found if one is not None
    ]


def _compare(old: Beat | None, new: Beat | None) -> Finding | None:
    if old is None and new is not None:
        words = f"{new.name} is logged in the second run only."
        return Finding(RULE, words, new.name, new.track.start)
    if old is not None and new is None:
        words = f"{old.name} is logged in the first run only."
        return Finding(RULE, words, old.name, old.track.start)
    if old is None or new is None or old.track.digest == new.track.digest:
        return None
    seen = "; ".join(_fields(old, new)) or _within(old, new)
    return Finding(
        RULE, f"{new.name}: {seen}.", new.name, new.track.start, expected=_words(old)
    )


def _fields(old: Beat, new: Beat) -> Iterator[str]:
    for field in _FIELDS:
        one, two = getattr(old, field), getattr(new, field)
        if one != two:
            yield f"{field} was {_shown(one)}, is {_shown(two)}"


def _shown(value: int | None) -> str:
    return "none" if value is None else str(value)


def _within(old: Beat, new: Beat) -> str:
    """The first step that differs, where it is known."""
    pairs = zip(old.track.head, new.track.head, strict=False)
    for number, (one, two) in enumerate(pairs, 1):
        if one != two:
            return f"value {number} was at step {one}, is at {two}"
    return "other steps in between"


def _words(beat: Beat) -> str:
    every = "" if beat.every is None else f", every {beat.every}"
    times = "once" if beat.count == 1 else f"{beat.count:,} times"
    return f"{beat.name} {times}, from {beat.first} to {beat.last}{every}"

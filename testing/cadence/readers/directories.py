"""Finds the files of the run that a directory holds.

Nothing outside the directory is opened: symbolic links are passed over.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

_DEEPEST = 8
_MOST = 10_000
_EVENTS = re.compile(r"events\.out\.tfevents\.(\d+)\.|tfevents")
_LOGS = re.compile(
    r"(?:progress|metrics)\.csv|progress\.json|.*\.(?:jsonl|ndjson|log)"
    r"|.*\.log\.INFO\..*",
    re.I,
)
_STATE = "trainer_state.json"
_CHECKPOINT = re.compile(r"checkpoint-(\d{1,18})$")


def files(root: str) -> list[str]:
    """The files of a run, those of one directory in the order they were begun.

    These are event files, the tables and states of known names, JSON lines,
    and `*.log`. Of the trainer states only the last is read: it has all.
    """
    found = list(_walk(root, _DEEPEST))[:_MOST]
    events = [path for path in found if _EVENTS.search(os.path.basename(path))]
    logs = [path for path in found if _LOGS.fullmatch(os.path.basename(path))]
    states = [path for path in found if os.path.basename(path) == _STATE]
    return [*sorted(logs), *_last_states(states), *sorted(events, key=_begun)]


def _walk(directory: str, depth: int) -> Iterator[str]:
    try:
        with os.scandir(directory) as entries:
            ordered = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in ordered:
        if entry.is_file(follow_symlinks=False):
            yield entry.path
        elif depth and entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path, depth - 1)


def _begun(path: str) -> tuple[str, int, str]:
    """Event files carry the second they were begun at in their names."""
    name = os.path.basename(path)
    found = _EVENTS.search(name)
    second = int(found[1]) if found and found[1] else 0
    return os.path.dirname(path), second, _padded(name)


def _padded(name: str) -> str:
    """So that numbers sort as numbers."""
    return re.sub(r"\d{1,20}", lambda found: found[0].zfill(20), name)


def _last_states(paths: list[str]) -> list[str]:
    """The last state of each output directory."""
    last: dict[str, tuple[int, str]] = {}
    for path in paths:
        directory = os.path.dirname(path)
        found = _CHECKPOINT.search(directory)
        output = os.path.dirname(directory) if found else directory
        # The one beside the checkpoints is written when all is done.
        when = int(found[1]) if found else 1 << 62
        last[output] = max(last.get(output, (-1, "")), (when, path))
    return [path for _, path in last.values()]

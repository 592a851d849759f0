"""Turns the output of any run into events. The format is known by content."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from testing.cadence.chunks import Chunk, Declared, Problem
from testing.cadence.readers import text
from testing.cadence.readers.blocks import Input, Progress
from testing.cadence.readers.errors import UnreadableRun as UnreadableRun

Item = Chunk | Problem | Declared


def read(
    path: str | os.PathLike[str],
    *,
    pattern: str | re.Pattern[str] | None = None,
    progress: Progress | None = None,
) -> Iterator[Item]:
    """Reads a run: its events, what is wrong with its files, what they declare.

    Memory does not grow with the file.

    Args:
      path: a file, or a directory that holds one run.
      pattern: a regular expression with the groups `step` and `value`, and
        perhaps `name`, to find events in each line of a text file.
      progress: called now and then with the bytes read and the bytes there are.

    Yields:
      `Chunk`s of events, `Problem`s, and `Declared` cadence, file by file.

    Raises:
      UnreadableRun: nothing can be made of `path`.
      ValueError: `pattern` does not compile or lacks a group.
    """
    with Input(os.fspath(path), progress) as source:
        yield from text.read(source)

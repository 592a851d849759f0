"""Turns the output of any run into events. The format is known by content."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Callable, Iterator, Sequence

from testing.cadence.chunks import Chunk, Declared, Problem
from testing.cadence.events import Source
from testing.cadence.readers import (
    directories,
    documents,
    jsonlines,
    tables,
    tensorboard,
    text,
    together,
)
from testing.cadence.readers import pattern as patterns
from testing.cadence.readers.blocks import Input, Progress
from testing.cadence.readers.errors import MissingExtraError, PointerError
from testing.cadence.readers.errors import UnreadableRun as UnreadableRun

Item = Chunk | Problem | Declared
Reader = Callable[[Input], Iterator[Item]]

_POINTER = b"version https://git-lfs.github.com/spec/"
# What such files begin with, and what they are.
_OTHERS = {
    b"PK\x03\x04": "a zip archive or a checkpoint",
    b"\x1f\x8b": "compressed. Unpack it first",
    b"BZh": "compressed. Unpack it first",
    b"\xfd7zXZ": "compressed. Unpack it first",
    b"(\xb5/\xfd": "compressed. Unpack it first",
    b"\x89HDF": "an HDF5 file",
    b"SQLite format 3\0": "a data base",
    b"\x80\x02": "a pickle",
    b"\x80\x03": "a pickle",
    b"\x80\x04": "a pickle",
    b"\x80\x05": "a pickle",
}


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
      progress: called now and then with the bytes read of a file and the bytes
        there are, 0 if that is unknown.

    Returns:
      An iterator of `Chunk`s of events, `Problem`s, and `Declared` cadence,
      file by file. It raises `UnreadableRun` when nothing can be made of `path`.

    Raises:
      ValueError: `pattern` does not compile or lacks a group.
    """
    fixed = patterns.reader(patterns.compiled(pattern)) if pattern else None
    name = os.fspath(path)
    if os.path.isdir(name):
        return _directory(name, fixed, progress)
    return _file(name, fixed, progress)


def read_together(
    paths: Sequence[str | os.PathLike[str]],
    *,
    pattern: str | re.Pattern[str] | None = None,
) -> Iterator[Item]:
    """Reads the logs of a run's processes as one log, in the order of their times.

    Args:
      paths: files, one of each process. Their lines begin with a time.
      pattern: as for `read`.

    Returns:
      An iterator as of `read`. Its events belong to the run of the first file, and
      still tell where they stand.

    Raises:
      ValueError: `pattern` does not compile or lacks a group.
    """
    fixed = patterns.reader(patterns.compiled(pattern)) if pattern else None
    names = [os.fspath(path) for path in paths]
    return together.read(names, lambda name: _file(name, fixed, None))


def _file(path: str, fixed: Reader | None, progress: Progress | None) -> Iterator[Item]:
    with Input(path, progress) as source:
        _refuse(source)
        if not source.head.removeprefix(codecs.BOM_UTF8).strip():
            yield _empty(path)
        else:
            yield from (fixed or _reader(source))(source)


def _directory(
    root: str, fixed: Reader | None, progress: Progress | None
) -> Iterator[Item]:
    """Reads every file of the run; what is no log is passed over."""
    refusals = []
    events = 0
    waiting: list[Problem] = []
    for path in directories.files(root):
        try:
            for item in _file(path, fixed, progress):
                if isinstance(item, Problem) and item.kind == "empty":
                    waiting.append(item)
                    continue
                events += len(item) if isinstance(item, Chunk) else 0
                yield item
        except UnreadableRun as error:
            refusals.append((path, error))
    if not events:
        yield from waiting[:1]
        if not waiting:
            raise refusals[0][1] if refusals else UnreadableRun(f"{root}: {_NO_RUN}")
    elif not fixed:
        yield from _lost(refusals)


def _lost(refusals: list[tuple[str, UnreadableRun]]) -> Iterator[Problem]:
    """Files that cannot be read and are surely part of the run."""
    for path, error in refusals:
        if isinstance(error, MissingExtraError):
            continue
        if isinstance(error, PointerError) or _format(path) == "tensorboard":
            message = str(error).removeprefix(f"{path}: ")
            yield Problem("corrupt", Source(path, _format(path), 1), message)


_NO_RUN = (
    "no run in this directory: no event file, progress.csv, metrics.csv, "
    "trainer_state.json, *.jsonl or *.log. Name the file itself."
)


def _refuse(source: Input) -> None:
    if source.head.startswith(_POINTER):
        raise PointerError(
            f"{source.path}: a Git LFS pointer, not the file. Try: git lfs pull"
        )
    for start, what in _OTHERS.items():
        if source.head.startswith(start):
            raise UnreadableRun(f"{source.path}: {what}.")


def _empty(path: str) -> Problem:
    return Problem("empty", Source(path, _format(path), 1), "the file is empty.")


def _format(path: str) -> str:
    """What a file that cannot be read was meant to be."""
    return "tensorboard" if "tfevents" in os.path.basename(path) else "text"


def _reader(source: Input) -> Reader:
    """The first reader that knows the file by its content; else that of logs."""
    for reader in (tensorboard, jsonlines, documents, tables):
        if reader.knows(source):
            return reader.read
    return text.read

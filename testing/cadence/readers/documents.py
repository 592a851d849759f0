"""Reads JSON documents: Hugging Face's `trainer_state.json`, and lists of objects.

The document is read piece by piece, never as a whole.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

from testing.cadence.chunks import Chunk, Declared, Problem
from testing.cadence.readers import values
from testing.cadence.readers.blocks import Input
from testing.cadence.readers.builder import Builder
from testing.cadence.readers.notes import Notes
from testing.cadence.readers.objects import add

_UNIT = "record"
_HISTORY = "log_history"
_DECLARED = ("logging_steps", "eval_steps", "save_steps", "max_steps", "global_step")
# One record; nobody logs larger ones.
_LARGEST = 1 << 24
_BLANK = re.compile(r"[\s,:]*")
# How far from a whole number of epochs the end of an epoch is logged.
_NEARLY = 0.011


def knows(source: Input) -> bool:
    """Whether this is such a document, whole or cut."""
    start = source.start
    if start[:1] == "[":
        return start[1:].lstrip()[:1] in ("{", "]", "")
    return start[:1] == "{" and f'"{_HISTORY}"' in start


def read(source: Input) -> Iterator[Chunk | Problem | Declared]:
    """Yields the chunks of a document, what was wrong, and what it declares."""
    state = source.start[:1] == "{"
    format = "huggingface" if state else "json"
    builder = Builder(source.path, format, unit=_UNIT)
    notes = Notes(source.path, format, _UNIT)
    history = _History()
    try:
        for record in _records(_Document(source), history.members):
            history.count += 1
            if isinstance(record, dict):
                history.note(record)
                add(builder, record, history.count)
            if builder.full:
                yield builder.take()
    except _CutError:
        message = f"the document ends within record {history.count + 1:,}."
        notes.add("truncated", history.count + 1, message)
    except (ValueError, RecursionError):
        message = "what follows is no JSON; it is not read."
        notes.add("corrupt", history.count + 1, message)
    if len(builder):
        yield builder.take()
    if not builder.count and not len(notes):
        notes.add("empty", 1, "no record has a step and a number.")
    yield from notes.problems()
    for name, value in history.declared():
        yield Declared(source.path, format, name, value)


class _History:
    """What else a trainer state tells.

    The steps between logs and evaluations are there even if these happen once
    an epoch, so they are no declaration then.
    """

    def __init__(self) -> None:
        self.members: dict[str, Any] = {}
        self.count = 0
        self._whole = {"loss": True, "eval_loss": True}

    def note(self, record: dict[str, Any]) -> None:
        """Notes whether a record stands at the end of an epoch."""
        epoch = record.get("epoch")
        for key in self._whole:
            if key in record:
                near = isinstance(epoch, (int, float)) and _is_whole(epoch)
                self._whole[key] &= near

    def declared(self) -> Iterator[tuple[str, int]]:
        """Yields what is declared, in numbers of steps."""
        by_epoch = {"logging_steps": "loss", "eval_steps": "eval_loss"}
        epoch = self.members.get("epoch")
        saved_by_epoch = isinstance(epoch, (int, float)) and _is_whole(epoch)
        for name in _DECLARED:
            if name == "save_steps" and saved_by_epoch:
                continue
            value = values.step(str(self.members.get(name)))
            per_epoch = self._whole.get(by_epoch.get(name, ""), False)
            if value is not None and value > 0 and not per_epoch:
                yield name, value


def _is_whole(epoch: float) -> bool:
    return abs(epoch - round(epoch)) <= _NEARLY if abs(epoch) < 1e9 else False


def _records(document: _Document, members: dict[str, Any]) -> Iterator[Any]:
    """Yields the records of a list, or of a trainer state's history.

    Args:
      document: read from its start.
      members: takes the other members of the state.
    """
    if document.take() == "[":
        yield from _elements(document)
        return
    while document.peek() != "}":
        key = document.value()
        if not isinstance(key, str):
            raise ValueError
        if key == _HISTORY and document.peek() == "[":
            document.take()
            yield from _elements(document)
        elif key in _DECLARED or key == "epoch":
            members[key] = document.value()
        else:
            document.value()


def _elements(document: _Document) -> Iterator[Any]:
    while document.peek() != "]":
        yield document.value()
    document.take()


class _CutError(Exception):
    """The document ended before it was complete."""


class _Document:
    """A JSON text, of which only what is being looked at is kept."""

    def __init__(self, source: Input) -> None:
        self._pieces = codecs.iterdecode(source.texts(), "utf-8", "replace")
        self._text = ""
        self._at = 0
        self._decoder = json.JSONDecoder()

    def peek(self) -> str:
        """The next character that is no separator."""
        while True:
            blank = _BLANK.match(self._text, self._at)
            self._at = blank.end() if blank else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            self._more()

    def take(self) -> str:
        """The same, and moves behind it."""
        character = self.peek()
        self._at += 1
        return character

    def value(self) -> Any:
        """The next value, and moves behind it."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if not self._incomplete(error):
                    raise
            else:
                # A number at the end of the text may go on.
                if end < len(self._text) or self._text[end - 1] in '}]"':
                    self._at = end
                    return value
            self._more()

    def _incomplete(self, error: json.JSONDecodeError) -> bool:
        near_end = error.pos >= len(self._text) - len("-Infinity")
        return near_end or error.msg.startswith("Unterminated string")

    def _more(self) -> None:
        if len(self._text) - self._at > _LARGEST:
            raise ValueError
        piece = next(self._pieces, None)
        if piece is None:
            raise _CutError
        self._text = self._text[self._at :] + piece
        self._at = 0

"""Reads events that differ from a known one only in time, step and value.

Nearly all records of an event file are such, and to compare bytes, many events
at once, is much faster than to build messages. What a template stands for is
proved, when it is learnt, by the message classes themselves: other bytes in
place of time, step and value must give the same scalar with just these changed.
Time and value have a fixed size, so what holds for two values holds for all.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from testing.cadence.chunks import Array

Scalar = tuple[str, float]

_FLOATS = (struct.Struct("<f"), struct.Struct("<d"))
_TIME = 9  # key of field 1, 64 bits
_STEP = 16  # key of field 2, varint
_SHORTEST = 12
_LONGEST = 512
# Where an event may go on after time and step: without a step, and after one of
# 1 to 9 bytes. Ten are a negative step.
_STARTS = (9, *range(11, 20))
_PROBE = 1234.5  # exact in both sizes
_PROBE_STEP = 77
_PROBE_START = bytes([_TIME, 1, 2, 3, 4, 5, 6, 7, 8, _STEP, _PROBE_STEP])
_KEPT = 1 << 12
# Rows, codes, steps and values.
_Group = tuple[Array, Array, Array, Array]
_NO_INTEGERS = np.zeros(0, np.int64)
_NONE = (_NO_INTEGERS, _NO_INTEGERS, _NO_INTEGERS, np.zeros(0))
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@dataclasses.dataclass(frozen=True, slots=True)
class Known:
    """Those of some messages that are known events; one entry each.

    Attributes:
      rows: int64, index of the message, in order.
      codes: int64, index into `names`.
      names: what the scalars may be called.
      steps: int64.
      values: float64.
    """

    rows: Array
    codes: Array
    names: Sequence[str]
    steps: Array
    values: Array


class Templates:
    """Known events.

    Args:
      parse: turns bytes into an `Event` message.
      scalars: lists the name and the value of each scalar in it.
    """

    def __init__(
        self,
        parse: Callable[[bytes], Any],
        scalars: Callable[[Any], list[Scalar]],
    ) -> None:
        self._parse = parse
        self._scalars = scalars
        # By length behind time and step, then place and form of the number.
        self._layouts: dict[int, dict[tuple[int, struct.Struct], _Layout]] = {}
        self._names: dict[str, int] = {}
        self._count = 0

    def match(self, messages: Sequence[bytes]) -> Known:
        """Finds the known ones."""
        lengths = np.fromiter(map(len, messages), np.int64, len(messages))
        groups = [_NONE]
        for length in self._lengths() & set(np.unique(lengths).tolist()):
            rows = np.flatnonzero(lengths == length)
            data = b"".join([messages[row] for row in rows.tolist()])
            table = np.frombuffer(data, np.uint8).reshape(-1, length)
            groups += self._match_equal_long(rows, table)
        rows, codes, steps, values = map(np.concatenate, zip(*groups, strict=True))
        order = np.argsort(rows)
        names = tuple(self._names)
        return Known(rows[order], codes[order], names, steps[order], values[order])

    def _lengths(self) -> set[int]:
        """How long an event of a known form may be."""
        return {start + length for start in _STARTS for length in self._layouts}

    def _match_equal_long(self, rows: Array, table: Array) -> Iterator[_Group]:
        starts, steps = split(table)
        for start in np.unique(starts[starts > 0]).tolist():
            layouts = self._layouts.get(table.shape[1] - start, {})
            at = np.flatnonzero(starts == start)
            for (offset, number), layout in layouts.items():
                rest = table[at, start:]
                codes, known = layout.match(rest)
                field = rest[known, offset : offset + number.size]
                values = np.ascontiguousarray(field).view(f"<f{number.size}")[:, 0]
                with np.errstate(invalid="ignore"):  # a signalling NaN
                    values = values.astype(np.float64)
                mine = at[known]
                yield rows[mine], codes, steps[mine], values

    def learn(self, message: bytes, scalar: Scalar) -> bool:
        """Remembers an event with one scalar, if its form is a plain one.

        Returns:
          Whether more is known than before.
        """
        if not _SHORTEST <= len(message) <= _LONGEST:
            return False
        starts, _ = split(np.frombuffer(message, np.uint8)[None])
        start = int(starts[0])
        if not start:
            return False
        if self._count >= _KEPT:
            self._count = 0
            self._names.clear()
            self._layouts.clear()
        return any(self._learn(message[start:], scalar, each) for each in _FLOATS)

    def _learn(self, rest: bytes, scalar: Scalar, number: struct.Struct) -> bool:
        try:
            packed = number.pack(scalar[1])
        except OverflowError:
            return False
        offset = rest.find(packed)
        while offset >= 0:
            after = rest[offset + number.size :]
            probe = number.pack(_PROBE).join((_PROBE_START + rest[:offset], after))
            if self._is(probe, scalar[0]):
                code = self._names.setdefault(scalar[0], len(self._names))
                layouts = self._layouts.setdefault(len(rest), {})
                layout = _Layout(offset, number.size)
                new = layouts.setdefault((offset, number), layout).add(rest, code)
                self._count += new
                return new
            offset = rest.find(packed, offset + 1)
        return False

    def _is(self, probe: bytes, name: str) -> bool:
        try:
            event = self._parse(probe)
            found = self._scalars(event)
        except Exception:  # of protobuf, whose classes differ by version
            return False
        return event.step == _PROBE_STEP and found == [(name, _PROBE)]


class _Layout:
    """What is known of events with a number of `size` bytes at `offset`.

    Compared are words of eight bytes, the number left out. A hash finds the only
    event that it may be.
    """

    def __init__(self, offset: int, size: int) -> None:
        self._number = slice(offset, offset + size)
        self._codes = np.zeros(0, np.int64)
        self._words = np.zeros((0, 0), np.uint64)
        self._hashes = np.zeros(0, np.uint64)

    def add(self, rest: bytes, code: int) -> bool:
        """Remembers an event; False if it was known."""
        row = np.frombuffer(rest, np.uint8)[None]
        if len(self._codes) and self.match(row)[1][0]:
            return False
        words = self._as_words(row)
        if len(self._codes):
            words = np.concatenate([self._words, words])
        hashes = _hashes(words)
        order = np.argsort(hashes)
        self._codes = np.append(self._codes, code)[order]
        self._words, self._hashes = words[order], hashes[order]
        return True

    def match(self, rest: Array) -> tuple[Array, Array]:
        """Codes of the known rows, and which rows are known."""
        words = self._as_words(rest)
        at = np.searchsorted(self._hashes, _hashes(words))
        at = np.minimum(at, len(self._hashes) - 1)
        known = np.ones(len(rest), bool)
        for column, expected in zip(words.T, self._words.T, strict=True):
            known &= column == expected[at]
        return self._codes[at[known]], known

    def _as_words(self, rest: Array) -> Array:
        count, length = rest.shape
        padded = np.zeros((count, length + -length % 8), np.uint8)
        padded[:, :length] = rest
        padded[:, self._number] = 0
        return padded.view(np.uint64)


def _hashes(words: Array) -> Array:
    hashes = np.zeros(len(words), np.uint64)
    for column in words.T:
        hashes = (hashes ^ column) * _FACTOR
    return hashes


def split(table: Array) -> tuple[Array, Array]:
    """Where events go on after time and step, and the steps; 0 if neither.

    A step that is left out is 0.

    Args:
      table: uint8 `[n, length]`, events of one length.
    """
    count, length = table.shape
    starts, steps = np.zeros(count, np.int64), np.zeros(count, np.int64)
    if length < _SHORTEST:
        return starts, steps
    timed = table[:, 0] == _TIME
    going_on = timed & (table[:, 9] == _STEP)
    starts[timed & ~going_on] = 9
    for index in range(min(9, length - 10)):
        byte = np.where(going_on, table[:, 10 + index], 0).astype(np.int64)
        steps |= (byte & 127) << 7 * index
        ends = going_on & (byte < 128)
        starts[ends] = 11 + index
        going_on &= ~ends
        if not going_on.any():
            break
    return starts, steps

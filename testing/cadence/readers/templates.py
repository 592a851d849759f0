"""Reads events that differ from a known one only in time, step and value.

Nearly all records of an event file are such, and to compare bytes is several
times faster than to build a message. What a template stands for is proved,
when it is learnt, by the message classes themselves: other bytes in place of
time, step and value must give the same scalar with just these changed. Time
and value have a fixed size, so what holds for two values holds for all.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

Scalar = tuple[str, float]

_FLOATS = (struct.Struct("<f"), struct.Struct("<d"))
_TIME = 9  # key of field 1, 64 bits
_STEP = 16  # key of field 2, varint
_SHORTEST = 12
_PROBE = 1234.5  # exact in both sizes
_PROBE_STEP = 77
_PROBE_START = bytes([_TIME, 1, 2, 3, 4, 5, 6, 7, 8, _STEP, _PROBE_STEP])
_KEPT = 1 << 12


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
        self._layouts: dict[int, list[tuple[int, struct.Struct]]] = {}
        self._names: dict[tuple[bytes, bytes], str] = {}

    def match(self, message: bytes) -> tuple[str, int, float] | None:
        """Name, step and value of an event; None if it is none that is known."""
        start, step = split(message)
        rest = message[start:]
        for offset, number in self._layouts.get(len(rest), ()):
            name = self._names.get((rest[:offset], rest[offset + number.size :]))
            if name is not None:
                return name, step, number.unpack_from(rest, offset)[0]
        return None

    def learn(self, message: bytes, scalar: Scalar) -> None:
        """Remembers an event with one scalar, if its form is a plain one."""
        start, _ = split(message)
        if not start:
            return
        if len(self._names) >= _KEPT:
            self._names.clear()
            self._layouts.clear()
        for number in _FLOATS:
            if self._learn(message[start:], scalar, number):
                return

    def _learn(self, rest: bytes, scalar: Scalar, number: struct.Struct) -> bool:
        try:
            packed = number.pack(scalar[1])
        except OverflowError:
            return False
        offset = rest.find(packed)
        while offset >= 0:
            key = (rest[:offset], rest[offset + number.size :])
            probe = number.pack(_PROBE).join((_PROBE_START + key[0], key[1]))
            if self._is(probe, scalar[0]):
                layouts = self._layouts.setdefault(len(rest), [])
                if (offset, number) not in layouts:
                    layouts.append((offset, number))
                self._names[key] = scalar[0]
                return True
            offset = rest.find(packed, offset + 1)
        return False

    def _is(self, probe: bytes, name: str) -> bool:
        try:
            event = self._parse(probe)
            found = self._scalars(event)
        except Exception:  # of protobuf, whose classes differ by version
            return False
        return event.step == _PROBE_STEP and found == [(name, _PROBE)]


def split(message: bytes) -> tuple[int, int]:
    """Where an event goes on after time and step, and the step; 0 if neither.

    A step that is left out is 0.
    """
    if len(message) < _SHORTEST or message[0] != _TIME:
        return 0, 0
    if message[9] != _STEP:
        return 9, 0
    step = message[10]
    if step < 128:
        return 11, step
    step &= 127
    for index in range(1, min(9, len(message) - 10)):
        byte = message[10 + index]
        step |= (byte & 127) << 7 * index
        if byte < 128:
            return 11 + index, step
    return 0, 0

"""The frames of a TensorBoard event file, each checksum verified.

A frame is a length (8 bytes), the checksum of these bytes, the message, and
its checksum: CRC-32C, masked as TFRecord files have it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from testing.cadence.chunks import Array
from testing.cadence.readers.blocks import Input
from testing.cadence.readers.notes import Notes

# Larger messages are graphs. They are checked and passed over in pieces.
_LARGEST = 1 << 23
_HEADER = struct.Struct("<QI")
_HEADERS_KEPT = 1 << 12

# Numbers of messages, and the messages.
Batch = tuple[Array, list[bytes]]


def mask(checksums: Array) -> Array:
    """CRC-32C, as uint32, in the form in which it is stored."""
    rotated = (checksums >> np.uint32(15)) | (checksums << np.uint32(17))
    return rotated + np.uint32(0xA282EAD8)


class Frames:
    """The messages of a file, with their numbers from 1, in batches.

    Args:
      source: the opened file.
      crc32c: the module `google_crc32c`.
      notes: takes what is wrong with the frames.
    """

    def __init__(self, source: Input, crc32c: Any, notes: Notes) -> None:
        self._source = source
        self._crc32c = crc32c
        self._notes = notes
        self._lengths: dict[bytes, int] = {}
        self._place = 0

    def __iter__(self) -> Iterator[Batch]:
        rest = b""
        while data := self._source.read():
            rest += data
            large = True
            while large:
                batch, used = self._split(rest)
                yield batch
                if used < 0:
                    return
                rest = rest[used:]
                large = len(rest) >= 12 and self._length(rest[:12]) > _LARGEST
                if large:
                    rest = self._pass_over(rest)
        if rest:
            self._truncated(len(rest))

    def _split(self, data: bytes) -> tuple[Batch, int]:
        """The whole frames in `data` and their size; -1 if the next cannot be read."""
        lengths, checksum = self._lengths, self._crc32c.value
        messages: list[bytes] = []
        checksums: list[int] = []
        ends: list[int] = []
        start, size = 0, len(data)
        while size - start >= 12:
            length = lengths.get(data[start : start + 12])
            if length is None:
                length = self._length(data[start : start + 12])
            end = start + 12 + length
            if length < 0 or end + 4 > size:
                break
            message = data[start + 12 : end]
            messages.append(message)
            checksums.append(checksum(message))
            ends.append(end)
            start = end + 4
        good = self._verified(data, checksums, ends)
        places = np.arange(len(messages)) + self._place + 1
        self._place += len(messages)
        if not good.all():
            for place in places[~good].tolist():
                self._corrupt(place)
            messages = [messages[row] for row in np.flatnonzero(good).tolist()]
        batch = places[good], messages
        broken = size - start >= 12 and self._length(data[start : start + 12]) < 0
        if broken:
            self._unreadable(data[start:])
        return batch, -1 if broken else start

    def _length(self, header: bytes) -> int:
        """The length a header tells; -1 if that is not what was written."""
        length, stored = _HEADER.unpack(header)
        if _masked(self._crc32c.value(header[:8])) != stored:
            return -1
        if len(self._lengths) >= _HEADERS_KEPT:
            self._lengths.clear()
        self._lengths[header] = length
        return int(length)

    def _verified(self, data: bytes, checksums: list[int], ends: list[int]) -> Array:
        if not ends:
            return np.zeros(0, bool)
        words = np.ndarray((len(data) - 3,), "<u4", buffer=data, strides=(1,))
        return np.equal(mask(np.array(checksums, np.uint32)), words[np.array(ends)])

    def _pass_over(self, rest: bytes) -> bytes:
        """Passes over a message too large to keep; returns what follows it."""
        length = self._length(rest[:12])
        checksum, left, piece = 0, length, rest[12:]
        while piece and left > len(piece):
            checksum = self._crc32c.extend(checksum, piece)
            left -= len(piece)
            piece = self._source.read()
        checksum = self._crc32c.extend(checksum, piece[:left])
        piece = piece[left:]
        while len(piece) < 4 and (more := self._source.read()):
            piece += more
        if len(piece) < 4:
            self._truncated(length - left)
            return b""
        self._place += 1
        if _masked(checksum) != int.from_bytes(piece[:4], "little"):
            self._corrupt(self._place)
        return piece[4:]

    def _truncated(self, size: int) -> None:
        place = self._place + 1
        message = f"the file ends {size:,} bytes into record {place:,}."
        self._notes.add("truncated", place, message)

    def _corrupt(self, place: int) -> None:
        self._notes.add(
            "corrupt", place, "a checksum is wrong: the record is passed over."
        )

    def _unreadable(self, data: bytes) -> None:
        place = self._place + 1
        if not data.strip(b"\0"):  # what a crash of the machine leaves
            self._notes.add("truncated", place, "the rest of the file is zeros.")
            return
        message = "the checksum of a length is wrong: the rest cannot be read."
        self._notes.add("corrupt", place, message)


def _masked(checksum: int) -> int:
    return int(mask(np.array([checksum], np.uint32))[0])

"""A file as a stream of whole lines in big blocks. Memory stays bounded."""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Callable, Iterator
from typing import BinaryIO

from testing.cadence.readers.errors import UnreadableRun

SIZE = 1 << 20
# Nobody logs longer lines; what is beyond is dropped, so that a file without
# line ends cannot fill the memory.
LONGEST_LINE = 1 << 16

Progress = Callable[[int, int], None]


class Input:
    """An opened file: its head to choose a reader by, and its bytes, once.

    Args:
      path: a regular file, a pipe or a terminal. Devices are refused: some of
        them never end.
      progress: called with bytes read and bytes in all (0 when unknown).

    Attributes:
      path: as it was given.
      head: the first bytes, at most `SIZE`.
    """

    def __init__(self, path: str, progress: Progress | None = None) -> None:
        self.path = path
        self._file = _open(path)
        self._progress = progress
        self._size = os.fstat(self._file.fileno()).st_size
        self._done = 0
        self.head = self._read(SIZE)
        self._pending = self.head

    def __enter__(self) -> Input:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def start(self) -> str:
        """The text the file begins with, without white space before it."""
        text = self.head[: 4 * LONGEST_LINE].decode(self.encoding, "replace")
        return text.removeprefix("\ufeff").lstrip()

    @property
    def first_line(self) -> str:
        """The first line that is not blank."""
        return self.start.partition("\n")[0].rstrip("\r")

    @property
    def encoding(self) -> str:
        """UTF-8, or what PowerShell's `>` writes, known by its byte order mark."""
        wide = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        return "utf-16" if self.head.startswith(wide) else "utf-8"

    def read(self) -> bytes:
        """The next bytes of the file, at most `SIZE`; empty at its end."""
        if self._pending:
            data, self._pending = self._pending, b""
            return data
        return self._read(SIZE)

    def _read(self, size: int) -> bytes:
        try:
            data = self._file.read(size)
        except OSError as error:
            raise UnreadableRun(f"{self.path}: {error.strerror}.") from error
        self._done += len(data)
        if self._progress:
            self._progress(self._done, self._size)
        return data

    def texts(self) -> Iterator[bytes]:
        """The file's bytes as UTF-8 without a byte order mark."""
        if self.encoding == "utf-8":
            yield self.read().removeprefix(codecs.BOM_UTF8)
            yield from iter(self.read, b"")
            return
        decoder = codecs.getincrementaldecoder(self.encoding)("replace")
        for data in iter(self.read, b""):
            yield decoder.decode(data).encode("utf-8", "replace")

    def blocks(self, front: bytes = b"", back: bytes = b"") -> Iterator[bytes]:
        """Blocks of whole lines, too long ones cut; only the last may lack its end.

        Args:
          front, back: what to put before and behind each block.
        """
        rest = b""
        for data in self.texts():
            cut = data.rfind(b"\n") + 1
            if cut:
                skipped = data.find(b"\n") if len(rest) >= LONGEST_LINE else 0
                yield b"".join((front, rest, memoryview(data)[skipped:cut], back))
            rest = data[cut:] if cut else rest + data
            rest = rest[:LONGEST_LINE]
        if rest:
            yield b"".join((front, rest, back))

    def lines(self) -> Iterator[tuple[int, str, bool]]:
        """Yields each line: its number from 1, its text, and if it had an end."""
        place = 0
        for block in self.blocks():
            *lines, last = block.split(b"\n")
            for line in lines:
                place += 1
                yield place, decoded(line), True
            if last:
                yield place + 1, decoded(last), False


def decoded(line: bytes) -> str:
    """A line as text, cut where it is too long."""
    return line[:LONGEST_LINE].decode("utf-8", "replace").rstrip("\r")


def _open(path: str) -> BinaryIO:
    try:
        mode = os.stat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise UnreadableRun(f"{path}: not a file.")
        return open(path, "rb")
    except OSError as error:
        raise UnreadableRun(f"{path}: {error.strerror}.") from error
    except ValueError as error:
        raise UnreadableRun(f"{path!r}: {error}.") from error

"""The writers of many lines at once, by what stands before the event.

Offsets are those of absl's prefix: `I1201 04:21:29.123456 140735171155776 a.py:45] `.
"""

from __future__ import annotations

import functools

import numpy as np

from testing.cadence.chunks import Array
from testing.cadence.readers.block import Block
from testing.cadence.readers.words import (
    FACTORS,
    MASKS,
    ZEROS,
    Template,
    all_digits,
    first,
    repeated,
    zero_bytes,
)

# Where the thread begins, how many words it may take, and the shortest prefix.
THREAD = 22
_THREAD_WORDS = 3
_SHORTEST = 26
_FORM = [Template.of(form) for form in (b"?0000 00", b":00:00.0", b"00000 ??")]
_SPACES = repeated(b" ")


def writers(block: Block, start: Array, end: Array) -> tuple[Array, Array]:
    """A hash of the thread each prefix names, and whether that was easy to tell.

    Easy are absl's prefix, no prefix, and one that begins with a letter or a
    digit: it names no process (`lines.writer`).

    Args:
      block: the lines.
      start, end: int64, where each prefix begins and ends.

    Returns:
      uint64, 0 without a thread; and bool.
    """
    level = _is_level(block.bytes[start])
    absl = level & (end - start >= _SHORTEST)
    # Where a line is too short the words are another line's.
    words = (block.words[start + 8 * index] for index in range(len(_FORM)))
    misfits = (form.misfits(each) for form, each in zip(_FORM, words, strict=True))
    absl &= functools.reduce(np.bitwise_or, misfits) == 0
    hashes, known = _threads(block, start + THREAD, absl)
    if absl.all():
        return hashes, known
    return hashes, (absl & known) | (~absl & _nameless(block, start, end, level))


def _is_level(letters: Array) -> Array:
    return (letters == 73) | (letters == 87) | (letters == 69) | (letters == 70)


def _nameless(block: Block, start: Array, end: Array, level: Array) -> Array:
    """Whether a prefix that is not absl's surely names no process."""
    begin = block.bytes[start]
    letter = ((begin | 32) >= 97) & ((begin | 32) <= 122)
    # Perhaps absl's or glog's after all.
    level = level & _is_digit(block.bytes[start + 1])
    return (start == end) | ((letter | _is_digit(begin)) & ~level)


def _is_digit(letters: Array) -> Array:
    return (letters >= 48) & (letters <= 57)


def _threads(block: Block, start: Array, absl: Array) -> tuple[Array, Array]:
    """A hash of the number at each `start`, 0 where `absl` is not, and if it is one."""
    if len(start) > 1 and absl.all() and _all_alike(block, start):
        hashes, good = _threads(block, start[:1], absl[:1])
        return hashes.repeat(len(start)), good.repeat(len(start))
    hashes = np.zeros(len(start), np.uint64)
    going_on, good = absl.copy(), absl.copy()
    for index in range(_THREAD_WORDS):
        words = block.words[start + 8 * index]
        length, found = first(zero_bytes(words ^ _SPACES))
        mask = MASKS[np.where(found, length, 8)]
        good &= ~going_on | all_digits((words ^ ZEROS) & mask)
        good &= (index > 0) | (length > 0) | ~found
        hashes += np.where(going_on, words & mask, 0) * FACTORS[index]
        going_on &= ~found
        if not going_on.any():
            break
    return hashes, good & ~going_on


def _all_alike(block: Block, start: Array) -> bool:
    """Whether the same word stands at each `start`: one thread, nearly always."""
    begin = int(start[0])
    size = block.data.find(b" ", begin, begin + 8 * _THREAD_WORDS) + 1 - begin
    for at in range(0, size, 8):
        words = block.words[start + at]
        if ((words ^ words[0]) & MASKS[min(8, size - at)]).any():
            return False
    return size > 0

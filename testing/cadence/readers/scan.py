"""Finds `[step=N] name = value.` in a whole block of lines at once.

Arrays instead of a loop: eight bytes of every line are looked at in one
operation (`words`). A line that does not have exactly the plain form is left to
`lines`, so that this module decides nothing that `lines` would decide differently.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from testing.cadence.chunks import Array
from testing.cadence.readers.block import Block
from testing.cadence.readers.prefixes import writers as writers_of
from testing.cadence.readers.words import (
    FACTORS,
    MASKS,
    ZEROS,
    all_digits,
    first,
    no_digits,
    repeated,
    zero_bytes,
)

_LONGEST_NAME = 64
_LONGEST_LINE = 1 << 16
_U64 = np.uint64
_CLOSING = repeated(b"]")
_STEP = _U64(int.from_bytes(b"[step=", "little"))
_SIX_BYTES = MASKS[6]


@dataclasses.dataclass(frozen=True, slots=True)
class Hits:
    """The lines of the plain form in one block; one entry per line, in order.

    Attributes:
      rows: index of the line in the block.
      steps: int64.
      names: uint64, a hash of the name.
      writers: uint64, a hash of the thread in an absl prefix; 0 without.
      name_start, name_end, value_start, value_end: offsets into `data`.
      plain: bool, the value is a decimal number without exponent.
      others: indices of further lines in which a step may stand.
    """

    rows: Array
    steps: Array
    names: Array
    writers: Array
    name_start: Array
    name_end: Array
    value_start: Array
    value_end: Array
    plain: Array
    others: Array


def scan(block: Block) -> Hits:
    """Finds the lines of the plain form, and the others that may hold a step."""
    anchors = _anchors(block)
    rows = np.cumsum(block.is_end)[anchors]
    start = block.marks[anchors] + 1
    steps, digits, good = _steps(block.words[start])
    name_start = start + digits + 2
    name_end = block.marks[anchors + 1] - 1
    value_start = name_end + 3
    line_end = block.marks[anchors + 2]
    line_start = block.starts(rows)
    good &= block.bytes[name_start - 1] == 32
    good &= (block.bytes[name_end] == 32) & (block.bytes[name_end + 2] == 32)
    good &= _names_fit(block, name_start, name_end)
    good &= (line_end - line_start <= _LONGEST_LINE) & (value_start < line_end)
    writers, known = writers_of(block, line_start, start - len("[step="))
    good &= known
    good &= _printable(block, line_end - 1)
    # Without the dot that ends the sentence.
    value_end = line_end - (block.bytes[line_end - 1] == 46)
    good &= value_start < value_end
    keep = np.flatnonzero(good)
    columns = [rows, steps, writers, name_start, name_end, value_start, value_end]
    if len(keep) < len(rows):
        columns = [column[keep] for column in columns]
    rows, steps, writers, name_start, name_end, value_start, value_end = columns
    return Hits(
        rows=rows,
        steps=steps,
        names=_hashes(block, name_start, name_end),
        writers=writers,
        name_start=name_start,
        name_end=name_end,
        value_start=value_start,
        value_end=value_end,
        plain=_plain(block, value_start, value_end),
        others=_others(block, rows),
    )


def scan_nothing(block: Block) -> Hits:
    """Leaves every line to `lines`: what `scan` is tested against."""
    none = np.zeros(0, np.int64)
    hashes = np.zeros(0, np.uint64)
    plain = np.zeros(0, bool)
    others = _others(block, none)
    return Hits(none, none, hashes, hashes, none, none, none, none, plain, others)


def _anchors(block: Block) -> Array:
    """Indices of marks: the `=` of each `[step=` in a line with one more `=`."""
    is_end = block.is_end
    one = np.flatnonzero(is_end[3:] & ~is_end[2:-1] & ~is_end[1:-2] & is_end[:-3]) + 1
    if block.size and not is_end[:2].any() and is_end[2:3].all():
        one = np.concatenate([[0], one])
    before = block.words[block.marks[one] - 5] & _SIX_BYTES
    return one[before == _STEP]


def _steps(words: Array) -> tuple[Array, Array, Array]:
    """Numbers of one to seven digits before a `]`, their digits, and if good."""
    digits, found = first(zero_bytes(words ^ _CLOSING))
    good = found & (digits > 0)
    digits = np.maximum(digits, 1)
    mask = MASKS[digits]
    numbers = (words ^ ZEROS) & mask
    good &= all_digits(numbers)
    numbers = numbers << (_U64(64) - _U64(8) * digits.astype(np.uint64))
    numbers = (numbers * _U64(2561)) >> _U64(8)
    numbers = ((numbers & _U64(0x00FF00FF00FF00FF)) * _U64(6553601)) >> _U64(16)
    numbers = ((numbers & _U64(0x0000FFFF0000FFFF)) * _U64(42949672960001)) >> _U64(32)
    return numbers.astype(np.int64), digits, good


def _names_fit(block: Block, start: Array, end: Array) -> Array:
    length = end - start
    good = (length >= 1) & (length <= _LONGEST_NAME)
    return good & _printable(block, start) & _printable(block, end - 1)


def _printable(block: Block, places: Array) -> Array:
    """Whether there is an ASCII character that is no white space."""
    return (block.bytes[places] > 32) & (block.bytes[places] < 127)


def _masked(block: Block, start: Array, length: Array, index: int) -> Array:
    """Word `index` of each text, zero beyond its end."""
    mask = MASKS[np.clip(length - 8 * index, 0, 8)]
    return block.words[start + 8 * index] & mask


def _hashes(block: Block, start: Array, end: Array) -> Array:
    length = end - start
    hashes = np.zeros(len(start), np.uint64)
    for index in range(-(-int(length.max(initial=0)) // 8)):
        hashes += _masked(block, start, length, index) * FACTORS[index]
    return hashes


def _plain(block: Block, start: Array, end: Array) -> Array:
    """Whether each value is sign, 1 to 7 digits, perhaps a dot and 0 to 24 digits."""
    sign = block.bytes[start]
    start = start + ((sign == 45) | (sign == 43))
    words = block.words[start] ^ ZEROS
    digits, found = first(no_digits(words))
    length = end - start
    whole = found & (length >= 1) & (digits >= length)
    dot = found & (digits >= 1) & (digits < length)
    dot &= block.bytes[start + digits] == 46
    fraction = start + digits + 1
    length = end - fraction
    dot &= length <= 24
    for index in range(-(-int(length[dot].max(initial=0)) // 8)):
        mask = MASKS[np.clip(length - 8 * index, 0, 8)]
        dot &= all_digits((block.words[fraction + 8 * index] ^ ZEROS) & mask)
    return whole | dot


def _others(block: Block, rows: Array) -> Array:
    """Lines with a `step` in them that are not among `rows`."""
    places = block.with_step()
    if len(places) == len(rows):  # every one of them is that of a `[step=`
        return np.zeros(0, np.int64)
    flags = np.zeros(block.size, bool)
    flags[np.searchsorted(block.ends, places)] = True
    flags[rows] = False
    return np.flatnonzero(flags)

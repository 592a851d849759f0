"""Eight bytes of text in one 64-bit word, looked at together.

The first byte of the text is the least significant one. Each function takes an array
of words. How: H. S. Warren, Hacker's Delight, 2nd edition, section 6-1.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from testing.cadence.chunks import Array

_U64 = np.uint64
_ONES = _U64(0x0101010101010101)
_HIGH = _U64(0x8080808080808080)
_PAST_NINE = _U64(0x7676767676767676)  # adding it sets the high bit from 10 on
ZEROS = _U64(0x3030303030303030)  # the character 0
# The first n bytes of a word.
MASKS = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)
# Odd, so that no two texts that differ in one word share a hash.
FACTORS = np.array(
    [0x9E3779B97F4A7C15 * (2 * n + 1) ** 3 % 2**64 for n in range(8)], np.uint64
)


def repeated(character: bytes) -> np.uint64:
    """The word of eight times one character."""
    return _U64(int.from_bytes(character * 8, "little"))


def zero_bytes(words: Array) -> Array:
    """The high bit of the lowest byte that is zero; garbage above it."""
    return (words - _ONES) & ~words & _HIGH


def no_digits(numbers: Array) -> Array:
    """The high bit of the lowest byte that is ten or more; garbage above it."""
    return ((numbers + _PAST_NINE) | numbers) & _HIGH


def all_digits(numbers: Array) -> Array:
    """Whether every byte is below ten."""
    return no_digits(numbers) == 0


def first(flags: Array) -> tuple[Array, Array]:
    """Index of the lowest byte that is flagged by its high bit, and if any is."""
    lowest = flags & (~flags + _U64(1))
    # The exponent of a power of two is the index of its only bit.
    exponent = lowest.astype(np.float64).view(np.int64) >> 52
    found = flags != 0
    return np.where(found, (exponent - 1023) >> 3, 0), found


@dataclasses.dataclass(frozen=True, slots=True)
class Template:
    """A form of eight characters: `0` stands for a digit, `?` for anything."""

    text: np.uint64
    mask: np.uint64
    past: np.uint64

    @classmethod
    def of(cls, form: bytes) -> Template:
        mask = bytes(0 if byte == 63 else 255 for byte in form)
        # What sets the high bit of a byte that is too large.
        past = bytes({48: 0x76, 63: 0}.get(byte, 0x7F) for byte in form)
        return cls(
            *(_U64(int.from_bytes(each, "little")) for each in (form, mask, past))
        )

    def misfits(self, words: Array) -> Array:
        """Zero for the words of this form."""
        numbers = (words ^ self.text) & self.mask
        return ((numbers + self.past) | numbers) & _HIGH

"""Eight bytes at once give what one after the other would."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testing.cadence.readers import words
from testing.cadence.readers.words import Template

FORM = b"?0000 00"
FITTING = b"I1201 04"
EIGHT = st.binary(min_size=8, max_size=8)


def word(text):
    return np.array([int.from_bytes(text, "little")], np.uint64)


def first(flags):
    index, found = words.first(flags)
    return int(index[0]) if found[0] else None


def expected(text, flagged):
    return next((index for index, byte in enumerate(text) if flagged(byte)), None)


@given(EIGHT)
def test_the_first_zero_byte(text):
    assert first(words.zero_bytes(word(text))) == expected(text, lambda byte: not byte)


@given(EIGHT)
def test_the_first_byte_that_is_no_digit(text):
    assert first(words.no_digits(word(text))) == expected(text, lambda byte: byte > 9)


@pytest.mark.parametrize("at", range(8))
def test_all_digits(at):
    for byte in range(256):
        text = bytes([9] * at + [byte] + [0] * (7 - at))
        assert bool(words.all_digits(word(text))[0]) == (byte < 10), byte


@pytest.mark.parametrize("at", range(8))
def test_a_form_fits_what_it_says(at):
    for byte in range(256):
        text = FITTING[:at] + bytes([byte]) + FITTING[at + 1 :]
        fits = {63: True, 48: 48 <= byte <= 57}.get(FORM[at], byte == FORM[at])
        assert (Template.of(FORM).misfits(word(text))[0] == 0) == fits, byte

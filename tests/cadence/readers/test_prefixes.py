"""Writers of whole blocks are those that `lines` tells one by one."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testing.cadence.readers import lines
from testing.cadence.readers.block import FRONT, Block, Scratch, padded
from testing.cadence.readers.prefixes import writers

ABSL = "I1201 04:21:29.123456 {} a.py:4] "
ODD = [
    "",
    "loss: ",
    "2024-12-01 ",
    "[rank1]: ",
    "(worker pid=77) ",
    "I12",
    "I1201 04:21:29.123456 7",
    "I20241201 04:21:29.123456 77 a.py:4] ",
    "J1201 04:21:29.123456 77 a.py:4] ",
    "I12x1 04:21:29.123456 77 a.py:4] ",
    "I1201 04:21:29.12345\xa0 77 a.py:4] ",
]
THREADS = st.one_of(
    st.sampled_from(["", " ", "x", "1x", "12345678x", "1 2", "1" * 23, "1" * 24]),
    st.from_regex(r"\d{1,25}", fullmatch=True).map(lambda text: text[:25]),
    st.sampled_from(["1", "11", "77", "12345678", "12345678" * 2, "1234567812345679"]),
)
PREFIXES = st.one_of(THREADS.map(ABSL.format), st.sampled_from(ODD))


def told(prefixes):
    """A hash for each line of the prefix, and whether it was easy to tell."""
    texts = [f"{prefix}[step=1] loss = 1.".encode() for prefix in prefixes]
    block = Block(padded(*(text + b"\n" for text in texts)), Scratch())
    sizes = np.array([len(text) + 1 for text in texts])
    start = len(FRONT) + np.cumsum(sizes) - sizes
    end = start + np.array([len(prefix.encode()) for prefix in prefixes])
    hashes, known = writers(block, start, end)
    return hashes.tolist(), known.tolist()


@settings(max_examples=1000)
@given(st.lists(PREFIXES, min_size=1, max_size=6))
def test_what_is_easy_to_tell_is_right(prefixes):
    hashes, known = told(prefixes)
    easy = [index for index, is_known in enumerate(known) if is_known]
    texts = {hashes[index]: lines.writer(prefixes[index]) for index in easy}
    assert [texts[hashes[index]] for index in easy] == [
        lines.writer(prefixes[index]) for index in easy
    ]
    assert len(set(texts.values())) == len(texts)
    assert texts.get(0, "") == ""


@pytest.mark.parametrize("level", "IWEF")
@pytest.mark.parametrize("thread", ["7", "140", "12345678", "140735171155776"])
@pytest.mark.parametrize("count", [1, 3])
def test_absl_is_easy(level, thread, count):
    prefix = level + ABSL.format(thread)[1:]
    hashes, known = told([prefix] * count)
    assert known == [True] * count
    assert len(set(hashes)) == 1
    assert hashes[0] != 0


@pytest.mark.parametrize("prefix", ["", "loss: ", "2024-12-01 ", "INFO:absl:", "Jo"])
def test_letters_and_digits_are_easy(prefix):
    assert told([prefix, ABSL.format(7)])[1] == [True, True]
    assert told([prefix, ABSL.format(7)])[0][0] == 0


@pytest.mark.parametrize("prefix", [p for p in ODD if re.match(r"[\[(]|I[12]", p)])
def test_what_may_name_a_process_is_not(prefix):
    assert told([prefix, ABSL.format(7)])[1] == [False, True]


@pytest.mark.parametrize("order", [1, -1])
def test_the_same_number_in_a_prefix_that_is_not_absl_is_no_thread(order):
    prefixes = [ABSL.format(77), "J" + ABSL.format(77)[1:]]
    hashes, known = told(prefixes[::order])
    assert known == [True, True]
    assert [each != 0 for each in hashes] == [True, False][::order]

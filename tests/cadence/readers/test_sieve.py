"""Lines that cannot hold an event are left out; the others keep their numbers."""

from __future__ import annotations

import pytest

from testing.cadence.readers import sieve
from testing.cadence.readers.block import padded
from testing.cadence.readers.sieve import Sieve

NOISE = "nothing to see here\n"


@pytest.fixture
def gathering(monkeypatch):
    monkeypatch.setattr(sieve, "RARE", 0)


def kept(blocks):
    return [
        (int(number), block.line(row).decode())
        for block in blocks
        for row, number in enumerate(block.numbers)
    ]


def sieved(*texts):
    one = Sieve()
    found = [block for text in texts for block in one.feed(padded(text.encode()))]
    return found + list(one.finish())


@pytest.mark.parametrize("word", ["step", "Step", "STEP", "global_step", "[step=3]"])
@pytest.mark.parametrize("shift", range(8))
def test_lines_with_a_step_are_kept(gathering, word, shift):
    line = "x" * shift + word
    assert kept(sieved(NOISE * 2 + line + "\n" + NOISE)) == [(3, line)]


@pytest.mark.parametrize("line", ["", "te", "ep", "pet", "t ep", "stop", "ste", "tp"])
def test_lines_without_a_step_are_not(gathering, line):
    assert kept(sieved(line + "x\n" + line + "x\n")) == []


@pytest.mark.parametrize("space", [" ", "\t", "\x1c", "\xa0", "\u2003"])
def test_lines_that_may_continue_a_record_are_kept(gathering, space):
    line = f"{space}loss = 1"
    assert kept(sieved(line + "\n" + NOISE + line + "\n")) == [(1, line), (3, line)]


def test_numbers_go_on_from_block_to_block(gathering):
    blocks = sieved(NOISE * 3 + "step 1\nstep 2\n", NOISE, NOISE + "step 3\n")
    assert len(blocks) == 1
    assert kept(blocks) == [(4, "step 1"), (5, "step 2"), (8, "step 3")]


def test_a_block_with_many_steps_is_taken_as_it_is(monkeypatch):
    monkeypatch.setattr(sieve, "RARE", 60)
    many = "step 1\n" * 3 + NOISE
    few = NOISE * 3 + "step 2\n"
    steps, noise = ["step 1"] * 3, [NOISE.strip()]
    assert kept(sieved(few, many, few, many)) == [
        (4, "step 2"),
        *zip(range(5, 9), steps + noise, strict=True),
        (12, "step 2"),
        *zip(range(13, 17), steps + noise, strict=True),
    ]


def test_hands_out_what_it_has_when_that_is_enough(gathering, monkeypatch):
    monkeypatch.setattr(sieve, "FULL", 12)
    one = Sieve()
    assert not list(one.feed(padded(b"step 1\n")))
    assert kept(one.feed(padded(b"step 2\n"))) == [(1, "step 1"), (2, "step 2")]
    assert not list(one.finish())

"""check_replay_buffer: what a replay buffer must keep."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from testing.cadence.report import Report
from testing.contracts._rules import Rulebook, broken, equal, not_exercised
from testing.fakes._tf import tf

CONTRACT = {
    "starts-empty": "A new buffer holds no frames.",
    "capacity": "The capacity is batch_size * max_length frames.",
    "counts-frames": (
        "num_frames is what was added, and never more than the capacity."
    ),
    "keeps-items": (
        "What is read is what was added: the same structure, dtypes and values."
    ),
    "keeps-rows": (
        "All items are read as [batch_size, time, ...]: each row its own, "
        "in the order of adding."
    ),
    "overwrites-oldest": (
        "A full buffer gives up the oldest item of each row for a new one."
    ),
    "pass-once": (
        "A deterministic pass in batches visits every frame once, in order, "
        "rows not mixed."
    ),
    "pass-once-wrapped": (
        "It does so as well after the buffer has overwritten old items."
    ),
    "pass-repeats": "Two deterministic passes without a change give the same.",
    "pass-is-live": (
        "A data set made once gives, each time it is iterated, what is there then."
    ),
    "samples-windows": ("A sample of several steps holds successive items of one row."),
    "reading-keeps": "Reading removes nothing.",
    "clear-empties": "After clear the buffer is empty, and filled anew holds only new.",
    "empty-gives-nothing": "An empty buffer gives an error or nothing, never an item.",
    "refuses-wrong-items": (
        "Items of another structure or batch size are refused, and change nothing."
    ),
    "in-graph": (
        "Inside tf.function each execution adds and clears; tracing does nothing."
    ),
    "checkpoint": "A checkpoint holds the items; a restored buffer goes on.",
}
RULES = Rulebook(CONTRACT)

MakeBuffer = Callable[[Any, int, int], Any]

SPEC = {
    "serial": tf.TensorSpec((), tf.int64, "serial"),
    "vector": tf.TensorSpec((2,), tf.float32, "vector"),
}


def check_replay_buffer(
    make: MakeBuffer,
    *,
    batch_size: int = 3,
    max_length: int = 4,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    raises: bool = True,
) -> Report:
    """Checks a replay buffer against `CONTRACT`.

    Args:
      make: called as `make(data_spec, batch_size, max_length)`, returns a new buffer
        that holds `max_length` items in each of `batch_size` rows. The class
        `TFUniformReplayBuffer` will do as it is.
      batch_size: rows to try it with.
      max_length: items per row to try it with, at least 2.
      only: names of the only rules to try; all if empty.
      skip: names of rules not to try.
      raises: whether to raise when a rule is broken.

    Returns:
      A report of broken, kept and skipped rules.

    Raises:
      ContractError: a rule is broken, and `raises` is true.
    """
    subject = _Subject(make, batch_size, max_length)
    title = f"replay buffer ({batch_size} rows of {max_length})"
    return RULES.run(subject, title, only=only, skip=skip, raises=raises)


class _Subject:
    """Makes buffers and fills them with numbered items."""

    def __init__(self, make: MakeBuffer, batch_size: int, max_length: int) -> None:
        self.make = make
        self.batch_size = batch_size
        self.max_length = max_length

    def new(self, batches: int = 0) -> Any:
        """A new buffer to which so many batches were added."""
        buffer = self.make(SPEC, self.batch_size, self.max_length)
        self.fill(buffer, range(batches))
        return buffer

    def fill(self, buffer: Any, times: range) -> None:
        for time in times:
            buffer.add_batch(self.items(time))

    def items(self, time: Any, rows: int | None = None) -> Any:
        """The batch added at `time`: row r carries serial `time * 1000 + r`."""
        serial = tf.cast(time, tf.int64) * 1000
        serial += tf.range(self.batch_size if rows is None else rows, dtype=tf.int64)
        value = tf.cast(serial, tf.float32)
        return {"serial": serial, "vector": tf.stack([value, -value], -1)}

    def serials(self, times: range) -> list[list[int]]:
        """Per row the serials of the batches added at `times`."""
        return [[t * 1000 + row for t in times] for row in range(self.batch_size)]

    def held(self, buffer: Any) -> list[list[int]]:
        return _numbers(buffer.gather_all()["serial"])

    def passed(self, buffer: Any, steps: int) -> list[list[list[int]]]:
        """The batches of one deterministic pass."""
        return _numbers_of(self.dataset(buffer, steps))

    def dataset(self, buffer: Any, steps: int) -> Any:
        return buffer.as_dataset(
            sample_batch_size=self.batch_size,
            num_steps=steps,
            single_deterministic_pass=True,
        )


def _numbers(tensor: Any) -> Any:
    return tensor.numpy().tolist()


def _numbers_of(dataset: Any) -> list[Any]:
    return [_numbers(items["serial"]) for items, _ in dataset]


def _frames(buffer: Any) -> int:
    return int(buffer.num_frames())


@RULES.check("starts-empty")
def _starts_empty(subject: _Subject) -> None:
    equal(0, _frames(subject.new()), "num_frames() of a new buffer")


@RULES.check("capacity")
def _capacity(subject: _Subject) -> None:
    expected = subject.batch_size * subject.max_length
    hint = "Capacity counts frames over all rows, not items per row."
    equal(expected, int(subject.new().capacity), "capacity", hint)


@RULES.check("counts-frames")
def _counts_frames(subject: _Subject) -> None:
    buffer = subject.new()
    for added in range(1, subject.max_length + 3):
        buffer.add_batch(subject.items(added))
        expected = min(added, subject.max_length) * subject.batch_size
        equal(expected, _frames(buffer), f"num_frames() after {added} batches")


@RULES.check("keeps-items")
def _keeps_items(subject: _Subject) -> None:
    buffer = subject.new(1)
    read, added = buffer.gather_all(), subject.items(0)
    tf.nest.assert_same_structure(added, read)
    for name, spec in SPEC.items():
        equal(spec.dtype, read[name].dtype, f"dtype of {name!r}")
        seen = read[name].numpy()[:, 0]
        equal(added[name].numpy().tolist(), seen.tolist(), f"values of {name!r}")


@RULES.check("keeps-rows")
def _keeps_rows(subject: _Subject) -> None:
    times = range(subject.max_length)
    hint = "Rows are mixed, or the order of adding is lost."
    seen = subject.held(subject.new(len(times)))
    equal(subject.serials(times), seen, "gather_all() of a full buffer", hint)


@RULES.check("overwrites-oldest")
def _overwrites_oldest(subject: _Subject) -> None:
    for extra in (1, subject.max_length - 1, subject.max_length + 1):
        last = subject.max_length + extra
        seen = subject.held(subject.new(last))
        expected = subject.serials(range(extra, last))
        equal(expected, seen, f"gather_all() after {last} batches")


def _pass(subject: _Subject, added: int) -> None:
    """Passes after `added` batches: item by item, and all at once."""
    held = range(max(0, added - subject.max_length), added)
    for steps in sorted({1, len(held)}):
        buffer = subject.new(added)
        expected = [
            subject.serials(held[i : i + steps]) for i in range(0, len(held), steps)
        ]
        where = f"pass with num_steps={steps} after {added} batches"
        hint = "Each batch must be [batch_size, num_steps]; row r only has row r's."
        equal(expected, subject.passed(buffer, steps), where, hint)


@RULES.check("pass-once")
def _pass_once(subject: _Subject) -> None:
    _pass(subject, subject.max_length)
    _pass(subject, subject.max_length - 1)


@RULES.check("pass-once-wrapped")
def _pass_once_wrapped(subject: _Subject) -> None:
    for extra in {1, subject.max_length - 1, subject.max_length}:
        _pass(subject, subject.max_length + extra)


@RULES.check("pass-repeats")
def _pass_repeats(subject: _Subject) -> None:
    buffer = subject.new(subject.max_length)
    first, second = (subject.passed(buffer, 1) for _ in range(2))
    equal(first, second, "the second pass")


@RULES.check("pass-is-live")
def _pass_is_live(subject: _Subject) -> None:
    buffer = subject.new(subject.max_length)
    dataset = subject.dataset(buffer, 1)
    _numbers_of(dataset)
    buffer.clear()
    times = range(50, 50 + subject.max_length)
    twin = subject.new()
    for one in (buffer, twin):
        subject.fill(one, times)
    seen = _numbers_of(dataset)
    where = "the same data set after clear() and new items, against a new buffer's"
    equal(subject.passed(twin, 1), seen, where)


@RULES.check("samples-windows")
def _samples_windows(subject: _Subject) -> None:
    for added in (subject.max_length, subject.max_length + 1):
        held = subject.serials(range(max(0, added - subject.max_length), added))
        windows = {tuple(row[i : i + 2]) for row in held for i in range(len(row) - 1)}
        dataset = subject.new(added).as_dataset(sample_batch_size=8, num_steps=2)
        for items, _ in dataset.take(3):
            equal((8, 2), tuple(items["serial"].shape), "shape of a sample")
            for window in _numbers(items["serial"]):
                if tuple(window) not in windows:
                    where = f"sample after {added} batches"
                    broken("two successive items of one row", window, where)


@RULES.check("reading-keeps")
def _reading_keeps(subject: _Subject) -> None:
    buffer = subject.new(subject.max_length)
    before = subject.held(buffer)
    subject.passed(buffer, 1)
    buffer.gather_all()
    equal(before, subject.held(buffer), "gather_all() after other reads")


@RULES.check("clear-empties")
def _clear_empties(subject: _Subject) -> None:
    for added in (1, subject.max_length, subject.max_length + 1):
        buffer = subject.new(added)
        buffer.clear()
        equal(0, _frames(buffer), f"num_frames() after {added} batches and clear()")
        times = range(70, 72)
        subject.fill(buffer, times)
        equal(subject.serials(times), subject.held(buffer), "two batches after clear()")


@RULES.check("empty-gives-nothing")
def _empty_gives_nothing(subject: _Subject) -> None:
    for used in (0, 1):
        buffer = subject.new(used)
        if used:
            buffer.clear()
        reads: dict[str, Callable[[Any], Any]] = {
            "a deterministic pass": lambda b: subject.passed(b, 1),
            "gather_all()": lambda b: [n for row in subject.held(b) for n in row],
            "a sample": lambda b: _numbers_of(b.as_dataset(2).take(1)),
        }
        for what, read in reads.items():
            items = _or_nothing(read, buffer)
            equal([], items, f"{what} of an empty buffer")


def _or_nothing(read: Callable[[Any], Any], buffer: Any) -> Any:
    try:
        return read(buffer)
    except (tf.errors.OpError, ValueError, IndexError):
        return []


@RULES.check("refuses-wrong-items")
def _refuses_wrong_items(subject: _Subject) -> None:
    buffer = subject.new(1)
    before = subject.held(buffer)
    wrong = {
        "items of another structure": {"serial": subject.items(1)["serial"]},
        "a batch with a row too many": subject.items(1, subject.batch_size + 1),
    }
    for what, items in wrong.items():
        try:
            buffer.add_batch(items)
        except (ValueError, TypeError, KeyError, tf.errors.OpError):
            hint = "Check the items before anything is written."
            equal(before, subject.held(buffer), f"contents after {what}", hint)
        else:
            broken("an error", "accepted", what)


@RULES.check("in-graph")
def _in_graph(subject: _Subject) -> None:
    buffer = subject.new()

    @tf.function
    def add(start: Any, count: Any) -> None:
        for i in tf.range(count):
            buffer.add_batch(subject.items(start + tf.cast(i, start.dtype)))

    @tf.function
    def clear() -> None:
        buffer.clear()

    add(tf.constant(0), tf.constant(0))
    equal(0, _frames(buffer), "num_frames() after tracing alone")
    add(tf.constant(0), tf.constant(1))
    add(tf.constant(1, tf.int64), tf.constant(1))
    seen = subject.held(buffer)
    equal(subject.serials(range(2)), seen, "contents after two executions")
    for _ in range(2):
        clear()
        equal(0, _frames(buffer), "num_frames() after clear() in a graph")
        subject.fill(buffer, range(1))


@RULES.check("checkpoint")
def _checkpoint(subject: _Subject) -> None:
    buffer, other = subject.new(subject.max_length + 1), subject.new()
    if not isinstance(buffer, tf.Module):
        not_exercised("the buffer is no tf.Module, so no checkpoint can hold it")
    with tempfile.TemporaryDirectory() as directory:
        path = tf.train.Checkpoint(buffer=buffer).save(f"{directory}/buffer")
        tf.train.Checkpoint(buffer=other).restore(path)
    equal(subject.held(buffer), subject.held(other), "contents of the restored buffer")
    for one in (buffer, other):
        subject.fill(one, range(90, 91))
    seen = subject.held(other)
    equal(subject.held(buffer), seen, "contents after one more batch")
    if np.ndim(seen) != 2:
        broken("[batch_size, time]", np.shape(seen), "shape")

"""check_replay_buffer: on real buffers, on the fake, and on broken ones."""

import random

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.replay_buffers import replay_buffer, tf_uniform_replay_buffer

from testing.contracts import check_replay_buffer
from testing.contracts.replay_buffer import CONTRACT
from testing.fakes import RecordingReplayBuffer
from testing.fakes._calls import Core, call_python

Real = tf_uniform_replay_buffer.TFUniformReplayBuffer

# The deterministic pass takes rows `id + row * max_length` modulo the whole capacity,
# and ids beyond `max_length` reach into the next row. And a batch with a row too many
# raises, but by then the ids are written: the buffer holds an item nobody added.
REAL_BREAKS = {"pass-once-wrapped", "refuses-wrong-items"}


def _check(make, **kwargs):
    report = check_replay_buffer(make, raises=False, **kwargs)
    print(report)
    return report


@pytest.mark.parametrize(("batch_size", "max_length"), [(2, 5), (3, 2), (5, 4)])
def test_the_real_buffer(batch_size, max_length):
    report = _check(Real, batch_size=batch_size, max_length=max_length)
    assert set(report.broken) == REAL_BREAKS
    assert report.skipped == ()


def test_the_real_buffer_of_one_row_has_no_rows_to_mix():
    report = _check(Real, batch_size=1, max_length=3)
    assert set(report.broken) == {"refuses-wrong-items"}


def test_the_fake_keeps_what_the_wrapped_one_keeps():
    report = _check(lambda *args: RecordingReplayBuffer(Real(*args)))
    assert set(report.broken) == REAL_BREAKS
    assert report.skipped == ()


class _Store(Core):
    """Batches as arrays, oldest first."""

    SAVED = ("batches",)

    def __init__(self):
        super().__init__("store", None, None)
        self.batches = []


class _Good(replay_buffer.ReplayBuffer):
    """A buffer in Python that keeps every rule; slow, and easy to break."""

    def __init__(self, data_spec, batch_size, max_length):
        super().__init__(data_spec, batch_size * max_length)
        self._rows, self._length = batch_size, max_length
        self._store = _Store()
        self._leaves = tf.nest.flatten(data_spec)

    def _call(self, function, inputs, outputs):
        return call_python(self._store, function, inputs, outputs)

    def _num_frames(self):
        return self._call(lambda: [self.frames()], [], [(tf.int64, ())])[0]

    def frames(self):
        return len(self._store.batches) * self._rows

    def _add_batch(self, items):
        tf.nest.assert_same_structure(self._data_spec, items)
        leaves = tf.nest.flatten(items)
        self.check_rows(leaves)
        self._call(self.add, leaves, [(tf.int32, ())])

    def check_rows(self, leaves):
        for leaf in leaves:
            if leaf.shape[0] != self._rows:
                raise ValueError(f"{leaf.shape[0]} rows instead of {self._rows}")

    def add(self, *leaves):
        self._store.batches.append([leaf.tolist() for leaf in leaves])
        self.make_room()
        return [0]

    def make_room(self):
        del self._store.batches[: -self._length]

    def _clear(self):
        self._call(self.drop, [], [(tf.int32, ())])

    def drop(self):
        self._store.batches = []
        return [0]

    def held(self):
        """Per leaf an array of shape `[rows, time, ...]`."""
        return [
            np.moveaxis(
                np.asarray(
                    [batch[i] for batch in self._store.batches],
                    leaf.dtype.as_numpy_dtype,
                ).reshape([-1, self._rows, *leaf.shape]),
                0,
                1,
            )
            for i, leaf in enumerate(self._leaves)
        ]

    def _pack(self, leaves):
        return tf.nest.pack_sequence_as(self._data_spec, leaves)

    def _gather_all(self):
        shapes = [
            (leaf.dtype, [self._rows, None, *leaf.shape]) for leaf in self._leaves
        ]
        return self._pack(self._call(self.held, [], shapes))

    def _dataset(self, generator, *outer):
        signature = self._pack(
            [tf.TensorSpec([*outer, *leaf.shape], leaf.dtype) for leaf in self._leaves]
        )

        def elements():
            for leaves in generator():
                yield self._pack(leaves), 0

        return tf.data.Dataset.from_generator(
            elements, output_signature=(signature, tf.TensorSpec((), tf.int32))
        )

    def _single_deterministic_pass_dataset(
        self, sample_batch_size, num_steps, sequence_preprocess_fn, num_parallel_calls
    ):
        return self._dataset(lambda: self.windows(num_steps), None, None)

    def windows(self, steps):
        held = self.held()
        for start in range(0, held[0].shape[1], steps):
            yield [leaf[:, start : start + steps] for leaf in held]

    def _as_dataset(
        self, sample_batch_size, num_steps, sequence_preprocess_fn, num_parallel_calls
    ):
        outer = [None] if num_steps is None else [None, None]
        return self._dataset(lambda: self.samples(sample_batch_size, num_steps), *outer)

    def samples(self, size, steps):
        length = len(self._store.batches)
        while length:
            picks = [
                (
                    random.randrange(self._rows),
                    random.randrange(length - (steps or 1) + 1),
                )
                for _ in range(size)
            ]
            yield [self.window(leaf, picks, steps) for leaf in self.held()]

    def window(self, leaf, picks, steps):
        if steps is None:
            return np.stack([leaf[row, start] for row, start in picks])
        return np.stack([leaf[row, start : start + steps] for row, start in picks])

    def _get_next(self, sample_batch_size, num_steps, time_stacked):
        raise NotImplementedError


def test_a_buffer_can_keep_every_rule():
    report = _check(_Good)
    assert report.ok
    assert report.skipped == ()


# Broken ones, each with the rules that must catch it.


class _StartsWithAnItem(_Good):
    def __init__(self, *args):
        super().__init__(*args)
        self._store.batches = [[np.zeros([self._rows, *x.shape]) for x in self._leaves]]


class _CapacityPerRow(_Good):
    capacity = property(lambda self: self._length)


class _CountsItemsNotFrames(_Good):
    def frames(self):
        return len(self._store.batches)


class _CountsBeyondItsCapacity(_Good):
    total = 0

    def frames(self):
        return max(super().frames(), self.total * self._rows)

    def add(self, *leaves):
        self.total += 1
        return super().add(*leaves)

    def drop(self):
        self.total = 0
        return super().drop()


class _RoundsValues(_Good):
    def add(self, serial, vector):
        return super().add(serial, -np.abs(vector))


class _ReadsInFloat(_Good):
    def _gather_all(self):
        items = super()._gather_all()
        return {**items, "vector": tf.cast(items["vector"], tf.float64)}


class _GathersTimeFirst(_Good):
    def _gather_all(self):
        return tf.nest.map_structure(
            lambda t: tf.reshape(tf.experimental.numpy.swapaxes(t, 0, 1), tf.shape(t)),
            super()._gather_all(),
        )


class _KeepsTheOldest(_Good):
    def make_room(self):
        del self._store.batches[self._length :]


class _ForgetsTwoWhenFull(_Good):
    def make_room(self):
        if len(self._store.batches) > self._length:
            del self._store.batches[:2]


class _PassesBackwards(_Good):
    def windows(self, steps):
        return reversed(list(super().windows(steps)))


class _PassLeavesOutTheLast(_Good):
    def windows(self, steps):
        return list(super().windows(steps))[:-1]


class _PassMixesRowsWhenFull(_Good):
    """What the real one does."""

    added = 0

    def add(self, *leaves):
        self.added += 1
        return super().add(*leaves)

    def windows(self, steps):
        shift = 1 if self.added > self._length else 0
        for leaves in super().windows(steps):
            yield [np.roll(leaf, shift, 0) for leaf in leaves]

    def drop(self):
        self.added = 0
        return super().drop()


class _PassesOnlyOnce(_Good):
    passed = False

    def windows(self, steps):
        if not self.passed:
            self.passed = len(self._store.batches) == self._length
            yield from super().windows(steps)

    def drop(self):
        self.passed = False
        return super().drop()


class _PassIsOfTheDay(_Good):
    """The data set gives what was there when it was made."""

    def _single_deterministic_pass_dataset(self, sample_batch_size, num_steps, **_):
        now = list(self.windows(num_steps))
        return self._dataset(lambda: now, None, None)


class _SamplesAcrossRows(_Good):
    def window(self, leaf, picks, steps):
        if steps is None:
            return super().window(leaf, picks, steps)
        flat = leaf.reshape([-1, *leaf.shape[2:]])
        starts = [random.randrange(len(flat) - steps + 1) for _ in picks]
        return np.stack([flat[start : start + steps] for start in starts])


class _SamplesOneStep(_Good):
    def samples(self, size, steps):
        return super().samples(size, steps and 1)


class _ReadingRemoves(_Good):
    def windows(self, steps):
        yield from super().windows(steps)
        del self._store.batches[:1]


class _ClearsNothing(_Good):
    def drop(self):
        return [0]


class _ClearsAllButTheLast(_Good):
    def drop(self):
        del self._store.batches[:-1]
        return [0]


class _EmptyGivesZeros(_Good):
    def windows(self, steps):
        if self._store.batches:
            yield from super().windows(steps)
        else:
            yield [np.zeros([self._rows, 1, *x.shape]) for x in self._leaves]


class _TakesAnyRows(_Good):
    def check_rows(self, leaves):
        return None

    def add(self, *leaves):
        return super().add(*(leaf[: self._rows] for leaf in leaves))


class _TakesAnyStructure(_Good):
    def _add_batch(self, items):
        zeros = {k: tf.zeros([self._rows, *s.shape], s.dtype) for k, s in SPEC(self)}
        super()._add_batch({**zeros, **items})


def SPEC(buffer):
    return buffer.data_spec.items()


class _RefusesTooLate(_Good):
    def _add_batch(self, items):
        if len(items) == 2:
            self._call(
                self.add,
                [leaf[: self._rows] for leaf in tf.nest.flatten(items)],
                [(tf.int32, ())],
            )
            self.check_rows(tf.nest.flatten(items))
        else:
            super()._add_batch(items)


class _AddsWhenTraced(_Good):
    def _add_batch(self, items):
        if tf.executing_eagerly():
            return super()._add_batch(items)
        with tf.init_scope():
            return super()._add_batch(
                {k: tf.zeros([self._rows, *s.shape], s.dtype) for k, s in SPEC(self)}
            )


class _ClearsWhenTraced(_Good):
    def _clear(self):
        with tf.init_scope():
            super()._clear()


class _SavesNothing(_Good):
    def __init__(self, *args):
        super().__init__(*args)
        self._store.SAVED = ()


BROKEN = {
    _StartsWithAnItem: {
        "starts-empty",
        "counts-frames",
        "keeps-items",
        "pass-once",
        "empty-gives-nothing",
        "in-graph",
    },
    _CapacityPerRow: {"capacity"},
    _CountsItemsNotFrames: {"counts-frames"},
    _CountsBeyondItsCapacity: {"counts-frames"},
    _RoundsValues: {"keeps-items"},
    _ReadsInFloat: {"keeps-items"},
    _GathersTimeFirst: {
        "keeps-rows",
        "overwrites-oldest",
        "clear-empties",
        "in-graph",
    },
    _KeepsTheOldest: {"overwrites-oldest", "pass-once-wrapped", "samples-windows"},
    _ForgetsTwoWhenFull: {
        "counts-frames",
        "overwrites-oldest",
        "pass-once-wrapped",
    },
    _PassesBackwards: {"pass-once", "pass-once-wrapped"},
    _PassLeavesOutTheLast: {"pass-once", "pass-once-wrapped"},
    _PassMixesRowsWhenFull: {"pass-once-wrapped"},
    _PassesOnlyOnce: {"pass-repeats"},
    _PassIsOfTheDay: {"pass-is-live"},
    _SamplesAcrossRows: {"samples-windows"},
    _SamplesOneStep: {"samples-windows"},
    _ReadingRemoves: {"reading-keeps", "pass-repeats"},
    _ClearsNothing: {"clear-empties", "empty-gives-nothing", "in-graph"},
    _ClearsAllButTheLast: {"clear-empties", "empty-gives-nothing", "in-graph"},
    _EmptyGivesZeros: {"empty-gives-nothing"},
    _TakesAnyRows: {"refuses-wrong-items"},
    _TakesAnyStructure: {"refuses-wrong-items"},
    _RefusesTooLate: {"refuses-wrong-items"},
    _AddsWhenTraced: {"in-graph"},
    _ClearsWhenTraced: {"in-graph"},
    _SavesNothing: {"checkpoint"},
}


@pytest.mark.parametrize(("make", "rules"), BROKEN.items())
def test_broken_ones_are_caught_by_exactly_these_rules(make, rules):
    assert set(_check(make, batch_size=2, max_length=3).broken) == rules


def test_every_rule_catches_something():
    assert set().union(*BROKEN.values()) == set(CONTRACT)


def test_a_message():
    (violation,) = _check(_CapacityPerRow).violations
    assert str(violation) == (
        "capacity: The capacity is batch_size * max_length frames.\n"
        "  expected  12\n"
        "  seen      4\n"
        "  where     capacity\n"
        "  hint      Capacity counts frames over all rows, not items per row."
    )

"""Reads the scalars of TensorBoard event files.

Needs the extra `tensorboard`: its protobuf classes, no TensorFlow.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from testing.cadence.chunks import Array, Chunk, Problem, Series
from testing.cadence.readers.blocks import Input
from testing.cadence.readers.columns import Columns, Row, compressed, listed, merged
from testing.cadence.readers.errors import MissingExtraError
from testing.cadence.readers.frames import Frames
from testing.cadence.readers.notes import Notes
from testing.cadence.readers.templates import Known, Templates

FORMAT = "tensorboard"
UNIT = "record"
_SIGNATURE = b"brain.Event:"
# So many unknown messages are looked at before what was learnt is used.
_FIRST = 64


def knows(source: Input) -> bool:
    """Whether this is an event file: each begins with its version.

    What is left of one that was cut in its first record is told by its name.
    """
    head = source.head[:64]
    cut = len(head) < 40 and "tfevents" in source.path
    return _SIGNATURE in head or cut


def read(source: Input) -> Iterator[Chunk | Problem]:
    """Yields the scalars of an event file, then what was wrong with it."""
    crc32c, parse = _libraries(source.path)
    notes = Notes(source.path, FORMAT, UNIT)
    reader = _Reader(parse, notes)
    found = False
    for places, messages in Frames(source, crc32c, notes):
        for columns in reader.columns(places, messages):
            found = True
            yield columns.chunk(source.path, FORMAT, unit=UNIT, kind="summary")
    if not found and not len(notes):
        notes.add("empty", 1, "the file holds no scalar.")
    yield from notes.problems()


class _Reader:
    """Turns messages into columns: known ones at once, the others one by one."""

    def __init__(self, parse: Callable[[bytes], Any], notes: Notes) -> None:
        self._parse = parse
        self._notes = notes
        self._scalars = Scalars()
        self._templates = Templates(parse, self._scalars.of)
        self._learnt = False

    def columns(self, places: Array, messages: list[bytes]) -> Iterator[Columns]:
        """The scalars of some messages, if there are any."""
        parts: list[Columns] = []
        left = self._known(places, messages, np.arange(len(messages)), parts)
        rows: list[Row] = []
        size = _FIRST
        while len(left):
            self._learnt = False
            for index in left[:size].tolist():
                rows += self._look(int(places[index]), messages[index])
            left = left[size:]
            if self._learnt:
                left = self._known(places, messages, left, parts)
            size *= 2
        if rows:
            parts.append(listed(rows))
        if parts:
            yield functools.reduce(merged, parts)

    def _known(
        self,
        places: Array,
        messages: list[bytes],
        indices: Array,
        parts: list[Columns],
    ) -> Array:
        """Adds the known ones among `indices` to `parts`; returns the others."""
        known = self._templates.match([messages[index] for index in indices.tolist()])
        if len(known.rows):
            parts.append(_columns(known, places[indices[known.rows]]))
        return np.delete(indices, known.rows)

    def _look(self, place: int, message: bytes) -> Iterator[Row]:
        """The scalars of one message; its form is learnt if it has one scalar."""
        try:
            event = self._parse(message)
            found = self._scalars.of(event)
        except Exception:  # of protobuf, whose classes differ by version
            text = "no event: the record is passed over."
            self._notes.add("corrupt", place, text)
            return
        if len(found) == 1:
            self._learnt |= self._templates.learn(message, found[0])
        for name, value in found:
            yield name, "", event.step, value, place


def _columns(known: Known, places: Array) -> Columns:
    codes, present = compressed(known.codes)
    return Columns(
        tuple(Series(known.names[code], "") for code in present),
        codes,
        known.steps,
        places,
        known.values,
        {},
        ~np.isfinite(known.values),
    )


class Scalars:
    """Tells the scalars of events; remembers which plugin a tag belongs to.

    TensorFlow 1 and PyTorch write `simple_value`; TensorFlow 2 writes tensors,
    and names the plugin at least the first time.
    """

    def __init__(self) -> None:
        self._plugins: dict[str, str] = {}

    def of(self, event: Any) -> list[tuple[str, float]]:
        """Name and value of each scalar in an `Event` message.

        Raises:
          ValueError: the bytes of a tensor do not hold the number they should.
        """
        found: list[tuple[str, float]] = []
        for value in event.summary.value:
            which = value.WhichOneof("value")
            if which == "simple_value":
                found.append((value.tag, value.simple_value))
            elif which == "tensor" and self._is_scalar(value):
                found.append((value.tag, _only_element(value.tensor)))
        return found

    def _is_scalar(self, value: Any) -> bool:
        plugin = value.metadata.plugin_data.plugin_name
        if plugin:
            self._plugins[value.tag] = plugin
        known = self._plugins.get(value.tag, "")
        shape = [dim.size for dim in value.tensor.tensor_shape.dim]
        numeric = value.tensor.dtype in _numeric()
        return numeric and known in ("", "scalars") and shape in ([], [1])


@functools.cache
def _numeric() -> frozenset[int]:
    from tensorboard.compat.proto import types_pb2

    names = "FLOAT DOUBLE HALF BFLOAT16 INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32"
    return frozenset(getattr(types_pb2, f"DT_{n}") for n in [*names.split(), "UINT64"])


def _only_element(tensor: Any) -> float:
    from tensorboard.util import tensor_util

    try:
        return float(tensor_util.make_ndarray(tensor).reshape(-1)[0])
    except (TypeError, OverflowError) as error:
        raise ValueError(str(error)) from error


def _libraries(path: str) -> tuple[Any, Callable[[bytes], Any]]:
    try:
        import google_crc32c
        from tensorboard.compat.proto import event_pb2
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: an event file, and {error.name or error} is missing. "
            "Try: pip install 'onbeat[tensorboard]'"
        ) from error
    return google_crc32c, event_pb2.Event.FromString

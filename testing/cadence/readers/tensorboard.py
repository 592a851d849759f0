"""Reads the scalars of TensorBoard event files.

Needs the extra `tensorboard`: its protobuf classes, no TensorFlow.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from testing.cadence.chunks import Chunk, Problem
from testing.cadence.readers.blocks import Input
from testing.cadence.readers.builder import Builder
from testing.cadence.readers.errors import MissingExtraError
from testing.cadence.readers.frames import Frames
from testing.cadence.readers.notes import Notes
from testing.cadence.readers.templates import Templates

FORMAT = "tensorboard"
UNIT = "record"
_SIGNATURE = b"brain.Event:"


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
    builder = Builder(source.path, FORMAT, unit=UNIT, kind="summary")
    scalars = Scalars()
    templates = Templates(parse, scalars.of)
    for batch in Frames(source, crc32c, notes):
        for place, message in batch:
            known = templates.match(message)
            if known is not None:
                builder.add(*known, place)
                continue
            try:
                event = parse(message)
                found = scalars.of(event)
            except Exception:  # of protobuf, whose classes differ by version
                notes.add("corrupt", place, "no event: the record is passed over.")
                continue
            for name, value in found:
                builder.add(name, event.step, value, place)
            if len(found) == 1:
                templates.learn(message, found[0])
        if len(builder):
            yield builder.take()
    if not builder.count and not len(notes):
        notes.add("empty", 1, "the file holds no scalar.")
    yield from notes.problems()


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

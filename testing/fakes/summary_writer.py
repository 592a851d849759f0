"""FakeSummaryWriter: a real writer whose summaries stand on the timeline."""

from __future__ import annotations

import glob
import os
import shutil
import struct
import tempfile
import uuid
import weakref
from collections.abc import Iterator
from typing import Any

from testing.cadence.events import Event
from testing.fakes._calls import Core, Recording
from testing.fakes._tf import tf
from testing.fakes.faults import FaultPlan
from testing.fakes.timeline import Timeline


class FakeSummaryWriter(tf.summary.SummaryWriter, Recording):
    """Stands in for what `tf.summary.create_file_writer` returns.

        writer = FakeSummaryWriter(timeline=timeline)
        with mock.patch.object(
            tf.summary, "create_file_writer", return_value=writer
        ):
            train(...)
        assert timeline.steps("summary", "Metrics/AverageReturn") == [0, 1, 2]

    It writes a real event file at once, summary by summary, and reads it back. So
    summaries are seen when they happen, also those written inside `tf.function`.

    On its timeline: `summary` with tag, step and value.

    Attributes:
      timeline: where its events go.
      logdir: where the event file is.
      flushes: how many times it was flushed.
      closed: whether it was closed.
    """

    def __init__(
        self,
        logdir: str | None = None,
        *,
        timeline: Timeline | None = None,
        faults: FaultPlan | None = None,
        name: str = "FakeSummaryWriter",
    ) -> None:
        """Creates the writer.

        Args:
          logdir: where to write; by default a temporary directory that goes away
            with the writer.
          timeline: where its events go; one of its own by default.
          faults: faults at `summary`: before and inside are reached by `flush`,
            after by each summary, once it is written. Their name is the tag.
          name: of the writer.
        """
        tf.Module.__init__(self, name=name)
        if logdir is None:
            logdir = tempfile.mkdtemp(prefix="onbeat-")
            weakref.finalize(self, shutil.rmtree, logdir, ignore_errors=True)
        self.logdir = os.fspath(logdir)
        suffix = f".{uuid.uuid4().hex}"
        with tf.init_scope():
            self._writer = tf.summary.create_file_writer(
                self.logdir, max_queue=0, flush_millis=0, filename_suffix=suffix
            )
        self._resource = self._writer._resource
        pattern = os.path.join(glob.escape(self.logdir), f"*{suffix}")
        self._writing = _Writing(name, timeline, faults)
        self._writing.pattern = pattern
        self.track(self._writing)
        # The timeline outlives a writer that is thrown away.
        self.timeline.attach(self._writing.news)

    @property
    def timeline(self) -> Timeline:
        return self._writing.timeline

    @property
    def flushes(self) -> int:
        return self._writing.flushes

    @property
    def closed(self) -> bool:
        return self._writing.closed

    def __repr__(self) -> str:
        count = self.timeline.count("summary")
        state = "closed" if self.closed else "open"
        return (
            f"<FakeSummaryWriter {self.name!r}: {count} summaries, "
            f"{self.flushes} flushes, {state}>"
        )

    def as_default(self, step: Any = None) -> Any:
        """As the real one. Raises RuntimeError when it is closed."""
        self._refuse_if_closed()
        return super().as_default(step)

    def set_as_default(self, step: Any = None) -> None:
        """As the real one. Raises RuntimeError when it is closed."""
        self._refuse_if_closed()
        super().set_as_default(step)

    def init(self) -> Any:
        """As the real one. Raises RuntimeError when it is closed."""
        self._refuse_if_closed()
        return self._writer.init()

    def flush(self) -> Any:
        """Flushes; does nothing when it is closed."""
        if not self.closed:
            self._writing.flush()
            self._writer.flush()

    def close(self) -> Any:
        """Flushes and closes; does nothing when it is closed."""
        if not self.closed:
            self.flush()
            self._writing.closed = True
            self._writer.close()

    def _refuse_if_closed(self) -> None:
        if self.closed:
            raise RuntimeError(f"SummaryWriter {self!r} is already closed")


class _Writing(Core):
    """Reads the event file as it grows."""

    SAVED = ("flushes",)

    pattern = ""
    flushes = 0
    closed = False
    offset = 0

    def flush(self) -> None:
        self.reach("summary", "before")
        self.reach("summary", "inside")
        with self.lock:
            self.flushes += 1

    def news(self) -> list[Event]:
        """The summaries written since last time."""
        with self.lock:
            events = [event for record in self._records() for event in _events(record)]
        for event in events:
            self.faults.reach("summary", "after", event.name)
        return events

    def _records(self) -> Iterator[bytes]:
        """Payloads of the complete TFRecord frames behind `offset`."""
        for path in glob.glob(self.pattern):
            with open(path, "rb") as file:
                file.seek(self.offset)
                data = file.read()
            start = 0
            while len(data) >= start + 16:
                (length,) = struct.unpack_from("<Q", data, start)
                # Length and its checksum, payload, its checksum.
                end = start + 12 + length + 4
                if end > len(data):
                    break
                yield data[start + 12 : end - 4]
                start = end
            self.offset += start


def _events(record: bytes) -> Iterator[Event]:
    proto = tf.compat.v1.Event.FromString(record)
    for value in proto.summary.value:
        if value.HasField("tensor"):
            array = tf.make_ndarray(value.tensor)
            kept = array.item() if array.ndim == 0 else array.tolist()
        else:
            kept = value.simple_value
        yield Event("summary", value.tag, proto.step, kept)

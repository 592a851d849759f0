"""Records what code logs while it runs: records, printed lines, summaries."""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from testing.cadence.contract import Cadence
from testing.cadence.events import Event
from testing.cadence.readers import lines, values
from testing.cadence.recording_summaries import catch_summaries
from testing.cadence.report import Report
from testing.fakes.timeline import Timeline

# Frames looked at to see whether a handler prints a record to standard output.
_DEPTH = 8


class Recording:
    """What was logged, as events of the kinds `log` and `summary`.

    Attributes:
      timeline: where the events are put, in the order they happened. Summaries
        come at the end: they are read from the event files.
    """

    def __init__(self, timeline: Timeline | None = None) -> None:
        self.timeline = Timeline() if timeline is None else timeline
        self._events: list[Event] = []

    @property
    def events(self) -> tuple[Event, ...]:
        """The events of this recording alone."""
        return tuple(self._events)

    @property
    def cadence(self) -> Cadence:
        """The cadence that was kept."""
        return Cadence.infer(self._events)

    def check(self, cadence: Cadence) -> Report:
        """Compares what was logged with a cadence."""
        return cadence.check(self._events)

    def steps(self, name: str, kind: str = "log") -> list[int | None]:
        """The steps of one series."""
        return [e.step for e in self._events if (e.kind, e.name) == (kind, name)]

    def add(self, kind: str, name: str, step: int | None, value: Any) -> None:
        """Adds an event."""
        self._events.append(self.timeline.add(kind, name, step, value))

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self._events)


@contextlib.contextmanager
def record_cadence(
    *, timeline: Timeline | None = None, pattern: str | re.Pattern[str] | None = None
) -> Iterator[Recording]:
    """Records what the code inside the `with` block logs.

    Catches records of absl and of `logging` from level INFO on, lines printed to
    `sys.stdout`, and summaries of TensorFlow and of `SummaryWriter`s of PyTorch
    and tensorboardX, if these were imported before. What is caught still goes
    where it would have gone, and no handler sees more than it would have seen.

        with record_cadence() as run:
            trainer.train(...)
        assert run.steps("loss") == [0, 1, 2]
        assert run.check(Cadence.bandit(training_loops=3)).ok

    Args:
      timeline: where the events are put, beside those of fakes.
      pattern: a regular expression with the groups `step` and `value`, and
        perhaps `name`, for lines of another form.

    Raises:
      ValueError: `pattern` does not compile or lacks a group.
    """
    recording = Recording(timeline)
    sink = _Sink(recording, pattern)
    with contextlib.ExitStack() as stack:
        stack.enter_context(catch_summaries(recording.add))
        stack.enter_context(_records(sink))
        stack.enter_context(_printed(sink))
        yield recording


class _Sink:
    """Finds the events in lines of text."""

    def __init__(
        self, recording: Recording, pattern: str | re.Pattern[str] | None
    ) -> None:
        self._recording = recording
        self._parse = lines.parse if pattern is None else _parser(pattern)
        self._lock = threading.Lock()
        self._announced: lines.Found | None = None

    def feed(self, text: str) -> None:
        """Takes one record, of one or more lines."""
        with self._lock:
            # A tensor's value may take several lines.
            whole = text.count("[step=") == 1
            for line in [text] if whole else re.split(r"[\r\n]+", text):
                self._line(line)

    def _line(self, line: str) -> None:
        announced, self._announced = self._announced, None
        pair = lines.continued(line) if announced else None
        if announced and pair:
            self._announced = announced
            self._add(lines.Found("", announced.step, (pair,)))
            return
        found = self._parse(line)
        if found and found.pairs:
            self._add(found)
        else:
            self._announced = found

    def _add(self, found: lines.Found) -> None:
        for name, text in found.pairs:
            self._recording.add("log", name, found.step, values.scalar(text))


def _parser(pattern: str | re.Pattern[str]) -> Callable[[str], lines.Found | None]:
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"pattern {pattern!r} does not compile: {error}.") from error
    for group in ("step", "value"):
        if group not in expression.groupindex:
            raise ValueError(f"pattern {expression.pattern!r} lacks the group {group}.")
    named = "name" in expression.groupindex

    def parse(line: str) -> lines.Found | None:
        found = expression.search(line)
        if not found or not (found["step"] or "").strip().isdecimal():
            return None
        name = found["name"] if named else "value"
        return lines.Found("", int(found["step"]), ((name, found["value"]),))

    return parse


class _Handler(logging.Handler):
    def __init__(self, sink: _Sink) -> None:
        super().__init__(logging.INFO)
        self._sink = sink

    def emit(self, record: logging.LogRecord) -> None:
        # A record that cannot be formatted is for its own handlers to report.
        with contextlib.suppress(Exception):
            self._sink.feed(record.getMessage())


@contextlib.contextmanager
def _records(sink: _Sink) -> Iterator[None]:
    """Sends records from INFO on to `sink`."""
    from absl import logging as absl_logging

    loggers = [logging.root, absl_logging.get_absl_logger()]
    rest = [one for one in _named_loggers() if not one.propagate]
    handler = _Handler(sink)
    with contextlib.ExitStack() as stack:
        for logger in loggers:
            stack.enter_context(_at_info(logger))
        for logger in [logging.root, *rest]:
            logger.addHandler(handler)
            stack.callback(logger.removeHandler, handler)
        yield


def _named_loggers() -> list[logging.Logger]:
    known = list(logging.root.manager.loggerDict.values())
    return [one for one in known if isinstance(one, logging.Logger)]


@contextlib.contextmanager
def _at_info(logger: logging.Logger) -> Iterator[None]:
    """Lets INFO pass, yet not to the handlers that are there already."""
    level = logger.level
    if level <= logging.INFO:
        yield
        return
    below = _Below(level)
    handlers = [*logging.root.handlers, *logger.handlers]
    for handler in handlers:
        handler.addFilter(below)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        if logger.level == logging.INFO:  # else the code under test has set it
            logger.setLevel(level)
        for handler in handlers:
            handler.removeFilter(below)


class _Below(logging.Filter):
    """Drops what a level would have dropped."""

    def __init__(self, level: int) -> None:
        super().__init__()
        self._level = level

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= self._level


class _Tee:
    """Standard output that also feeds whole lines to a sink."""

    def __init__(self, stream: TextIO, sink: _Sink) -> None:
        self._stream = stream
        self._sink = sink
        self._rest = ""

    def write(self, text: str) -> int:
        written = self._stream.write(text)
        if not _from_a_handler():
            *whole, self._rest = (self._rest + text).split("\n")
            for line in whole:
                self._sink.feed(line)
        return written

    def writelines(self, texts: list[str]) -> None:
        for text in texts:
            self.write(text)

    def close_line(self) -> None:
        """Takes what has no line end as a line."""
        self._sink.feed(self._rest)
        self._rest = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _from_a_handler() -> bool:
    """Whether a logging handler is writing: its record is caught already."""
    frame = sys._getframe(2)
    for _ in range(_DEPTH):
        if frame.f_globals.get("__name__") in ("logging", "absl.logging"):
            return True
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False


@contextlib.contextmanager
def _printed(sink: _Sink) -> Iterator[None]:
    """Sends printed lines to `sink`."""
    stream = sys.stdout
    tee = _Tee(stream, sink)
    sys.stdout = tee  # type: ignore[assignment]
    try:
        yield
    finally:
        tee.close_line()
        if sys.stdout is tee:
            sys.stdout = stream

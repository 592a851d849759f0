"""Log records as they leave the loggers, after formatting. No TensorFlow."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import re
import sys
from collections.abc import Iterator
from typing import Any

from absl import logging as absl_logging

from testing.cadence.events import Event
from testing.contracts.trainer.watch import Watch
from testing.fakes import _series

_TENSOR = re.compile(r"tf\.Tensor\((.*), shape=\(\), dtype=\w+\)", re.DOTALL)
_NUMPY = re.compile(r"(?:np|numpy)\.\w+\((.*)\)", re.DOTALL)
# Loggers that `captured` looks after, whether they propagate or not.
_KNOWN = ("absl", "tensorflow")
# What is meant to be a series line, whether or not it is one.
ATTEMPT = re.compile(r"\s*\[?step ?=", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Line:
    """One record as a handler saw it.

    Attributes:
      number: its place among all records of the run, from 1.
      index: how many events were on the timeline when it came.
      text: what it says; the reason, where it could not be formatted.
      logger: name of the logger that made it.
      level: as numbered by `logging`.
      name, step, value: of a series line; name is None for any other.
      failed: it could not be formatted.
      copies: how many more consoles it was written to than there should be.
    """

    number: int
    index: int
    text: str
    logger: str
    level: int
    name: str | None = None
    step: int = 0
    value: Any = None
    failed: bool = False
    copies: int = 0


class Capture(logging.Handler):
    """Stands at the root logger, and at those that keep to themselves.

    Attributes:
      lines: what came, oldest first.
    """

    def __init__(self, watch: Watch) -> None:
        super().__init__(level=logging.NOTSET)
        self.lines: list[Line] = []
        self._watch = watch
        self._apart: list[tuple[logging.Logger, list[logging.Handler]]] = []

    def follow(self) -> None:
        """Stands at loggers too whose records do not come to the root logger."""
        for logger in list(logging.root.manager.loggerDict.values()):
            if not isinstance(logger, logging.Logger) or logger.propagate:
                continue
            if logger.name not in _KNOWN and self not in logger.handlers:
                self._apart.append((logger, logger.handlers[:]))
                logger.handlers[:] = [self]

    def leave(self) -> None:
        """Gives these loggers their own handlers back."""
        for logger, handlers in self._apart:
            logger.handlers[:] = handlers

    def emit(self, record: logging.LogRecord) -> None:
        """Formats and keeps one record. Never raises into the code under test."""
        line = self._line(record)
        self.lines.append(line)
        if line.name is not None and line.level >= logging.INFO:
            self._watch.append(Event("log", line.name, line.step, line.value))

    def _line(self, record: logging.LogRecord) -> Line:
        number, index = len(self.lines) + 1, len(self._watch)
        place = (number, index)
        try:
            text = record.getMessage()
        except Exception as error:
            text = f"{record.msg!r} with arguments {record.args!r}: {error}"
            return Line(*place, text, record.name, record.levelno, failed=True)
        series = _series.parse(text)
        step, name, value = series if series else (0, None, None)
        return Line(
            *place,
            text,
            record.name,
            record.levelno,
            name,
            step,
            None if value is None else number_of(value),
            copies=_added_consoles(record),
        )


@contextlib.contextmanager
def captured(watch: Watch) -> Iterator[Capture]:
    """Lets all records through, to a Capture alone; afterwards all is as before.

    What else listens at the root logger is put aside for as long: a run of the check
    should not fill the log of its caller.
    """
    root, absl = logging.getLogger(), absl_logging.get_absl_logger()
    # TensorFlow's has a handler of its own, to stderr.
    loggers = (root, absl, logging.getLogger("tensorflow"))
    before = [(x, x.handlers[:], x.level, x.propagate) for x in loggers]
    disabled, verbosity = root.manager.disable, absl_logging.get_verbosity()
    capture = Capture(watch)
    for logger in loggers:
        logger.handlers[:] = []
    root.addHandler(capture)
    capture.follow()
    root.setLevel(logging.DEBUG)
    # Below INFO, so that a trainer which sets INFO and leaves it is seen to do so.
    absl_logging.set_verbosity(absl_logging.DEBUG)
    absl.propagate = True
    logging.disable(logging.NOTSET)
    try:
        yield capture
    finally:
        capture.leave()
        absl_logging.set_verbosity(verbosity)
        for logger, handlers, level, propagate in before:
            logger.handlers[:] = handlers
            logger.setLevel(level)
            logger.propagate = propagate
        logging.disable(disabled)


def silenced() -> list[str]:
    """Why an INFO record would not get through just now, if it would not."""
    root, absl = logging.getLogger(), absl_logging.get_absl_logger()
    found = []
    if root.manager.disable >= logging.INFO:
        found.append(f"logging.disable({root.manager.disable})")
    if absl.getEffectiveLevel() > logging.INFO:
        level = logging.getLevelName(absl.getEffectiveLevel())
        found.append(f"the absl logger is at {level}")
    if not any(isinstance(handler, Capture) for handler in root.handlers):
        found.append("the handlers of the root logger were removed")
    if not absl.propagate:
        found.append("the absl logger does not propagate")
    return found


def number_of(text: str) -> Any:
    """The number that a logged value stands for, or its text."""
    for pattern in (_TENSOR, _NUMPY):
        match = pattern.fullmatch(text)
        if match:
            text = match[1]
    return _series.number(text)


def _added_consoles(record: logging.LogRecord) -> int:
    """Handlers beside ours that write this record to a console.

    A program has one already; the Capture stands for it.
    """
    found = 0
    logger: logging.Logger | None = logging.getLogger(record.name)
    while logger is not None:
        found += sum(_is_console(h, record) for h in logger.handlers)
        logger = logger.parent if logger.propagate else None
    return found


def _is_console(handler: logging.Handler, record: logging.LogRecord) -> bool:
    if not isinstance(handler, logging.StreamHandler):
        return False
    if record.levelno < handler.level or isinstance(handler, logging.FileHandler):
        return False
    consoles = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
    return any(handler.stream is stream for stream in consoles)

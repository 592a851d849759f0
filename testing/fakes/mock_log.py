"""MockLog: stands in for `absl.logging` or a `logging.Logger` in a test."""

from __future__ import annotations

import itertools
import logging
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping
from types import FrameType
from typing import Any

from absl import logging as absl_logging
from absl.logging import converter

from testing.fakes import _series
from testing.fakes.faults import FaultPlan
from testing.fakes.timeline import Timeline

_LOGGING_FILES = (__file__, logging.__file__, absl_logging.__file__)


class MockLog:
    """Records what the code under test logs, and passes it on to the real logger.

        with mock.patch.object(export_utils, 'logging', new_callable=MockLog) as log:
            train(...)
        assert log.steps('loss') == [0, 1, 2]

    It formats by the rules of the logger it stands in for: a message without
    arguments is text, whatever percent signs it has. A message that cannot be
    formatted is kept in `bad_formats` and never raised into the code under test. A
    method that the real logger does not have is refused with AttributeError. A fatal
    message is recorded and passed on as an error: the real one would end the
    process. Levels are recorded, not obeyed: also a line that the real logger would
    drop at its verbosity is kept.

    Attributes:
      records: every record, oldest first, as `logging.LogRecord`s. `message` is the
        formatted text; None for those in `bad_formats`.
      bad_formats: the records that could not be formatted; `format_error` says why.
    """

    def __init__(
        self,
        target: Any = absl_logging,
        *,
        forward: bool = True,
        timeline: Timeline | None = None,
        faults: FaultPlan | None = None,
    ) -> None:
        """Creates a log.

        Args:
          target: what it stands in for: `absl.logging`, a `logging.Logger`, or the
            module `logging`.
          forward: whether to pass records on to `target`.
          timeline: gets a `log` event for each line; series lines with name, step
            and value, others with their text as value.
          faults: faults at its lines; a line's name is that of its series.
        """
        self._target = target
        self._absl = target is absl_logging
        self._forward = forward
        self._timeline = timeline
        self._faults = FaultPlan() if faults is None else faults
        self._lock = threading.RLock()
        self._records: list[logging.LogRecord] = []
        self._counts: dict[Hashable, Iterator[int]] = {}
        self._times: dict[Hashable, float] = {}

    # What a test asks.

    @property
    def records(self) -> list[logging.LogRecord]:
        with self._lock:
            return list(self._records)

    @property
    def bad_formats(self) -> list[logging.LogRecord]:
        return [r for r in self.records if r.__dict__["format_error"] is not None]

    @property
    def lines(self) -> list[str]:
        """The text of every record that could be formatted, oldest first."""
        return [r.message for r in self.records if r.__dict__["format_error"] is None]

    def lines_at(self, level: str) -> list[str]:
        """The same for one level, by name: `INFO`, `WARNING`, ..."""
        number = logging.getLevelName(level.upper())
        if not isinstance(number, int):
            raise ValueError(f"level is {level!r}. Allowed: a level's name, as INFO.")
        records = [r for r in self.records if r.levelno == number]
        return [r.message for r in records if r.__dict__["format_error"] is None]

    def as_string(self) -> str:
        """All lines, joined by line feeds."""
        return "\n".join(self.lines)

    def count(self, name: str) -> int:
        """How many lines the series of exactly this name has."""
        return len(self.steps(name))

    def steps(self, name: str) -> list[int]:
        """The steps at which the series of exactly this name was logged."""
        return [step for step, found, _ in self._parsed() if found == name]

    def values(self, name: str) -> list[Any]:
        """What it was logged with: numbers where they are, else text."""
        return [
            _series.number(text) for _, found, text in self._parsed() if found == name
        ]

    def names(self) -> list[str]:
        """The names of all series, in the order of their first line."""
        return list(dict.fromkeys(name for _, name, _ in self._parsed()))

    def clear(self) -> None:
        """Forgets all records."""
        with self._lock:
            self._records.clear()

    def _parsed(self) -> list[tuple[int, str, str]]:
        parsed = (_series.parse(line) for line in self.lines)
        return [series for series in parsed if series is not None]

    def __repr__(self) -> str:
        """Counts, series and the last lines: what a failing test needs first."""
        lines = self.lines
        head = f"{len(lines)} lines, {len(self.bad_formats)} bad formats"
        series = ", ".join(f"{name} x {self.count(name)}" for name in self.names())
        tail = "; ".join(repr(line) for line in lines[-3:])
        return f"<MockLog: {head}; series: {series or 'none'}; last: {tail or 'none'}>"

    # What the code under test calls. Both kinds of logger have these.

    def debug(self, msg: Any, *args: Any, **kwargs: Any) -> None:
        self._record(logging.DEBUG, msg, args, **kwargs)

    def info(self, msg: Any, *args: Any, **kwargs: Any) -> None:
        self._record(logging.INFO, msg, args, **kwargs)

    def warning(self, msg: Any, *args: Any, **kwargs: Any) -> None:
        self._record(logging.WARNING, msg, args, **kwargs)

    def error(self, msg: Any, *args: Any, **kwargs: Any) -> None:
        self._record(logging.ERROR, msg, args, **kwargs)

    def exception(
        self, msg: Any, *args: Any, exc_info: Any = True, **kwargs: Any
    ) -> None:
        self._record(logging.ERROR, msg, args, exc_info=exc_info, **kwargs)

    def fatal(self, msg: Any, *args: Any, **kwargs: Any) -> None:
        self._record(logging.CRITICAL, msg, args, **kwargs)

    def log(self, level: int, msg: Any, *args: Any, **kwargs: Any) -> None:
        number = _standard_level(level) if self._absl else level
        self._record(number, msg, args, **kwargs)

    # The rest only if the target has them.

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(self._target, name):
            raise AttributeError(f"{self._describe()} has no attribute {name!r}.")
        method = _RECORDED.get(name)
        if method is None:
            return getattr(self._target, name)
        return _bind(method, self)

    def _describe(self) -> str:
        return str(getattr(self._target, "__name__", repr(self._target)))

    def _warn(self, msg: Any, *args: Any, **kwargs: Any) -> None:
        text = "The 'warn' function is deprecated, use 'warning' instead"
        warnings.warn(text, DeprecationWarning, 3)
        self.warning(msg, *args, **kwargs)

    def _log_if(
        self, level: int, msg: Any, condition: Any, *args: Any, **kwargs: Any
    ) -> None:
        if condition:
            self.log(level, msg, *args, **kwargs)

    def _log_every_n(
        self,
        level: int,
        msg: Any,
        n: int,
        *args: Any,
        use_call_stack: bool = False,
        **kwargs: Any,
    ) -> None:
        nth = self._nth_call(use_call_stack)
        self._log_if(level, msg, nth % n == 0, *args, **kwargs)

    def _log_first_n(
        self,
        level: int,
        msg: Any,
        n: int,
        *args: Any,
        use_call_stack: bool = False,
        **kwargs: Any,
    ) -> None:
        nth = self._nth_call(use_call_stack)
        self._log_if(level, msg, nth < n, *args, **kwargs)

    def _log_every_n_seconds(
        self,
        level: int,
        msg: Any,
        n_seconds: float,
        *args: Any,
        use_call_stack: bool = False,
        **kwargs: Any,
    ) -> None:
        site, now = _call_site(use_call_stack), time.monotonic()
        with self._lock:
            due = now - self._times.get(site, -float("inf")) >= n_seconds
            if due:
                self._times[site] = now
        self._log_if(level, msg, due, *args, **kwargs)

    def _nth_call(self, use_call_stack: bool) -> int:
        """How often this place in the code has called before."""
        site = _call_site(use_call_stack)
        with self._lock:
            return next(self._counts.setdefault(site, itertools.count()))

    # Recording.

    def _record(
        self,
        level: int,
        msg: Any,
        args: tuple[Any, ...],
        *,
        exc_info: Any = None,
        extra: Mapping[str, Any] | None = None,
        stack_info: bool = False,
        stacklevel: int = 1,
    ) -> None:
        frame = _caller(stacklevel)
        record = logging.getLogger("absl").makeRecord(
            getattr(self._target, "name", None) or "absl",
            level,
            frame.f_code.co_filename,
            frame.f_lineno,
            msg,
            args,
            _exc_info(exc_info),
            frame.f_code.co_name,
            {**(extra or {}), "format_error": None},
            "".join(traceback.format_stack(frame)) if stack_info else None,
        )
        _format(record)
        name = _series_name(record)
        self._faults.reach("log", "before", name)
        with self._lock:
            self._records.append(record)
            self._note(record)
        self._faults.reach("log", "inside", name)
        if self._forward:
            options = {"exc_info": exc_info, "extra": extra, "stack_info": stack_info}
            self._pass_on(record, options, stacklevel)
        self._faults.reach("log", "after", name)

    def _note(self, record: logging.LogRecord) -> None:
        if self._timeline is None or record.__dict__["format_error"] is not None:
            return
        series = _series.parse(record.message)
        if series is None:
            self._timeline.add("log", value=record.message)
        else:
            step, name, text = series
            self._timeline.add("log", name, step, _series.number(text))

    def _pass_on(
        self, record: logging.LogRecord, options: dict[str, Any], stacklevel: int
    ) -> None:
        """Gives the finished text to the real logger, as if the caller had."""
        logger = absl_logging.get_absl_logger() if self._absl else self._target
        level = record.levelno
        if level >= logging.CRITICAL and _aborts(logger):
            level = logging.ERROR
        text = record.message
        if record.__dict__["format_error"] is not None:
            text = record.__dict__["format_error"]
        # Text without arguments is never formatted again. The two frames are
        # `_record` and the method the code under test called; absl skips none.
        logger.log(level, text, stacklevel=stacklevel + 3, **options)


def _bind(method: Callable[..., None], log: MockLog) -> Callable[..., None]:
    return method.__get__(log)  # type: ignore[attr-defined,no-any-return]


# Methods that record, but that only one of the two kinds of logger has.
_RECORDED: dict[str, Callable[..., None]] = {
    "warn": MockLog._warn,
    "critical": MockLog.fatal,
    "vlog": MockLog.log,
    "log_if": MockLog._log_if,
    "log_every_n": MockLog._log_every_n,
    "log_first_n": MockLog._log_first_n,
    "log_every_n_seconds": MockLog._log_every_n_seconds,
}


def _format(record: logging.LogRecord) -> None:
    """Sets `message`, or `format_error` when the message cannot be formatted."""
    try:
        record.message = record.getMessage()
    except Exception as error:
        record.message = None  # type: ignore[assignment]
        record.__dict__["format_error"] = (
            f"Bad log format: {_safe_repr(record.msg)} with arguments "
            f"{_safe_repr(record.args)}: {type(error).__name__}: {error}"
        )


def _series_name(record: logging.LogRecord) -> str:
    series = _series.parse(record.message or "")
    return "" if series is None else series[1]


def _safe_repr(value: Any) -> str:
    try:
        return repr(value)
    except Exception as error:
        return f"<{type(value).__name__} whose repr raises {type(error).__name__}>"


def _standard_level(level: int) -> int:
    """An absl level in the numbers of `logging`, by absl's own rules."""
    if level > converter.ABSL_DEBUG:
        return int(converter.STANDARD_DEBUG - (level - 1))
    return int(converter.absl_to_standard(max(level, converter.ABSL_FATAL)))


def _aborts(logger: Any) -> bool:
    """Whether a fatal record of this logger would end the process."""
    return isinstance(logger, absl_logging.ABSLLogger)


def _exc_info(value: Any) -> Any:
    """`exc_info` as a record keeps it, by the rules of `logging`."""
    if not value:
        return None
    if isinstance(value, BaseException):
        return (type(value), value, value.__traceback__)
    return value if isinstance(value, tuple) else sys.exc_info()


def _caller(stacklevel: int) -> FrameType:
    """The frame that called the log, as the real logger would find it."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in _LOGGING_FILES:
        frame = frame.f_back
    for _ in range(stacklevel - 1):
        frame = frame.f_back or frame
    return frame


def _call_site(use_call_stack: bool) -> Hashable:
    frame: FrameType | None = _caller(1)
    sites = []
    while frame is not None:
        sites.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back if use_call_stack else None
    return tuple(sites)

"""MockLog against the real absl.logging: same text, same failures, none raised."""

import contextlib
import logging

from absl import logging as absl_logging
from hypothesis import given, settings
from hypothesis import strategies as st

from testing.fakes import MockLog


class _Rude:
    """Neither text nor repr can be had of it."""

    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


class _Capture(logging.Handler):
    """Formats as a real handler does, and notes what came of it."""

    def __init__(self):
        super().__init__(level=1)
        self.seen = []

    def emit(self, record):
        try:
            text, error = record.getMessage(), None
        except Exception as caught:
            text, error = None, type(caught).__name__
        self.seen.append((record.levelno, text, error))


PIECES = st.sampled_from(
    ["%", "%%", "%s", "%d", "%r", "%5.2f", "%(a)s", "%(b)d", "%x", "% d", "%z", "\n"]
)
MESSAGES = st.one_of(
    st.lists(st.one_of(PIECES, st.text(max_size=5)), max_size=6).map("".join),
    st.sampled_from([None, 3, 1.5, b"%s", ("%s",), _Rude()]),
)
VALUES = st.one_of(
    st.none(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=3),
    st.lists(st.integers(), max_size=2),
    st.tuples(st.integers()),
    st.dictionaries(st.sampled_from(["a", "b"]), st.integers(), max_size=2),
    st.just(_Rude()),
)
ARGUMENTS = st.lists(VALUES, max_size=3).map(tuple)
CALLS = st.one_of(
    st.tuples(
        st.sampled_from(["debug", "info", "warning", "error", "exception"]),
        st.just(()),
    ),
    st.tuples(st.sampled_from(["log", "vlog"]), st.tuples(st.integers(-2, 5))),
)


@contextlib.contextmanager
def _captured():
    """What the real logger hands to its handlers; everything is let through.

    Within the test, as pytest's own handlers raise what cannot be formatted.
    """
    logger, handler = absl_logging.get_absl_logger(), _Capture()
    before = logger.level, logger.propagate, list(logger.handlers)
    logger.setLevel(1)
    logger.propagate = False
    logger.handlers[:] = [handler]
    try:
        yield handler.seen
    finally:
        logger.setLevel(before[0])
        logger.propagate = before[1]
        logger.handlers[:] = before[2]


@settings(max_examples=500)
@given(call=CALLS, message=MESSAGES, arguments=ARGUMENTS)
def test_records_what_absl_logs(call, message, arguments):
    method, level = call
    with _captured() as seen:
        getattr(absl_logging, method)(*level, message, *arguments)
    (real,) = seen

    log = MockLog(forward=False)
    getattr(log, method)(*level, message, *arguments)
    (record,) = log.records
    failed = bool(log.bad_formats)
    assert (record.levelno, record.message) == real[:2]
    assert failed == (real[2] is not None)
    assert log.lines == ([] if failed else [real[1]])
    if failed:
        assert real[2] in record.format_error


@settings(max_examples=200)
@given(call=CALLS, message=MESSAGES, arguments=ARGUMENTS)
def test_passes_on_what_absl_would_log(call, message, arguments):
    method, level = call
    with _captured() as seen:
        getattr(absl_logging, method)(*level, message, *arguments)
        getattr(MockLog(), method)(*level, message, *arguments)
    real, passed_on = seen
    assert passed_on[0] == real[0]
    assert passed_on[2] is None
    if real[2] is None:
        assert passed_on[1] == real[1]
    else:
        assert passed_on[1].startswith("Bad log format: ")


@given(st.integers(), st.text(min_size=1).filter(lambda s: "\n" not in s), st.text())
def test_finds_any_series_again(step, name, value):
    log = MockLog(forward=False)
    log.info(f"[step={step}] {name} = {value}.")
    if " = " not in name:
        assert (log.steps(name), log.names()) == ([step], [name])

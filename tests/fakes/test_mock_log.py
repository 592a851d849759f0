"""MockLog: formatting, series, what is refused, what is passed on."""

import functools
import logging
import subprocess
import sys
import threading
from types import SimpleNamespace
from unittest import mock

import pytest
from absl import logging as absl_logging

from testing.fakes import MockLog, Timeline


@pytest.fixture
def log():
    return MockLog(forward=False)


def test_replaces_a_modules_logging():
    module = SimpleNamespace(logging=absl_logging)
    with mock.patch.object(module, "logging", new_callable=MockLog) as log:
        module.logging.info("[step=%d] loss = %s.", 3, 0.5)
    assert log.lines == ["[step=3] loss = 0.5."]
    assert module.logging is absl_logging


def test_keeps_every_level_in_order(log):
    log.debug("a")
    log.info("b")
    log.warning("c")
    log.error("d")
    log.fatal("e")
    log.log(absl_logging.INFO, "f")
    log.vlog(2, "g")
    assert log.as_string() == "a\nb\nc\nd\ne\nf\ng"
    assert [r.levelno for r in log.records] == [10, 20, 30, 40, 50, 20, 9]
    assert log.lines_at("info") == ["b", "f"]


def test_levels_beyond_fatal_are_fatal(log):
    for level in (absl_logging.FATAL, absl_logging.FATAL - 5):
        log.log(level, "x")
    assert [r.levelname for r in log.records] == ["CRITICAL", "CRITICAL"]


def test_refuses_a_level_that_does_not_exist(log):
    with pytest.raises(ValueError, match=r"^level is 'loud'\. Allowed: a level's name"):
        log.lines_at("loud")


def test_text_without_arguments_is_not_formatted(log):
    log.info("100% done, 5 %d")
    assert log.lines == ["100% done, 5 %d"]


def test_bad_format_is_data_and_never_raised(log):
    log.info("loss %d", "high")
    log.info("%s")
    assert log.lines == ["%s"]
    (bad,) = log.bad_formats
    assert bad.format_error == (
        "Bad log format: 'loss %d' with arguments ('high',): "
        "TypeError: %d format: a real number is required, not str"
    )


def test_bad_format_with_a_bad_repr_is_not_raised_either(log):
    class Rude:
        def __repr__(self):
            raise RuntimeError("no")

    log.info("%d", Rude())
    assert "<tuple whose repr raises RuntimeError>" in log.bad_formats[0].format_error


@pytest.mark.parametrize("name", ["inf", "critical", "lines_of", "logg", "_private"])
def test_refuses_what_absl_does_not_have(log, name):
    with pytest.raises(AttributeError, match=f"absl.logging has no attribute '{name}'"):
        getattr(log, name)


@pytest.mark.parametrize("name", ["vlog", "log_every_n", "level_debug"])
def test_refuses_what_a_logger_does_not_have(name):
    log = MockLog(logging.getLogger("x"), forward=False)
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
        getattr(log, name)


def test_unknown_keyword_is_an_error_as_in_the_real_logger(log):
    with pytest.raises(TypeError, match="colour"):
        log.info("x", colour="red")


def test_constants_and_levels_are_the_real_ones(log):
    assert log.INFO == absl_logging.INFO
    assert log.get_verbosity() == absl_logging.get_verbosity()


def test_stands_in_for_a_logger():
    log = MockLog(logging.getLogger("onbeat.test"), forward=False)
    log.log(logging.INFO, "a %s", 1)
    log.critical("b")
    assert log.lines == ["a 1", "b"]
    assert [r.levelname for r in log.records] == ["INFO", "CRITICAL"]
    assert log.name == "onbeat.test"


def test_stands_in_for_the_module_logging():
    module = SimpleNamespace(logging=logging)
    factory = functools.partial(MockLog, logging, forward=False)
    with mock.patch.object(module, "logging", new_callable=factory) as log:
        module.logging.info("a")
        module.logging.log(module.logging.ERROR, "b")
    assert [r.levelname for r in log.records] == ["INFO", "ERROR"]


def test_series_are_counted_by_exact_name(log):
    log.info("[step=0] hinge_loss = 1.")
    log.info("[step=64] loss = 0.25.")
    log.info("[step=6] loss = nan.")
    log.info("about the loss = 3.")
    log.info(" [step=1] loss = 3.")
    assert log.count("loss") == 2
    assert log.steps("loss") == [64, 6]
    assert log.values("loss")[0] == 0.25
    assert log.names() == ["hinge_loss", "loss"]
    assert log.count("oss") == 0


def test_series_values_may_have_several_lines(log):
    log.info("[step=%d] Rewards = %s.", 2, "[[1. 2.]\n [3. 4.]]")
    assert log.steps("Rewards") == [2]
    assert log.values("Rewards") == ["[[1. 2.]\n [3. 4.]]"]


def test_a_series_name_may_have_spaces_and_a_value_an_equals_sign(log):
    log.info("[step=-1] my loss = a = 3.")
    assert log.steps("my loss") == [-1]
    assert log.values("my loss") == ["a = 3"]


def test_every_n_and_first_n_count_by_call_site(log):
    for i in range(5):
        log.log_every_n(log.INFO, "every %d", 2, i)
        log.log_first_n(log.INFO, "first %d", 1, i)
        log.log_every_n_seconds(log.INFO, "seconds %d", 3600, i)
        log.log_if(log.INFO, "if %d", i == 4, i)
    assert sorted(log.lines) == [
        "every 0",
        "every 2",
        "every 4",
        "first 0",
        "if 4",
        "seconds 0",
    ]


def test_warn_is_deprecated_as_in_absl(log):
    with pytest.warns(DeprecationWarning, match="'warn' function is deprecated"):
        log.warn("x")
    assert log.lines == ["x"]


def test_exception_keeps_the_traceback(log):
    try:
        raise RuntimeError("boom")
    except RuntimeError:
        log.exception("failed")
    assert log.records[0].exc_info[0] is RuntimeError


def test_records_tell_the_caller(log):
    log.info("x")
    assert log.records[0].filename == "test_mock_log.py"
    assert log.records[0].funcName == "test_records_tell_the_caller"


@pytest.mark.parametrize("target", [absl_logging, logging.getLogger("absl"), logging])
def test_forwards_as_if_the_caller_had_logged(target, caplog):
    log = MockLog(target)
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.DEBUG, "absl"):
        log.info("value %s of 100%%", 1)
        log.warning("100% text")
        log.log(target.INFO if target is absl_logging else 20, "c")
    assert [r.getMessage() for r in caplog.records] == [
        "value 1 of 100%",
        "100% text",
        "c",
    ]
    assert {r.filename for r in caplog.records} == {"test_mock_log.py"}
    lines = [r.lineno for r in caplog.records]
    assert lines == [r.lineno for r in log.records]


def test_forwards_a_bad_format_as_text(caplog):
    with caplog.at_level(logging.DEBUG, "absl"):
        MockLog().info("%d", "x")
    assert caplog.messages[0].startswith("Bad log format: '%d' with arguments ('x',)")


def test_forwards_a_fatal_message_as_an_error(caplog):
    MockLog().fatal("the real one would end the process")
    assert caplog.records[0].levelname == "ERROR"


def test_puts_lines_on_a_timeline():
    timeline = Timeline()
    log = MockLog(forward=False, timeline=timeline)
    log.info("hello")
    log.info("[step=1] loss = 0.5.")
    assert [str(e) for e in timeline] == ["log = hello", "log loss@1 = 0.5"]


def test_counts_lines_of_many_threads(log):
    def work():
        for i in range(50):
            log.info("[step=%d] loss = 1.", i)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log.count("loss") == 400


def test_repr_tells_what_was_logged(log):
    log.info("[step=1] loss = 0.5.")
    assert repr(log) == (
        "<MockLog: 1 lines, 0 bad formats; series: loss x 1; "
        "last: '[step=1] loss = 0.5.'>"
    )


def test_clear_forgets(log):
    log.info("x")
    log.clear()
    assert log.lines == []


def test_needs_no_tensorflow():
    code = (
        "import sys; from testing.fakes import MockLog, Timeline; MockLog().info('x');"
        "assert not {'tensorflow', 'tf_agents', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

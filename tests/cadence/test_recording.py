"""What code logs is recorded, wherever it goes, and nothing else changes."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
import threading

import pytest
from absl import logging as absl_logging

from testing.cadence import Cadence, record_cadence
from testing.fakes.timeline import Timeline


def state():
    loggers = [logging.root, absl_logging.get_absl_logger()]
    return [
        (one.level, list(one.handlers), [list(h.filters) for h in one.handlers])
        for one in loggers
    ], sys.stdout


def test_absl_logging_and_print():
    before = state()
    with record_cadence() as run:
        for step in range(3):
            absl_logging.info("[step=%d] loss = %s.", step, step / 2)
            logging.getLogger("mine").info("step = %d: accuracy = %s", step, 0.5)
            print(f"step = {step}: reward = {step}")
    assert state() == before
    names = ["loss", "accuracy", "reward"]
    assert [(e.kind, e.name, e.step) for e in run] == [
        ("log", name, step) for step in range(3) for name in names
    ]
    assert run.steps("loss") == [0, 1, 2]
    assert run.events[0].value == 0.0
    assert run.cadence.order is not None
    assert run.check(Cadence.infer(run)).ok


def test_what_is_logged_once_is_recorded_once():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger = logging.getLogger("printing")
    logger.addHandler(handler)
    try:
        with record_cadence() as run:
            handler.setStream(sys.stdout)
            logger.info("[step=0] loss = 1.0.")
            print("[step=1] loss = 1.0.")
    finally:
        logger.removeHandler(handler)
    assert run.steps("loss") == [0, 1]


def test_handlers_see_no_more_than_before():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logging.root.addHandler(handler)
    level = logging.root.level
    logging.root.setLevel(logging.WARNING)
    try:
        with record_cadence() as run:
            logging.info("[step=0] loss = 1.0.")
            logging.warning("[step=1] loss = 1.0.")
        assert logging.root.level == logging.WARNING
    finally:
        logging.root.setLevel(level)
        logging.root.removeHandler(handler)
    assert run.steps("loss") == [0, 1]
    assert stream.getvalue() == "[step=1] loss = 1.0.\n"


def test_printed_text_still_appears(capsys):
    with record_cadence():
        print("step = 3: loss = 1", end="")
    assert capsys.readouterr().out == "step = 3: loss = 1"


def test_a_line_without_its_end_counts():
    with record_cadence() as run:
        sys.stdout.write("step = 3: lo")
        sys.stdout.write("ss = 1")
    assert run.steps("loss") == [3]


def test_loggers_that_do_not_propagate():
    logger = logging.getLogger("apart")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    try:
        with record_cadence() as run:
            logger.info("[step=0] loss = 1.0.")
    finally:
        logger.propagate = True
    assert run.steps("loss") == [0]


def test_multi_line_records():
    with record_cadence() as run:
        absl_logging.info("Step = 5 \n\t\t A = 1.0\n\t\t B = 2.0")
        absl_logging.info("[step=6] m = [[1. 2.]\n [3. nan]].")
    assert [(e.name, e.step) for e in run] == [("A", 5), ("B", 5), ("m", 6)]


def test_a_record_that_cannot_be_formatted_harms_nobody():
    raising = logging.raiseExceptions
    logging.raiseExceptions = False
    try:
        with record_cadence() as run:
            logging.getLogger("x").warning("%d", "no number")
            logging.getLogger("x").warning("[step=0] loss = 1.0.")
    finally:
        logging.raiseExceptions = raising
    assert run.steps("loss") == [0]


def test_an_error_leaves_all_as_it_was():
    before = state()

    def fail():
        absl_logging.info("[step=0] loss = 1.0.")
        raise KeyError

    with pytest.raises(KeyError), record_cadence() as run:
        fail()
    assert state() == before
    assert run.steps("loss") == [0]


def test_a_shared_timeline_keeps_the_order():
    timeline = Timeline()
    timeline.add("driver.run")
    with record_cadence(timeline=timeline) as run:
        absl_logging.info("[step=0] loss = 1.0.")
        timeline.add("agent.train")
    assert timeline.kinds() == ["driver.run", "log", "agent.train"]
    assert len(run) == 1


def test_threads():
    def work(name):
        for step in range(200):
            absl_logging.info("[step=%d] %s = 1.0.", step, name)

    with record_cadence() as run:
        threads = [threading.Thread(target=work, args=(f"t{i}",)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert all(run.steps(f"t{i}") == list(range(200)) for i in range(4))


def test_pattern():
    with record_cadence(pattern=r"at (?P<step>\d+): (?P<value>\S+)") as run:
        print("at 7: 0.5")
    assert [(e.name, e.step, e.value) for e in run] == [("value", 7, 0.5)]


@pytest.mark.parametrize("pattern", ["(", "at (?P<step>.)"])
def test_bad_pattern(pattern):
    with pytest.raises(ValueError, match=r"^pattern "), record_cadence(pattern=pattern):
        pass


def test_tensorflow_is_not_imported():
    code = (
        "import sys; from testing.cadence import record_cadence\n"
        "with record_cadence() as run: print('step = 1: loss = 2')\n"
        "assert run.steps('loss') == [1]\n"
        "assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_summaries_of_tensorflow(tmp_path):
    tf = pytest.importorskip("tensorflow")
    old = tf.summary.create_file_writer(str(tmp_path))
    with old.as_default():
        tf.summary.scalar("loss", 9.0, step=9)
    old.flush()

    @tf.function
    def write(step):
        tf.summary.scalar("loss", 0.5, step=step)

    original = tf.summary.create_file_writer
    with record_cadence() as run:
        writer = tf.compat.v2.summary.create_file_writer(str(tmp_path))
        with writer.as_default():
            for step in tf.range(3, dtype=tf.int64):
                write(step)
        absl_logging.info("[step=0] loss = 1.0.")
    assert tf.summary.create_file_writer is original
    assert run.steps("loss", "summary") == [0, 1, 2]
    assert run.steps("loss") == [0]
    assert {series.name for series in run.cadence.series} == {"loss", "summary:loss"}


def test_summaries_of_event_file_writers(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.summary.writer import event_file_writer

    with record_cadence() as run:
        writer = event_file_writer.EventFileWriter(str(tmp_path))
        for step in range(3):
            value = summary_pb2.Summary.Value(tag="loss", simple_value=0.5)
            summary = summary_pb2.Summary(value=[value])
            writer.add_event(event_pb2.Event(step=step, summary=summary))
    assert run.steps("loss", "summary") == [0, 1, 2]

"""SIGTERM and Ctrl-C between two loops, and the second one at once."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time

import pytest
import tensorflow as tf

from testing.fakes import CountingAgent, FakeEnvironment
from tests.trainer import runs
from trainer import lock, signals

SIGNALS = [
    pytest.param(signal.SIGINT, KeyboardInterrupt, id="SIGINT"),
    pytest.param(signal.SIGTERM, SystemExit, id="SIGTERM"),
]


@pytest.fixture(autouse=True)
def default_handlers():
    """As in a program of its own, whatever runs the tests."""
    before = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    for signum, handler in before.items():
        signal.signal(signum, handler)


def signalled(signum, step, times=1):
    """Agent and environment of a run that gets a signal during a train step."""
    environment = FakeEnvironment(batch_size=runs.BATCH_SIZE)

    def loss(index):
        if index == step:
            for _ in range(times):
                os.kill(os.getpid(), signum)
        return 0.5

    return {
        "environment": environment,
        "agent": CountingAgent(environment, losses=loss),
    }


@pytest.mark.parametrize(("signum", "error"), SIGNALS)
def test_the_loop_is_finished_and_checkpointed(tmp_path, signum, error, capfd):
    # 9 of 10 loops would not be checkpointed yet.
    with pytest.raises(error) as caught:
        runs.run(tmp_path, loops=9, checkpoint_interval=10, **signalled(signum, step=2))
    if error is SystemExit:
        assert caught.value.code == 143
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "ckpt-2")
    assert not (tmp_path / lock.NAME).exists()
    assert (
        f"{signum.name}: finishing the training loop, then saving a checkpoint. "
        "Once more stops at once." in capfd.readouterr().err
    )


@pytest.mark.parametrize(("signum", "error"), SIGNALS)
def test_the_run_goes_on_from_there(tmp_path, signum, error):
    with pytest.raises(error):
        runs.run(tmp_path, loops=3, **signalled(signum, step=2))
    again = runs.run(tmp_path, loops=3, resume_training_loops=True)
    assert again.log.steps("loss") == [4, 5]


@pytest.mark.parametrize(("signum", "error"), SIGNALS)
def test_handlers_and_threads_are_as_before(tmp_path, signum, error):
    before = handlers(), set(threading.enumerate())
    with pytest.raises(error):
        runs.run(tmp_path, loops=3, **signalled(signum, step=2))
    assert (handlers(), set(threading.enumerate())) == before
    assert signal.set_wakeup_fd(-1) == -1


def handlers():
    return [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]


def test_a_second_ctrl_c_stops_at_once(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        runs.run(tmp_path, loops=3, **signalled(signal.SIGINT, step=2, times=2))
    # The loop in progress was not finished.
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "ckpt-1")
    assert not (tmp_path / lock.NAME).exists()


def test_a_handler_of_the_callers_own_is_left_alone(tmp_path):
    seen = []
    signal.signal(signal.SIGTERM, lambda *got: seen.append(got[0]))
    run = runs.run(tmp_path, loops=3, **signalled(signal.SIGTERM, step=2))
    assert seen == [signal.SIGTERM]
    assert run.summary.loops == 3


def test_a_signal_that_is_ignored_stays_so(tmp_path):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    run = runs.run(tmp_path, loops=3, **signalled(signal.SIGINT, step=2))
    assert run.summary.loops == 3


def test_another_thread_trains_without_handlers(tmp_path):
    done = []
    thread = threading.Thread(target=lambda: done.append(runs.run(tmp_path)))
    before = handlers()
    thread.start()
    thread.join()
    assert done[0].summary.loops == 3
    assert handlers() == before


def test_an_event_loops_wakeup_is_kept():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    try:
        with signals.deferred(signals.StopRequest()):
            assert signal.set_wakeup_fd(writer) == writer
        assert signal.set_wakeup_fd(writer) == writer
    finally:
        signal.set_wakeup_fd(-1)
        os.close(reader)
        os.close(writer)


def test_a_child_process_has_the_handlers_from_before():
    request = signals.StopRequest()
    with signals.deferred(request):
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        time.sleep(0.2)  # Python's own steps after the fork.
        os.kill(child, signal.SIGTERM)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGTERM
    assert request.signum is None


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_twice_ends_a_process_that_hangs_outside_python(signum):
    # The main thread waits in C, where no handler of Python's ever runs.
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signals.GRACE = 0.2
        with signals.deferred(signals.StopRequest()):
            os.write(writer, b".")
            hang_in_c()
        os._exit(0)
    os.read(reader, 1)
    for _ in range(2):
        time.sleep(0.1)
        os.kill(child, signum)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 128 + signum
    os.close(reader)
    os.close(writer)


def hang_in_c():
    libc = ctypes.CDLL(None)
    mutex = ctypes.create_string_buffer(64)
    for _ in range(2):  # The second time it waits for itself.
        libc.pthread_mutex_lock(mutex)


def test_only_one_signal_of_each_is_needed_to_ask():
    request = signals.StopRequest()
    with signals.deferred(request):
        os.kill(os.getpid(), signal.SIGTERM)
        assert request.signum == signal.SIGTERM
        assert handlers() == [signal.default_int_handler, signal.SIG_DFL]
    with pytest.raises(SystemExit) as caught:
        request.finish()
    assert caught.value.code == 143


def test_no_signal_no_exception():
    signals.StopRequest().finish()

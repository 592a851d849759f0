"""SIGTERM and Ctrl-C end a run between two loops; a second one ends it at once."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

# A handler of the caller's own is left in place: who has one has other plans.
_DEFAULTS: dict[int, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}
_NOTICE = (
    "\n{name}: finishing the training loop, then saving a checkpoint. "
    "Once more stops at once.\n"
)


GRACE = 2.0  # Seconds that Python gets to end the run by itself.


class StopRequest:
    """Whether a signal has asked the run to end.

    Attributes:
      signum: the signal that did, or None.
    """

    def __init__(self) -> None:
        self.signum: int | None = None

    def finish(self) -> None:
        """Ends the run as the signal would have, if there was one.

        Raises:
          KeyboardInterrupt: after SIGINT. Uncaught, the process exits with 130.
          SystemExit: after SIGTERM, with code 143.
        """
        if self.signum == signal.SIGINT:
            raise KeyboardInterrupt
        if self.signum is not None:
            raise SystemExit(128 + self.signum)


@contextlib.contextmanager
def deferred(request: StopRequest) -> Iterator[None]:
    """While open, the first SIGTERM or SIGINT only sets the `StopRequest`.

    From then on the handlers are those from before, so that the next one stops at
    once. Does nothing outside the main thread, where Python allows no handlers, and
    to a signal that is ignored or has a handler of the caller's own.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = [s for s, default in _DEFAULTS.items() if signal.getsignal(s) == default]

    def handle(signum: int, frame: FrameType | None) -> None:
        restore()
        request.signum = signum
        _notify(signum)

    def restore() -> None:
        for signum in ours:
            if signal.getsignal(signum) is handle:
                signal.signal(signum, _DEFAULTS[signum])

    with _watching(ours), _not_in_children(restore):
        for signum in ours:
            signal.signal(signum, handle)
        try:
            yield
        finally:
            restore()


def _notify(signum: int) -> None:
    # Not print() and not logging: the signal may have come in the middle of either.
    text = _NOTICE.format(name=signal.Signals(signum).name)
    with contextlib.suppress(OSError):
        os.write(2, text.encode())


@contextlib.contextmanager
def _watching(signums: list[int]) -> Iterator[None]:
    """Sees to it that the second signal ends the process, whatever it is doing.

    Handlers wait for the main thread, which may be deep in compiled code, waiting for
    an environment that hangs. The bytes that the interpreter writes for each signal
    it catches do not wait.
    """
    if os.name != "posix":
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    if before != -1:  # An event loop wants to know of signals; so it does.
        signal.set_wakeup_fd(before)
    thread = threading.Thread(
        target=_count, args=(reader, set(signums)), name="onbeat-signals", daemon=True
    )
    thread.start()
    try:
        with _not_in_children(lambda: signal.set_wakeup_fd(before)):
            yield
    finally:
        if before == -1:
            signal.set_wakeup_fd(-1)
        os.close(writer)  # Ends the thread.
        thread.join()
        os.close(reader)


def _count(reader: int, signums: set[int]) -> None:
    """Exits if the second signal has not ended the run after a moment."""
    caught = 0
    while byte := os.read(reader, 1):
        caught += byte[0] in signums
        if caught == 2 and not select.select([reader], [], [], GRACE)[0]:
            os._exit(128 + byte[0])
        if caught == 3:
            os._exit(128 + byte[0])


# A forked child, an environment in a process of its own for instance, ends as usual
# when it is told to, and tells nothing to the parent.
_UNDO_IN_CHILD: list[Callable[[], Any]] = []


@contextlib.contextmanager
def _not_in_children(undo: Callable[[], Any]) -> Iterator[None]:
    _UNDO_IN_CHILD.append(undo)
    try:
        yield
    finally:
        _UNDO_IN_CHILD.remove(undo)


def _after_fork() -> None:
    for undo in _UNDO_IN_CHILD:
        undo()
    _UNDO_IN_CHILD.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

"""One run at a time in a directory: a lock that dies with its process."""

from __future__ import annotations

import contextlib
import datetime
import errno
import json
import os
import socket
import time
from collections.abc import Iterator
from typing import Any

from absl import logging

from trainer import storage

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

NAME = "onbeat.lock"
_HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)
_UNSUPPORTED = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
_ATTEMPTS = 20  # Each lost to a process that let go of the lock in between.


class DirectoryInUseError(RuntimeError):
    """Another run is using the same `root_dir`."""


@contextlib.contextmanager
def held(root_dir: str) -> Iterator[None]:
    """Holds the lock of `root_dir`, which is made if it is not there.

    The lock is the kernel's, on a file that says who holds it. So it can't outlive
    its process: a reused process id, a restarted container or a dead host never keep
    a directory locked. Forked children do not inherit it. On a remote file system
    (`gs://...`), and one without locks, nothing is locked.

    Raises:
      DirectoryInUseError: another run holds it; nothing was changed.
      StorageError: the directory can't be made or written.
    """
    if fcntl is None or "://" in root_dir:
        yield
        return
    with storage.writing("The lock of the run", root_dir, lambda: "Nothing was done."):
        made = _make(root_dir)
    path = os.path.join(root_dir, NAME)
    descriptor = -1
    try:
        with storage.writing("The lock of the run", path, lambda: "Nothing was done."):
            descriptor = _acquire(path)
        yield
    finally:
        if descriptor >= 0:
            _release(path, descriptor)
        _remove_empty(made)


def _make(directory: str) -> list[str]:
    """Makes a directory. Returns those that were not there, the innermost first."""
    missing = []
    at = os.path.abspath(directory)
    while not os.path.isdir(at):
        missing.append(at)
        at = os.path.dirname(at)
    os.makedirs(directory, exist_ok=True)
    return missing


def _remove_empty(directories: list[str]) -> None:
    """A run that had nothing to do leaves no directory behind."""
    with contextlib.suppress(OSError):
        for directory in directories:
            os.rmdir(directory)


def _acquire(path: str) -> int:
    """Opens and locks the file, and writes down who holds it."""
    for _ in range(_ATTEMPTS):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not _lock(path, descriptor):
                return _keep(descriptor)
            # The holder before removed the file between our opening and locking it.
            if _is_file(path, descriptor):
                _take_over(path, descriptor)
                return _keep(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    raise DirectoryInUseError(f"{path} is locked and released all the time by others.")


def _lock(path: str, descriptor: int) -> bool:
    """True if locked, False if the file system knows no locks.

    Raises:
      DirectoryInUseError: somebody else holds it.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD:
            raise DirectoryInUseError(_refusal(path, descriptor)) from None
        if error.errno not in _UNSUPPORTED:
            raise
        logging.warning(
            "The file system of %s has no locks (%s); a second run is not refused.",
            path,
            storage.reason(error),
        )
        return False
    return True


def _refusal(path: str, descriptor: int) -> str:
    root_dir = os.path.dirname(path)
    for _ in range(_ATTEMPTS):
        if holder := _read(descriptor):
            break
        time.sleep(0.01)  # It has the lock, but has not written itself down yet.
    else:
        return f"Another run is just starting in {root_dir}. Use another root_dir."
    return (
        f"Another run uses {root_dir}: process {holder.get('pid')} on host "
        f"{holder.get('host')}, since {holder.get('started')}. Two runs would "
        "overwrite each other's checkpoints. Wait for it, stop it, or use another "
        "root_dir."
    )


def _take_over(path: str, descriptor: int) -> None:
    """Writes this process down, in place of one that died without letting go."""
    before = _read(descriptor)
    if before:
        logging.warning(
            "Took over the lock %s of process %s on host %s, which is no more.",
            path,
            before.get("pid"),
            before.get("host"),
        )
    holder = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "started": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
    }
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(holder).encode(), 0)


def _read(descriptor: int) -> dict[str, Any]:
    try:
        holder = json.loads(os.pread(descriptor, 4096, 0))
    except ValueError:  # Not written yet, or torn.
        return {}
    return holder if isinstance(holder, dict) else {}


def _is_file(path: str, descriptor: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    return False


def _release(path: str, descriptor: int) -> None:
    """Removes the file while it is still locked, then lets go."""
    if descriptor not in _OPEN:
        return  # This is a forked child; the lock is its parent's.
    _OPEN.discard(descriptor)
    with contextlib.suppress(OSError):
        if _is_file(path, descriptor):
            os.unlink(path)
    with contextlib.suppress(OSError):
        os.close(descriptor)


# A forked child (an environment in a process of its own) shares the parent's lock and
# would keep it after the parent's death.
_OPEN: set[int] = set()


def _keep(descriptor: int) -> int:
    _OPEN.add(descriptor)
    return descriptor


def _let_go_in_child() -> None:
    while _OPEN:
        with contextlib.suppress(OSError):
            os.close(_OPEN.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_child)

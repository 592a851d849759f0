"""One run at a time in a directory; a dead process never keeps it."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import textwrap

import pytest

import trainer
from tests.trainer import runs
from trainer import lock, storage


@pytest.fixture
def root(tmp_path):
    return str(tmp_path / "run")


@pytest.fixture
def other(root):
    """Another process that holds the lock, as `held` does but without TensorFlow."""
    os.makedirs(root)
    holder = {"pid": 0, "host": "elsewhere", "started": "2026-01-02T03:04:05+00:00"}
    script = f"""
        import fcntl, json, os, sys
        file = os.open({os.path.join(root, lock.NAME)!r}, os.O_RDWR | os.O_CREAT)
        fcntl.flock(file, fcntl.LOCK_EX)
        os.write(file, json.dumps({holder!r} | {{"pid": os.getpid()}}).encode())
        print("held", flush=True)
        sys.stdin.read()
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def _holder(root):
    with open(os.path.join(root, lock.NAME)) as file:
        return json.load(file)


def test_the_file_says_who_holds_it_and_goes_away(root):
    with lock.held(root):
        holder = _holder(root)
        assert holder["pid"] == os.getpid()
        assert holder["host"] == socket.gethostname()
        assert re.match(r"\d{4}-\d\d-\d\dT", holder["started"])
        os.mkdir(os.path.join(root, "work"))
    assert os.listdir(root) == ["work"]


def test_a_directory_that_was_made_and_not_used_goes_away(tmp_path):
    with lock.held(str(tmp_path / "a" / "b")):
        assert (tmp_path / "a" / "b").is_dir()
    assert list(tmp_path.iterdir()) == []


def test_a_second_run_is_refused_with_process_and_host_of_the_first(root, other):
    with pytest.raises(
        trainer.DirectoryInUseError,
        match=rf"^Another run uses {re.escape(root)}: process {other.pid} on host "
        r"elsewhere, since 2026-01-02T03:04:05\+00:00\. .*use another root_dir\.$",
    ):
        runs.run(root)
    assert os.listdir(root) == [lock.NAME]


def test_a_second_run_of_the_same_process_is_refused_too(root):
    with lock.held(root):
        with (
            pytest.raises(lock.DirectoryInUseError, match=f"process {os.getpid()} "),
            lock.held(root),
        ):
            pass
        assert os.listdir(root) == [lock.NAME]
    with lock.held(root):
        pass


def test_the_lock_of_a_process_that_was_killed_is_taken_over(root, other, caplog):
    other.kill()
    other.wait()
    assert os.listdir(root) == [lock.NAME]
    assert runs.run(root, loops=1).summary.loops == 1
    assert f"of process {other.pid} on host elsewhere, which is no more" in caplog.text
    assert lock.NAME not in os.listdir(root)


def test_the_process_id_in_the_file_does_not_matter(root, caplog):
    # It has been given to somebody else, who lives: to us.
    os.makedirs(root)
    with open(os.path.join(root, lock.NAME), "w") as file:
        json.dump({"pid": os.getpid(), "host": socket.gethostname()}, file)
    with lock.held(root):
        pass


@pytest.mark.parametrize("content", ["", '{"pid": 1', "[1]", "\0\xff"])
def test_a_torn_lock_file_is_taken_over(root, content):
    os.makedirs(root)
    with open(os.path.join(root, lock.NAME), "w") as file:
        file.write(content)
    with lock.held(root):
        assert _holder(root)["pid"] == os.getpid()


def test_a_holder_that_has_not_written_itself_down_is_still_respected(root):
    fcntl = pytest.importorskip("fcntl")
    os.makedirs(root)
    with open(os.path.join(root, lock.NAME), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with (
            pytest.raises(lock.DirectoryInUseError, match=r"^Another run is just sta"),
            lock.held(root),
        ):
            pass


def test_a_file_that_was_removed_in_between_is_not_the_lock(root, monkeypatch):
    # The holder before lets go after we opened its file and before we lock it.
    flock, calls = lock.fcntl.flock, []

    def let_go_first(descriptor, operation):
        if not calls:
            os.unlink(os.path.join(root, lock.NAME))
        calls.append(descriptor)
        return flock(descriptor, operation)

    monkeypatch.setattr(lock.fcntl, "flock", let_go_first)
    with (
        lock.held(root),
        pytest.raises(lock.DirectoryInUseError),
        lock.held(root),
    ):
        pass
    assert len(calls) == 3  # In vain, the real one, the refused one.


def test_a_forked_child_does_not_keep_the_lock(root):
    (ready, is_ready), (ended, end) = os.pipe(), os.pipe()
    with lock.held(root):
        child = os.fork()
        if child == 0:  # An environment that outlives its parent.
            os.write(is_ready, b".")
            os.close(end)
            os.read(ended, 1)
            os._exit(0)
        os.read(ready, 1)
        (descriptor,) = lock._OPEN
        os.close(descriptor)  # As if this process had died.
        lock._OPEN.clear()
        with lock.held(root):
            pass
    os.close(end)
    os.waitpid(child, 0)
    for unused in (ready, is_ready, ended):
        os.close(unused)


def test_a_file_system_without_locks_is_warned_about(root, monkeypatch, caplog):
    def unsupported(descriptor, operation):
        raise OSError(lock.errno.ENOLCK, "No locks available")

    monkeypatch.setattr(lock.fcntl, "flock", unsupported)
    with lock.held(root):
        pass
    assert "has no locks (No locks available)" in caplog.text
    assert not os.path.exists(root)


@pytest.mark.parametrize("remote", ["gs://bucket/run", "hdfs://name/run"])
def test_remote_file_systems_are_not_locked(remote):
    with lock.held(remote):
        pass
    assert not os.path.exists(remote.split("/")[0])


def test_a_directory_that_cannot_be_made_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    path = str(tmp_path / "file" / "run")
    with (
        pytest.raises(
            storage.StorageError,
            match=rf"^The lock of the run could not be written to {re.escape(path)}: "
            r"Not a directory\. Nothing was done\.$",
        ),
        lock.held(path),
    ):
        pass

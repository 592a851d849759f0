"""A directory is read as one run."""

from __future__ import annotations

import os
import sys

import pytest

from testing.cadence.chunks import Problem
from testing.cadence.readers import UnreadableRun, directories, read
from tests.cadence.readers import writers
from tests.cadence.readers.outcome import declared, events, problems, rows, steps

LOG = "[step=0] loss = 1.\n"


def moments(*numbers):
    return [(number, {"loss": 1.0}) for number in numbers]


@pytest.fixture
def run(write, tmp_path):
    """Writes files by name and returns their directory."""

    def run(**files):
        for name, content in files.items():
            write(content, name.replace("__", "/"))
        return tmp_path

    return run


def event_file(seconds, suffix=""):
    return f"events.out.tfevents.{seconds}.host.1.{suffix}"


def test_resumed_run_is_read_in_the_order_it_was_written(write, tmp_path):
    """By the seconds in the names, then by the number at their end."""
    parts = [(999, "0"), (1000, "2"), (1000, "10"), (1700000000, "0.v2")]
    for index, (seconds, number) in enumerate(parts):
        data = writers.tensorboard_2(moments(2 * index, 2 * index + 1))
        write(data, event_file(seconds, number))
    assert steps(tmp_path, "loss") == list(range(8))
    assert problems(tmp_path) == []


def test_files_without_scalars_beside_others(write, tmp_path):
    write(writers.tensorboard_1(moments(0, 1)), event_file(1, "0"))
    write(writers.tensorboard_1([]), event_file(2, "profile-empty"))
    write(b"", event_file(3, "0"))
    assert steps(tmp_path, "loss") == [0, 1]
    assert problems(tmp_path) == []


def test_only_files_without_scalars(write, tmp_path):
    write(writers.tensorboard_1([]), event_file(2, "0"))
    assert [kind for kind, *_ in problems(tmp_path)] == ["empty"]


def test_train_and_eval(write, tmp_path):
    write(writers.tensorboard_1(moments(0, 1)), f"train/{event_file(1)}")
    write(writers.tensorboard_1(moments(1)), f"eval/{event_file(1)}")
    found = {os.path.basename(os.path.dirname(e.source.path)) for e in events(tmp_path)}
    assert found == {"train", "eval"}


def test_stable_baselines3_directory(write, tmp_path):
    write(writers.stable_baselines3(moments(0, 1)), "progress.csv")
    write(writers.tensorboard_1(moments(0, 1)), event_file(1))
    write('#{"t_start": 1.5}\nr,l,t\n1.0,9,0.5\n', "monitor.csv")
    write(b"PK\x03\x04", "model.zip")
    assert [event.source.format for event in events(tmp_path)] == [
        *["stable-baselines3"] * 2,
        *["tensorboard"] * 2,
    ]


def test_hugging_face_directory_reads_the_last_state(write, tmp_path):
    for last in (500, 1000, 1500):
        numbers = range(500, last + 1, 500)
        state = writers.hugging_face(moments(*numbers))
        write(state, f"checkpoint-{last}/trainer_state.json")
    assert steps(tmp_path, "loss") == [500, 1000, 1500]
    assert declared(tmp_path)["max_steps"] == 1500
    write(writers.hugging_face(moments(500, 1000, 1500, 2000)), "trainer_state.json")
    assert steps(tmp_path, "loss") == [500, 1000, 1500, 2000]


def test_logs(write, tmp_path):
    write(LOG, "worker.log")
    write(LOG, "trainer.host.user.log.INFO.20241201-042129.7")
    write(LOG, "trainer.host.user.log.WARNING.20241201-042129.7")
    write(LOG, "notes.txt")
    write("nothing in it\n", "other.log")
    names = {os.path.basename(event.source.path) for event in events(tmp_path)}
    assert names == {"worker.log", "trainer.host.user.log.INFO.20241201-042129.7"}


def test_pattern_in_a_directory(write, tmp_path):
    write("it 3 is 0.5\n", "a.log")
    found = rows(tmp_path, pattern=r"it (?P<step>\d+) is (?P<value>\S+)")
    assert [row[:3] for row in found] == [("value", 3, 0.5)]


def test_no_run(tmp_path):
    with pytest.raises(UnreadableRun, match="no run in this directory: no event file"):
        rows(tmp_path)


def test_only_files_that_cannot_be_read(write, tmp_path):
    write("version https://git-lfs.github.com/spec/v1\noid x\n", event_file(1))
    with pytest.raises(UnreadableRun, match="a Git LFS pointer"):
        rows(tmp_path)


class TestFilesOfTheRunThatCannotBeRead:
    """They are told, or a run would pass that was not looked at."""

    def read(self, write, tmp_path, content, name):
        write(writers.tensorboard_1(moments(0, 1)), event_file(1))
        write(content, name)
        assert steps(tmp_path, "loss") == [0, 1]
        return [
            (item.kind, item.source.path, item.source.format, item.message)
            for item in read(tmp_path)
            if isinstance(item, Problem)
        ]

    @pytest.mark.parametrize("name", [event_file(2), "worker.log"])
    def test_pointers(self, write, tmp_path, name):
        pointer = "version https://git-lfs.github.com/spec/v1\noid x\n"
        format = "text" if name == "worker.log" else "tensorboard"
        message = "a Git LFS pointer, not the file. Try: git lfs pull"
        found = self.read(write, tmp_path, pointer, name)
        assert found == [("corrupt", str(tmp_path / name), format, message)]

    def test_event_file_that_is_none(self, write, tmp_path):
        name = event_file(2)
        found = self.read(write, tmp_path, b"\0\xff" * 300, name)
        message = "neither text nor an event file."
        assert found == [("corrupt", str(tmp_path / name), "tensorboard", message)]

    def test_without_the_package_that_reads_event_files(
        self, write, tmp_path, monkeypatch
    ):
        """The tables beside them are the same run."""
        write(writers.stable_baselines3(moments(0, 1)), "progress.csv")
        write(writers.tensorboard_1(moments(0, 1)), event_file(1))
        monkeypatch.setitem(sys.modules, "google_crc32c", None)
        assert steps(tmp_path, "loss") == [0, 1]
        assert problems(tmp_path) == []


class TestNothingOutsideIsOpened:
    def test_links_to_files_and_directories(self, write, tmp_path):
        write(LOG, "outside/secret.log")
        write(LOG, "run/inside.log")
        os.symlink(tmp_path / "outside/secret.log", tmp_path / "run/link.log")
        os.symlink(tmp_path / "outside", tmp_path / "run/sub")
        os.symlink("../run", tmp_path / "run/loop")
        found = directories.files(str(tmp_path / "run"))
        assert found == [str(tmp_path / "run/inside.log")]

    def test_pipes_are_not_opened(self, write, tmp_path):
        write(LOG, "run/inside.log")
        os.mkfifo(tmp_path / "run/pipe.log")
        assert steps(tmp_path / "run", "loss") == [0]

    def test_depth_and_number_are_bounded(self, write, tmp_path, monkeypatch):
        monkeypatch.setattr(directories, "_DEEPEST", 2)
        write(LOG, "a/b/in.log")
        write(LOG, "a/b/c/out.log")
        assert [os.path.basename(f) for f in directories.files(str(tmp_path))] == [
            "in.log"
        ]
        monkeypatch.setattr(directories, "_MOST", 0)
        assert directories.files(str(tmp_path)) == []

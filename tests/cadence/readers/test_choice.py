"""The reader is chosen by content; what cannot be read is one clear line."""

from __future__ import annotations

import os
import threading

import pytest

from testing.cadence.readers import UnreadableRun, read
from tests.cadence.readers import writers
from tests.cadence.readers.outcome import formats, messages, problems, rows

MOMENTS = [(0, {"loss": 1.5}), (1, {"loss": 2.5})]
FORMAT_OF = {
    "bandit": "absl",
    "records": "absl",
    "json_lines": "jsonl",
    "json_list": "json",
    "stable_baselines3": "stable-baselines3",
    "lightning": "lightning",
    "hugging_face": "huggingface",
    "tensorboard_1": "tensorboard",
    "tensorboard_2": "tensorboard",
    "tensorboard_double": "tensorboard",
}


@pytest.mark.parametrize("form", writers.FORMATS)
def test_name_does_not_matter(write, form):
    data = writers.FORMATS[form][0](MOMENTS)
    for name in ("run", "run.csv", "run.json", "run.log"):
        assert formats(write(data, name)) == {FORMAT_OF.get(form, "text")}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04xx", "a zip archive or a checkpoint."),
        (b"\x1f\x8b\x08", "compressed. Unpack it first."),
        (b"\x80\x04\x95", "a pickle."),
        (b"\x89HDF\r\n", "an HDF5 file."),
        (b"\x01\x00\x02\x00", "neither text nor an event file."),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
            "a Git LFS pointer, not the file. Try: git lfs pull",
        ),
        (
            b"hello\n",
            "no line with a step and a value, such as '[step=3] loss = 0.5.' or "
            "'step = 3: loss = 0.5'. Name another form with --pattern.",
        ),
    ],
)
@pytest.mark.parametrize("name", ["run.log", "run.json", "x.bin"])
def test_unreadable(write, content, message, name):
    path = write(content, name)
    with pytest.raises(UnreadableRun) as error:
        rows(path)
    assert str(error.value) == f"{path}: {message}"


@pytest.mark.parametrize("content", [b"", b"\n", b"  \r\n \n", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("name", ["run.log", "progress.csv", "events.out.tfevents.1.h"])
def test_empty(write, content, name):
    path = write(content, name)
    if content and "tfevents" in name:
        return
    assert problems(path) == [("empty", 1, 1)]
    assert messages(path) == ["the file is empty."]


def test_missing_directory_or_device(tmp_path):
    for path, message in [
        (tmp_path / "no", "No such file or directory."),
        ("/dev/zero", "not a file."),
    ]:
        with pytest.raises(UnreadableRun) as error:
            rows(path)
        assert str(error.value) == f"{path}: {message}"
    with pytest.raises(UnreadableRun):
        rows("a\0b")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_forbidden(write):
    path = write("x")
    path.chmod(0)
    with pytest.raises(UnreadableRun, match=r"Permission denied\.$"):
        rows(path)


def test_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    data = writers.bandit(MOMENTS)
    thread = threading.Thread(target=path.write_bytes, args=(data,))
    thread.start()
    assert [row[:3] for row in rows(path)] == [("loss", 0, 1.5), ("loss", 1, 2.5)]
    thread.join()


def test_progress(write, monkeypatch):
    monkeypatch.setattr("testing.cadence.readers.blocks.SIZE", 1000)
    path = write(writers.bandit(MOMENTS * 100))
    seen = []
    list(read(path, progress=lambda done, total: seen.append((done, total))))
    size = path.stat().st_size
    assert seen[0] == (1000, size)
    assert seen[-1] == (size, size)
    assert seen == sorted(seen)


def test_a_reader_that_is_left_closes_its_file(write):
    path = write(writers.bandit(MOMENTS))
    before = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    items = read(path)
    next(items)
    items.close()
    after = os.listdir("/proc/self/fd") if before else []
    assert len(after) == len(before)

"""New directories, continued ones, and those of other runs."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from trainer import runs
from trainer.settings import Settings, UsageError


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _checkpoint(path: Path, number: int = 1) -> None:
    checkpoint = tf.train.Checkpoint(v=tf.Variable(0.0))
    manager = tf.train.CheckpointManager(checkpoint, str(path), max_to_keep=5)
    manager.save(checkpoint_number=number)


def _started(**values: Any) -> runs.Run:
    """A run that was begun earlier and has a checkpoint."""
    settings = Settings(root_dir="old", seed=5, **values)
    run = runs.find(settings, given=())
    run.create()
    _checkpoint(run.path)
    return run


def _refused(settings: Settings, given: set[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        runs.find(settings, given)


def test_by_default_a_new_directory_each_time() -> None:
    first = runs.find(Settings(), given=())
    first.create()
    second = runs.find(Settings(), given=())

    pattern = r"runs/\d{8}-\d{6}-digits-LinUCB(-\d+)?"
    assert re.fullmatch(pattern, os.fspath(first.path))
    assert re.fullmatch(pattern, os.fspath(second.path))
    assert first.path != second.path
    assert not second.path.exists()


def test_finding_writes_nothing(tmp_path: Path) -> None:
    runs.find(Settings(root_dir="new"), given={"root_dir"})
    assert not list(tmp_path.iterdir())


def test_seeds_are_drawn_when_not_given() -> None:
    seeds = {runs.find(Settings(), given=()).settings.seed for _ in range(3)}
    assert len(seeds) == 3
    assert runs.find(Settings(seed=0), given={"seed"}).settings.seed == 0


def test_a_continued_run_keeps_its_settings() -> None:
    old = _started(agent="LinTS", batch_size=7, steps_per_loop=3, save_policy=False)

    run = runs.find(Settings(root_dir="old"), given={"root_dir"})

    assert run.continued
    assert run.settings == dataclasses.replace(old.settings, root_dir="old")


def test_steps_may_change_when_a_run_goes_on() -> None:
    _started(steps_per_loop=3, async_steps_per_loop=2)
    asked = Settings(root_dir="old", steps_per_loop=4)

    run = runs.find(asked, given={"root_dir", "steps_per_loop"})

    assert run.settings.steps_per_loop == 4
    assert run.settings.async_steps_per_loop == 2


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("environment", "wheel", "digits"),
        ("agent", "LinTS", "LinUCB"),
        ("batch_size", 8, "32"),
        ("seed", 6, "5"),
    ],
)
def test_another_run_is_refused(name: str, value: Any, kept: str) -> None:
    _started()
    asked = Settings(root_dir="old", **{name: value})

    _refused(asked, {name}, f"^flag --{name}={value}: the run in old has {kept}; ")


def test_checkpoints_of_another_program_are_refused() -> None:
    _checkpoint(Path("old"))
    _refused(Settings(root_dir="old"), set(), r"^flag --root_dir=old: .*run\.json")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"agent": "LinUCB"}'])
def test_a_broken_record_is_refused(text: str) -> None:
    _started()
    Path("old", "run.json").write_text(text)
    _refused(Settings(root_dir="old"), set(), r"^flag --root_dir=old: run\.json in it")


def test_a_run_that_never_saved_begins_anew() -> None:
    runs.find(Settings(root_dir="old", agent="LinTS"), given=()).create()

    run = runs.find(Settings(root_dir="old"), given={"root_dir"})

    assert not run.continued
    assert run.settings.agent == "LinUCB"


def test_impossible_directories() -> None:
    Path("file").write_text("")
    _refused(Settings(root_dir="file"), set(), "^flag --root_dir=file: is no directory")
    _refused(Settings(root_dir=" "), set(), "^flag --root_dir= : allowed is")
    run = runs.find(Settings(root_dir="file/below"), given=())
    with pytest.raises(UsageError, match="file/below: Not a directory"):
        run.create()


class TestData:
    """The data file of a run may not change, nor get lost with the directory."""

    @pytest.fixture(autouse=True)
    def _data(self) -> None:
        Path("data.csv").write_text("a,y\n1,u\n2,v\n")
        _started(environment="csv", data_path="data.csv", label_column="y")

    def test_its_path_is_kept_whole(self, tmp_path: Path) -> None:
        record = json.loads(Path("old", "run.json").read_text())
        assert record["data_path"] == os.fspath(tmp_path / "data.csv")

    def test_unchanged(self) -> None:
        asked = Settings(root_dir="old", data_path="data.csv")
        assert runs.find(asked, given={"root_dir", "data_path"}).continued

    def test_changed(self) -> None:
        Path("data.csv").write_text("a,y\n1,u\n2,w\n")
        _refused(Settings(root_dir="old"), set(), r"data\.csv: changed since the run")


def test_each_continuation_has_random_numbers_of_its_own() -> None:
    streams = [runs.find(Settings(root_dir="old", seed=5), given=()).stream()]
    _started()
    for number in (2, 3):
        streams.append(runs.find(Settings(root_dir="old"), given=()).stream())
        _checkpoint(Path("old"), number)

    assert streams[0] == 5
    assert len(set(streams)) == 3


def test_streams_are_repeatable() -> None:
    _started()
    first = runs.find(Settings(root_dir="old"), given=()).stream()
    assert runs.find(Settings(root_dir="old"), given=()).stream() == first

"""Exported policies: whole or not at all, never half under their final name."""

from __future__ import annotations

import functools
import json
import os

import pytest
import tensorflow as tf
from tf_agents.policies import policy_saver

import trainer
from testing.fakes import CountingAgent, FakeEnvironment, FakePolicySaver, FaultPlan
from testing.fakes.policy_saver import FILE
from tests.trainer import runs
from trainer import policies

PER_LOOP = 2 * runs.STEPS * runs.BATCH_SIZE  # Environment steps.


@pytest.fixture(autouse=True)
def faults(monkeypatch):
    """The saver writes a small stand-in, with the faults that are planned."""
    plan = FaultPlan()
    make = functools.partial(FakePolicySaver, faults=plan)
    monkeypatch.setattr(policy_saver, "PolicySaver", make)
    return plan


@pytest.fixture
def exporter(tmp_path):
    return policies.PolicyExporter(CountingAgent(FakeEnvironment()), str(tmp_path))


def test_the_directory_has_the_environment_steps_in_its_name(exporter, tmp_path):
    assert exporter.save(24) == str(tmp_path / "policy_24")
    assert os.listdir(tmp_path) == ["policy_24"]
    assert json.loads((tmp_path / "policy_24" / FILE).read_text())["train_step"] == 0


@pytest.mark.parametrize("when", ["before", "inside", "after"])
def test_a_failed_export_leaves_nothing(exporter, tmp_path, faults, when):
    faults.raise_at("policy.save", 0, KeyError("policy"), when=when)
    with pytest.raises(KeyError):
        exporter.save(24)
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_a_clear_error(exporter, tmp_path, faults):
    faults.disk_full_at("policy.save", 0)
    with pytest.raises(
        trainer.StorageError,
        match=rf"^The policy could not be written to {tmp_path}/policy_24: No space "
        r"left on device\. The checkpoint is saved; the next run exports the policy "
        r"from it\.$",
    ):
        exporter.save(24)
    assert os.listdir(tmp_path) == []


def test_a_failed_export_keeps_the_checkpoint_and_is_made_up_for(tmp_path, faults):
    faults.disk_full_at("policy.save", 1)
    with pytest.raises(trainer.StorageError):
        runs.run(tmp_path, loops=2)
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("ckpt-2")
    again = runs.run(tmp_path, loops=2, resume_training_loops=True)
    assert again.summary.loops == 0
    assert again.summary.policy_dir == str(tmp_path / f"policy_{2 * PER_LOOP}")
    assert os.path.exists(again.summary.policy_dir)


def test_a_policy_that_was_due_is_exported_before_going_on(tmp_path):
    runs.run(tmp_path, loops=1)
    tf.io.gfile.rmtree(str(tmp_path / f"policy_{PER_LOOP}"))
    runs.run(tmp_path, loops=3, resume_training_loops=True)
    content = json.loads((tmp_path / f"policy_{PER_LOOP}" / FILE).read_text())
    assert content["train_step"] == 2  # As it was then, not as it is now.


def test_one_that_was_not_due_is_not(tmp_path):
    runs.run(tmp_path, loops=2, save_policy=False)
    runs.run(tmp_path, loops=3, resume_training_loops=True)
    found = [path.name for path in tmp_path.glob("policy_*")]
    assert found == [f"policy_{3 * PER_LOOP}"]


def test_one_that_is_there_already_is_replaced_as_a_whole(exporter, tmp_path):
    (tmp_path / "policy_24").mkdir()
    (tmp_path / "policy_24" / "of a loop that is run again").write_text("")
    exporter.save(24)
    assert os.listdir(tmp_path) == ["policy_24"]
    assert os.listdir(tmp_path / "policy_24") == [FILE]


def test_while_it_is_replaced_there_is_no_half_of_it(exporter, tmp_path, monkeypatch):
    exporter.save(24)
    (tmp_path / "policy_24" / "old").write_text("")
    seen = []

    def watched(path):
        seen.append(sorted(os.listdir(tmp_path / "policy_24")))
        remove(path)

    remove = policies.found.remove
    monkeypatch.setattr(policies.found, "remove", watched)
    exporter.save(24)
    assert seen[0] == [FILE, "old"]
    assert seen[-1] == [FILE]
    assert all(names in (seen[0], seen[-1]) for names in seen)


def test_what_a_dead_process_left_half_done_goes_away(tmp_path):
    for name in (".unfinished_policy_7", ".replaced_policy_5"):
        (tmp_path / name).mkdir()
        (tmp_path / name / FILE).write_text("half")
    (tmp_path / ".unfinished_notes").mkdir()
    runs.run(tmp_path, loops=1, save_policy=False)
    assert {path.name for path in tmp_path.glob(".*")} == {".unfinished_notes"}


def test_what_is_unfinished_is_not_found_as_a_policy(exporter, tmp_path, faults):
    faults.stall_at("policy.save", 0, 1.0, when="inside")
    faults.sleep = lambda seconds: names.extend(p.name for p in tmp_path.glob("pol*"))
    names: list[str] = []
    exporter.save(24)
    assert faults.pending == ()
    assert names == []

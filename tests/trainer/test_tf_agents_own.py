"""TF-Agents' own test of its trainer, as its wheel ships it, run against ours."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType
from unittest import mock

import pytest

import trainer

PACKAGE = "tf_agents.bandits.agents.examples.v2"


def load() -> ModuleType:
    """Executes the installed test module with `trainer` standing for the original."""
    package = importlib.import_module(PACKAGE)
    spec = importlib.util.find_spec(f"{PACKAGE}.trainer_test")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with (
        mock.patch.dict(sys.modules, {f"{PACKAGE}.trainer": trainer}),
        mock.patch.object(package, "trainer", trainer, create=True),
    ):
        spec.loader.exec_module(module)
    return module


theirs = load()
TrainerTest = theirs.TrainerTest


@pytest.fixture(autouse=True)
def _temporary_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("TEST_TMPDIR", str(tmp_path))


def test_it_is_our_trainer_that_is_tested():
    assert theirs.trainer is trainer


def test_all_their_tests_are_collected():
    tests = [name for name in dir(TrainerTest) if name.startswith("test")]
    # Two sizes of checkpoints, seven agents and environments, resumption.
    assert len([t for t in tests if t != "test_session"]) == 10

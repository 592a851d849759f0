"""`make faults` plants what still fits the source; to plant it all takes too long."""

from __future__ import annotations

import importlib.util
import pathlib
import shutil
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def _script():
    path = ROOT / "scripts" / "planted_faults.py"
    spec = importlib.util.spec_from_file_location("planted_faults", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


SCRIPT = _script()


@pytest.mark.parametrize("fault", SCRIPT.FAULTS, ids=lambda fault: fault.name)
def test_a_fault_changes_the_trainer_and_leaves_it_python(fault, tmp_path):
    shutil.copytree(ROOT / "trainer", tmp_path / "trainer")
    SCRIPT.plant(fault, tmp_path)
    for edit in fault.edits:
        before = (ROOT / "trainer" / edit.file).read_text()
        after = (tmp_path / "trainer" / edit.file).read_text()
        assert after != before
        compile(after, edit.file, "exec")


def test_there_are_twenty_one():
    assert len({fault.name for fault in SCRIPT.FAULTS}) == 21


def test_a_fault_that_fits_no_more_is_told(tmp_path):
    shutil.copytree(ROOT / "trainer", tmp_path / "trainer")
    old = SCRIPT.fault("old", ("loop.py", "this stands nowhere", ""))
    with pytest.raises(SystemExit, match="Fault 'old': 'this stands nowhere' does not"):
        SCRIPT.plant(old, tmp_path)


def test_the_tests_it_runs_are_there():
    assert all((ROOT / test).is_file() for test in SCRIPT.TESTS)

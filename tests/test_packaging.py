"""Two wheels: `onbeat` holds `testing`, `onbeat-trainer` holds `trainer`; no more."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata as metadata_lib

import pytest
from packaging import requirements

ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """Builds both wheels from a copy, so that nothing is left in the checkout."""
    copy = tmp_path_factory.mktemp("source") / "copy"
    ignored = shutil.ignore_patterns(".git", ".venv*", "*cache*", "tests")
    shutil.copytree(ROOT, copy, ignore=ignored)
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "-w", str(out)]
    for project in (copy, copy / "trainer"):
        subprocess.run([*command, str(project)], check=True, capture_output=True)
    return {path.name.split("-")[0]: zipfile.ZipFile(path) for path in out.iterdir()}


def contents(wheel):
    names = [name for name in wheel.namelist() if ".dist-info/" not in name]
    return {name.split("/")[0] for name in names}, names


def metadata(wheel):
    (name,) = [n for n in wheel.namelist() if n.endswith(".dist-info/METADATA")]
    return wheel.read(name).decode()


def source_modules(package):
    found = (ROOT / package).rglob("*.py")
    return {str(path.relative_to(ROOT)) for path in found}


@pytest.mark.parametrize(
    ("distribution", "package"), [("onbeat", "testing"), ("onbeat_trainer", "trainer")]
)
def test_each_wheel_holds_its_package_alone_and_whole(wheels, distribution, package):
    packages, names = contents(wheels[distribution])
    assert packages == {package}
    assert source_modules(package) <= set(names)
    assert [name for name in names if name.endswith("/py.typed")]
    assert f"{package}/__init__.py" in names or package == "testing"


def test_testing_stays_a_namespace():
    assert not (ROOT / "testing" / "__init__.py").exists()


def test_the_core_needs_no_tensorflow_and_the_layers_agree(wheels):
    rows = metadata(wheels["onbeat"]).splitlines()
    needs = [row.split(":")[1].strip() for row in rows if row.startswith("Requires-D")]
    core = [need for need in needs if "extra ==" not in need]
    assert not [need for need in core if "tensor" in need or "tf" in need]
    extra = {need.split(";")[0].strip() for need in needs if 'extra == "tf"' in need}
    assert extra <= set(trainer_needs(wheels))


def trainer_needs(wheels):
    rows = metadata(wheels["onbeat_trainer"]).splitlines()
    return [row.split(": ")[1] for row in rows if row.startswith("Requires-Dist")]


@pytest.mark.parametrize("distribution", ["onbeat", "onbeat_trainer"])
def test_collectors_are_an_extra_of_both(wheels, distribution):
    lines = metadata(wheels[distribution]).splitlines()
    assert "Provides-Extra: distributed" in lines
    (needed,) = [line for line in lines if line.startswith("Requires-Dist: ray")]
    text, _, marker = needed.removeprefix("Requires-Dist: ").partition(";")
    assert marker.strip().replace("'", '"') == 'extra == "distributed"'
    # What is tested is what is asked for.
    requirement = requirements.Requirement(text)
    assert requirement.specifier.contains(metadata_lib.version("ray"))


def test_the_plugin_and_the_command_are_registered(wheels):
    wheel = wheels["onbeat"]
    (name,) = [n for n in wheel.namelist() if n.endswith("entry_points.txt")]
    text = wheel.read(name).decode()
    assert "[pytest11]\nonbeat = testing.pytest_plugin" in text
    assert "onbeat = testing.cadence.__main__:main" in text


def test_neither_package_imports_the_other():
    for package, other in (("trainer", "testing"), ("testing", "trainer")):
        for path in (ROOT / package).rglob("*.py"):
            lines = path.read_text().splitlines()
            words = [line.split() for line in lines if "import" in line]
            imported = {w[1].split(".")[0] for w in words if w[0] in ("from", "import")}
            assert other not in imported, path

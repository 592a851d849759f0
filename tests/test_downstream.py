"""A project of somebody else's, with its own package `trainer`, uses our wheel."""

import os
import pathlib
import shutil
import site
import subprocess
import sys
import venv

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent

PROJECT = {
    "pyproject.toml": """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "acme-bandits"
version = "1.0"

[tool.setuptools.packages.find]
where = ["src"]

[tool.pytest.ini_options]
addopts = "--strict-markers"
""",
    "src/trainer/__init__.py": '''
"""Acme's own trainer."""

from absl import logging

OWNER = "acme"


def train(driver, agent, replay_buffer, loops, steps):
    for loop in range(loops):
        for _ in range(steps):
            driver.run()
            loss = agent.train(replay_buffer.gather_all()).loss
            logging.info("[step=%d] loss = %s.", loop * steps + _, float(loss))
            replay_buffer.clear()
''',
    "tests/test_it.py": """
import importlib.metadata

import pytest
import trainer
from trainer import train
import testing.fakes


def test_trainer_is_our_own():
    assert trainer.OWNER == "acme"
    assert "acme" in importlib.metadata.distribution("acme-bandits").name
    for file in importlib.metadata.files("onbeat"):
        assert not str(file).startswith("trainer")


@pytest.mark.onbeat(batch_size=4, steps_per_loop=3)
def test_our_loop(
    counting_driver, counting_agent, recording_replay_buffer, mock_log, mocker
):
    mocker.patch.object(trainer, "logging", mock_log)
    train(counting_driver, counting_agent, recording_replay_buffer, 2, 3)
    assert mock_log.steps("loss") == list(range(6))
    assert counting_driver.runs == counting_agent.calls == 6
    assert recording_replay_buffer.high_water == 12
    assert recording_replay_buffer.frames == 0
    losses = [call.loss for call in counting_agent.train_calls]
    assert mock_log.values("loss") == losses
""",
}
BUILD = "import setuptools.build_meta as b, sys; print(b.build_wheel(sys.argv[1]))"


def _run(*command, cwd, code=0, **variables):
    """Runs a command apart from this checkout. Fails with its output."""
    keep = {"PATH", "HOME", "TMPDIR", "LANG"}
    env = {k: v for k, v in os.environ.items() if k in keep or k.startswith("TF_")}
    env |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", **variables}
    run = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=env,
        text=True,
        capture_output=True,
    )
    assert run.returncode == code, run.stdout + run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Our wheel, built from a copy: a build leaves files behind."""
    copy = tmp_path_factory.mktemp("source") / "onbeat"
    ignored = shutil.ignore_patterns(".git", ".venv*", "*cache*", "tests", "build")
    shutil.copytree(ROOT, copy, ignore=ignored)
    out = tmp_path_factory.mktemp("wheel")
    _run(sys.executable, "-c", BUILD, out, cwd=copy)
    (wheel,) = out.glob("onbeat-*.whl")
    return wheel


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """A Python of its own with our wheel, that borrows TensorFlow from this one."""
    home = tmp_path_factory.mktemp("venv") / "env"
    venv.create(home, with_pip=True, symlinks=True)
    python = home / "bin" / "python"
    (packages,) = home.glob("lib/python*/site-packages")
    borrowed = "\n".join(site.getsitepackages())
    (packages / "borrowed.pth").write_text(borrowed)
    _pip(python, "install", wheel)
    return python


def _pip(python, verb, *what):
    """Installs without a network, or uninstalls."""
    options = {
        "install": ["--no-deps", "--no-index", "--no-build-isolation"],
        "uninstall": ["--yes"],
    }
    command = [python, "-m", "pip", verb, "--quiet", *options[verb], *what]
    _run(*command, cwd=python.parent)


@pytest.fixture
def project(tmp_path):
    for name, text in PROJECT.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("editable", [False, True], ids=["normal", "editable"])
def test_its_tests_pass_beside_our_wheel(python, project, editable):
    _pip(python, "install", *(["--editable"] if editable else []), project)
    try:
        out = _run(
            python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", cwd=project
        )
        assert "2 passed" in out
        where = _run(
            python, "-c", "import trainer; print(trainer.__file__)", cwd=python.parent
        )
        assert ("site-packages" in where) == (not editable)
    finally:
        _pip(python, "uninstall", "acme-bandits")


@pytest.mark.slow
def test_the_plugin_is_called_onbeat(python, project):
    (project / "tests" / "test_it.py").write_text(
        "def test_it(timeline):\n    assert timeline.events == ()\n"
    )
    command = [python, "-m", "pytest", "-q", "tests", "-p"]
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    assert "1 passed" in _run(*command, "onbeat", cwd=project, **alone)
    assert "1 error" in _run(*command, "no:onbeat", cwd=project, code=1)

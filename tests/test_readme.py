"""The examples of the README run as they are written."""

from __future__ import annotations

import pathlib
import re

import pytest

README = pathlib.Path(__file__).resolve().parent.parent / "README.md"

# The reader's own trainer, for which ours stands in.
MY_PROJECT = "from trainer import train\n"


def examples() -> dict[str, str]:
    """The README's test modules by name: blocks that begin with `# test_x.py`."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    named = [(re.match(r"# (test_\w+\.py)\n", block), block) for block in blocks]
    return {match.group(1): block for match, block in named if match}


def test_there_are_examples():
    assert set(examples()) >= {"test_my_log.py", "test_my_trainer.py"}


@pytest.mark.parametrize("name", sorted(examples()))
def test_example(pytester, name):
    package = pytester.mkpydir("my_project")
    (package / "training.py").write_text(MY_PROJECT)
    pytester.path.joinpath(name).write_text(examples()[name])
    root = str(README.parent)
    pytester.makepyprojecttoml(
        f"[tool.pytest.ini_options]\npythonpath = ['.', {root!r}]\n"
    )
    # A process of its own: TensorFlow cannot be imported twice in one.
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    assert result.ret == 0
    assert result.parseoutcomes()["passed"] >= 1

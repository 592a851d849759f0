"""docs/fakes.md: its examples run, its tables are complete."""

import pathlib
import re

import pytest

import testing.contracts
import testing.fakes
from testing.contracts import agent, driver, environment, replay_buffer

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "fakes.md").read_text()
BLOCKS = re.findall(r"^```(python[^\n]*)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
EXAMPLES = [code for kind, code in BLOCKS if kind == "python"]
(TEST,) = [code for kind, code in BLOCKS if kind == "python test"]


@pytest.mark.parametrize("code", EXAMPLES, ids=range(len(EXAMPLES)))
def test_examples_run(code):
    exec(compile(code, "docs/fakes.md", "exec"), {"__name__": "example"})


def test_the_test_runs(pytester):
    pytester.makepyfile(TEST)
    arguments = ["-p", "testing.pytest_plugin", "-p", "no:cacheprovider"]
    pytester.runpytest_inprocess(*arguments).assert_outcomes(passed=1)


def test_every_fake_has_an_example():
    no_fake = {"EnvStep", "Fault", "InjectedFault", "TrainCall"}
    for name in set(testing.fakes.__all__) - no_fake:
        assert f"\n## {name}\n" in PAGE
        section = PAGE.split(f"\n## {name}\n")[1].split("\n## ")[0]
        assert name in "".join(
            re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
        )


@pytest.mark.parametrize("module", [agent, driver, environment, replay_buffer])
def test_the_table_counts_the_rules(module):
    name = module.__name__.rpartition(".")[2]
    assert f"| `check_{name}` | {len(module.CONTRACT)} |" in PAGE

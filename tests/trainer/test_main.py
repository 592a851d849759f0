"""The command line, called in this process; a few times as a process of its own."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from absl import flags

from trainer import __main__ as command_line
from trainer import agents, problems, settings

REPOSITORY = Path(__file__).parents[2]
ENVIRONMENTS = (*problems.ENVIRONMENTS, problems.CSV)
SMALL = ("--training_loops=2", "--batch_size=4", "--seed=1", "--root_dir=run")


@dataclasses.dataclass
class Result:
    """What a command gave back."""

    code: int
    out: str
    err: str


Command = Callable[..., Result]


@pytest.fixture
def command(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Command:
    """Calls the command line in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def command(*arguments: str) -> Result:
        code = command_line.main(["trainer", *arguments])
        return Result(code, *capsys.readouterr())

    return command


def _write_table(path: str = "flowers.csv") -> None:
    rows = "".join(f"{i % 7},{i % 2},{'ab'[i % 2]}\n" for i in range(40))
    Path(path).write_text(f"noise,tell,kind\n{rows}")


def _data_flags(environment: str) -> tuple[str, ...]:
    if environment != problems.CSV:
        return ()
    _write_table()
    return "--data_path=flowers.csv", "--label_column=kind"


def _log_steps(name: str, path: str = "run/train.log") -> list[int]:
    text = Path(path).read_text()
    return [int(n) for n in re.findall(rf"\[step=(\d+)\] {name} = ", text)]


###############################################################################
# Pairs


@pytest.mark.parametrize("agent", agents.AGENTS)
@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_every_pair_runs_or_is_refused(
    command: Command, environment: str, agent: str
) -> None:
    pair = f"--environment={environment}", f"--agent={agent}"
    result = command(*pair, *SMALL, "--nosave_policy", *_data_flags(environment))

    if agent == "EXP3" and environment != "bernoulli":
        assert result.code == 2
        assert result.err == (
            f"python -m trainer: flag --agent=EXP3: does not fit --environment="
            f"{environment}: EXP3 takes no notice of observations, and the best arm "
            "depends on them; allowed are LinUCB, LinTS, epsGreedy, Boltzmann, mix\n"
        )
        assert not Path("run").exists()
    else:
        assert result.code == 0, result.err
        assert _log_steps("loss") == [0, 1]
        assert _log_steps("RecentRegret") == [0, 1]


@pytest.mark.parametrize("environment", ["bernoulli", "per_arm"])
@pytest.mark.parametrize("agent", agents.AGENTS)
def test_every_agent_exports_its_policy(
    command: Command, environment: str, agent: str
) -> None:
    if agent == "EXP3" and environment == "per_arm":
        return  # Refused, see above.
    pair = f"--environment={environment}", f"--agent={agent}"

    assert command(*pair, *SMALL, "--training_loops=1").code == 0
    assert os.path.isfile("run/policy_8/saved_model.pb")


###############################################################################
# What a run shows and leaves


def test_the_default_learns_digits(command: Command) -> None:
    """All defaults but the number of loops, for time."""
    result = command("--training_loops=25", "--seed=1")

    assert result.code == 0
    assert "LinUCB on digits" in result.out
    (row,) = re.findall(r"accuracy +([\d.]+) +([\d.]+)", result.out)
    assert float(row[0]) > 0.6
    assert row[1] == "0.100"
    assert "Always naming the most frequent class, '3', gets 0.102." in result.out


def test_what_the_end_says(command: Command) -> None:
    result = command("--environment=bernoulli", "--async_steps_per_loop=3", *SMALL)

    assert "mean over all 48 interactions" in result.out
    assert "2 training loops (2 in this run, " in result.out
    assert "6 train steps, 48 interactions, seed 1." in result.out
    assert "The random policy's figures are exact." in result.out
    assert "average return" in result.out
    assert "accuracy" not in result.out
    for place in ("run/ckpt-2", "run/policy_48", "run/train.log"):
        assert re.search(rf"  +{place}$", result.out, re.MULTILINE)
    assert os.path.isdir("run/policy_48")


def test_a_measured_reference_says_so(command: Command) -> None:
    result = command("--environment=per_arm", *SMALL)
    assert "figures are measured over 5,000 interactions." in result.out


def test_without_policies(command: Command) -> None:
    result = command("--environment=bernoulli", "--nosave_policy", *SMALL)

    assert re.search(r"^Policy +none$", result.out, re.MULTILINE)
    assert not list(Path("run").glob("policy_*"))


def test_a_long_path_is_not_broken_into_lines(command: Command) -> None:
    path = "/".join(["a-rather-long-name-of-a-directory"] * 4)
    result = command("--environment=bernoulli", *SMALL, f"--root_dir={path}")

    assert f"{path}/train.log" in result.out


@pytest.mark.parametrize(
    ("environment", "agent"),
    [("digits", "epsGreedy"), ("drifting_linear", "LinUCB"), ("wheel", "LinTS")],
)
def test_the_same_seed_gives_the_same_log_lines(
    command: Command, environment: str, agent: str
) -> None:
    pair = f"--environment={environment}", f"--agent={agent}", "--nosave_policy"
    lines: dict[str, list[str]] = {}
    for name, seed in (("one", 3), ("two", 3), ("three", 4)):
        command(*pair, *SMALL, f"--seed={seed}", f"--root_dir={name}")
        text = Path(name, "train.log").read_text()
        lines[name] = re.findall(r"\[step=.*", text)

    assert len(lines["one"]) > 10
    assert lines["one"] == lines["two"]
    assert lines["one"] != lines["three"]


###############################################################################
# Going on


def test_the_next_command_continues_the_run(command: Command) -> None:
    first = command("--environment=bernoulli", "--agent=EXP3", *SMALL)
    (arguments,) = re.findall(r"-m trainer (--root_dir=\S+)", first.out)

    second = command(arguments, "--training_loops=3")

    assert second.out.startswith("Continuing EXP3 on bernoulli in run\n")
    assert "5 training loops (3 in this run, " in second.out
    assert _log_steps("loss") == [0, 1, 2, 3, 4]


def test_resume_counts_from_the_first_run(command: Command) -> None:
    command("--environment=bernoulli", *SMALL)
    again = "--root_dir=run", "--resume_training_loops", "--training_loops=3"

    assert "3 training loops (1 in this run, " in command(*again).out
    done = command(*again)
    assert done.code == 0
    assert "3 training loops (0 in this run, " in done.out
    assert _log_steps("loss") == [0, 1, 2]


def test_another_agent_is_refused(command: Command) -> None:
    command("--environment=bernoulli", *SMALL)
    before = sorted(os.listdir("run"))

    result = command("--root_dir=run", "--agent=LinTS")

    assert result.code == 2
    assert result.err == (
        "python -m trainer: flag --agent=LinTS: the run in run has LinUCB; give "
        "another --root_dir, or leave the flag out\n"
    )
    assert sorted(os.listdir("run")) == before


def test_random_numbers_go_on_in_a_continued_run(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the seed's own again, the learner would meet the same contexts again."""
    command("--environment=bernoulli", *SMALL)
    drawn: list[tuple[float, float]] = []

    def draw(*args: Any, **kwargs: Any) -> None:
        drawn.append((np.random.random(), float(tf.random.uniform([]))))
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "train", draw)
    command("--environment=bernoulli", *SMALL)
    command("--environment=bernoulli", *SMALL, "--root_dir=new")

    (continued, fresh) = drawn
    assert continued[0] != fresh[0]
    assert continued[1] != fresh[1]


def test_an_interrupted_run_says_how_to_go_on(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "train", interrupted)
    result = command("--environment=bernoulli", *SMALL)

    assert result.code == 130
    assert result.err.endswith(
        "-m trainer --root_dir=run --resume_training_loops --training_loops=2\n"
    )


###############################################################################
# Refusals: one line, exit code 2, nothing written

COUNTS = {
    "training_loops": (1, 10**9),
    "steps_per_loop": (1, 10**6),
    "async_steps_per_loop": (1, 10**6),
    "batch_size": (1, 4096),
    "seed": (0, 2**32 - 1),
    "num_collectors": (1, 10**6),
}
BAD_FLAGS = {
    "--environment=atari": "value should be one of <digits|wheel|",
    "--agent=Dyna": "value should be one of <LinUCB|LinTS|",
    "--save_policy=perhaps": "allowed are true and false",
    "--resume_training_loops=2": "allowed are true and false",
    "--root_dir=": "allowed is the path of a directory",
    "--data_path=x.csv": "allowed only with --environment=csv",
    "--label_column=y": "allowed only with --environment=csv",
    "--ray_address=auto": "allowed only with --num_collectors",
}
BAD_COMMANDS = {
    ("--traning_loops=3",): "Unknown command line flag 'traning_loops'. Did you mean",
    ("digits",): "'digits' is no flag; flags begin with --",
    ("--environment=csv",): "flag --data_path: needed with --environment=csv",
    ("--environment=csv", "--data_path="): "flag --data_path: needed",
    ("--environment=csv", "--data_path=x.csv"): "x.csv: No such file or directory",
    ("--training_loops",): "Missing value for flag --training_loops",
}


def _is_refused(result: Result, message: str) -> None:
    assert result.code == 2
    assert result.err.startswith("python -m trainer: ")
    assert result.err.count("\n") == 1
    assert message in result.err
    assert result.out == ""
    assert not os.listdir(".")


@pytest.mark.parametrize("value", ["{least}-1", "{most}+1", "2.5", "many", "", "0x"])
@pytest.mark.parametrize("name", COUNTS)
def test_counts_out_of_bounds(command: Command, name: str, value: str) -> None:
    least, most = COUNTS[name]
    value = {"{least}-1": str(least - 1), "{most}+1": str(most + 1)}.get(value, value)

    _is_refused(
        command(f"--{name}={value}"),
        f"flag --{name}={value}: allowed are whole numbers from {least} to {most}",
    )


@pytest.mark.parametrize("flag", BAD_FLAGS)
def test_bad_values(command: Command, flag: str) -> None:
    message = BAD_FLAGS[flag]
    result = command(flag)

    _is_refused(result, message)
    assert f"flag {flag}" in result.err


@pytest.mark.parametrize("arguments", BAD_COMMANDS)
def test_bad_commands(command: Command, arguments: tuple[str, ...]) -> None:
    _is_refused(command(*arguments), BAD_COMMANDS[arguments])


def test_bad_tables_are_named_with_their_line(command: Command, tmp_path: Path) -> None:
    data = tmp_path.parent / "bad.csv"
    data.write_text("a,kind\n1,x\nred,y\n")

    result = command("--environment=csv", f"--data_path={data}", "--label_column=kind")

    _is_refused(result, f"flag --data_path: {data}:3: column 'a' holds 'red'; ")


def test_every_flag_is_tried_with_a_bad_value() -> None:
    tried = {*COUNTS, *(flag.split("=")[0].strip("-") for flag in BAD_FLAGS)}
    assert tried == {field.name for field in dataclasses.fields(settings.Settings)}


def test_a_call_does_not_inherit_flags_of_the_one_before(command: Command) -> None:
    command("--environment=bernoulli", "--agent=EXP3", *SMALL)
    command("--help-me")
    assert flags.FLAGS["agent"].value == "LinUCB"
    assert not flags.FLAGS["root_dir"].present


def test_names_in_any_case(command: Command) -> None:
    result = command("--environment=BERNOULLI", "--agent=exp3", *SMALL)
    assert "Training EXP3 on bernoulli in run" in result.out


###############################################################################
# As a process


def _process(tmp_path: Path, *arguments: str, python: tuple[str, ...] = ()) -> Result:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    done = subprocess.run(
        [sys.executable, *python, "-m", "trainer", *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    # TensorFlow 2.16 and later let nobody silence these two.
    notice = r"(I0000 |WARNING: All log messages before absl::InitializeLog).*\n"
    return Result(done.returncode, done.stdout, re.sub(notice, "", done.stderr))


def test_a_quiet_process(tmp_path: Path) -> None:
    result = _process(tmp_path, "--environment=bernoulli", *SMALL)

    assert result.code == 0, result.err
    assert result.err == ""
    assert "[step=" not in result.out
    assert "[step=1] loss = " in (tmp_path / "run/train.log").read_text()
    assert json.loads((tmp_path / "run/run.json").read_text())["seed"] == 1


def test_a_talking_process(tmp_path: Path) -> None:
    result = _process(tmp_path, "--environment=bernoulli", *SMALL, "--verbosity=0")

    assert result.code == 0
    assert "[step=1] loss = " in result.err


def test_a_refused_process(tmp_path: Path) -> None:
    result = _process(tmp_path, "--batch_size=0")

    assert result.code == 2
    assert result.err == (
        "python -m trainer: flag --batch_size=0: allowed are whole numbers from 1 to "
        "4096\n"
    )
    assert not list(tmp_path.iterdir())


def test_a_process_without_tensorflow(tmp_path: Path) -> None:
    result = _process(tmp_path, python=("-S",))  # No installed packages.

    assert result.code == 1
    assert result.err.startswith("python -m trainer: tensorflow, tf_agents, tf_keras ")
    assert result.err.endswith("pip install onbeat-trainer\n")
    assert result.err.count("\n") == 1


def test_help(tmp_path: Path) -> None:
    result = _process(tmp_path, "--helpfull")

    assert result.code == 0
    assert result.err == ""
    ours = result.out[: result.out.index("absl.app:")]
    for field in dataclasses.fields(settings.Settings):
        assert re.search(rf"^  --(\[no\])?{field.name}: ", ours, re.MULTILINE)
    assert all(len(line) <= 80 for line in ours.splitlines()[9:])

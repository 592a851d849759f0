"""The command line: exit status, formats, and one line for every mistake."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from testing.cadence import IRREGULARITIES, Cadence
from testing.cadence.__main__ import main
from testing.cadence.commands import Progress
from tests.cadence.runs import METRICS, bandit, write


@pytest.fixture
def good(tmp_path):
    return str(write(tmp_path / "good.log", bandit()))


@pytest.fixture
def bad(tmp_path):
    return str(write(tmp_path / "bad.log", bandit(drop=(9,))))


@pytest.fixture
def golden(tmp_path):
    path = tmp_path / "cadence.toml"
    Cadence.infer(bandit()).save(path)
    return str(path)


def test_describe(good, capsys):
    assert main(["describe", good]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{good}: 3 series, 60 events. In order.\n")
    assert re.search(r"^loss +20 +0 +1 +19 +0 +0$", out, re.M)


def test_describe_what_is_off(bad, capsys):
    assert main(["describe", bad]) == 1
    out = capsys.readouterr().out
    assert "Off: gap." in out
    assert (
        "  seen      loss jumps from step 0 to 2 at line 10; 1 step is missing." in out
    )
    assert f"  where     {bad}:10" in out


def test_ignore(bad):
    assert main(["describe", bad, "--ignore", "gap"]) == 0


def test_json(bad, capsys):
    assert main(["describe", bad, "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == 1
    assert not found["ok"]
    loss = next(series for series in found["series"] if series["name"] == "loss")
    keys = ("name", "count", "first", "every", "last", "gaps", "repeats")
    assert [loss[key] for key in keys] == ["loss", 19, 0, 1, 19, 1, 0]
    (finding,) = found["findings"]
    keys = ("kind", "series", "step", "line", "file", "count")
    assert [finding[key] for key in keys] == ["gap", "loss", 1, 10, bad, 1]
    assert finding["message"].startswith("loss jumps from step 0 to 2 at line 10")


def test_github(bad, capsys):
    assert main(["describe", bad, "--format", "github"]) == 1
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith(
        f"::error file={bad},title=onbeat%3A gap,line=10::loss jumps"
    )


def test_github_escapes(tmp_path, capsys):
    path = tmp_path / "a,b%.log"
    write(path, bandit(drop=(9,)))
    main(["describe", str(path), "--format", "github"])
    assert "file=" + str(tmp_path) + "/a%2Cb%25.log," in capsys.readouterr().out


def test_junit(bad, golden, capsys):
    assert main(["check", bad, "--against", golden, "--format", "junit"]) == 1
    suite = ElementTree.fromstring(capsys.readouterr().out).find("testsuite")
    cases = {case.get("name"): case for case in suite}
    assert len(cases) == int(suite.get("tests"))
    assert suite.get("failures") == "1"
    failed = [name for name, case in cases.items() if case.find("failure") is not None]
    assert failed == ["series-steps"]
    assert cases["series-steps"].get("line") == "10"
    assert set(IRREGULARITIES) < set(cases)


def test_check_against_a_file(good, bad, golden, capsys):
    assert main(["check", good, "--against", golden]) == 0
    assert capsys.readouterr().out.startswith(f"{good}: 3 series, 60 events. Kept: ")
    assert main(["check", bad, "--against", golden]) == 1
    out = capsys.readouterr().out
    assert "series-steps: A series is logged at the steps of its cadence" in out
    assert "expected  loss at 0, 1, 2, ..., 19 (20 times)" in out
    assert "gap" not in out  # said once, by the cadence


def test_check_a_bandit_trainer(good, bad, capsys):
    options = ["--training-loops", "5", "--async-steps-per-loop", "4"]
    metrics = ["--metric", METRICS[0], "--metric", METRICS[1]]
    assert main(["check", good, *options, *metrics]) == 0
    assert main(["check", bad, *options, *metrics]) == 1
    assert main(["check", good, "--training-loops", "20", *metrics]) == 1
    assert "event-order" in capsys.readouterr().out
    assert main(["check", good, *options, "--metric", "RegretMetric"]) == 1
    assert "no RegretMetric; there is" in capsys.readouterr().out


def test_check_without_a_cadence_finds_irregularities(good, bad):
    assert main(["check", good]) == 0
    assert main(["check", bad]) == 1


def test_what_no_cadence_governs_is_off_all_the_same(tmp_path, golden, capsys):
    path = tmp_path / "nan.log"
    text = (
        write(path, bandit())
        .read_text()
        .replace("[step=3] loss = 1.0", "[step=3] loss = nan")
    )
    path.write_text(text)
    assert main(["check", str(path), "--against", golden]) == 1
    assert "Off: non-finite." in capsys.readouterr().out


def test_record(good, tmp_path, capsys):
    assert main(["record", good]) == 0
    assert Cadence.from_toml(capsys.readouterr().out) == Cadence.infer(bandit())
    out = tmp_path / "out.toml"
    assert main(["record", good, "-o", str(out)]) == 0
    assert Cadence.load(out) == Cadence.infer(bandit())


def test_record_warns_of_a_run_that_is_off(bad, capsys):
    assert main(["record", bad]) == 1
    captured = capsys.readouterr()
    assert "loss = { first = 0, every = 1, count = 20 }" in captured.out
    assert "Off: gap." in captured.err


def test_diff(good, bad, capsys):
    assert main(["diff", good, good]) == 0
    assert main(["diff", good, bad]) == 1
    out = capsys.readouterr().out
    assert "seen      loss: count was 20, is 19." in out
    assert "expected  loss 20 times, from 0 to 19, every 1" in out


def test_diff_of_other_series(good, tmp_path, capsys):
    path = write(tmp_path / "less.log", bandit(metrics=METRICS[:1]))
    assert main(["diff", good, str(path)]) == 1
    assert "AverageReturn is logged in the first run only." in capsys.readouterr().out


def test_pattern(tmp_path, capsys):
    path = tmp_path / "odd.log"
    path.write_text("".join(f"at {i}: {i}.5\n" for i in range(9)))
    pattern = r"at (?P<step>\d+): (?P<value>\S+)"
    assert main(["describe", str(path), "--pattern", pattern]) == 0
    assert "1 series, 9 events" in capsys.readouterr().out


MISTAKES = {
    "no command": ([], "onbeat: no command. See onbeat --help."),
    "unknown command": (["descrive"], "onbeat: argument COMMAND: invalid choice"),
    "unknown option": (["describe", "x", "--fo"], "onbeat"),
    "unknown format": (
        ["describe", "x", "--format", "xml"],
        "onbeat describe: argument",
    ),
    "no run": (["describe"], "onbeat describe: the following arguments are required"),
    "no file": (["describe", "/no/such"], "onbeat describe: /no/such: "),
    "bad pattern": (
        ["describe", "{good}", "--pattern", "("],
        "onbeat describe: --pattern",
    ),
    "bad group": (
        ["describe", "{good}", "--pattern", "x"],
        "onbeat describe: --pattern",
    ),
    "unknown kind": (
        ["describe", "x", "--ignore", "gaps"],
        "onbeat describe: --ignore is",
    ),
    "no cadence": (
        ["check", "{good}", "--against", "/no/such"],
        "onbeat check: /no/such",
    ),
    "no toml": (
        ["check", "{good}", "--against", "{good}"],
        "onbeat check: {good}: no TOML",
    ),
    "no loops": (
        ["check", "{good}", "--metric", "x"],
        "onbeat check: --async-steps-per",
    ),
    "loops": (
        ["check", "x", "--training-loops", "-1"],
        "onbeat check: argument --training",
    ),
    "both": (
        ["check", "x", "--against", "y", "--training-loops", "1"],
        "onbeat check: --against and --training-loops exclude each other",
    ),
    "suffix": (["plot", "{good}", "-o", "x.gif"], "onbeat plot: --output is 'x.gif'."),
    "folder": (["plot", "{good}", "-o", "/no/such/x.svg"], "onbeat plot: --output is"),
    "write": (
        ["record", "{good}", "-o", "/no/such/x"],
        "onbeat record: /no/such/x: No",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_one_line_and_2(good, mistake, capsys):
    arguments, words = MISTAKES[mistake]
    try:
        status = main([one.format(good=good) for one in arguments])
    except SystemExit as stopped:
        status = stopped.code
    captured = capsys.readouterr()
    assert status == 2
    assert captured.err.startswith(words.format(good=good))
    assert captured.err.count("\n") == 1
    assert captured.out == ""


@pytest.mark.parametrize("command", ["", "describe", "record", "check", "diff", "plot"])
def test_help_ends_with_two_examples(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([*command.split(), "--help"])
    assert stopped.value.code == 0
    examples = capsys.readouterr().out.split("examples:\n")[1]
    assert examples.count(f"  onbeat {command}".rstrip()) == 2


def test_help_loads_next_to_nothing():
    code = (
        "import sys; from testing.cadence.__main__ import main\n"
        "try: main(['check', '--help'])\n"
        "except SystemExit: pass\n"
        "bad = {'tensorflow', 'matplotlib', 'rich', 'numpy', 'absl'}\n"
        "bad |= {'dataclasses', 'typing'}\n"
        "print(sorted(bad & set(sys.modules)), file=sys.stderr)"
    )
    # -S: what site-packages' own start-up files import is not ours.
    command = [sys.executable, "-S", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


def test_as_a_module(good):
    command = [sys.executable, "-m", "testing.cadence", "describe", good]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_names_from_logs_cannot_steer_a_terminal(tmp_path, capsys):
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps({"step": 1, "a\x1b[31m\n": 1}) + "\n")
    main(["describe", str(path)])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert r"a\x1b[31m\n" in out


def test_progress_on_a_terminal_only(monkeypatch, capsys):
    quiet = Progress("run.log", patience=0)
    quiet(5, 10)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    loud = Progress("run.log", patience=0)
    loud(5, 10)
    assert "reading run.log: 50 %" in capsys.readouterr().err
    loud.clear()
    assert capsys.readouterr().err == "\r\x1b[K"
    patient = Progress("run.log", patience=60)
    patient(5, 10)
    assert capsys.readouterr().err == ""

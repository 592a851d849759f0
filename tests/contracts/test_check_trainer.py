"""check_trainer as a function: what it takes, refuses, returns and raises."""

from __future__ import annotations

import functools
import logging
import os
import random
import re
import subprocess
import sys

import pytest
import tensorflow as tf
from absl import logging as absl_logging

from testing.contracts import TrainerContractError, check_trainer
from testing.contracts.trainer import killer, logs, process
from testing.contracts.trainer.signature import KNOWN, Offer
from testing.contracts.trainer.texts import CONTRACT
from tests.faulty import reference
from tests.faulty.faults import FAULTS

FAST = ("train-calls",)


def test_a_kept_contract_returns_a_report():
    report = check_trainer(reference.train, only=FAST)
    assert report.ok
    assert report.passed == ("train-calls", "completes")
    assert report.subject == "tests.faulty.reference.train"


def test_a_broken_one_raises_all_violations_at_once():
    with pytest.raises(TrainerContractError) as caught:
        check_trainer(FAULTS["Epochs"].train, only=["train-calls", "exactly-once"])
    assert caught.value.report.broken == ("train-calls", "exactly-once")
    assert str(caught.value) == str(caught.value.report)


def test_raises_false_returns_it():
    report = check_trainer(FAULTS["Epochs"].train, only=FAST, raises=False)
    assert report.broken == FAST


def test_skipped_rules_are_reported_as_such():
    rest = sorted(set(CONTRACT) - {"train-calls", "loss-steps"})
    report = check_trainer(reference.train, skip=rest)
    assert report.passed == ("train-calls", "loss-steps")
    assert {skip.rule for skip in report.skipped} == set(rest)


@pytest.mark.parametrize("argument", ["only", "skip"])
def test_an_unknown_rule_is_refused_with_the_nearest_one(argument):
    with pytest.raises(ValueError, match=r"^\w+ names 'los-steps'\. Did you mean 'l"):
        check_trainer(reference.train, **{argument: ["los-steps"]})


def test_a_string_is_no_collection_of_rules():
    with pytest.raises(TypeError, match=r"^only is 'loss-steps'\. Allowed: a coll"):
        check_trainer(reference.train, only="loss-steps")


@pytest.mark.parametrize(
    ("sizes", "error", "message"),
    [
        ({"training_loops": 1}, ValueError, r"^training_loops is 1\. Allowed: an inte"),
        ({"steps_per_loop": 2.0}, TypeError, r"^steps_per_loop is 2\.0\."),
        ({"batch_size": True}, TypeError, r"^batch_size is True\."),
        ({"async_steps_per_loop": 0}, ValueError, r"^async_steps_per_loop is 0\."),
        ({"batch_size": 4}, ValueError, r"^Two sizes are equal: .*Allowed: all diff"),
    ],
)
def test_sizes_are_checked(sizes, error, message):
    with pytest.raises(error, match=message):
        check_trainer(reference.train, **sizes)


def test_other_sizes_are_used():
    sizes = {"training_loops": 2, "steps_per_loop": 5, "batch_size": 4}
    report = check_trainer(
        FAULTS["SwappedAxes"].train,
        **sizes,
        async_steps_per_loop=3,
        only=["experience-shape"],
        raises=False,
    )
    (violation,) = report.violations
    assert violation.expected == "outer shape (4, 5): [batch_size, steps_per_loop]"
    assert violation.seen == "outer shape (5, 4)"


# Signatures.


def test_what_the_trainer_takes_it_is_given():
    def train(agent, environment, training_loops, steps_per_loop, root_dir="x"):
        pass

    assert Offer(train).accepted == [*KNOWN[:5]]
    assert Offer(lambda **more: None).accepted == list(KNOWN)


def test_positional_arguments_with_defaults_are_left_alone():
    def train(agent, environment, training_loops, steps_per_loop, flavour="vanilla"):
        pass

    assert "flavour" not in Offer(train).accepted


LAMBDA = """\
check_trainer cannot call {name}: it requires 'env', it requires 'num_loops', \
it requires 'config', it takes no 'environment' by keyword, \
it takes no 'training_loops' by keyword. Wrap it and fill in what is missing:

    check_trainer(
        lambda root_dir, agent, environment, training_loops, steps_per_loop: train(
            root_dir=root_dir, agent=agent, env=environment, \
num_loops=training_loops, steps_per_loop=steps_per_loop, config=...
        )
    )"""


def test_an_unknown_required_argument_is_refused_with_the_lambda_to_write():
    def train(root_dir, agent, env, num_loops, steps_per_loop, *, config):
        pass

    with pytest.raises(TypeError) as caught:
        check_trainer(train)
    assert str(caught.value) == LAMBDA.format(name=f"{__name__}.{train.__qualname__}")


def test_that_lambda_works():
    def train(logdir, agent, env, num_loops, steps_per_loop, config):
        assert config == "mine"
        reference.train(logdir, agent, env, num_loops, steps_per_loop)

    report = check_trainer(
        lambda root_dir, agent, environment, training_loops, steps_per_loop: train(
            root_dir, agent, environment, training_loops, steps_per_loop, "mine"
        ),
        only=["train-calls", "resume-continues"],
    )
    assert report.passed == ("train-calls", "completes")
    (skip,) = report.skipped
    assert str(skip) == ("resume-continues: the trainer takes no resume_training_loops")


def test_positional_only_arguments_are_refused():
    def train(agent, environment, /, training_loops, steps_per_loop):
        pass

    with pytest.raises(TypeError, match="it takes no 'agent' by keyword"):
        check_trainer(train)


def test_no_function_is_refused():
    with pytest.raises(TypeError, match=r"^train is 7\. Allowed: a function\.$"):
        check_trainer(7)


# Its own manners.


def test_the_process_is_left_as_it_was():
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    tf.summary.experimental.set_step(5)
    before, verbosity = process.state(), absl_logging.get_verbosity()
    drawn = random.getstate()
    # A trainer without any manners.
    check_trainer(FAULTS["Quiet"].train, raises=False, only=["log-format"])
    check_trainer(FAULTS["DirectoryChanged"].train, raises=False, only=FAST)
    assert process.state() == before
    assert absl_logging.get_verbosity() == verbosity
    assert random.getstate() == drawn
    tf.summary.experimental.set_step(None)
    logging.getLogger().removeHandler(handler)


def test_nothing_is_said_and_nothing_is_left(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    check_trainer(reference.train, only=["loss-steps", "crash-resumes"])
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_a_thread_of_somebody_else_may_end_meanwhile():
    before, after = process.state(), process.state()
    before["threads"] = [*before["threads"], "somebody else's 1"]
    assert process.changed(before, after) == []
    assert process.changed(after, before) == ["threads"]


def test_a_trainer_that_never_ends_is_stopped():
    def train(agent, environment, training_loops, steps_per_loop):
        while True:
            environment.step([0] * environment.batch_size)

    report = check_trainer(train, only=["driver-runs"], raises=False)
    assert report.broken == ("completes",)
    assert "RunawayError after" in report.violations[0].seen


def test_a_trainer_that_does_nothing():
    def train(root_dir, agent, environment, training_loops, steps_per_loop):
        pass

    report = check_trainer(train, raises=False)
    assert report.broken == (
        "driver-runs",
        "train-calls",
        "loss-steps",
        "checkpoint-final",
        "arguments-checked",
    )
    seen = {violation.rule: violation for violation in report.violations}
    assert seen["driver-runs"].seen == "0 steps, loop by loop: [nothing]"
    assert seen["driver-runs"].where.splitlines()[0].endswith(", its end")
    assert seen["train-calls"].seen == "0 calls, loop by loop: [nothing]"


def test_a_generator_is_not_run():
    def train(agent, environment, training_loops, steps_per_loop):
        yield

    async def later(agent, environment, training_loops, steps_per_loop):
        pass

    for function, kind in ((train, "generator"), (later, "coroutine")):
        report = check_trainer(function, only=["driver-runs"], raises=False)
        (violation,) = report.violations
        assert violation.rule == "completes"
        assert f"it returned a {kind}, which nobody runs" in violation.seen
        assert violation.hint.startswith("wrap it")


@pytest.mark.parametrize(
    ("form", "hint"),
    [
        ("step {}: {}: {}", "'step 0: loss: 0.08"),
        ("[step={}] train_{} = {}.", "'[step=0] train_loss = 0.08"),
        ("[step={}, {}] {}", "'[step=0, loss] 0.08"),
    ],
)
def test_the_hint_shows_how_the_loss_is_logged_instead(form, hint):
    class OtherForm(reference.Reference):
        def log(self, step, name, value):
            logging.getLogger("x").info(form.format(step, name, value.numpy()))

    report = check_trainer(
        reference.trainer(OtherForm), only=["loss-steps"], raises=False
    )
    (violation,) = report.violations
    assert violation.hint.startswith(f"of another form: {hint}")


def test_a_logger_of_ones_own_gets_its_handlers_back():
    logger = logging.getLogger("keeps to itself")
    logger.propagate = False
    handler = logging.NullHandler()
    logger.addHandler(handler)
    check_trainer(reference.train, only=FAST)
    assert logger.handlers == [handler]


def test_the_name_of_a_partial():
    report = check_trainer(
        functools.partial(reference.train, save_policy=False), only=FAST
    )
    assert report.subject == "tests.faulty.reference.train, in part"


def test_importing_the_package_needs_no_tensorflow():
    code = (
        "import sys; import testing.contracts as c; c.TrainerContractError; "
        "import testing.contracts.trainer.texts; "
        "sys.exit('tensorflow' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0


# The crash.


def test_the_report_says_that_a_process_was_killed():
    report = check_trainer(reference.train, only=["crash-resumes"])
    assert report.notes == (
        "crash-resumes: a process was killed (SIGKILL); within train call 3 and "
        "before the second checkpoint.",
    )


def test_the_report_says_where_none_could_be_killed():
    report = check_trainer(
        lambda **arguments: reference.train(**arguments), only=["crash-resumes"]
    )
    assert report.notes == (
        "crash-resumes: a BaseException stood in for a kill, as train cannot be "
        "imported by name; within train call 3 and before the second checkpoint.",
    )


def test_a_module_that_cannot_be_imported_elsewhere_is_no_obstacle(monkeypatch):
    import types

    module = types.ModuleType("made_up_here")
    module.train = reference.trainer(reference.Reference)
    module.train.__module__, module.train.__qualname__ = "made_up_here", "train"
    monkeypatch.setitem(sys.modules, "made_up_here", module)
    report = check_trainer(module.train, only=["crash-resumes"])
    assert "could not be imported in another process" in report.notes[0]


def test_the_process_to_fork_from_may_be_gone():
    killer.start()
    killer._server.kill()
    killer._server.wait()
    report = check_trainer(reference.train, only=["crash-resumes"])
    assert "SIGKILL" in report.notes[0]


# The plugin.


def test_the_fixture_is_the_function(check_trainer):
    from testing.contracts import check_trainer as function

    assert check_trainer is function


# Values in log lines.


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0.5", 0.5),
        ("1e-05", 1e-05),
        ("tf.Tensor(0.5, shape=(), dtype=float32)", 0.5),
        ("np.float32(0.5)", 0.5),
        ("[1 2]", "[1 2]"),
    ],
)
def test_values_of_log_lines_are_read(text, value):
    assert logs.number_of(text) == value


def test_nan_is_read_as_nan():
    assert re.fullmatch("nan", str(logs.number_of("nan")))

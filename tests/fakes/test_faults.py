"""FaultPlan: what happens where, and in every fake."""

import errno
import functools
import logging
import math
import os
import re
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest
import tensorflow as tf
from tf_agents.policies import policy_saver

from testing.fakes import (
    CountingAgent,
    CountingDriver,
    FakeEnvironment,
    FakeMetric,
    FakePolicy,
    FaultPlan,
    InjectedFault,
    MockLog,
    Timeline,
)


@pytest.fixture
def plan():
    return FaultPlan()


def _calls(plan, kind, count, name=""):
    """Goes through `count` calls; returns the points that were passed."""
    passed = []
    for call in range(count):
        for when in ("before", "inside", "after"):
            plan.reach(kind, when, name)
            passed.append((call, when))
    return passed


@pytest.mark.parametrize("when", ["before", "inside", "after"])
def test_raises_at_the_nth_call_and_once(plan, when):
    plan.raise_at("agent.train", 2, when=when)
    with pytest.raises(
        InjectedFault, match=rf"^Injected fault {when} call 2 of agent\.train\.$"
    ):
        _calls(plan, "agent.train", 5)
    assert [str(fault) for fault in plan.fired] == [
        f"raise {when} call 2 of agent.train"
    ]
    _calls(plan, "agent.train", 5)


def test_a_call_that_has_passed_does_not_come_again(plan):
    _calls(plan, "log", 3)
    plan.raise_at("log", 1)
    _calls(plan, "log", 3)
    assert len(plan.pending) == 1


def test_raises_the_given_error(plan):
    plan.raise_at("log", 0, KeyError("x"))
    with pytest.raises(KeyError):
        plan.reach("log", "before")


def test_counts_kinds_and_names_apart(plan):
    plan.raise_at("log", 1, name="loss")
    _calls(plan, "summary", 3)
    _calls(plan, "log", 3, "hinge_loss")
    _calls(plan, "log", 1, "loss")
    with pytest.raises(InjectedFault):
        plan.reach("log", "before", "loss")


def test_corrupts_the_nth_value_only(plan):
    plan.nan_at("agent.train", 1)
    values = []
    for call in range(3):
        plan.reach("agent.train", "before")
        values.append(plan.corrupt("agent.train", float(call)))
    assert values[0] == 0.0
    assert math.isnan(values[1])
    assert values[2] == 2.0


def test_stalls(plan):
    slept = []
    plan.sleep = slept.append
    plan.stall_at("driver.run", 1, 30.0)
    _calls(plan, "driver.run", 3)
    assert slept == [30.0]


def test_stalls_until_an_event_is_set(plan):
    event = threading.Event()
    event.set()
    plan.stall_at("driver.run", 0, 3600.0, until=event)
    _calls(plan, "driver.run", 1)
    assert plan.pending == ()


def test_fills_the_disk(plan):
    plan.disk_full_at("checkpoint.save", 0)
    plan.reach("checkpoint.save", "before")
    with pytest.raises(OSError, match="No space left") as caught:
        plan.reach("checkpoint.save", "inside")
    assert caught.value.errno == errno.ENOSPC


def test_kills(plan):
    killed = []
    plan.kill = killed.append
    plan.kill_at("checkpoint.save", 0, when="after")
    _calls(plan, "checkpoint.save", 2)
    assert killed == [signal.SIGKILL]


def test_a_killed_process_is_dead_at_once():
    code = (
        "from testing.fakes import FaultPlan\n"
        "plan = FaultPlan(); plan.kill_at('log', 1)\n"
        "try:\n"
        "    for _ in range(3): plan.reach('log', 'before'); print('x', flush=True)\n"
        "finally: print('finally', flush=True)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == -signal.SIGKILL
    assert run.stdout == "x\n"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("train", 0), ValueError, "kind is 'train'. Allowed: agent.train, buffer"),
        (("log", -1), ValueError, "call is -1. Allowed: an integer from 0."),
        (("log", True), TypeError, "call is True. Allowed: an integer from 0."),
        (("log", 1.0), TypeError, "call is 1.0. Allowed: an integer from 0."),
    ],
)
def test_refuses_what_can_never_happen(plan, arguments, error, message):
    with pytest.raises(error, match="^" + re.escape(message)):
        plan.raise_at(*arguments)


def test_refuses_an_unknown_point(plan):
    with pytest.raises(ValueError, match=r"^when is 'during'\. Allowed: before, insid"):
        plan.raise_at("log", 0, when="during")


def test_tells_what_is_to_come(plan):
    plan.nan_at("env.step", 3)
    plan.raise_at("log", 0, when="after", name="loss")
    with pytest.raises(InjectedFault):
        _calls(plan, "log", 1, "loss")
    assert repr(plan) == (
        "<FaultPlan: happened: raise after call 0 of log of loss; "
        "to come: nan inside call 3 of env.step>"
    )


def test_around_reaches_the_points_of_real_code(plan):
    done = []

    def write():
        done.append("data")

    def save():
        owner.write()
        done.append("state")

    owner = SimpleNamespace(save=save, write=write)
    plan.raise_at("checkpoint.save", 0)
    plan.raise_at("checkpoint.save", 1, when="inside")
    plan.raise_at("checkpoint.save", 2, when="after")
    results = []
    with plan.around(owner, "save", "checkpoint.save", inside=(owner, "write")):
        for _ in range(4):
            done.clear()
            try:
                owner.save()
                results.append("ok")
            except InjectedFault:
                results.append(list(done))
    assert results == [[], ["data"], ["data", "state"], "ok"]
    assert owner.save is save


def test_around_log_counts_series(plan):
    logger = logging.getLogger("onbeat.faults")
    plan.raise_at("log", 1, when="before", name="loss")
    with plan.around_log(logger):
        logger.warning("[step=0] loss = 1.")
        logger.warning("[step=0] hinge_loss = 1.")
        with pytest.raises(InjectedFault):
            logger.warning("[step=1] loss = 1.")


def test_around_leaves_the_original_also_after_an_error(plan):
    owner = SimpleNamespace(save=len)
    with pytest.raises(RuntimeError), plan.around(owner, "save", "log"):
        raise RuntimeError
    assert owner.save is len


# In the fakes.


def _world(plan):
    timeline = Timeline()
    environment = FakeEnvironment(timeline=timeline, faults=plan)
    agent = CountingAgent(environment, timeline=timeline, faults=plan)
    driver = CountingDriver(
        environment, agent.collect_policy, num_steps=4, timeline=timeline, faults=plan
    )
    return timeline, environment, agent, driver


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("kind", "when", "seen"),
    [
        ("driver.run", "before", []),
        ("driver.run", "inside", ["env.reset", "policy.action", "env.step"]),
        (
            "driver.run",
            "after",
            ["env.reset", *["policy.action", "env.step"] * 2, "driver.run"],
        ),
        ("env.step", "before", ["env.reset", "policy.action"]),
        ("env.step", "after", ["env.reset", "policy.action", "env.step"]),
        ("env.reset", "before", []),
        ("policy.action", "inside", ["env.reset", "policy.action"]),
    ],
)
def test_stops_a_driver_at_each_point(plan, compiled, kind, when, seen):
    timeline, _, _, driver = _world(plan)
    plan.raise_at(kind, 0, when=when)
    run = tf.function(driver.run) if compiled else driver.run
    error = tf.errors.UnknownError if compiled else InjectedFault
    with pytest.raises(error, match=f"Injected fault {when} call 0 of {kind}"):
        run()
    assert timeline.kinds() == seen


@pytest.mark.parametrize(
    ("when", "calls", "counter"), [("before", 0, 0), ("inside", 1, 0), ("after", 1, 1)]
)
def test_stops_an_agent_at_each_point(plan, when, calls, counter):
    _, _, agent, _ = _world(plan)
    spec = agent.training_data_spec
    experience = tf.nest.map_structure(
        lambda s: tf.zeros([2, 1, *s.shape], s.dtype), spec
    )
    plan.raise_at("agent.train", 0, when=when)
    with pytest.raises(InjectedFault):
        agent.train(experience)
    assert agent.calls == calls
    assert agent.train_step_counter.numpy() == counter


def test_nan_losses_rewards_and_metrics(plan):
    _, environment, agent, _ = _world(plan)
    metric = FakeMetric(faults=plan)
    experience = tf.nest.map_structure(
        lambda s: tf.zeros([2, 1, *s.shape], s.dtype), agent.training_data_spec
    )
    for kind in ("agent.train", "env.step", "metric.result"):
        plan.nan_at(kind, 1)
    losses = [float(agent.train(experience).loss) for _ in range(3)]
    rewards = [environment.step([0, 0]).reward.numpy()[0] for _ in range(3)]
    results = [float(metric.result()) for _ in range(3)]
    for values in (losses, rewards, results):
        assert [math.isnan(v) for v in values] == [False, True, False]


def test_stops_a_log(plan):
    log = MockLog(forward=False, faults=plan)
    plan.raise_at("log", 1, when="before", name="loss")
    plan.raise_at("log", 2, when="after", name="loss")
    for step in range(4):
        try:
            log.info("[step=%d] loss = 1.", step)
        except InjectedFault:
            continue
    assert log.steps("loss") == [0, 2, 3]


KILLED = """
from testing.fakes import FakeEnvironment, FaultPlan
from testing.fakes._tf import tf

plan = FaultPlan()
plan.kill_at("env.step", 3, when="inside")
environment = FakeEnvironment(faults=plan)

@tf.function
def run():
    for i in tf.range(9):
        environment.step([0, 0])
        tf.print("step", i)

run()
"""


def test_kills_inside_a_graph(tmp_path):
    # A file, as TensorFlow reads the function's source.
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    path = os.pathsep.join(p for p in sys.path if p)
    run = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert run.returncode == -signal.SIGKILL, run.stderr
    assert "step 2" in run.stderr
    assert "step 3" not in run.stderr


def test_one_plan_counts_over_threads(plan):
    plan.raise_at("log", 100)
    errors = []

    def work():
        for _ in range(50):
            try:
                plan.reach("log", "before")
            except InjectedFault as error:
                errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 1
    assert functools.reduce(max, plan._calls.values()) == 199


def test_around_a_real_policy_export(plan, tmp_path):
    environment = FakeEnvironment()
    policy = FakePolicy(environment.time_step_spec(), environment.action_spec())
    saver = policy_saver.PolicySaver(policy)
    plan.raise_at("policy.save", 1, when="inside")
    inside = (tf.compat.v2.saved_model, "save")
    with plan.around(policy_saver.PolicySaver, "save", "policy.save", inside=inside):
        saver.save(str(tmp_path / "0"))
        with pytest.raises(InjectedFault):
            saver.save(str(tmp_path / "1"))
    whole, half = ({p.name for p in (tmp_path / n).iterdir()} for n in "01")
    assert "saved_model.pb" in half
    assert whole - half == {"policy_specs.pbtxt"}

"""The distributed trainer, with real collectors in this process instead of on Ray."""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys
from typing import Any
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.bandits.agents import lin_ucb_agent
from tf_agents.eval import metric_utils
from tf_agents.metrics import export_utils, tf_metrics

import trainer
from testing.contracts import check_trainer
from testing.fakes import CountingAgent, FakeEnvironment, MockLog, Timeline
from tests.trainer import backends, in_process, runs
from trainer import choice, collector_driver, collectors, distributed, pool
from trainer.arguments import Arguments

PER_COLLECTOR = 1_000_000  # Serial numbers of a collector.


@dataclasses.dataclass
class World:
    """Fakes on the learner's and on the collectors' side."""

    learner: Timeline = dataclasses.field(default_factory=Timeline)
    collectors: Timeline = dataclasses.field(default_factory=Timeline)
    agents: list[CountingAgent] = dataclasses.field(default_factory=list)
    environments: list[FakeEnvironment] = dataclasses.field(default_factory=list)

    def environment(self, collector: int) -> FakeEnvironment:
        is_learner = not self.environments
        made = FakeEnvironment(
            batch_size=runs.BATCH_SIZE,
            first_serial=collector * PER_COLLECTOR,
            timeline=self.learner if is_learner else self.collectors,
        )
        self.environments.append(made)
        return made

    def agent(self, environment: FakeEnvironment) -> CountingAgent:
        made = CountingAgent(environment, timeline=environment.timeline)
        self.agents.append(made)
        return made

    @property
    def train_calls(self) -> Any:
        return self.agents[0].train_calls


@dataclasses.dataclass
class Done:
    summary: trainer.TrainSummary
    log: MockLog
    joint: MockLog
    world: World
    backend: backends.InProcess


@pytest.fixture
def run(monkeypatch):
    """Calls `distributed.train`, with collectors in this process."""

    def call(root_dir, loops=3, a=2, num_collectors=1, world=None, **more) -> Done:
        world = world or World()
        more.setdefault("save_policy", False)
        made: list[backends.InProcess] = []

        def backend(session, recipe, cpus):
            made.append(backends.InProcess(recipe))
            return made[0]

        monkeypatch.setattr(distributed.ray_backend, "RayBackend", backend)
        monkeypatch.setattr(distributed, "_check_sendable", lambda own: None)
        monkeypatch.setattr(distributed.ray_session, "connected", mock.MagicMock())
        with (
            mock.patch.object(export_utils, "logging", new_callable=MockLog) as log,
            mock.patch.object(metric_utils, "logging", new_callable=MockLog) as joint,
        ):
            summary = distributed.train(
                root_dir,
                more.pop("agent_fn", world.agent),
                more.pop("environment_fn", world.environment),
                loops,
                runs.STEPS,
                a,
                num_collectors=num_collectors,
                **more,
            )
        return Done(summary, log, joint, world, made[0] if made else None)

    return call


def scalars(directory: Any) -> list[Any]:
    found = []
    for path in sorted(directory.glob("events*")):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                found.append((value.tag, event.step, tf.make_ndarray(value.tensor)))
    return found


def state(path: str) -> dict[str, Any]:
    reader = tf.train.load_checkpoint(path)
    names = reader.get_variable_to_shape_map()
    # The fakes count their own calls, and here another one acted.
    kept = [n for n in names if "GRAPH" not in n and "collect_policy" not in n]
    return {name: np.asarray(reader.get_tensor(name)).tolist() for name in kept}


@pytest.mark.parametrize("compile", [False, True, None])
def test_one_collector_does_what_the_single_process_does(tmp_path, run, compile):
    alone = runs.run(tmp_path / "alone", compile=compile)
    apart = run(tmp_path / "apart", compile=compile, save_policy=True)
    assert apart.log.lines == alone.log.lines
    assert apart.joint.lines == alone.joint.lines
    assert apart.world.train_calls == alone.agent.train_calls
    for kind in ("env.reset", "env.step", "policy.action"):
        theirs = apart.world.collectors.of(kind)
        assert [e.value for e in theirs] == alone.timeline.values(kind)
    assert scalars(tmp_path / "apart") == scalars(tmp_path / "alone")
    assert state(apart.summary.checkpoint) == state(alone.summary.checkpoint)
    ours, others = (dataclasses.asdict(x.summary) for x in (apart, alone))
    assert {k: v for k, v in ours.items() if "dir" not in k and k != "checkpoint"} == {
        k: v for k, v in others.items() if "dir" not in k and k != "checkpoint"
    }


@pytest.mark.parametrize("num_collectors", [2, 3])
@pytest.mark.parametrize("compile", [False, True])
def test_each_interaction_is_trained_once_in_order(
    tmp_path, run, num_collectors, compile
):
    done = run(tmp_path, a=5, num_collectors=num_collectors, compile=compile)
    calls = done.world.train_calls
    assert len(calls) == 15
    ids = [{s // PER_COLLECTOR for row in c.serials for s in row} for c in calls]
    assert ids == [{j % num_collectors} for _ in range(3) for j in range(5)]
    trained = [s for call in calls for row in call.serials for s in row]
    stepped = [s for v in done.world.collectors.values("env.step") for s in v.serials]
    assert sorted(trained) == sorted(stepped)
    assert len(set(trained)) == len(trained)
    for call in calls:
        assert call.shape == (runs.BATCH_SIZE, runs.STEPS)
        # In the rows and at the steps where they were made.
        rows = np.array(call.serials) % PER_COLLECTOR
        assert (rows % runs.BATCH_SIZE == [[0], [1], [2]]).all()
        assert (np.diff(rows, axis=1) == runs.BATCH_SIZE).all()


def test_the_policy_is_never_older_than_the_loop(tmp_path, run):
    done = run(tmp_path, loops=4, a=2, num_collectors=2)
    # A FakePolicy acts by how often its agent was trained.
    actions = [set(np.ravel(call.actions)) for call in done.world.train_calls]
    assert actions == [{2 * (n // 2) % 3} for n in range(8)]


def test_the_policy_is_broadcast_once_a_loop(tmp_path, run):
    done = run(tmp_path, loops=4, a=3, num_collectors=2)
    assert [int(values[0]) for values in done.backend.puts] == [0, 3, 6, 9]
    assert sorted(done.backend.stopped) == [0, 1]


def test_the_learner_never_steps_its_environment(tmp_path, run):
    done = run(tmp_path)
    assert done.world.learner.count("env.step") == 0
    assert done.world.learner.count("env.reset") == 0


def test_resuming_numbers_on(tmp_path, run):
    run(tmp_path, loops=2)
    again = run(tmp_path, loops=5, resume_training_loops=True)
    assert again.summary.loops == 3
    assert again.log.steps("loss") == list(range(4, 10))
    assert again.log.steps("AverageReturn") == list(range(4, 10))
    # The restored policy is the one that is broadcast.
    assert [int(values[0]) for values in again.backend.puts] == [4, 6, 8]


def test_no_more_collectors_than_driver_runs(tmp_path, run):
    done = run(tmp_path, a=2, num_collectors=5)
    assert sorted(done.backend.stopped) == [0, 1]


def test_zero_loops_need_no_ray(tmp_path, run):
    done = run(tmp_path / "not-made", loops=0)
    assert done.backend is None
    assert done.summary.loops == 0
    assert not (tmp_path / "not-made").exists()


def test_collectors_are_ended_after_an_error(tmp_path, run):
    world = World()
    made: list[Any] = []

    def environment(collector):
        if len(made) == 2:
            raise OSError("no licence left")
        made.append(world.environment(collector))
        return made[-1]

    with pytest.raises(pool.CollectorError) as caught:
        run(tmp_path, world=world, environment_fn=environment, num_collectors=2)
    text = str(caught.value)
    assert text.startswith(
        "Collector 1 failed while it made agent and environment: "
        "OSError: no licence left\nTraceback of collector 1:\n"
    )
    assert "in environment" in text
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.collector == 1


@pytest.mark.parametrize("compile", [False, True])
def test_an_exception_of_the_environment_arrives(tmp_path, run, compile):
    def environment(collector):
        def rewards(serials, actions):
            if max(serials) % PER_COLLECTOR > 30:
                raise ZeroDivisionError("nobody clicked")
            return [0.0] * len(serials)

        return FakeEnvironment(batch_size=3, rewards=rewards)

    with pytest.raises(pool.CollectorError) as caught:
        run(
            tmp_path,
            environment_fn=environment,
            agent_fn=CountingAgent,
            compile=compile,
        )
    text = str(caught.value)
    assert text.startswith("Collector 0 failed in driver run 1 of 2: ")
    assert "ZeroDivisionError: nobody clicked" in text
    assert "in rewards" in text
    checkpoint = tf.train.latest_checkpoint(str(tmp_path))
    assert checkpoint.endswith("ckpt-1")


def lin_ucb(environment):
    # It counts train steps with the global step, which all share in this process.
    tf.compat.v1.train.get_or_create_global_step().assign(0)
    return lin_ucb_agent.LinearUCBAgent(
        environment.time_step_spec(), environment.action_spec()
    )


def clicks(collector=0):
    return FakeEnvironment(
        batch_size=4,
        observation_shape=(2,),
        observation_dtype=tf.float32,
        rewards=lambda serials, actions: (np.asarray(actions) == serials % 3) * 1.0,
    )


@pytest.mark.parametrize(
    ("loops", "more"),
    [
        (3, {"compile": False}),
        (3, {"compile": True}),
        (3, {"compile": True, "xla": True}),
        (16, {"compile": None}),
    ],
    ids=["eager", "compiled", "xla", "decided"],
)
def test_a_real_agent_learns_the_same(tmp_path, run, loops, more):
    assert loops < 4 or loops * 2 * (runs.STEPS + 1) >= choice.WORTHWHILE_STEPS
    environment = clicks()
    agent = lin_ucb(environment)
    with mock.patch.object(export_utils, "logging", new_callable=MockLog) as log:
        trainer.train(
            tmp_path / "alone",
            agent,
            environment,
            loops,
            runs.STEPS,
            2,
            save_policy=False,
            **more,
        )
    apart = run(
        tmp_path / "apart", loops, environment_fn=clicks, agent_fn=lin_ucb, **more
    )
    assert apart.log.lines == log.lines
    theirs, ours = (
        state(tf.train.latest_checkpoint(str(tmp_path / name)))
        for name in ("alone", "apart")
    )
    assert ours == theirs


def test_it_keeps_the_contract():
    # The collectors, in this process here, have a buffer for one run each.
    report = check_trainer(in_process.train, skip=["buffer-size"])
    assert {skip.rule for skip in report.skipped} <= {"buffer-size"}
    assert {"crash-resumes", "exactly-once", "deterministic"} <= set(report.passed)


def test_the_buffer_is_sized_for_one_loop_full_before_and_empty_after(tmp_path, run):
    buffers = []

    def buffer(*sizes):
        buffers.append(runs.watched(trainer.get_replay_buffer(*sizes)))
        return buffers[-1]

    run(tmp_path, loops=2, a=3, num_collectors=2, get_replay_buffer_fn=buffer)
    (made,) = buffers
    capacity = 3 * runs.STEPS * runs.BATCH_SIZE
    assert int(made.capacity) == capacity
    assert made.frames_at_clear == [capacity] * 2
    assert int(made.num_frames()) == 0


@pytest.mark.parametrize(
    ("argument", "value", "error", "message"),
    [
        ("num_collectors", 0, ValueError, "num_collectors is 0. Allowed: an integer "),
        ("num_collectors", True, TypeError, "num_collectors is True. Allowed: an int"),
        ("max_replacements", -1, ValueError, "max_replacements is -1. Allowed: an "),
        ("slow_after", 0, ValueError, "slow_after is 0. Allowed: a number above 0."),
        ("slow_after", "1", TypeError, "slow_after is '1'. Allowed: a number above"),
        ("cpus_per_collector", -1, ValueError, "cpus_per_collector is -1. Allowed: "),
        ("seed", -1, ValueError, "seed is -1. Allowed: an integer of at least 0."),
        ("address", 6379, TypeError, "address is 6379. Allowed: HOST:PORT, 'auto' "),
        ("address", "", ValueError, "address is ''. Allowed: HOST:PORT, 'auto' or "),
        ("address", "ray://a:1", ValueError, "address is 'ray://a:1'. Allowed: HOST"),
        ("agent_fn", 1, TypeError, "agent_fn is 1. Allowed: a function."),
        ("environment_fn", None, TypeError, "environment_fn is None. Allowed: a fun"),
        ("async_steps_per_loop", 0, ValueError, "async_steps_per_loop is 0. Allowed"),
        ("save_policy", "yes", TypeError, "save_policy is 'yes'. Allowed: True or F"),
    ],
)
def test_arguments_are_checked_before_anything_is_done(
    tmp_path, argument, value, error, message
):
    root_dir = tmp_path / "not-made"
    given = {
        "agent_fn": CountingAgent,
        "environment_fn": FakeEnvironment,
        "num_collectors": 2,
        argument: value,
    }
    with pytest.raises(error) as caught:
        distributed.train(root_dir, training_loops=1, steps_per_loop=1, **given)
    assert str(caught.value).startswith(message)
    assert not root_dir.exists()


def test_a_function_that_cannot_be_sent_is_refused(tmp_path):
    agent = CountingAgent(FakeEnvironment())
    root_dir = tmp_path / "not-made"
    with pytest.raises(TypeError) as caught:
        distributed.train(
            root_dir, lambda environment: agent, FakeEnvironment, 1, 1, num_collectors=1
        )
    assert str(caught.value).startswith("agent_fn can't be sent to another process: ")
    assert "refers to no agent, environment, " in str(caught.value)
    assert not root_dir.exists()


def test_it_takes_what_the_single_process_takes():
    alone = inspect.signature(trainer.train).parameters
    apart = inspect.signature(distributed.train).parameters
    assert set(alone) - set(apart) == {"agent", "environment"}
    for name in set(alone) & set(apart):
        assert apart[name].default == alone[name].default, name


def test_nothing_of_ray_is_imported_by_the_rest_of_the_trainer():
    code = "import sys, trainer; sys.exit('ray' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_ray_is_one_clear_line(tmp_path):
    with (
        mock.patch("importlib.util.find_spec", return_value=None),
        pytest.raises(ImportError) as caught,
    ):
        distributed.train(
            tmp_path, CountingAgent, FakeEnvironment, 1, 1, num_collectors=1
        )
    assert str(caught.value) == (
        "trainer.distributed needs Ray: pip install 'onbeat-trainer[distributed]' "
        "(or 'onbeat[distributed]')."
    )


def recipe(world: World, **changed: Any) -> collectors.Recipe:
    environment = world.environment(0)
    agent = world.agent(environment)
    given = dict.fromkeys(f.name for f in dataclasses.fields(Arguments))
    given |= {"training_loops": 1, "steps_per_loop": 2, "compile": False}
    made = collectors.Recipe(
        world.agent,
        world.environment,
        Arguments(**given),
        1,
        collectors.signature(collectors.policy_variables(agent)),
    )
    return dataclasses.replace(made, **changed)


def test_seeds_differ_between_collectors(monkeypatch):
    seeds: list[int] = []
    monkeypatch.setattr(collectors, "_seed", seeds.append)
    for number in range(3):
        collectors.Collector(number).set_up(recipe(World(), seed=7))
    assert seeds == [7, 8, 9]


def test_another_policy_in_a_collector_is_refused():
    other = (((3, 2), "float32"),)
    failure = collectors.Collector(0).set_up(recipe(World(), signature=other))
    assert isinstance(failure, collectors.Failure)
    assert failure.summary.startswith(
        "ValueError: agent_fn made another policy here than on the learner: int64[] "
        "instead of float32[3, 2]. Allowed: "
    )


def test_environments_of_another_batch_size_are_refused(tmp_path, run):
    made: list[Any] = []

    def environment():
        made.append(FakeEnvironment(batch_size=2 + len(made)))
        return made[-1]

    with pytest.raises(ValueError, match="A collector sent experience of ") as caught:
        run(tmp_path, environment_fn=environment, agent_fn=CountingAgent)
    assert "int32[3, 4]" in str(caught.value)
    assert "Expected: int32[2, 4]" in str(caught.value)


@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("steps", [2, 5])
def test_runs_of_longer_episodes_are_shown_step_by_step(is_compiled, steps):
    """Which the trainer's contract excludes, but an environment may do."""
    environment = clicks()
    agent = lin_ucb(environment)
    length = tf_metrics.AverageEpisodeLengthMetric(batch_size=4)
    spec = agent.collect_policy.trajectory_spec
    arrays = tf.nest.map_structure(
        lambda s: np.zeros((4, steps, *s.shape), s.dtype.as_numpy_dtype), spec
    )
    # One episode: FIRST, MID, ..., and LAST in the end.
    kinds = np.array([0, *[1] * (steps - 1), 2], np.int32)
    arrays.step_type[:], arrays.next_step_type[:] = kinds[:-1], kinds[1:]
    made = mock.MagicMock()
    made.result.return_value = collectors.Collected(1, tuple(tf.nest.flatten(arrays)))
    size = steps, 1
    driver = collector_driver.CollectorDriver(environment, agent, [length], made, *size)
    driver.prepare()
    (tf.function(driver.run, autograph=False) if is_compiled else driver.run)()
    assert length.result().numpy() == steps

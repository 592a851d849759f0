"""The heart of the matter: everything happens as often as it should, in order."""

from __future__ import annotations

import pytest

from tests.trainer import runs
from tests.trainer.runs import BATCH_SIZE, METRICS, STEPS

LOOPS = (0, 1, 3)
RUNS = (1, 2, 5, None)
MODES = {
    "eager": {"compile": False},
    "compiled": {"compile": True, "watch": False},
    "compiled-watched": {"compile": True},
}
EAGER = [(loops, a, "eager") for loops in LOOPS for a in RUNS]
COMPILED = [(3, a, mode) for a in (1, 2, 5) for mode in list(MODES)[1:]]
GRID = EAGER + COMPILED


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    """Runs each point of the grid once; the tests look at it from all sides."""
    done = {}

    def get(*point):
        if point not in done:
            loops, a, mode = point
            root_dir = tmp_path_factory.mktemp("run")
            extra = runs.extra_metric()
            done[point] = runs.run(
                root_dir, loops, a, additional_metrics=[extra], **MODES[mode]
            )
        return done[point]

    return get


@pytest.fixture(params=GRID, ids=lambda p: f"{p[0]}-loops-A-{p[1]}-{p[2]}")
def point(request, grid):
    """A run with its number of loops and of driver runs in each."""
    loops, a, mode = request.param
    return grid(loops, a, mode), loops, a or 1


@pytest.mark.parametrize("name", [*METRICS, "Extra", "loss"])
def test_each_series_is_logged_once_at_each_step(point, name):
    run, loops, a = point
    assert run.log.count(name) == loops * a
    assert run.log.steps(name) == list(range(loops * a))


def test_nothing_else_is_logged(point):
    run, loops, a = point
    assert len(run.log.lines) == loops * a * (len(METRICS) + 2)


def test_the_environment_steps_and_the_agent_trains_as_often_as_it_should(point):
    run, loops, a = point
    assert run.environment.steps == loops * a * STEPS
    assert run.agent.calls == loops * a


def test_experience_j_of_a_loop_is_driver_run_j_of_it(point):
    run, _, _ = point
    assert run.experiences() == run.driver_runs(STEPS)


def test_experience_has_the_shape_batch_size_steps(point):
    run, _, _ = point
    assert {call.shape for call in run.agent.train_calls} <= {(BATCH_SIZE, STEPS)}


def test_the_buffer_is_sized_for_one_loop_full_before_and_empty_after(point):
    run, loops, a = point
    (buffer,) = run.buffers
    capacity = STEPS * a * BATCH_SIZE
    assert int(buffer.capacity) == capacity
    if isinstance(buffer, runs.Watched):
        assert buffer.frames_at_clear == [capacity] * loops
    assert int(buffer.num_frames()) == 0


def test_all_driver_runs_of_a_loop_come_before_its_train_calls(point):
    run, loops, a = point
    kinds = [e.kind for e in run.timeline.of("env.step", "agent.train")]
    assert kinds == (["env.step"] * STEPS * a + ["agent.train"] * a) * loops


def test_each_loss_is_what_its_train_call_returned(point):
    run, _, _ = point
    logged = runs.log_values(run.log, "loss")
    assert logged == pytest.approx([call.loss for call in run.agent.train_calls])


def test_metrics_are_logged_right_after_their_driver_run(point):
    run, loops, a = point
    per_run = BATCH_SIZE * STEPS
    expected = [per_run * (n + 1) for n in range(loops * a)]
    assert runs.log_values(run.log, "NumberOfEpisodes") == expected
    assert runs.log_values(run.log, "Extra") == expected


def test_lines_of_a_loop_are_metrics_after_each_run_then_the_losses(point):
    run, loops, a = point
    series = ["NumberOfEpisodes", "AverageEpisodeLength", "Extra", "AverageReturn"]
    expected: list[str] = []
    for loop in range(loops):
        steps = range(loop * a, loop * a + a)
        expected += [f"[step={step}] {name} " for step in steps for name in series]
        expected += [f"[step={step}] loss " for step in steps]
    assert [line.rpartition("= ")[0] for line in run.log.lines] == expected


def test_the_summary_tells_what_was_done(point):
    run, loops, a = point
    summary = run.summary
    assert (summary.loops, summary.total_loops) == (loops, loops)
    assert summary.train_steps == loops * a
    assert summary.environment_steps == loops * a * STEPS * BATCH_SIZE
    if loops:
        assert summary.metrics["NumberOfEpisodes"] == summary.environment_steps
        assert set(summary.metrics) == {*METRICS, "Extra"}


def test_one_joint_record_holds_all_metrics_of_a_driver_run(point):
    run, loops, a = point
    assert len(run.joint.lines) == loops * a
    for index, record in enumerate(run.joint.lines):
        episodes = (index + 1) * BATCH_SIZE * STEPS
        assert f"\n\t\t NumberOfEpisodes = {episodes}" in record
        assert "\n\t\t AverageReturn = " in record


def test_zero_loops_write_nothing(tmp_path):
    root_dir = tmp_path / "not-made"
    run = runs.run(root_dir, loops=0)
    assert not root_dir.exists()
    assert run.summary.checkpoint is None
    assert run.summary.policy_dir is None
    assert list(run.timeline.of("env.step", "agent.train")) == []

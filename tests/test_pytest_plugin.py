"""The pytest plugin: its fixtures, its marker, what it leaves alone."""

import logging
import os
import subprocess
import sys

import pytest
import tensorflow as tf  # noqa: F401  (before pytester, which unloads new modules)
from absl import logging as absl_logging
from tf_agents.metrics import export_utils

from testing.fakes import FakeEnvironment


def test_fixtures_share_one_timeline(
    timeline,
    fake_environment,
    counting_agent,
    counting_driver,
    recording_replay_buffer,
    mock_log,
):
    counting_driver.run()
    experience = recording_replay_buffer.gather_all()
    loss = counting_agent.train(experience).loss
    mock_log.info("[step=0] loss = %s.", float(loss))
    recording_replay_buffer.clear()
    step = ["policy.action", "env.step", "buffer.add"]
    assert timeline.kinds() == [
        "env.reset",
        *step * 2,
        "driver.run",
        "buffer.read",
        "agent.train",
        "log",
        "buffer.clear",
    ]
    assert counting_agent.train_calls[0].serials == ((0, 2), (1, 3))
    assert fake_environment.steps == 2


@pytest.mark.onbeat(
    batch_size=3, losses=[7.0], steps_per_loop=4, async_steps_per_loop=2, rewards=1.0
)
class TestMarker:
    def test_sizes(self, counting_driver, recording_replay_buffer, counting_agent):
        counting_driver.run()
        assert recording_replay_buffer.frames == 12
        assert int(recording_replay_buffer.capacity) == 24
        loss = counting_agent.train(recording_replay_buffer.gather_all()).loss
        assert float(loss) == 7.0

    @pytest.mark.onbeat(batch_size=1)
    def test_the_nearest_marker_wins(self, fake_environment):
        assert fake_environment.batch_size == 1
        assert fake_environment.step([0]).reward.numpy().tolist() == [1.0]


def test_mock_log_works_with_mocker(mocker, mock_log):
    mocker.patch.object(export_utils, "logging", mock_log)
    export_utils.export_metrics(3, [])
    export_utils.logging.info("[step=3] loss = 1.")
    assert mock_log.steps("loss") == [3]


@pytest.fixture
def run(pytester):
    """Runs a test file in this process, with the plugin."""

    def run(source, *args):
        pytester.makepyfile(source)
        # The log capture of the outer run would hide what the inner one leaves.
        return pytester.runpytest_inprocess(
            "-p", "testing.pytest_plugin", "-p", "no:cacheprovider", *args
        )

    return run


def test_a_fault_that_never_happens_fails_the_test(run):
    result = run(
        """
        def test_it(faults):
            faults.raise_at("agent.train", 3)
        """
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["Planned faults that never happened: raise before call 3 of agent.train."]
    )


def test_a_fault_that_happens_does_not(run):
    result = run(
        """
        import pytest
        from testing.fakes import InjectedFault

        def test_it(faults, fake_environment):
            faults.raise_at("env.step", 0)
            with pytest.raises(InjectedFault):
                fake_environment.step([0, 0])
        """
    )
    result.assert_outcomes(passed=1)


def test_an_unknown_option_is_named(run):
    result = run(
        """
        import pytest

        @pytest.mark.onbeat(batchsize=3)
        def test_it(fake_environment):
            pass
        """,
        "--strict-markers",
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*ValueError: Marker onbeat got batchsize. Allowed: batch_size, num_actions*"]
    )


def test_loggers_are_as_before_after_each_test(run):
    result = run(
        """
        import logging
        from absl import logging as absl_logging

        def test_a():
            absl_logging.set_verbosity(1)
            absl_logging.set_stderrthreshold("info")
            absl_logging.use_absl_handler()
            logging.getLogger().setLevel(5)
            logging.getLogger("absl").addHandler(logging.NullHandler())
            logging.disable(logging.ERROR)

        def test_b():
            assert logging.root.manager.disable == logging.NOTSET
            assert absl_logging.get_verbosity() == VERBOSITY
            assert absl_logging.FLAGS["stderrthreshold"].value == "fatal"
            assert absl_logging.get_absl_handler() not in logging.root.handlers
            assert logging.root.level == logging.WARNING
            assert logging.getLogger("absl").handlers == []
        """.replace("VERBOSITY", str(absl_logging.get_verbosity()))
    )
    result.assert_outcomes(passed=2)
    assert absl_logging.get_absl_handler() not in logging.root.handlers


def test_what_fixtures_of_the_session_set_stays(run):
    before = absl_logging.get_verbosity()
    try:
        result = run(
            """
            import pytest
            from absl import logging

            @pytest.fixture(scope="session", autouse=True)
            def verbose():
                logging.set_verbosity(1)

            def test_a():
                assert logging.get_verbosity() == 1

            def test_b():
                assert logging.get_verbosity() == 1
            """
        )
    finally:
        absl_logging.set_verbosity(before)
    result.assert_outcomes(passed=2)


def _pytest(tmp_path, source, *args):
    """Runs a test file in a process of its own, with the plugin."""
    (tmp_path / "test_it.py").write_text(source)
    path = os.pathsep.join(p for p in sys.path if p)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "testing.pytest_plugin", *args],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
    )


UNUSED = """
import sys

def test_it():
    heavy = {"tensorflow", "tf_agents", "numpy", "absl", "testing.fakes"}
    assert not heavy & set(sys.modules)

def test_light_ones(timeline, mock_log, faults):
    assert not {"tensorflow", "tf_agents", "numpy"} & set(sys.modules)
"""


def test_costs_a_project_that_does_not_use_it_nothing(tmp_path):
    run = _pytest(tmp_path, UNUSED)
    assert "2 passed" in run.stdout, run.stdout


PARALLEL = """
import pytest

@pytest.mark.parametrize("n", range(6))
def test_it(n, counting_driver, counting_agent, recording_replay_buffer, timeline):
    for _ in range(n):
        counting_driver.run()
        counting_agent.train(recording_replay_buffer.gather_all())
        recording_replay_buffer.clear()
    assert counting_agent.calls == counting_driver.runs == n
    assert timeline.steps("agent.train") == list(range(n))
"""


@pytest.mark.slow
def test_works_in_parallel(tmp_path):
    run = _pytest(tmp_path, PARALLEL, "-p", "xdist", "-n", "2")
    assert "6 passed" in run.stdout, run.stdout


def test_help_names_the_fixtures(tmp_path):
    run = _pytest(tmp_path, UNUSED, "--fixtures")
    for name in ("timeline", "mock_log", "fake_environment", "counting_agent"):
        assert f"\n{name} -- " in run.stdout


def test_fakes_of_two_tests_are_apart(fake_environment):
    other = FakeEnvironment()
    other.step([0, 0])
    assert fake_environment.steps == 0
    assert len(fake_environment.timeline) == 0

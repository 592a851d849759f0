"""TensorBoard sees the same steps and values as the log, complete on return."""

from __future__ import annotations

import pytest
import tensorflow as tf

from testing.fakes import FakeEnvironment
from tests.trainer import runs


def scalars(root_dir) -> dict[str, list[tuple[int, float]]]:
    """Steps and values by tag, from all event files of a directory."""
    found: dict[str, list[tuple[int, float]]] = {}
    for path in sorted(root_dir.glob("events.out.tfevents.*")):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                number = float(tf.make_ndarray(value.tensor))
                found.setdefault(value.tag, []).append((event.step, number))
    return found


def test_metrics_and_loss_stand_at_the_steps_of_their_log_lines(tmp_path):
    run = runs.run(tmp_path, loops=3, runs=2)
    seen = scalars(tmp_path)
    for tag in ("Metrics/NumberOfEpisodes", "Metrics/AverageReturn", "loss"):
        name = tag.rpartition("/")[2]
        assert [step for step, _ in seen[tag]] == run.log.steps(name)
        values = [value for _, value in seen[tag]]
        assert values == pytest.approx(runs.log_values(run.log, name))


def test_a_resumed_run_writes_on_from_its_last_step(tmp_path):
    runs.run(tmp_path, loops=2)
    runs.run(tmp_path, loops=3, resume_training_loops=True)
    assert [step for step, _ in scalars(tmp_path)["loss"]] == [0, 1, 2, 3, 4, 5]


def test_summaries_are_on_disk_after_an_error_too(tmp_path):
    def reward(serials, actions):
        if serials[0] >= 16:
            raise ZeroDivisionError
        return serials

    environment = FakeEnvironment(rewards=reward)
    with pytest.raises(ZeroDivisionError):
        runs.run(tmp_path, loops=3, environment=environment, compile=False)
    assert [step for step, _ in scalars(tmp_path)["loss"]] == [0, 1]

"""FakeMetric: values by script, counted reads."""

import pytest
import tensorflow as tf
from tf_agents.metrics import tf_metrics

from testing.fakes import FakeEnvironment, FakeMetric, FakePolicy, Timeline
from testing.fakes.driver import CountingDriver


def _driver(*metrics):
    environment = FakeEnvironment()
    policy = FakePolicy(environment.time_step_spec(), environment.action_spec())
    return CountingDriver(environment, policy, list(metrics), num_steps=4)


def test_counts_updates_by_default():
    metric = FakeMetric()
    driver = _driver(metric)
    assert metric.result().numpy() == 0
    driver.run()
    assert metric.result().numpy() == 2
    assert (metric.updates, metric.results) == (2, 2)


def test_follows_its_script():
    metric = FakeMetric(values=[0.5, 7.0, -1.0])
    driver = _driver(metric)
    driver.run()
    assert metric.result().numpy() == -1.0
    driver.run()
    with pytest.raises(IndexError, match="values has 3 entries, but entry 4 was asked"):
        metric.result()


def test_counts_in_a_graph_and_notes_it():
    timeline = Timeline()
    metric = FakeMetric("m", timeline=timeline, dtype=tf.int64)
    driver = _driver(metric)

    @tf.function
    def run(n):
        for _ in tf.range(n):
            driver.run()
        return metric.result()

    assert run(tf.constant(2)).numpy() == 4
    assert run(tf.constant(1, tf.int64)).numpy() == 6
    assert timeline.values("metric.update", "m") == [2] * 6
    assert timeline.values("metric.result", "m") == [4, 6]


def test_writes_the_summaries_of_a_real_metric(tmp_path):
    tags = []
    for metric in (FakeMetric("EnvironmentSteps"), tf_metrics.EnvironmentSteps()):
        directory = tmp_path / type(metric).__name__
        with tf.summary.create_file_writer(str(directory)).as_default():
            metric.tf_summaries(train_step=3)
        (path,) = directory.iterdir()
        events = tf.compat.v1.train.summary_iterator(str(path))
        tags.append([(e.step, v.tag) for e in events for v in e.summary.value])
    assert tags[0] == tags[1] == [(3, "Metrics/EnvironmentSteps")]


def test_resets():
    metric = FakeMetric()
    _driver(metric).run()
    metric.reset()
    assert metric.result().numpy() == 0
    assert metric.resets == 1


def test_saves_and_restores(tmp_path):
    metric = FakeMetric()
    _driver(metric).run()
    path = tf.train.Checkpoint(m=metric).save(str(tmp_path / "c"))
    other = FakeMetric()
    tf.train.Checkpoint(m=other).restore(path).assert_consumed()
    assert other.result().numpy() == 2
    assert repr(other) == "<FakeMetric 'FakeMetric': 2 updates, 1 results, 0 resets>"

"""Calls from a graph into Python: their order, their types."""

import os
import subprocess
import sys

import pytest
import tensorflow as tf

from testing.fakes import FakeEnvironment

ORDER = """
from testing.fakes import FakeEnvironment, FakeMetric, Timeline
from testing.fakes._tf import tf

timeline = Timeline()
environment = FakeEnvironment(timeline=timeline)
metric = FakeMetric(timeline=timeline)

@tf.function
def run(n):
    before = metric.result()
    for _ in tf.range(n):
        environment.step([0, 0])
    # Nothing but the timeline says that this comes after the loop.
    return before, metric.result()

for n in [1, 2, 5, 10] * 25:
    timeline.clear()
    run(tf.constant(n))
    kinds = [kind for kind in timeline.kinds() if kind != "env.reset"]
    assert kinds == ["metric.result", *["env.step"] * n, "metric.result"], kinds
"""


def test_calls_around_a_loop_keep_the_order_of_the_program(tmp_path):
    # In a process of its own: the threads of this one are too few to get it wrong.
    script = tmp_path / "order.py"
    script.write_text(ORDER)
    path = os.pathsep.join(p for p in sys.path if p)
    threads = {"TF_NUM_INTEROP_THREADS": "4", "TF_NUM_INTRAOP_THREADS": "4"}
    run = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": path, **threads},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr[-2000:]


@pytest.mark.parametrize("compiled", [False, True])
def test_results_have_the_promised_dtypes(compiled):
    environment = FakeEnvironment()
    step = tf.function(environment.step) if compiled else environment.step
    seen = step(tf.constant([0, 1]))
    for spec, value in zip(
        tf.nest.flatten(environment.time_step_spec()),
        tf.nest.flatten(seen),
        strict=True,
    ):
        assert value.dtype == spec.dtype
        assert value.shape == [2, *spec.shape]

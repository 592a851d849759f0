"""What every test of this repository shares."""

import os
import sys

import hypothesis
import pytest

# Before TensorFlow is imported anywhere: few threads (tests run side by side),
# and no start-up notices.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

# The time an example takes depends on the machine. Nothing here is timed.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def _default_summary_writer():
    """Puts away what a test left, as TF-Agents' trainer does, for the next one."""
    yield
    summaries = sys.modules.get("tensorflow.python.ops.summary_ops_v2")
    if summaries is not None:
        summaries._summary_state.writer = None

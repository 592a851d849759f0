"""The rules of `check_trainer`: one name and one sentence each. No TensorFlow."""

from __future__ import annotations

CONTRACT = {
    "driver-runs": (
        "Environments step training_loops * A * steps_per_loop times each: "
        "no driver run before, between or after."
    ),
    "train-calls": (
        "agent.train is called training_loops * A times, also at A = 1, "
        "and nothing else advances its counter."
    ),
    "experience-shape": "Each experience is [batch_size, steps_per_loop, ...].",
    "exactly-once": (
        "Every collected interaction is trained on once: none lost, none repeated."
    ),
    "in-order": (
        "Batch j of a loop is driver run j of that loop: rows not mixed, each "
        "observation with its own action and reward."
    ),
    "collect-before-train": (
        "Within a loop all driver runs come before the first train call."
    ),
    "buffer-size": (
        "The buffer holds steps_per_loop * A per batch entry, "
        "and is empty after each loop."
    ),
    "metric-steps": (
        "Each metric is logged training_loops * A times, at 0, 1, 2, ..., once each."
    ),
    "loss-steps": (
        "The loss is logged training_loops * A times, at 0, 1, 2, ..., once each."
    ),
    "metric-values": (
        "A logged value is the metric's value at that moment; counters never fall."
    ),
    "loss-values": (
        "A logged loss is what that train call returned; NaN shows as NaN."
    ),
    "event-order": (
        "Each metric line stands between its driver run and the next one, "
        "each loss line between its train call and the next one."
    ),
    "additional-metrics": "Metrics passed in are logged like the default ones.",
    "log-format": (
        "No record failed to format, none is doubled, "
        "none is silenced by a changed level."
    ),
    "summary-steps": "Summaries carry the same steps as the log lines.",
    "summary-complete": "All summaries are on disk when the trainer returns.",
    "checkpoint-final": (
        "The state after the last loop is in the latest checkpoint; "
        "agent and metrics restore from it."
    ),
    "policy-final": (
        "A policy of the final state is exported, and no export overwrites another."
    ),
    "resume-continues": (
        "N loops, then on to N + M, equals N + M in one go: "
        "no step lost, none repeated."
    ),
    "crash-resumes": (
        "Killed at any point and resumed, every step is logged; "
        "only the unfinished loop's may repeat."
    ),
    "errors-surface": "An exception from agent or environment reaches the caller.",
    "arguments-checked": (
        "Zero loops do nothing; nonsense raises before anything is written."
    ),
    "leaves-no-trace": (
        "Default writer, log levels and handlers, global step, working directory "
        "and threads are as before."
    ),
    "deterministic": "The same seeds give the same timeline.",
    # Not a rule of data: it speaks up when the others had nothing to look at.
    "completes": "A run with valid arguments ends without an exception.",
}

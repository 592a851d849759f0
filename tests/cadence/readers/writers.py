"""Writes a run in every format, the way the frameworks write it.

A run is a list of moments: a step, and what was logged at it by name.
"""

from __future__ import annotations

import csv
import io
import json
import struct

Moments = list[tuple[int, dict[str, float]]]

ABSL = "I1201 04:21:{:02d}.{:06d} 140735171155776 export_utils.py:45] "


def absl_prefix(number):
    return ABSL.format(number // 1000 % 60, number % 1000)


def _lines(moments, form, prefix=""):
    number = 0
    rows = []
    for step, values in moments:
        for name, value in values.items():
            number += 1
            start = absl_prefix(number) if prefix is None else prefix
            rows.append(start + form.format(step=step, name=name, value=value) + "\n")
    return "".join(rows).encode()


def bandit(moments):
    return _lines(moments, "[step={step}] {name} = {value}.", None)


def bandit_logging(moments):
    return _lines(moments, "[step={step}] {name} = {value}.", "INFO:absl:")


def tutorial(moments):
    return _lines(moments, "step = {step}: {name} = {value}")


def knitr(moments):
    return _lines(moments, "step = {step}: {name} = {value}", "    ## ")


def hydra(moments):
    prefix = "[2024-12-01 04:21:29,123][__main__][INFO] - "
    return _lines(moments, "step: {step}, {name}: {value}", prefix)


def estimator(moments):
    rows = []
    for step, values in moments:
        pairs = ", ".join(f"{name} = {value}" for name, value in values.items())
        rows.append(f"INFO:tensorflow:{pairs}, step = {step} (0.432 sec)\n")
    return "".join(rows).encode()


def records(moments):
    """What `metric_utils.log_metrics(metrics, prefix='Step = 5')` writes."""
    rows = []
    for number, (step, values) in enumerate(moments):
        pairs = "\n\t\t ".join(f"{name} = {value}" for name, value in values.items())
        rows.append(f"{absl_prefix(number)}Step = {step} \n\t\t {pairs}\n")
    return "".join(rows).encode()


def json_lines(moments):
    rows = [json.dumps({"step": step, **values}) for step, values in moments]
    return "".join(row + "\n" for row in rows).encode()


def json_list(moments):
    return json.dumps([{"step": step, **values} for step, values in moments]).encode()


def stable_baselines3(moments, step_key="time/total_timesteps"):
    """As its CSV writer: a new key rewrites the header and widens old rows."""
    keys = []
    lines = []
    for step, values in moments:
        row = {**values, step_key: step}
        extra = [key for key in row if key not in keys]
        keys += extra
        lines = [line + "," * len(extra) for line in lines]
        lines.append(",".join(str(row[key]) if key in row else "" for key in keys))
    return "".join(line + "\n" for line in [",".join(keys), *lines]).encode()


def lightning(moments):
    """As its CSV writer: keys sorted, a row for each call of `log_metrics`."""
    keys = sorted({key for _, values in moments for key in values} | {"epoch", "step"})
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=keys)
    writer.writeheader()
    for step, values in moments:
        for name, value in values.items():  # rows of their own, of one step
            writer.writerow({"epoch": step // 100, "step": step, name: value})
    return text.getvalue().encode()


def hugging_face(moments, indent=2, **declared):
    history = [
        {"epoch": round(step / 97, 2), **values, "step": step}
        for step, values in moments
    ]
    last = moments[-1][0] if moments else 0
    state = {
        "best_metric": None,
        "epoch": last / 97,
        "eval_steps": 500,
        "global_step": last,
        "is_world_process_zero": True,
        "log_history": history,
        "logging_steps": 10,
        "max_steps": max(last, 1),
        "num_train_epochs": 3,
        "save_steps": 500,
        "stateful_callbacks": {"TrainerControl": {"args": {}, "attributes": {}}},
        "total_flos": 1.5e15,
        "trial_name": None,
        **declared,
    }
    return (json.dumps(state, indent=indent, sort_keys=True) + "\n").encode()


def event_file(moments, make):
    from tensorboard.compat.proto import event_pb2, summary_pb2

    start = event_pb2.Event(wall_time=1.7e9, file_version="brain.Event:2")
    frames = [frame(start.SerializeToString())]
    for step, values in moments:
        for name, value in values.items():
            summary = summary_pb2.Summary(value=[make(name, value)])
            event = event_pb2.Event(wall_time=1.7e9 + step, step=step, summary=summary)
            frames.append(frame(event.SerializeToString()))
    return b"".join(frames)


def frame(message):
    length = struct.pack("<Q", len(message))
    return length + _checksum(length) + message + _checksum(message)


def _checksum(data):
    import google_crc32c

    checksum = google_crc32c.value(data)
    rotated = (checksum >> 15 | checksum << 17) + 0xA282EAD8
    return struct.pack("<I", rotated & 0xFFFFFFFF)


def simple_value(name, value):
    from tensorboard.compat.proto import summary_pb2

    return summary_pb2.Summary.Value(tag=name, simple_value=value)


def tensor_value(name, value, dtype=1):
    """As `tf.summary.scalar` of TensorFlow 2."""
    from tensorboard.compat.proto import summary_pb2

    found = summary_pb2.Summary.Value(tag=name)
    found.tensor.dtype = dtype
    found.tensor.tensor_shape.SetInParent()
    field = {1: "float_val", 2: "double_val", 3: "int_val", 9: "int64_val"}[dtype]
    getattr(found.tensor, field).append(value)
    found.metadata.plugin_data.plugin_name = "scalars"
    return found


def tensorboard_1(moments):
    return event_file(moments, simple_value)


def tensorboard_2(moments):
    return event_file(moments, tensor_value)


def tensorboard_double(moments):
    return event_file(moments, lambda name, value: tensor_value(name, value, 2))


# format -> writer and the name of a file
FORMATS = {
    "bandit": (bandit, "run.log"),
    "bandit_logging": (bandit_logging, "run.log"),
    "tutorial": (tutorial, "run.log"),
    "knitr": (knitr, "run.md"),
    "hydra": (hydra, "train.log"),
    "estimator": (estimator, "run.log"),
    "records": (records, "run.log"),
    "json_lines": (json_lines, "run.jsonl"),
    "json_list": (json_list, "run.json"),
    "stable_baselines3": (stable_baselines3, "progress.csv"),
    "lightning": (lightning, "metrics.csv"),
    "hugging_face": (hugging_face, "trainer_state.json"),
    "tensorboard_1": (tensorboard_1, "events.out.tfevents.1700000000.host"),
    "tensorboard_2": (tensorboard_2, "events.out.tfevents.1700000000.host"),
    "tensorboard_double": (tensorboard_double, "events.out.tfevents.1700000000.host"),
}

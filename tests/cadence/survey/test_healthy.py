"""Runs as the frameworks log them are clean: a false alarm is a bug.

Where the framework is not installed, its logging is re-told here call by call.
"""

from __future__ import annotations

import json
import math
import random

import pytest

from testing.cadence.readers import read
from testing.cadence.survey import Survey
from tests.cadence.readers import writers


def findings(path):
    survey = Survey(str(path))
    for item in read(path):
        survey.add(item)
    survey.close()
    assert survey.series
    return [f"{f.kind}: {f.message}" for f in survey.findings]


class Numbers:
    """Values, no two alike."""

    def __init__(self, seed=0):
        self._random = random.Random(seed)

    def __call__(self):
        return self._random.random()


class Sb3Logger:
    """`record` until `dump`, as stable-baselines3's logger."""

    def __init__(self):
        self.rows = []
        self.tensorboard = []
        self._now = {}

    def record(self, *names):
        self._now.update({name: random.random() for name in names})

    def dump(self, step):
        self.rows.append((step, self._now))
        self.tensorboard.append((step, self._now))
        self._now = {}


TRAIN = ("train/loss", "train/n_updates", "train/learning_rate", "train/kl")
ROLLOUT = ("rollout/ep_rew_mean", "rollout/ep_len_mean")
EVAL = ("eval/mean_reward", "eval/mean_ep_length")
TIME = ("time/fps", "time/iterations", "time/time_elapsed")


def on_policy(steps=2048, updates=50, evaluate=0, episode=500, log_every=1):
    """`OnPolicyAlgorithm.learn`: rollout, dump, train; evaluation in between."""
    logger, now = Sb3Logger(), 0
    for update in range(1, updates + 1):
        for _ in range(steps):
            now += 1
            if evaluate and now % evaluate == 0:
                logger.record(*EVAL)
                logger.dump(now)
        if update % log_every == 0:
            logger.record(*TIME, *(ROLLOUT if now >= episode else ()))
            logger.dump(now)
        logger.record(*TRAIN)
    return logger.rows


def off_policy(total=20_000, learning_starts=100, log_every=4, length=None):
    """`OffPolicyAlgorithm.learn`: a row every few episodes."""
    logger, now, episode, rng = Sb3Logger(), 0, 0, random.Random(7)
    while now < total:
        now += length or rng.randint(9, 500)
        episode += 1
        if now > learning_starts:
            logger.record(*TRAIN[:2])
        if episode % log_every == 0:
            logger.record("time/episodes", "time/fps", *ROLLOUT)
            logger.dump(now)
    return logger.rows


SB3 = {
    "ppo": on_policy(),
    "ppo, few rows": on_policy(updates=3),
    "ppo, one row": on_policy(updates=1),
    "ppo, first episode late": on_policy(episode=3 * 2048),
    "ppo, log_interval": on_policy(log_every=4),
    "ppo, evaluation coarser": on_policy(evaluate=5000),
    "ppo, evaluation finer": on_policy(evaluate=500),
    "ppo, evaluation nearly as often": on_policy(evaluate=2000, updates=100),
    "ppo, evaluation at every rollout": on_policy(evaluate=2048),
    "a2c": on_policy(steps=5, updates=900, log_every=100),
    "dqn": off_policy(),
    "dqn, learning_starts": off_policy(learning_starts=3000),
    "sac, equal episodes": off_policy(length=200),
    "sac, equal episodes, late": off_policy(length=200, learning_starts=5000),
}


@pytest.mark.parametrize("form", ["stable_baselines3", "tensorboard_1"])
@pytest.mark.parametrize("run", SB3)
def test_stable_baselines3(tmp_path, run, form):
    write, name = writers.FORMATS[form]
    (tmp_path / name).write_bytes(write(SB3[run]))
    assert findings(tmp_path / name) == []


def test_explained_variance_of_equal_returns_is_nan(tmp_path):
    rows = [(s, {"train/explained_variance": math.nan, "time/fps": 1}) for s in (1, 2)]
    path = tmp_path / "progress.csv"
    path.write_bytes(writers.stable_baselines3(rows))
    assert findings(path) == []


def lightning(epochs=5, batches=938, every=50, accumulate=1):
    """Rows as `Trainer` logs them: training by batch, then epochs' ends."""
    value, rows, step = Numbers(), [], -1
    for _ in range(epochs):
        for _ in range(batches):
            step += 1
            if (step + 1) % every == 0:
                rows.append((step, {"train_loss_step": value(), "lr-Adam": value()}))
        rows.append((step, {"val_loss": value(), "val_acc": value()}))
        rows.append((step, {"train_loss_epoch": value()}))
    return rows


LIGHTNING = {
    "usual": lightning(),
    "epoch shorter than interval": lightning(batches=30),
    "every step": lightning(every=1, batches=40),
    "epochs end on the beat": lightning(batches=1000),
    "one epoch": lightning(epochs=1),
}


@pytest.mark.parametrize("form", ["lightning", "tensorboard_1"])
@pytest.mark.parametrize("run", LIGHTNING)
def test_lightning(tmp_path, run, form):
    write, name = writers.FORMATS[form]
    rows = LIGHTNING[run]
    if form != "lightning":  # its TensorBoard logger writes the epoch each time
        rows = [(step, {**values, "epoch": step // 938}) for step, values in rows]
    (tmp_path / name).write_bytes(write(rows))
    assert findings(tmp_path / name) == []


def hugging_face(steps=1050, logging=10, evaluation=100, first=False, final=True):
    value, rows = Numbers(), []
    for step in range(1, steps + 1):
        if step % logging == 0 or (first and step == 1):
            names = ("loss", "grad_norm", "learning_rate")
            rows.append((step, {name: value() for name in names}))
        if evaluation and step % evaluation == 0:
            names = ("eval_loss", "eval_runtime", "eval_samples_per_second")
            rows.append((step, {name: value() for name in names}))
    if final:
        rows.append((steps, {"train_loss": value(), "train_runtime": value()}))
    return rows


HUGGING_FACE = {
    "usual": (hugging_face(), {"logging_steps": 10, "eval_steps": 100}),
    "first step": (hugging_face(first=True), {"logging_steps": 10, "eval_steps": 100}),
    "no evaluation": (hugging_face(evaluation=0), {"logging_steps": 10}),
    "same beat": (
        hugging_face(evaluation=10),
        {"logging_steps": 10, "eval_steps": 10},
    ),
    "on the way": (
        hugging_face(steps=500, final=False),
        {"logging_steps": 10, "eval_steps": 100, "max_steps": 1050},
    ),
    "too short for a beat": (
        hugging_face(steps=7, logging=5, first=True),
        {"logging_steps": 5, "eval_steps": 100},
    ),
    "every 97 steps, by epoch": (
        hugging_face(steps=485, logging=97, evaluation=97),
        {"logging_steps": 500, "eval_steps": 500},
    ),
    "evaluated again at the end": (
        [*hugging_face(steps=1000), (1000, {"eval_loss": 0.5, "eval_runtime": 1.0})],
        {"logging_steps": 10, "eval_steps": 100},
    ),
}


@pytest.mark.parametrize("run", HUGGING_FACE)
def test_hugging_face(tmp_path, run):
    rows, declared = HUGGING_FACE[run]
    path = tmp_path / "trainer_state.json"
    path.write_bytes(writers.hugging_face(rows, **declared))
    assert findings(path) == []


def bandit(loops, driver_runs):
    value, rows = Numbers(), []
    for loop in range(loops):
        steps = range(loop * driver_runs, (loop + 1) * driver_runs)
        names = ("NumberOfEpisodes", "AverageReturn")
        rows += [(step, {name: value() for name in names}) for step in steps]
        rows += [(step, {"loss": value()}) for step in steps]
    return rows


@pytest.mark.parametrize("form", ["bandit", "tensorboard_2"])
@pytest.mark.parametrize(
    ("loops", "runs"), [(1, 1), (2, 1), (3, 2), (5, 4), (2, 50), (1, 9)]
)
def test_bandit_trainer(tmp_path, loops, runs, form):
    write, name = writers.FORMATS[form]
    (tmp_path / name).write_bytes(write(bandit(loops, runs)))
    assert findings(tmp_path / name) == []


def tutorial(first=200, every=200, evaluation=1000, steps=20_000, before=True):
    value, rows = Numbers(), []
    if before:
        rows.append((0, {"eval Average Return": value()}))
    for step in range(1, steps + 1):
        if step >= first and (step - first) % every == 0:
            rows.append((step, {"loss": value()}))
        if step % evaluation == 0:
            rows.append((step, {"eval Average Return": value()}))
    return rows


TUTORIALS = {
    "usual": tutorial(),
    "evaluation before training, on the beat of the loss": tutorial(evaluation=200),
    **{f"first step {n}": tutorial(first=n, every=50) for n in (1, 49, 50, 101)},
}


@pytest.mark.parametrize("form", ["tutorial", "knitr", "json_lines"])
@pytest.mark.parametrize("run", TUTORIALS)
def test_tutorials(tmp_path, run, form):
    write, name = writers.FORMATS[form]
    (tmp_path / name).write_bytes(write(TUTORIALS[run]))
    assert findings(tmp_path / name) == []


@pytest.mark.parametrize("first", ["metric", "loss"])
def test_series_counted_from_0_and_from_1(tmp_path, first):
    metric = [{"step": step, "metric": step / 7} for step in range(50)]
    loss = [{"step": step, "loss": step / 7} for step in range(1, 51)]
    rows = [*metric, *loss] if first == "metric" else [*loss, *metric]
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert findings(path) == []


def test_an_evaluation_twice_on_the_way_is_a_duplicate(tmp_path):
    rows = [*hugging_face(steps=500), (500, {"eval_loss": 0.5})]
    rows += [(step + 500, values) for step, values in hugging_face(steps=500)]
    path = tmp_path / "trainer_state.json"
    path.write_bytes(writers.hugging_face(rows, logging_steps=10, eval_steps=100))
    (found,) = (f for f in findings(path) if "eval_loss" in f)
    assert found.startswith("duplicate-step: eval_loss has a second value at step 500")


def test_a_resumed_run_in_several_event_files(tmp_path):
    rows = bandit(30, 2)
    for number, part in enumerate((rows[:40], rows[40:80], rows[80:])):
        path = tmp_path / f"events.out.tfevents.170000000{number}.host"
        path.write_bytes(writers.tensorboard_2(part))
    assert findings(tmp_path) == []


def test_keras_writes_training_and_validation_apart(tmp_path):
    for name in ("train", "validation"):
        folder = tmp_path / name
        folder.mkdir()
        rows = [(epoch, {"epoch_loss": epoch / 7}) for epoch in range(9)]
        path = folder / "events.out.tfevents.1700000000.host"
        path.write_bytes(writers.tensorboard_2(rows))
    assert findings(tmp_path) == []


def test_two_processes_side_by_side_in_one_log(tmp_path):
    lines = []
    rng = random.Random(3)
    counts = [0, 0]
    while min(counts) < 40:
        process = rng.randrange(2)
        lines.append(
            f"I1201 04:21:00.000000 {1000 + process} export_utils.py:45] "
            f"[step={counts[process]}] loss = {rng.random()}.\n"
        )
        counts[process] += 1
    (tmp_path / "run.log").write_text("".join(lines))
    assert findings(tmp_path / "run.log") == []


def test_a_pool_of_threads_shares_a_series(tmp_path):
    lines = [
        f"I1201 04:21:00.000000 {1000 + step % 3} export_utils.py:45] "
        f"[step={step}] loss = {step / 7}.\n"
        for step in range(60)
    ]
    (tmp_path / "run.log").write_text("".join(lines))
    assert findings(tmp_path / "run.log") == []


def test_a_beat_that_changes_is_no_gap(tmp_path):
    steps = [*range(100), *range(109, 200, 10)]
    rows = [(step, {"loss": step / 3}) for step in steps]
    (tmp_path / "run.jsonl").write_bytes(writers.json_lines(rows))
    assert findings(tmp_path / "run.jsonl") == []


SPLITS = [
    (step, split, 1 / (step + 1) + (split == "val"))
    for step in range(1, 30)
    for split in ("train", "val")
    if split == "train" or step % 5 == 0
]


def test_splits_named_in_a_field_are_series_of_their_own(tmp_path):
    rows = [{"step": s, "split": split, "loss": v} for s, split, v in SPLITS]
    path = tmp_path / "run.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert findings(path) == []
    path = tmp_path / "metrics.csv"
    cells = [f"{step},{split},{value}\n" for step, split, value in SPLITS]
    path.write_text("".join(["step,split,loss\n", *cells]))
    assert findings(path) == []
    survey = Survey.of(e for c in read(path) for e in c.events())
    assert [beat.name for beat in survey.series] == ["train/loss", "val/loss"]

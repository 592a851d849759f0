"""TF-Agents' trainer, ours in each mode, and the floor: how long they take.

    python benchmarks/trainer.py            # most of an hour on two cores
    python benchmarks/trainer.py --quick    # a few minutes: shorter, each once

Each run has a process of its own and is timed from the call of `train` to its return,
tracing included; the subjects take turns. Everything is logged, summarised and
checkpointed in each loop, by both trainers. The floor is what TF-Agents offers to
those who compile by hand: `DynamicStepDriver.run` and `agent.train` as `tf.function`s,
the buffer read by one too, nothing logged, summarised or saved.

Prints a table of medians and writes it to benchmarks/trainer.json, with a plot in
benchmarks/trainer.png.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from absl import logging as absl_logging

HERE = pathlib.Path(__file__).resolve().parent
SUBJECTS = ("original", "eager", "compiled", "auto", "xla", "floor")
NAMES = {
    "original": "TF-Agents",
    "eager": "compile=False",
    "compiled": "compile=True",
    "auto": "compile=None",
    "xla": "compile=None, xla=True",
    "floor": "floor",
}


@dataclasses.dataclass(frozen=True)
class Case:
    """What is trained, and for how long."""

    agent: str
    environment: str
    loops: int
    batch_size: int = 8
    steps: int = 2
    runs: int = 4

    def __str__(self) -> str:
        return (
            f"{self.agent}, {self.environment}, batch {self.batch_size} x "
            f"{self.steps} steps, A = {self.runs}, {self.loops} loops"
        )


LINUCB = ("LinUCB", "stationary")
PAIRS = (
    LINUCB,
    ("LinTS", "stationary"),
    ("epsGreedy", "stationary"),
    ("EXP3", "bernoulli"),
    ("LinUCB", "classification"),
    ("epsGreedy", "classification"),
    ("LinUCB", "wheel"),
)


def cases(quick: bool) -> list[tuple[Case, int, tuple[str, ...]]]:
    """Each case with how often it is measured, and of which subjects."""
    few = ("original", "auto", "floor")
    lengths = (1, 3, 20) if quick else (1, 2, 3, 10, 30, 100, 200)
    planned = [(Case(*LINUCB, loops), 1 if quick else 3, SUBJECTS) for loops in lengths]
    wide = Case(*LINUCB, 4 if quick else 30, batch_size=256, steps=8)
    planned.append((wide, 1 if quick else 3, SUBJECTS))
    loops = 20 if quick else 200
    planned += [(Case(*pair, loops), 1, few) for pair in PAIRS[1:]]
    if not quick:
        planned += [(Case(*pair, 1), 3, ("original", "auto")) for pair in PAIRS[1:]]
    return planned


###############################################################################
# One measurement, in a process of its own


def measure(case: Case, subject: str) -> float:
    """Seconds that one run takes."""
    run = prepare(case, subject)
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def prepare(case: Case, subject: str) -> Callable[[], Any]:
    """Builds agent and environment; the result trains."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    sys.path.insert(0, str(HERE.parent))
    import numpy as np
    import tensorflow as tf

    import trainer

    np.random.seed(0)
    tf.random.set_seed(0)
    environment, agent = build(case)
    size = (case.loops, case.steps, case.runs)
    if subject == "floor":
        return floor(case, environment, agent)
    root_dir = tempfile.mkdtemp()
    if subject == "original":
        from tf_agents.bandits.agents.examples.v2 import trainer as original

        return lambda: original.train(root_dir, agent, environment, *size)
    mode = {"eager": False, "compiled": True}.get(subject)
    is_xla = subject == "xla"
    return lambda: trainer.train(
        root_dir, agent, environment, *size, compile=mode, xla=is_xla
    )


def build(case: Case) -> tuple[Any, Any]:
    """The environment and the agent of a case."""
    import tensorflow as tf
    from tf_agents.bandits.agents import lin_ucb_agent
    from tf_agents.bandits.agents import linear_thompson_sampling_agent as lin_ts_agent

    from trainer import agents, problems

    make = {
        "stationary": problems.stationary_stochastic,
        "bernoulli": problems.bernoulli,
        "classification": problems.digits,
        "wheel": problems.wheel,
    }
    problem = make[case.environment](case.batch_size)
    environment = problem.environment
    specs = (environment.time_step_spec(), environment.action_spec())
    linear = {
        "LinUCB": lin_ucb_agent.LinearUCBAgent,
        "LinTS": lin_ts_agent.LinearThompsonSamplingAgent,
    }
    if case.agent in linear:  # As TF-Agents makes them by default.
        return environment, linear[case.agent](*specs, dtype=tf.float32)
    return environment, agents.make(case.agent, problem)


def floor(case: Case, environment: Any, agent: Any) -> Callable[[], None]:
    """Driver and agent of TF-Agents, compiled by hand, and nothing else."""
    import tensorflow as tf
    from tf_agents.bandits.replay_buffers import bandit_replay_buffer
    from tf_agents.drivers import dynamic_step_driver
    from tf_agents.metrics import tf_metrics

    batch_size = case.batch_size
    buffer = bandit_replay_buffer.BanditReplayBuffer(
        agent.policy.trajectory_spec, batch_size, max_length=case.steps * case.runs
    )
    metrics = [
        tf_metrics.EnvironmentSteps(),
        tf_metrics.NumberOfEpisodes(),
        tf_metrics.AverageEpisodeLengthMetric(batch_size=batch_size),
        tf_metrics.AverageReturnMetric(batch_size=batch_size),
    ]
    driver = dynamic_step_driver.DynamicStepDriver(
        environment,
        agent.collect_policy,
        observers=[buffer.add_batch, *metrics],
        num_steps=case.steps * batch_size,
    )
    run = tf.function(driver.run, autograph=False)
    read = tf.function(buffer._gather_all, autograph=False)
    train = tf.function(agent.train, autograph=False)

    def loops() -> None:
        for _ in range(case.loops):
            for _ in range(case.runs):
                run()
            everything = read()
            for first in range(0, case.steps * case.runs, case.steps):
                last = first + case.steps
                train(
                    tf.nest.map_structure(
                        lambda t, a=first, b=last: t[:, a:b], everything
                    )
                )
            buffer.clear()

    return loops


def in_own_process(case: Case, subject: str) -> float:
    """Seconds that one run takes, in a new process."""
    request = json.dumps({"case": dataclasses.asdict(case), "subject": subject})
    command = [sys.executable, str(pathlib.Path(__file__)), "--one", request]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"{subject}, {case}:\n{result.stderr}")
    return float(result.stdout.splitlines()[-1])


###############################################################################
# All measurements


def measure_all(quick: bool) -> list[dict[str, Any]]:
    """Measures each case; the subjects take turns."""
    rows = []
    for case, times, subjects in cases(quick):
        seconds: dict[str, list[float]] = {subject: [] for subject in subjects}
        for _ in range(times):
            for subject in subjects:
                seconds[subject].append(in_own_process(case, subject))
        medians = {s: statistics.median(values) for s, values in seconds.items()}
        rows.append({"case": dataclasses.asdict(case), "seconds": medians})
        print(told(case, medians), flush=True)
    return rows


def told(case: Case, medians: dict[str, float]) -> str:
    """One line of the table."""
    parts = [f"{NAMES[s]} {value:.2f} s" for s, value in medians.items()]
    times = f"{medians['original'] / medians['auto']:.1f} times faster"
    if "floor" in medians:
        times += f", {medians['auto'] / medians['floor']:.2f} of the floor"
    if "xla" in medians:
        times += f" (xla: {medians['original'] / medians['xla']:.1f}, "
        times += f"{medians['xla'] / medians['floor']:.2f})"
    return f"{case}: {', '.join(parts)}: {times}"


def table(rows: list[dict[str, Any]]) -> str:
    """All of it in Markdown, as docs/speed.md shows it."""
    head = ["what", *(f"{NAMES[s]}, s" for s in SUBJECTS), "faster", "of the floor"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for row in rows:
        s = row["seconds"]
        cells = [str(Case(**row["case"]))]
        cells += [f"{s[subject]:.2f}" if subject in s else "" for subject in SUBJECTS]
        cells.append(f"{s['original'] / s['auto']:.1f}")
        cells.append(f"{s['auto'] / s['floor']:.2f}" if "floor" in s else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


COLORS = {
    "original": "#9a9a9a",
    "floor": "#111111",
    "eager": "#c9a227",
    "compiled": "#5aa9e6",
    "auto": "#0b6e4f",
    "xla": "#b5179e",
}


def plot(rows: list[dict[str, Any]], path: pathlib.Path) -> None:
    """Seconds by loops on the left, how much faster each pair is on the right."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2))
    _plot_lengths(left, rows)
    _plot_pairs(right, rows)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def _plot_lengths(axes: Any, rows: list[dict[str, Any]]) -> None:
    short = [r for r in rows if _pair(r) == LINUCB and r["case"]["batch_size"] == 8]
    short = [r for r in short if "floor" in r["seconds"]]
    for subject in SUBJECTS:
        measured = [row for row in short if subject in row["seconds"]]
        loops = [row["case"]["loops"] for row in measured]
        values = [row["seconds"][subject] for row in measured]
        style = "--" if subject == "floor" else "-"
        axes.plot(
            loops, values, style, marker="o", ms=3, c=COLORS[subject], lw=1.6,
            label=NAMES[subject],
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="training loops", ylabel="seconds")
    axes.set_title("LinUCB, batch 8 x 2 steps, A = 4", fontsize=10)
    axes.grid(alpha=0.25, which="both", lw=0.5)
    axes.legend(frameon=False, fontsize=8)


def _plot_pairs(axes: Any, rows: list[dict[str, Any]]) -> None:
    rows = sorted(rows, key=lambda row: row["case"]["loops"])
    longest = {(_pair(row), row["case"]["batch_size"]): row for row in rows}
    chosen = list(longest.values())
    names = [
        " / ".join(_pair(row))
        + f"\nbatch {row['case']['batch_size']}, {row['case']['loops']} loops"
        for row in chosen
    ]
    faster = [row["seconds"]["original"] / row["seconds"]["auto"] for row in chosen]
    bars = axes.barh(names, faster, color=COLORS["auto"], height=0.6)
    axes.bar_label(bars, fmt="%.1f", padding=3, fontsize=8)
    axes.invert_yaxis()
    axes.axvline(1, color=COLORS["original"], lw=1)
    axes.set_xlabel("times faster than TF-Agents' trainer (compile=None)")
    axes.set_title("longest run of each pair, A = 4", fontsize=10)
    axes.tick_params(labelsize=8)
    axes.margins(x=0.12)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _pair(row: dict[str, Any]) -> tuple[str, str]:
    return row["case"]["agent"], row["case"]["environment"]


def main() -> None:
    """Parses the command line and does as it says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer, shorter runs")
    parser.add_argument("--replot", action="store_true", help="draw the plot again")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        # The lines are formatted and written, by either trainer.
        absl_logging.set_verbosity("info")
        request = json.loads(arguments.one)
        print(measure(Case(**request["case"]), request["subject"]))
        return
    kept = HERE / "trainer.json"
    if not arguments.replot:
        rows = measure_all(arguments.quick)
        kept.write_text(json.dumps(rows, indent=1) + "\n")
    rows = json.loads(kept.read_text())
    print(table(rows))
    plot(rows, HERE / "trainer.png")


if __name__ == "__main__":
    main()

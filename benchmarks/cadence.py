"""Speed and memory of `onbeat describe` against plain Python and TensorBoard.

Usage: python benchmarks/cadence.py [MEGABYTES [SCALARS]]

Makes its files in a temporary directory, takes turns, each measurement in a process of
its own, and prints medians as ratios. The floor of a log: iterate its lines and match
one compiled regular expression with groups. That of event files: TensorBoard's
`EventAccumulator`, without TensorFlow.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROUNDS = 3
# Modules are compiled once and kept, as where they are installed.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
LINE = "I1201 04:02:26.000000 140 export_utils.py:40] [step={}] loss = {:.6f}.\n"
NOISE = "I1201 04:02:26.000000 140 train.py:210] saved a checkpoint, all is well {}\n"


def main(megabytes: int, scalars: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        here = pathlib.Path(directory)
        dense, sparse = here / "dense.txt", here / "sparse.txt"
        write_log(dense, megabytes, every=1)
        write_log(sparse, megabytes, every=10)
        events = here / "events.out.tfevents.1.host"
        write_events(events, scalars)
        print(f"{'':<34}{'floor':>9}{'onbeat':>9}{'ratio':>8}{'MB more':>9}")
        compare(f"log, {megabytes} MB, all lines events", "lines", dense)
        compare(f"log, {megabytes} MB, every tenth line", "lines", sparse)
        compare(f"event file, {scalars:,} scalars", "accumulator", events)


def compare(title: str, floor: str, path: pathlib.Path) -> None:
    """Prints one row: seconds, ratio, and memory above that of the interpreter."""
    floors, ours = [], []
    for _ in range(ROUNDS):
        floors.append(measured(floor, path))
        ours.append(measured("describe", path))
    base = measured("nothing", path)[1]
    slow = statistics.median(seconds for seconds, _ in floors)
    fast = statistics.median(seconds for seconds, _ in ours)
    more = max(memory for _, memory in ours) - base
    print(f"{title:<34}{slow:>8.2f}s{fast:>8.2f}s{slow / fast:>8.1f}{more:>9.0f}")


def measured(what: str, path: pathlib.Path) -> tuple[float, float]:
    """Seconds and peak memory in MB of one measurement, in a process of its own."""
    command = [sys.executable, __file__, "--one", what, str(path)]
    done = subprocess.run(
        command, cwd=ROOT, env=ENVIRONMENT, check=True, capture_output=True, text=True
    )
    seconds, memory = json.loads(done.stdout.splitlines()[-1])
    return seconds, memory


def one(what: str, path: str) -> None:
    sys.path.insert(0, str(ROOT))
    if what == "accumulator":
        # As where TensorFlow is not installed.
        sys.modules["tensorflow"] = None  # type: ignore[assignment]
    start = time.perf_counter()
    {"lines": lines, "accumulator": accumulator, "describe": describe}.get(
        what, lambda _: None
    )(path)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([seconds, peak]))


def lines(path: str) -> None:
    match = re.compile(r".*\[step=(\d+)\] (\S+) = (\S+)\.$").match
    count = 0
    with open(path) as file:
        for line in file:
            count += match(line) is not None


def accumulator(path: str) -> None:
    from tensorboard.backend.event_processing import event_accumulator

    sizes = {"tensors": 0, "scalars": 0}
    read = event_accumulator.EventAccumulator(path, size_guidance=sizes)
    read.Reload()


def describe(path: str) -> None:
    from testing.cadence.readers import read
    from testing.cadence.survey import Survey

    survey = Survey()
    for item in read(path):
        survey.add(item)
    survey.close()


def write_log(path: pathlib.Path, megabytes: int, every: int) -> None:
    with path.open("w") as file:
        number = 0
        while file.tell() < megabytes << 20:
            rows = range(number, number + 10_000)
            file.writelines(
                NOISE.format(n) if n % every else LINE.format(n // every, 1 / (n + 1))
                for n in rows
            )
            number += 10_000


def write_events(path: pathlib.Path, scalars: int) -> None:
    import google_crc32c
    from tensorboard.compat.proto import event_pb2

    def masked(data: bytes) -> bytes:
        crc = google_crc32c.value(data)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    with path.open("wb") as file:
        for number in range(-1, scalars):
            event = event_pb2.Event(wall_time=1.0, step=max(number, 0))
            if number < 0:
                event.file_version = "brain.Event:2"
            else:
                event.summary.value.add(tag="loss", simple_value=1 / (number + 1))
            data = event.SerializeToString()
            size = struct.pack("<Q", len(data))
            file.write(size + masked(size) + data + masked(data))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(*sys.argv[2:])
    else:
        numbers = [int(argument) for argument in sys.argv[1:]]
        main(*(numbers + [200, 1_000_000][len(numbers) :]))

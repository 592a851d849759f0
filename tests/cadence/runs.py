"""Runs in memory and on disk that several tests read."""

from __future__ import annotations

from testing.cadence.events import Event

METRICS = ("NumberOfEpisodes", "AverageReturn")


def bandit(loops=5, runs=4, metrics=METRICS, drop=()):
    """What the bandit trainer logs, without the events of those numbers."""
    events = []
    for loop in range(loops):
        steps = range(loop * runs, (loop + 1) * runs)
        for step in steps:
            events += [Event("log", name, step, step / 7) for name in metrics]
        events += [Event("log", "loss", step, step / 3) for step in steps]
    return [event for number, event in enumerate(events) if number not in drop]


def lines(events):
    """The events as lines of a log."""
    prefix = "I1201 04:21:00.000000 140735171155776 export_utils.py:45] "
    rows = [f"{prefix}[step={e.step}] {e.name} = {e.value}.\n" for e in events]
    return "".join(rows)


def write(path, events):
    """Writes a log; gives back its path."""
    path.write_text(lines(events), encoding="utf-8")
    return path

"""What a reader makes of a file, in forms that are easy to compare."""

from __future__ import annotations

from testing.cadence.chunks import Chunk, Declared, Problem
from testing.cadence.readers import read


def events(path, **options):
    chunks = [item for item in read(path, **options) if isinstance(item, Chunk)]
    return [event for chunk in chunks for event in chunk.events()]


def rows(path, **options):
    """Name, step, value and place of every event."""
    return [
        (event.name, event.step, event.value, event.source.place)
        for event in events(path, **options)
    ]


def steps(path, name, **options):
    return [event.step for event in events(path, **options) if event.name == name]


def formats(path):
    return {event.source.format for event in events(path)}


def problems(path):
    """Kind, place and count of every problem."""
    return [
        (item.kind, item.source.place, item.count)
        for item in read(path)
        if isinstance(item, Problem)
    ]


def messages(path):
    return [item.message for item in read(path) if isinstance(item, Problem)]


def declared(path):
    return {item.name: item.value for item in read(path) if isinstance(item, Declared)}

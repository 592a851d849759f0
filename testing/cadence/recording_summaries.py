"""Catches summaries by following the writers of event files."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from testing.cadence import readers
from testing.cadence.chunks import Chunk

Add = Callable[[str, str, "int | None", Any], None]
# Writers of PyTorch and of tensorboardX.
_CLASSES = (
    "tensorboard.summary.writer.event_file_writer",
    "tensorboardX.event_file_writer",
)
_FUNCTION = "create_file_writer"
_SUFFIX = ".tfevents."


@contextlib.contextmanager
def catch_summaries(add: Add) -> Iterator[None]:
    """Gives `add` the scalars of every event file that is begun inside.

    They are read when the block ends. Patches the writers of what is imported
    already; imports nothing.
    """
    caught = _Caught()
    with contextlib.ExitStack() as stack:
        for module in _modules():
            stack.enter_context(_patched(module, _FUNCTION, caught.function))
        for name in _CLASSES:
            module = sys.modules.get(name)
            if module is not None and hasattr(module, "EventFileWriter"):
                patch = _patched(module.EventFileWriter, "__init__", caught.method)
                stack.enter_context(patch)
        yield
    for name, step, value in caught.events():
        add("summary", name, step, value)


def _modules() -> list[Any]:
    """The modules through which TensorFlow's function can be called."""
    if "tensorflow" not in sys.modules:
        return []
    found = [
        module
        for name, module in list(sys.modules.items())
        if name.startswith(("tensorflow", "tensorboard"))
        and _FUNCTION in getattr(module, "__dict__", {})
    ]
    return list({id(module): module for module in found}.values())


@contextlib.contextmanager
def _patched(owner: Any, name: str, wrap: Callable[[Any], Any]) -> Iterator[None]:
    original = getattr(owner, name)
    wrapped = wrap(original)
    setattr(owner, name, wrapped)
    try:
        yield
    finally:
        if getattr(owner, name) is not wrapped:
            raise RuntimeError(f"{name} was patched again and not put back.")
        setattr(owner, name, original)


class _Caught:
    """The writers made so far, and what their directories held before."""

    def __init__(self) -> None:
        self._writers: list[Any] = []
        self._before: dict[str, set[str]] = {}

    def function(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def create(logdir: Any, *args: Any, **kwargs: Any) -> Any:
            self._enter(logdir)
            writer = original(logdir, *args, **kwargs)
            self._writers.append(writer)
            return writer

        return create

    def method(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def init(writer: Any, logdir: Any, *args: Any, **kwargs: Any) -> None:
            self._enter(logdir)
            original(writer, logdir, *args, **kwargs)
            self._writers.append(writer)

        return init

    def _enter(self, logdir: Any) -> None:
        if hasattr(logdir, "numpy"):
            logdir = logdir.numpy()
        path = os.path.abspath(os.fsdecode(logdir))
        self._before.setdefault(path, set(_event_files(path)))

    def events(self) -> Iterator[tuple[str, int | None, Any]]:
        """Name, step and value of the scalars in new files."""
        for writer in self._writers:
            # One that its owner has closed is flushed already.
            with contextlib.suppress(Exception):
                writer.flush()
        for folder, before in self._before.items():
            for path in _event_files(folder):
                if path not in before:
                    yield from _scalars(path)


def _event_files(folder: str) -> list[str]:
    if not os.path.isdir(folder):
        return []
    names = sorted(name for name in os.listdir(folder) if _SUFFIX in name)
    return [os.path.join(folder, name) for name in names]


def _scalars(path: str) -> Iterator[tuple[str, int | None, Any]]:
    for item in readers.read(path):
        if isinstance(item, Chunk):
            for event in item.events():
                yield event.name, event.step, event.value

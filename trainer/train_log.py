"""Log lines go to a file; standard error keeps what a person must see."""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Iterator

from absl import logging as absl_logging


@contextlib.contextmanager
def write_to(path: str | os.PathLike[str], append: bool, show: bool) -> Iterator[None]:
    """Writes absl's log, INFO and above, to `path` while the context is open.

    Args:
      path: the file; lines have absl's usual prefix.
      append: whether to keep what is in it.
      show: whether the lines appear on standard error too. Otherwise only
        errors do, and warnings of this package, a slow collector's for instance:
        TensorFlow's warnings speak of retracing and deprecation, nothing that
        whoever types a command can change.

    Raises:
      OSError: the file cannot be written.
    """
    absl_logger = absl_logging.get_absl_logger()
    file = logging.FileHandler(path, mode="a" if append else "w", encoding="utf-8")
    file.setFormatter(absl_logging.PythonFormatter())
    # Not by the logger's own level: TensorFlow, when it saves a policy, sets absl's
    # verbosity for a moment and puts back what absl knows of.
    before = absl_logging.get_verbosity(), absl_logger.level
    absl_logger.addHandler(file)
    absl_logging.set_verbosity(max(before[0], absl_logging.INFO))
    with contextlib.ExitStack() as stack:
        if not show:
            stack.enter_context(_quiet())
        try:
            yield
        finally:
            absl_logger.removeHandler(file)
            absl_logging.set_verbosity(before[0])
            absl_logger.setLevel(before[1])
            file.close()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    tensorflow = logging.getLogger("tensorflow")
    handler = absl_logging.get_absl_handler()
    before = handler.level, tensorflow.level
    handler.setLevel(logging.WARNING)
    handler.addFilter(_is_for_people)
    tensorflow.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        handler.removeFilter(_is_for_people)
        handler.setLevel(before[0])
        tensorflow.setLevel(before[1])


def _is_for_people(record: logging.LogRecord) -> bool:
    here = os.path.dirname(os.path.abspath(__file__))
    ours = os.path.dirname(os.path.abspath(record.pathname)) == here
    return ours or record.levelno >= logging.ERROR

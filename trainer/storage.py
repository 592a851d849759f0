"""Errors of the disk, told with the path, the reason and what was kept."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator

import tensorflow as tf

# Where in a graph TensorFlow found it, and in which op.
_DECORATION = re.compile(r"\{\{.*?\}\} ?| \[Op:\w+\].*")


class StorageError(OSError):
    """A checkpoint, summary, policy or lock in `root_dir` could not be written."""


@contextlib.contextmanager
def writing(what: str, path: str, kept: Callable[[], str]) -> Iterator[None]:
    """Turns an error of the disk into a `StorageError` that says what is safe.

    Args:
      what: what is written, as the start of a sentence.
      path: where to.
      kept: gives one sentence on what is still there.
    """
    try:
        yield
    except StorageError:
        raise
    except (OSError, tf.errors.OpError) as error:
        raise StorageError(
            f"{what} could not be written to {path}: {reason(error)}. {kept()}"
        ) from error


def reason(error: BaseException) -> str:
    """One line that tells what the system said, without a full stop."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = getattr(error, "message", None) or str(error) or type(error).__name__
    text = _DECORATION.sub("", str(text)).strip()
    lines = text.splitlines() or [type(error).__name__]
    return shortened(lines[0], 500).rstrip(".")


def shortened(text: str, limit: int = 200) -> str:
    """The text, cut if it is longer than `limit` characters."""
    return text if len(text) <= limit else f"{text[:limit]}..."

"""A run's directory: a new one, or one to continue, never one of another run."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import secrets
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import tensorflow as tf

from trainer.settings import Settings, UsageError, check

_RECORD = "run.json"
# What makes two runs the same: the problem and who learns it. How many loops,
# and of what length, may change from one call to the next.
_IDENTITY = ("environment", "agent", "data_path", "label_column", "batch_size", "seed")
_KEPT = (*_IDENTITY, "steps_per_loop", "async_steps_per_loop", "save_policy")


@dataclasses.dataclass(frozen=True)
class Run:
    """Where a run is and what it is made of.

    Attributes:
      path: its directory.
      settings: the flags, completed from the directory's record; `seed` is set.
      continued: whether the directory holds a checkpoint of this run.
      data_digest: SHA-256 of the data file; None without one.
    """

    path: Path
    settings: Settings
    continued: bool
    data_digest: str | None = None

    def create(self) -> None:
        """Makes the directory and records the run in it. Raises UsageError."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            record = {name: getattr(self.settings, name) for name in _KEPT}
            record["data_digest"] = self.data_digest
            text = json.dumps(record, indent=2) + "\n"
            (self.path / _RECORD).write_text(text, encoding="utf-8")
        except OSError as error:
            raise _unusable(self.path, error.strerror or str(error)) from error

    def stream(self) -> int:
        """The seed of this call: another one each time the run is continued.

        The same seed again would show the learner the same interactions again.
        """
        if not self.continued:
            return int(self.settings.seed or 0)
        text = f"{self.settings.seed} {tf.train.latest_checkpoint(self.path)}"
        return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)


def find(settings: Settings, given: Collection[str]) -> Run:
    """The run that `settings` ask for. Writes nothing.

    Args:
      settings: the flags.
      given: names of those that were given; when a run is continued the others
        are taken from its record.

    Raises:
      UsageError: the directory cannot be used, or holds another run.
    """
    path = _directory(settings)
    continued = tf.train.latest_checkpoint(os.fspath(path)) is not None
    record = _record(path) if continued else {}
    for name in _KEPT:
        if name in record:
            settings = _completed(settings, name, record[name], name in given)
    settings = _with_runs_to_share(settings, continued, given)
    check(settings)
    settings = _with_absolute_path(settings)
    digest = _digest(settings.data_path)
    if continued and digest != record["data_digest"]:
        raise UsageError(
            f"flag --data_path={settings.data_path}: changed since the run in "
            f"{path} began; give another --root_dir"
        )
    if settings.seed is None:
        settings = dataclasses.replace(settings, seed=secrets.randbelow(2**32))
    return Run(path, settings, continued, digest)


def _with_runs_to_share(
    settings: Settings, continued: bool, given: Collection[str]
) -> Settings:
    """A new run has a driver run for each collector, if nothing else is said."""
    runs = settings.num_collectors
    if runs is None or continued or "async_steps_per_loop" in given:
        return settings
    return dataclasses.replace(settings, async_steps_per_loop=runs)


def _with_absolute_path(settings: Settings) -> Settings:
    """The record must hold when the run is continued from elsewhere."""
    if not settings.data_path:
        return settings
    return dataclasses.replace(settings, data_path=os.path.abspath(settings.data_path))


def _directory(settings: Settings) -> Path:
    if settings.root_dir is None:
        return _fresh(settings)
    if not settings.root_dir.strip():
        raise _unusable(settings.root_dir, "allowed is the path of a directory")
    path = Path(settings.root_dir)
    if path.exists() and not path.is_dir():
        raise _unusable(path, "is no directory")
    return path


def _fresh(settings: Settings) -> Path:
    """A directory that is not there yet, named so that names sort by time."""
    moment = time.strftime("%Y%m%d-%H%M%S")
    base = Path("runs", f"{moment}-{settings.environment}-{settings.agent}")
    path, number = base, 2
    while path.exists():
        path, number = base.with_name(f"{base.name}-{number}"), number + 1
    return path


def _record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads((path / _RECORD).read_text(encoding="utf-8"))
        return {name: record[name] for name in (*_KEPT, "data_digest")}
    except FileNotFoundError:
        reason = f"holds checkpoints without {_RECORD}, so another program made them"
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = f"{_RECORD} in it cannot be read ({type(error).__name__})"
    raise _unusable(path, f"{reason}; give another directory")


def _completed(settings: Settings, name: str, kept: Any, given: bool) -> Settings:
    now = getattr(settings, name)
    if name == "data_path" and now:
        now = os.path.abspath(now)
    if given and name in _IDENTITY and now != kept:
        raise UsageError(
            f"flag --{name}={now}: the run in {settings.root_dir} has {kept}; "
            "give another --root_dir, or leave the flag out"
        )
    return settings if given else dataclasses.replace(settings, **{name: kept})


def _digest(path: str | None) -> str | None:
    if path is None or not os.path.isfile(path):
        return None  # `read_table` says what is wrong with it.
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _unusable(path: str | os.PathLike[str], reason: str) -> UsageError:
    return UsageError(f"flag --root_dir={os.fspath(path)}: {reason}")

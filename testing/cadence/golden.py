"""Golden cadences: a TOML file beside the test that a run is compared with."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import tempfile
import zlib
from collections.abc import Iterable

from testing.cadence.contract import Cadence, CadenceError
from testing.cadence.contract.check import follow
from testing.cadence.contract.infer import Recorder
from testing.cadence.events import Event

SUFFIX = ".cadence.toml"
_LONGEST = 120


class GoldenError(AssertionError):
    """The run differs from the golden file, or there was none."""


class WrittenError(GoldenError):
    """The golden file was written just now."""


def file_name(module: str, test: str) -> str:
    """Name of the golden file of a test; of letters that every disk takes."""
    plain = test.replace("[", "-").replace("]", "").replace("::", ".")
    safe = re.sub(r"[^\w.=+-]+", "_", plain, flags=re.ASCII)[:_LONGEST]
    if safe != plain:
        safe += f"-{zlib.crc32(test.encode('utf-8', 'replace')):08x}"
    return f"{module}.{safe}{SUFFIX}"


def compare(
    run: str | os.PathLike[str] | Iterable[Event], path: pathlib.Path, update: bool
) -> None:
    """Compares a run with the golden file at `path`.

    Raises:
      WrittenError: the file was written just now: no run passes against a file
        that it has written itself.
      GoldenError: the run differs.
    """
    if not isinstance(run, (str, os.PathLike)):
        run = list(run)
    recorder = Recorder(os.fspath(run) if isinstance(run, (str, os.PathLike)) else "")
    for item in follow(run):
        recorder.add(item)
    seen = recorder.close()
    if not path.exists():
        _write(seen, path)
        raise WrittenError(
            f"There was no golden cadence; {path.name} is written now.\n"
            f"Look at it, commit it and run the test again.{_warning(recorder)}"
        )
    try:
        report = Cadence.load(path).check(run)
    except CadenceError as error:
        if not update:
            raise GoldenError(f"{error}\n--cadence-update writes it anew.") from None
        report = None
    if report is not None and report.ok:
        return
    if update:
        _write(seen, path)
        raise WrittenError(
            f"{path.name} did not hold and is rewritten.\n"
            f"Look at what changed, commit it and run again without "
            f"--cadence-update.{_warning(recorder)}"
        )
    if report is not None:
        report = dataclasses.replace(report, subject=path.name)
    raise GoldenError(f"{report}\n\nIf this is meant, run with --cadence-update.")


def _warning(recorder: Recorder) -> str:
    found = recorder.survey.findings
    listed = "".join(f"\n  {one.kind}: {one.message}" for one in found)
    return f"\nThe run it is taken from is not in order:{listed}" if found else ""


def _write(cadence: Cadence, path: pathlib.Path) -> None:
    """Writes all or nothing, also when test processes share the directory."""
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    os.close(handle)
    cadence.save(name)
    os.chmod(name, 0o644)
    os.replace(name, path)


def stale(folder: pathlib.Path, tests: dict[str, set[str]]) -> list[pathlib.Path]:
    """Golden files in `folder` that belong to no test.

    Args:
      folder: where the files are.
      tests: for each module that was collected whole, the names that
        `file_name` gives for its tests.
    """
    found = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        module = path.name.split(".", 1)[0]
        if module in tests:
            if not any(_belongs(path.name, name) for name in tests[module]):
                found.append(path)
        elif not (folder / f"{module}.py").exists():
            found.append(path)
    return found


def _belongs(file: str, test: str) -> bool:
    base = test.removesuffix(SUFFIX)
    return file == test or (file.startswith(f"{base}.") and file.endswith(SUFFIX))

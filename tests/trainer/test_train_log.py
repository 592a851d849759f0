"""Where log lines go, and that loggers are left as they were."""

from __future__ import annotations

import contextlib
import logging
import warnings
from pathlib import Path

import pytest
from absl import logging as absl_logging

from trainer import train_log


def _state() -> tuple[object, ...]:
    absl_logger = absl_logging.get_absl_logger()
    return (
        absl_logger.level,
        absl_logging.get_verbosity(),
        list(absl_logger.handlers),
        absl_logging.get_absl_handler().level,
        logging.getLogger("tensorflow").level,
    )


def test_lines_with_absl_prefix(tmp_path: Path) -> None:
    with train_log.write_to(tmp_path / "log", append=False, show=False):
        absl_logging.info("[step=%d] loss = %s.", 3, 0.5)
        absl_logging.debug("not this")

    (line,) = (tmp_path / "log").read_text().splitlines()
    assert line.startswith("I")
    assert line.endswith("] [step=3] loss = 0.5.")


@pytest.mark.parametrize("append", [False, True])
def test_append(tmp_path: Path, append: bool) -> None:
    (tmp_path / "log").write_text("before\n")
    with train_log.write_to(tmp_path / "log", append=append, show=False):
        absl_logging.info("now")

    assert ("before" in (tmp_path / "log").read_text()) is append


@pytest.mark.parametrize("show", [False, True])
def test_loggers_are_left_as_they_were_also_on_an_error(
    tmp_path: Path, show: bool
) -> None:
    before = _state()
    with (
        contextlib.suppress(RuntimeError),
        train_log.write_to(tmp_path / "log", append=False, show=show),
    ):
        changed = _state()
        raise RuntimeError

    assert changed != before
    assert _state() == before
    absl_logging.info("after")
    assert (tmp_path / "log").read_text() == ""


@pytest.mark.parametrize("show", [False, True])
def test_what_passes_to_standard_error(tmp_path: Path, show: bool) -> None:
    handler = absl_logging.get_absl_handler()
    with train_log.write_to(tmp_path / "log", append=False, show=show):
        info_passes = handler.level <= logging.INFO
        errors_pass = handler.level <= logging.ERROR
        with warnings.catch_warnings(record=True) as caught:
            if show:
                warnings.simplefilter("always")
            warnings.warn("deprecated", stacklevel=1)

    assert info_passes is show
    assert errors_pass
    assert bool(caught) is show

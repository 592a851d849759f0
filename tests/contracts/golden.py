"""Golden files: what a text was when somebody last looked at it."""

from __future__ import annotations

import pathlib

import pytest

DIRECTORY = pathlib.Path(__file__).parent / "snapshots"


def check(name: str, text: str) -> None:
    """Compares `text` with the golden file. The run that writes it is never green."""
    path = DIRECTORY / f"{name}.txt"
    if not path.exists():
        path.write_text(text + "\n", encoding="utf-8")
        pytest.fail(f"{path.name} is new. Read it, then run the test again.")
    expected = path.read_text(encoding="utf-8").removesuffix("\n")
    # pytest shows the difference. To accept the new text, delete the file.
    assert text == expected, f"{path.name} has changed; delete it to write it anew"

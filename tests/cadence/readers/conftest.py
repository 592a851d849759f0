"""Files to read."""

from __future__ import annotations

import pytest


@pytest.fixture
def write(tmp_path):
    """Writes text or bytes into a file and returns its path."""

    def write(content, name="run.log"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(data)
        return path

    return write

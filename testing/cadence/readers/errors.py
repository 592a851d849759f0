"""The one error of the readers."""

from __future__ import annotations


class UnreadableRun(Exception):
    """Nothing can be made of a path. Its text is one line for the user."""

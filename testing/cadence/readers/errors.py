"""The errors of the readers."""

from __future__ import annotations


class UnreadableRun(Exception):
    """Nothing can be made of a path. Its text is one line for the user."""


class PointerError(UnreadableRun):
    """The file is in Git LFS; what is here only points to it."""


class MissingExtraError(UnreadableRun):
    """The file could be read if a package were there."""

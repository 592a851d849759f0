"""Replay buffers, seen from outside: whoever is made while we look, is watched."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

from tf_agents.replay_buffers import replay_buffer


@dataclasses.dataclass
class SeenBuffer:
    """A replay buffer that the trainer made.

    Attributes:
      buffer: itself.
      frames: how many it had at log lines while data was collected, each with the
        steps of the environment since the agent was trained last.
      left: frames at the end of the run.
      used: whether there was ever anything in it.
    """

    buffer: Any
    frames: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    left: int | None = None
    used: bool = False

    @property
    def name(self) -> str:
        """Its class."""
        return type(self.buffer).__name__

    def capacity(self) -> int:
        """Frames that it can hold, of all batch entries."""
        return int(self.buffer.capacity)

    def count(self) -> int | None:
        """Frames that it holds now; None if it does not tell."""
        try:
            return int(self.buffer.num_frames())
        except Exception:
            return None

    def look(self, steps: int) -> None:
        """Notes how many frames it holds after so many steps, 0 while training."""
        frames = self.count()
        self.used = self.used or bool(frames)
        if frames and steps:
            self.frames.append((steps, frames))

    def look_at_the_end(self) -> None:
        """Notes how many frames are left."""
        self.left = self.count()
        self.used = self.used or bool(self.left)


@contextlib.contextmanager
def seen() -> Iterator[list[SeenBuffer]]:
    """Gives the list of all buffers that are made from now on."""
    found: list[SeenBuffer] = []
    original = replay_buffer.ReplayBuffer.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        found.append(SeenBuffer(self))

    replay_buffer.ReplayBuffer.__init__ = init
    try:
        yield found
    finally:
        replay_buffer.ReplayBuffer.__init__ = original

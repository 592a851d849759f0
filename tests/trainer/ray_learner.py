"""A learner that can be killed: `python -m tests.trainer.ray_learner DIR LOOPS`."""

from __future__ import annotations

import pathlib
import signal
import sys

from tests.trainer.ray_worlds import STEPS, World
from trainer import distributed


def main(argv: list[str]) -> None:
    # A shell has its background jobs ignore Ctrl-C, and their children with them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    directory = pathlib.Path(argv[1])
    world = World(directory)
    distributed.train(
        directory / "root",
        world.agent,
        world.environment,
        int(argv[2]),
        STEPS,
        2,
        num_collectors=2,
        resume_training_loops=True,
        save_policy=False,
    )


if __name__ == "__main__":
    main(sys.argv)

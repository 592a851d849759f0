"""The distributed trainer for `check_trainer`, on collectors in this process."""

from __future__ import annotations

from typing import Any
from unittest import mock

from tests.trainer import backends
from trainer import distributed


def train(
    root_dir: Any,
    agent: Any,
    environment: Any,
    training_loops: int,
    steps_per_loop: int,
    async_steps_per_loop: int | None = None,
    additional_metrics: Any = (),
    save_policy: bool = True,
    resume_training_loops: bool = False,
) -> Any:
    """Trains with two collectors, which share the learner's agent and environment."""

    def backend(session: Any, recipe: Any, cpus: float) -> backends.InProcess:
        return backends.InProcess(recipe)

    with (
        mock.patch.object(distributed.ray_backend, "RayBackend", backend),
        mock.patch.object(distributed.ray_session, "connected", mock.MagicMock()),
        mock.patch.object(distributed, "_check_sendable"),
    ):
        return distributed.train(
            root_dir,
            lambda environment: agent,
            lambda: environment,
            training_loops,
            steps_per_loop,
            async_steps_per_loop,
            num_collectors=2,
            additional_metrics=additional_metrics,
            save_policy=save_policy,
            resume_training_loops=resume_training_loops,
        )

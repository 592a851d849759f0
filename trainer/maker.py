"""Makes what the flags name: here, and anew in each collector."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from trainer import agents, problems, tables
from trainer.settings import Settings, UsageError

_SEEDS = 2**32


def seed_all(seed: int) -> None:
    """Seeds the random numbers of Python, NumPy and TensorFlow."""
    tf.keras.utils.set_random_seed(seed % _SEEDS)


def read_table(settings: Settings) -> tables.Table | None:
    """The table of `--environment=csv`. Raises UsageError, with the line."""
    if settings.environment != problems.CSV:
        return None
    try:
        return tables.read_table(str(settings.data_path), settings.label_column)
    except tables.TableError as error:
        raise UsageError(f"flag --data_path: {error}") from error


def make_problem(
    settings: Settings, table: tables.Table | None, collector: int = 0
) -> problems.Problem:
    """The problem of `settings`; each collector gets other observations of it."""
    seed_all((settings.seed or 0) + collector)
    if table is not None:
        return problems.classification(table, settings.batch_size)
    return problems.ENVIRONMENTS[settings.environment](settings.batch_size)


def make_agent(settings: Settings, problem: problems.Problem) -> Any:
    """The agent of `settings`. Raises UsageError if it does not fit `problem`."""
    if reason := agents.misfit(settings.agent, problem):
        raise UsageError(
            f"flag --agent={settings.agent}: does not fit "
            f"--environment={settings.environment}: {reason}; allowed are "
            f"{', '.join(agents.fitting(problem))}"
        )
    return agents.make(settings.agent, problem)


class Maker:
    """Environment and agent of a run, for `trainer.distributed`.

    It goes to collectors without what it has made here. The table goes along, so
    that its file need not be on their machines.
    """

    def __init__(
        self, settings: Settings, table: tables.Table | None, stream: int
    ) -> None:
        """`stream` seeds what happens once all is made; see `runs.Run.stream`."""
        self._given = (settings, table, stream)
        self._made: tuple[problems.Problem, int] | None = None

    def __reduce__(self) -> Any:
        return Maker, self._given

    def environment(self, collector: int) -> Any:
        """The environment of a collector; call it before `agent`."""
        settings, table, _ = self._given
        problem = make_problem(settings, table, collector)
        self._made = problem, collector
        return problem.environment

    def agent(self, environment: Any) -> Any:
        """The agent for the environment that was made last."""
        settings, _, stream = self._given
        if self._made is None or self._made[0].environment is not environment:
            raise ValueError("agent() wants the environment that this Maker made last.")
        problem, collector = self._made
        agent = make_agent(settings, problem)
        seed_all(stream + collector)
        return agent

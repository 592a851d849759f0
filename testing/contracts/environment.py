"""check_environment: what a TF environment must keep."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from testing.cadence.report import Report
from testing.contracts._rules import Rulebook, broken, equal, not_exercised
from testing.fakes._tf import (
    dynamic_step_driver,
    tensor_spec,
    tf,
    tf_environment,
)

CONTRACT = {
    "interface": "It is a TFEnvironment, and tells its batch size as an integer.",
    "fits-specs": (
        "Every time step fits time_step_spec: structure, dtypes, shape "
        "[batch_size, ...] and bounds."
    ),
    "first-ask-resets": "current_time_step of a new environment starts an episode.",
    "reset-is-first": (
        "reset starts an episode in every row: FIRST, reward 0, discount 1."
    ),
    "current-is-last-seen": (
        "current_time_step is what reset or step returned last; asking changes nothing."
    ),
    "one-step-episodes": (
        "A bandit's every step ends an episode: LAST, discount 0, without a reset "
        "between."
    ),
    "episode-order": (
        "An episode runs FIRST, MID, ..., LAST; the step after LAST opens the next."
    ),
    "takes-every-action": "Every action of action_spec is accepted.",
    "refuses-wrong-batch": "Actions of another batch size are refused.",
    "finite": "Observations and rewards are finite.",
    "in-graph": (
        "Inside tf.function each execution steps once; tracing steps nothing."
    ),
}
RULES = Rulebook(CONTRACT)

FIRST, MID, LAST = 0, 1, 2


def check_environment(
    make: Callable[[], Any],
    *,
    steps: int = 20,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    raises: bool = True,
) -> Report:
    """Checks a TF environment against `CONTRACT`.

    Args:
      make: returns a new environment. Wrap a Python one in `TFPyEnvironment`.
      steps: how many steps to follow it; more than its longest episode has.
      only: names of the only rules to try; all if empty.
      skip: names of rules not to try.
      raises: whether to raise when a rule is broken.

    Returns:
      A report of broken, kept and skipped rules.

    Raises:
      ContractError: a rule is broken, and `raises` is true.
    """
    subject = _Subject(make, steps)
    return RULES.run(subject, "environment", only=only, skip=skip, raises=raises)


class _Subject:
    """Makes environments and acts in them."""

    def __init__(self, make: Callable[[], Any], steps: int) -> None:
        self.make = make
        self.steps = steps

    def action(self, environment: Any) -> Any:
        """Actions within the spec, one per row; integers differ from row to row."""
        rows = environment.batch_size
        return tf.nest.map_structure(
            lambda spec: _rows_of_actions(spec, rows), environment.action_spec()
        )

    def walk(self, environment: Any) -> list[Any]:
        """A reset and so many steps; the time steps that they returned."""
        action = self.action(environment)
        seen = [environment.reset()]
        seen += [environment.step(action) for _ in range(self.steps)]
        return seen


def _rows_of_actions(spec: Any, rows: int) -> Any:
    low, high = np.min(spec.minimum), np.max(spec.maximum)
    if spec.dtype.is_integer:
        actions = low + np.arange(rows) % (int(high) - int(low) + 1)
    else:
        actions = np.full(rows, (low + high) / 2)
    actions = actions.reshape([rows] + [1] * spec.shape.rank)
    actions = np.broadcast_to(actions, [rows, *spec.shape])
    return tf.constant(actions, spec.dtype)


def _is_bandit(environment: Any) -> bool:
    return bool(dynamic_step_driver.is_bandit_env(environment))


def _types(time_step: Any) -> list[int]:
    types: list[int] = time_step.step_type.numpy().tolist()
    return types


def _plain(time_step: Any) -> Any:
    """Values that compare: NaN as text, for it is not equal to itself."""

    def plain(tensor: Any) -> Any:
        array = tensor.numpy()
        if not tensor.dtype.is_floating:
            return array.tolist()
        return np.where(np.isnan(array), "NaN", array.astype(object)).tolist()

    return tf.nest.map_structure(plain, time_step)


@RULES.check("interface")
def _interface(subject: _Subject) -> None:
    environment = subject.make()
    if not isinstance(environment, tf_environment.TFEnvironment):
        broken("a TFEnvironment", type(environment).__name__, "type")
    size = environment.batch_size
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
        broken("an integer from 1", size, "batch_size")


@RULES.check("fits-specs")
def _fits_specs(subject: _Subject) -> None:
    environment = subject.make()
    spec = environment.time_step_spec()
    for index, seen in enumerate(subject.walk(environment)):
        where = "reset" if index == 0 else f"step {index}"
        tf.nest.assert_same_structure(spec, seen)
        flat = zip(tf.nest.flatten(spec), tf.nest.flatten(seen), strict=True)
        for leaf, value in flat:
            _fits(leaf, value, environment.batch_size, where)


def _fits(spec: Any, value: Any, batch_size: int, where: str) -> None:
    what = f"{where}, {spec.name}"
    equal(spec.dtype.name, value.dtype.name, f"dtype at {what}")
    equal((batch_size, *spec.shape), tuple(value.shape), f"shape at {what}")
    if isinstance(spec, tensor_spec.BoundedTensorSpec) and value.dtype.is_floating:
        array = value.numpy()
        if (array < spec.minimum).any() or (array > spec.maximum).any():
            bounds = f"from {np.min(spec.minimum)} to {np.max(spec.maximum)}"
            broken(bounds, array.tolist(), f"values at {what}")


@RULES.check("first-ask-resets")
def _first_ask_resets(subject: _Subject) -> None:
    environment = subject.make()
    first = environment.current_time_step()
    equal([FIRST] * environment.batch_size, _types(first), "step types")


@RULES.check("reset-is-first")
def _reset_is_first(subject: _Subject) -> None:
    environment = subject.make()
    rows = environment.batch_size
    for where in ("the first reset", "a reset after steps"):
        first = environment.reset()
        equal([FIRST] * rows, _types(first), f"step types of {where}")
        equal([1.0] * rows, first.discount.numpy().tolist(), f"discounts of {where}")
        for reward in tf.nest.flatten(first.reward):
            if np.any(reward.numpy()):
                broken("zeros", reward.numpy().tolist(), f"rewards of {where}")
        environment.step(subject.action(environment))


@RULES.check("current-is-last-seen")
def _current_is_last_seen(subject: _Subject) -> None:
    environment = subject.make()
    action = subject.action(environment)
    steps = {
        "reset": environment.reset,
        "step": lambda: environment.step(action),
        "another step": lambda: environment.step(action),
    }
    for where, step in steps.items():
        seen = _plain(step())
        for _ in range(2):
            now = _plain(environment.current_time_step())
            equal(seen, now, f"current_time_step() after {where}")


@RULES.check("one-step-episodes")
def _one_step_episodes(subject: _Subject) -> None:
    environment = subject.make()
    if not _is_bandit(environment):
        not_exercised("it is no bandit")
    rows = environment.batch_size
    for index, seen in enumerate(subject.walk(environment)[1:4], 1):
        equal([LAST] * rows, _types(seen), f"step types of step {index}")
        equal([0.0] * rows, seen.discount.numpy().tolist(), f"discounts at {index}")


@RULES.check("episode-order")
def _episode_order(subject: _Subject) -> None:
    environment = subject.make()
    if _is_bandit(environment):
        not_exercised("a bandit's episodes are one step long")
    types = np.array([_types(seen) for seen in subject.walk(environment)])
    ended = False
    for row in range(environment.batch_size):
        for index, (before, now) in enumerate(
            zip(types[:-1, row], types[1:, row], strict=True), 1
        ):
            allowed = [FIRST] if before == LAST else [MID, LAST]
            ended = ended or before == LAST
            if now not in allowed:
                where = f"step type of step {index}, row {row}, after {before}"
                broken(f"one of {allowed}", int(now), where)
    if not ended:
        not_exercised(f"no episode ended within {subject.steps} steps; try more")


@RULES.check("takes-every-action")
def _takes_every_action(subject: _Subject) -> None:
    environment = subject.make()
    spec = environment.action_spec()
    if not isinstance(spec, tensor_spec.BoundedTensorSpec):
        not_exercised("the actions are not one bounded tensor")
    environment.reset()
    rows = [environment.batch_size, *spec.shape]
    low, high = np.min(spec.minimum), np.max(spec.maximum)
    if spec.dtype.is_integer:
        actions = list(range(int(low), int(high) + 1))
    else:
        actions = [low, high]
    for action in actions:
        try:
            environment.step(tf.fill(rows, tf.cast(action, spec.dtype)))
        except Exception as error:
            broken("no error", f"{type(error).__name__}: {error}", f"action {action}")


@RULES.check("refuses-wrong-batch")
def _refuses_wrong_batch(subject: _Subject) -> None:
    environment = subject.make()
    environment.reset()
    action = subject.action(environment)
    longer = tf.nest.map_structure(lambda t: tf.concat([t, t[:1]], 0), action)
    try:
        environment.step(longer)
    except Exception:
        return
    expected = f"an error: batch size is {environment.batch_size}"
    broken(expected, "accepted", f"{environment.batch_size + 1} rows of actions")


@RULES.check("finite")
def _finite(subject: _Subject) -> None:
    for index, seen in enumerate(subject.walk(subject.make())):
        parts = {"observation": seen.observation, "reward": seen.reward}
        for what, values in parts.items():
            for value in tf.nest.flatten(values):
                if value.dtype.is_floating and not np.isfinite(value.numpy()).all():
                    where = f"{what} of time step {index}"
                    broken("finite numbers", value.numpy().tolist(), where)


@RULES.check("in-graph")
def _in_graph(subject: _Subject) -> None:
    environment = subject.make()
    action = subject.action(environment)
    environment.reset()
    before = _plain(environment.current_time_step())

    @tf.function
    def run(count: Any) -> Any:
        seen = environment.current_time_step()
        for _ in tf.range(count):
            seen = environment.step(action)
        return seen

    equal(before, _plain(run(tf.constant(0))), "no step in a graph")
    now = _plain(environment.current_time_step())
    equal(before, now, "current_time_step() after tracing", "Tracing stepped it.")
    for count in (tf.constant(1), tf.constant(2), tf.constant(1, tf.int64)):
        seen = _plain(run(count))
        now = _plain(environment.current_time_step())
        equal(seen, now, f"current_time_step() after {int(count)} steps in a graph")
        if _is_bandit(environment):
            rows = environment.batch_size
            equal([LAST] * rows, list(seen.step_type), "step types in a graph")
    _counts_in_graph(environment, run)


def _counts_in_graph(environment: Any, run: Any) -> None:
    """Where it counts its steps itself, the count must be right too."""
    before = getattr(environment, "steps", None)
    if isinstance(before, int):
        run(tf.constant(3))
        equal(before + 3, environment.steps, "its own count after 3 steps in a graph")

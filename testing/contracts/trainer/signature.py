"""Which arguments a trainer takes, and the lambda to write where names differ."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import Any

ESSENTIAL = ("agent", "environment", "training_loops", "steps_per_loop")
KNOWN = (
    "root_dir",
    "agent",
    "environment",
    "training_loops",
    "steps_per_loop",
    "async_steps_per_loop",
    "additional_metrics",
    "save_policy",
    "resume_training_loops",
)
# What the same thing is called elsewhere.
_ALIASES = {
    "root_dir": "rootdir logdir log_dir directory dir output_dir out_dir path workdir",
    "agent": "tf_agent learner algorithm",
    "environment": "env tf_env train_env tf_environment",
    "training_loops": "loops num_loops iterations num_iterations epochs num_epochs n",
    "steps_per_loop": "steps num_steps collect_steps collect_steps_per_iteration",
    "async_steps_per_loop": "async_steps driver_runs runs_per_loop a",
    "additional_metrics": "metrics extra_metrics",
    "save_policy": "export_policy",
    "resume_training_loops": "resume",
}
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Offer:
    """The arguments that one trainer takes.

    Attributes:
      name: the trainer, as a person would name it.
      accepted: those of `KNOWN` that it is given.
      open: it has `**kwargs`, or no signature, so it may take less than is accepted.
    """

    def __init__(self, train: Callable[..., Any]) -> None:
        """Looks at the signature of `train`.

        Raises:
          TypeError: it is no function, needs an argument that check_trainer does not
            know, or does not take one that it cannot do without.
        """
        if not callable(train):
            raise TypeError(f"train is {train!r}. Allowed: a function.")
        self.name = _name(train)
        self._train = train
        try:
            parameters = dict(inspect.signature(train).parameters)
        except ValueError:
            # Builtins tell nothing about themselves.
            parameters = {}
        kinds = {p.kind for p in parameters.values()}
        self.open = not parameters or inspect.Parameter.VAR_KEYWORD in kinds
        named = {n: p for n, p in parameters.items() if p.kind not in _VARIADIC}
        self.accepted = [n for n in KNOWN if self.open or _by_keyword(named.get(n))]
        _check(self.name, named, self.accepted)

    def takes(self, name: str) -> bool:
        """Whether the trainer is given the argument of this name."""
        return name in self.accepted

    def withdraw(self, error: BaseException) -> bool:
        """Gives up an argument that `**kwargs` turned out not to take after all."""
        text = str(error)
        for name in self.accepted:
            refused = f"unexpected keyword argument '{name}'" in text
            if self.open and refused and name not in ESSENTIAL:
                self.accepted.remove(name)
                return True
        return False

    def call(self, **arguments: Any) -> Any:
        """Calls the trainer with those of `arguments` that it takes."""
        return self._train(**{n: v for n, v in arguments.items() if self.takes(n)})


def _name(train: Callable[..., Any]) -> str:
    if isinstance(train, functools.partial):
        return f"{_name(train.func)}, in part"
    module = getattr(train, "__module__", "")
    name = getattr(train, "__qualname__", type(train).__qualname__)
    return f"{module}.{name}" if module else name


def _by_keyword(parameter: inspect.Parameter | None) -> bool:
    if parameter is None:
        return False
    return parameter.kind is not inspect.Parameter.POSITIONAL_ONLY


def _check(name: str, named: dict[str, inspect.Parameter], accepted: list[str]) -> None:
    unknown = [
        n
        for n, p in named.items()
        if p.default is inspect.Parameter.empty and n not in accepted
    ]
    missing = [n for n in ESSENTIAL if n not in accepted]
    if not unknown and not missing:
        return
    problems = [f"it requires {n!r}" for n in unknown]
    problems += [f"it takes no {n!r} by keyword" for n in missing]
    raise TypeError(
        f"check_trainer cannot call {name}: {', '.join(problems)}. "
        f"Wrap it and fill in what is missing:\n\n{_wrapper(name, named, unknown)}"
    )


def _wrapper(name: str, named: dict[str, Any], unknown: list[str]) -> str:
    """The lambda to write."""
    theirs = {ours: _match(ours, named) for ours in KNOWN}
    filled = {n for n in theirs.values() if n}
    passed = [f"{their}={ours}" for ours, their in theirs.items() if their]
    passed += [f"{n}=..." for n in unknown if n not in filled]
    wanted = [n for n in KNOWN if theirs[n] or n in ESSENTIAL]
    passed += [f"...={n}" for n in ESSENTIAL if not theirs[n]]
    function = name.rpartition(".")[2]
    return (
        f"    check_trainer(\n        lambda {', '.join(wanted)}: "
        f"{function}(\n            {', '.join(passed)}\n        )\n    )"
    )


def _match(ours: str, named: dict[str, Any]) -> str | None:
    """What the trainer probably calls the argument."""
    if ours in named:
        return ours
    for alias in _ALIASES[ours].split():
        if alias in named:
            return alias
    free = [n for n in named if n not in KNOWN]
    close = difflib.get_close_matches(ours, free, n=1, cutoff=0.75)
    return close[0] if close else None

"""Where the rules of `check_trainer` are gathered."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from testing.contracts._rules import Rulebook
from testing.contracts.trainer.texts import CONTRACT

RULES = Rulebook(CONTRACT)


def check_names(**given: Collection[str]) -> None:
    """Checks names of rules that a caller gave, by argument.

    Raises:
      TypeError: an argument is a string.
      ValueError: it names a rule that does not exist; the nearest one is offered.
    """
    for argument, names in given.items():
        if isinstance(names, str):
            raise TypeError(
                f"{argument} is {names!r}. Allowed: a collection of rules, [{names!r}]."
            )
        for name in names:
            if name not in CONTRACT:
                raise ValueError(_unknown(argument, name))


def _unknown(argument: str, name: str) -> str:
    near = difflib.get_close_matches(str(name), CONTRACT, n=1, cutoff=0.4)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    return f"{argument} names {name!r}.{meant} Allowed: {', '.join(CONTRACT)}."

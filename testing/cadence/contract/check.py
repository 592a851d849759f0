"""Compares a run with a cadence."""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias, cast

from testing.cadence.chunks import Chunk
from testing.cadence.contract import REFUSED, RULES, Cadence, Series
from testing.cadence.contract.order import OrderFollower
from testing.cadence.contract.steps import Follower
from testing.cadence.events import Event
from testing.cadence.findings import Finding, Spot, report
from testing.cadence.report import Report, Skip
from testing.cadence.survey import Item, run_key, run_prefix
from testing.cadence.survey.batches import Batch, by_name, joined
from testing.cadence.survey.columns import chunks_of

Run: TypeAlias = (
    str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Iterable[Event]
)
_PATHS = (str, os.PathLike)


class Checker:
    """Follows a run chunk by chunk; `close()` gives what differs.

    A series of a run in a subdirectory is looked up as `subdirectory/name`,
    then as `name`.
    """

    def __init__(self, cadence: Cadence, root: str = "") -> None:
        self.cadence = cadence
        self._root = root
        self._plans = {series.name: series for series in cadence.series}
        self._followers: dict[tuple[str, str, str], Follower] = {}
        self._orders: dict[tuple[str, str], OrderFollower] = {}
        self._others: dict[str, Spot] = {}
        self._mixed = any(name.startswith("summary:") for name in self._plans)

    def add(self, item: Item) -> None:
        """Takes the next thing a reader yields."""
        if not isinstance(item, Chunk) or not len(item):
            return
        key = run_key(item)
        for name, parts in by_name(item).items():
            self._follow(key, name, joined(item, parts))
        # Where log lines and summaries are told apart, the order is of the lines.
        if self.cadence.order and not (self._mixed and key[1] == "summary"):
            if key not in self._orders:
                self._orders[key] = OrderFollower(self.cadence.order)
            self._orders[key].add(item)

    def _follow(self, key: tuple[str, str], name: str, batch: Batch) -> None:
        plan = self._plan(key, name)
        if plan is None:
            self._others.setdefault(name, batch.spot(0))
            return
        follower = self._followers.get((*key, name))
        if follower is None:
            follower = self._followers[(*key, name)] = Follower(plan)
        follower.add(batch)

    def _plan(self, key: tuple[str, str], name: str) -> Series | None:
        place, kind = key
        prefixes = [run_prefix(place, self._root), ""]
        if kind == "summary" and self._mixed:
            prefixes = ["summary:"]
        for prefix in prefixes:
            if prefix + name in self._plans:
                return self._plans[prefix + name]
        return None

    @property
    def skipped(self) -> list[Skip]:
        """Rules about series that are all absent."""
        absent = {
            plan.rule for plan in self.cadence.series if not self._exercised(plan)
        }
        present = {plan.rule for plan in self.cadence.series if self._exercised(plan)}
        return [
            Skip(rule, "none of its series is there.")
            for rule in sorted(absent - present)
        ]

    def _exercised(self, plan: Series) -> bool:
        followers = self._followers.values()
        return plan.count == 0 or any(one.plan is plan for one in followers)

    @property
    def rules(self) -> list[str]:
        """The rules that this run exercised."""
        rules = ["series-present"] if self.cadence.series else []
        rules += [one.rule for one in self.cadence.series if self._exercised(one)]
        if self.cadence.others == REFUSED:
            rules.append("other-series")
        if self.cadence.order:
            rules.append(self.cadence.order.rule)
        return list(dict.fromkeys(rules))

    def close(self) -> list[Finding]:
        """What differs, in the order of the cadence."""
        found = [*self._absent()]
        for plan in self.cadence.series:
            mine = [f for f in self._followers.values() if f.plan is plan]
            found += [one for f in mine if (one := f.close()) is not None]
        if self.cadence.others == REFUSED:
            found += [self._other(name, spot) for name, spot in self._others.items()]
        orders = [one.finding for one in self._orders.values() if one.finding]
        return [_with_contract(one) for one in [*found, *orders]]

    def _absent(self) -> Iterator[Finding]:
        present = {follower.plan.name for follower in self._followers.values()}
        for plan in self.cadence.series:
            if plan.name in present or plan.count == 0:
                continue
            names = sorted({*self._others, *present})
            close = difflib.get_close_matches(plan.name, names, 1, 0.7)
            hint = f"Was it renamed to {close[0]}?" if close else "Is it switched off?"
            listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
            seen = f"no {plan.name}; there is {listed or 'no series at all'}."
            yield Finding(
                "series-present",
                seen,
                plan.name,
                Spot(None, self._root),
                hint=hint if names else "Is this the right file?",
                expected=str(plan),
            )

    def _other(self, name: str, spot: Spot) -> Finding:
        return Finding(
            "other-series",
            f"{name}, first at {spot.short}.",
            name,
            spot,
            hint="Record the cadence again, or set others = 'allowed'.",
            expected=", ".join(self._plans) or "no series at all",
        )


def _with_contract(finding: Finding) -> Finding:
    return dataclasses.replace(finding, contract=RULES.get(finding.kind, ""))


def follow(run: Run) -> Iterable[Item]:
    """What readers yield for a path or several, or the chunks of events in memory."""
    from testing.cadence import readers

    if isinstance(run, _PATHS):
        return readers.read(run)
    if isinstance(run, (list, tuple)) and run and isinstance(run[0], _PATHS):
        return readers.read_together(run)
    return chunks_of(cast("Iterable[Event]", run))


def check(cadence: Cadence, run: Run) -> Report:
    """Checks a run in a file, in several, in a directory or in memory."""
    root = os.fspath(run) if isinstance(run, _PATHS) else ""
    checker = Checker(cadence, root)
    for item in follow(run):
        checker.add(item)
    return report(root or "run", checker.close(), checker.rules, checker.skipped)

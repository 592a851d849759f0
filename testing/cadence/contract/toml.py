"""The TOML form of a cadence."""

from __future__ import annotations

import json
import sys
from typing import Any

from testing.cadence.contract import Cadence, CadenceError, Order, Series

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_HEADER = "# The beat of a run: docs/cadence.md of Onbeat explains each line.\n"
_FIELDS = ("first", "every", "count", "last", "steps", "rule")


def dump(cadence: Cadence) -> str:
    """One line for each series."""
    lines = [_HEADER, f'others = "{cadence.others}"\n', "[series]"]
    lines += [f"{_key(one.name)} = {_inline(one)}" for one in cadence.series]
    if cadence.order:
        lines += ["", *_order(cadence.order)]
    return "\n".join(lines) + "\n"


def _inline(series: Series) -> str:
    fields = {name: getattr(series, name) for name in _FIELDS}
    if fields["count"] is not None and fields["every"] is not None:
        del fields["last"]
    if fields["rule"] == "series-steps":
        del fields["rule"]
    rows = [f"{k} = {_value(v)}" for k, v in fields.items() if v not in (None, ())]
    return "{ " + ", ".join(rows) + " }" if rows else "{}"


def _order(order: Order) -> list[str]:
    lines = ["[order]", f"block = {order.block}"]
    if order.first:
        lines.append(f"first = {order.first}")
    if order.rule != "series-order":
        lines.append(f"rule = {_value(order.rule)}")
    lines.append("phases = [")
    lines += [f"  {_value(phase)}," for phase in order.phases]
    return [*lines, "]"]


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    return _quoted(value) if isinstance(value, str) else str(value)


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else _quoted(name)


def _quoted(text: str) -> str:
    # JSON's escapes are TOML's, but for one character; lone surrogates are none.
    clean = text.encode("utf-8", "replace").decode()
    return json.dumps(clean, ensure_ascii=False).replace("\x7f", "\\u007F")


def parse(data: bytes, origin: str) -> Cadence:
    """Reads TOML; errors start with `origin`."""
    try:
        table = tomllib.loads(data.decode("utf-8-sig"))
        return _cadence(table)
    except CadenceError as error:
        raise CadenceError(f"{origin}: {error}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise CadenceError(f"{origin}: no TOML: {error}") from None


def _cadence(table: dict[str, Any]) -> Cadence:
    _only("cadence", table, ("others", "series", "order"))
    rows = _table("cadence", "series", table.get("series", {}))
    series = tuple(_series(name, row) for name, row in rows.items())
    order = _parse_order(table["order"]) if "order" in table else None
    return Cadence(series, order, table.get("others", "allowed"))


def _series(name: str, row: Any) -> Series:
    row = dict(_table("series", name, row))
    _only(name, row, _FIELDS)
    steps = row.pop("steps", [])
    if not isinstance(steps, list):
        raise CadenceError(f"{name}: steps is {steps!r}. Allowed: a list of integers.")
    return Series(name, steps=tuple(steps), **row)


def _parse_order(row: Any) -> Order:
    row = dict(_table("cadence", "order", row))
    _only("order", row, ("block", "first", "phases", "rule"))
    phases = row.pop("phases", [])
    if not isinstance(phases, list) or not all(map(_names, phases)):
        text = 'lists of names, such as [["AverageReturn"], ["loss"]]'
        raise CadenceError(f"order: phases is {phases!r}. Allowed: {text}.")
    return Order(tuple(tuple(phase) for phase in phases), **row)


def _names(phase: Any) -> bool:
    return isinstance(phase, list) and all(isinstance(name, str) for name in phase)


def _table(owner: str, key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise CadenceError(f"{owner}: {key} is {value!r}. Allowed: a table.")
    return value


def _only(owner: str, table: dict[str, Any], allowed: tuple[str, ...]) -> None:
    for key in table:
        if key not in allowed:
            names = ", ".join(allowed)
            raise CadenceError(f"{owner}: unknown key {key!r}. Allowed: {names}.")

"""Columns of events on their way into a chunk."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

import numpy as np

from testing.cadence.chunks import Array, Chunk, Series, Values, is_nonfinite
from testing.cadence.readers import values
from testing.cadence.readers.block import Block
from testing.cadence.readers.prefixes import THREAD
from testing.cadence.readers.scan import Hits

# So many labels are kept; then the table starts anew. Only speed depends on it.
_LABELS = 1 << 12
# Up to here counting is faster than sorting.
_SMALL = 1 << 16


@dataclasses.dataclass(frozen=True, slots=True)
class Columns:
    """As in `Chunk`; `codes` index into `series`."""

    series: tuple[Series, ...]
    codes: Array
    steps: Array
    places: Array
    values: Values
    texts: dict[int, str]
    nonfinite: Array

    def chunk(
        self, path: str, format: str, *, unit: str = "line", kind: str = "log"
    ) -> Chunk:
        """The chunk of these columns."""
        return Chunk(
            path,
            format,
            self.series,
            self.codes,
            self.steps,
            self.places,
            self.values,
            unit=unit,
            kind=kind,
            texts=self.texts,
            nonfinite=self.nonfinite,
        )


class Labels:
    """Turns hashes of texts into small numbers, the texts being looked at once."""

    def __init__(self) -> None:
        self._hashes = np.zeros(0, np.uint64)
        self.texts: list[str] = []

    def codes(self, hashes: Array, text: Callable[[int], str]) -> Array:
        """Indices into `texts`; `text` tells that of a row."""
        codes = np.searchsorted(self._hashes, hashes)
        known = codes < len(self._hashes)
        known[known] = self._hashes[codes[known]] == hashes[known]
        if known.all():
            return codes
        self._learn(hashes, np.flatnonzero(~known), text)
        return np.searchsorted(self._hashes, hashes)

    def _learn(self, hashes: Array, rows: Array, text: Callable[[int], str]) -> None:
        if len(self.texts) > _LABELS:
            self.__init__()  # type: ignore[misc]
            rows = np.arange(len(hashes))
        new, first = np.unique(hashes[rows], return_index=True)
        texts = self.texts + [text(int(rows[row])) for row in first]
        merged = np.concatenate([self._hashes, new])
        order = np.argsort(merged)
        self._hashes = merged[order]
        self.texts = [texts[index] for index in order]


class Scanned:
    """Makes columns of what `scan` found; remembers names from block to block."""

    def __init__(self) -> None:
        self._names = Labels()
        self._writers = Labels()

    def columns(self, block: Block, hits: Hits, keep: Array) -> Columns:
        """The columns of the hits at `keep`."""
        series, codes = self._series(block, hits, keep)
        starts, ends = hits.value_start[keep], hits.value_end[keep]
        odd = np.flatnonzero(~hits.plain[keep])
        exact, texts = _odd_values(block, starts, ends, odd)
        nonfinite = np.zeros(len(keep), bool)
        for row in odd.tolist():
            nonfinite[row] = is_nonfinite(texts.get(row, exact[row]))
        return Columns(
            series,
            codes,
            hits.steps[keep],
            block.numbers[hits.rows[keep]],
            lambda: _parse(block.data, starts.tolist(), ends.tolist(), exact),
            texts,
            nonfinite,
        )

    def _series(
        self, block: Block, hits: Hits, keep: Array
    ) -> tuple[tuple[Series, ...], Array]:
        def name(row: int) -> str:
            start, end = hits.name_start[keep[row]], hits.name_end[keep[row]]
            return block.data[start:end].decode("utf-8", "replace")

        def writer(row: int) -> str:
            if not hits.writers[keep[row]]:
                return ""
            line = block.line(int(hits.rows[keep[row]]))
            return line[THREAD:].partition(b" ")[0].decode()

        names = self._names.codes(hits.names[keep], name)
        writers = self._writers.codes(hits.writers[keep], writer)
        count = len(self._writers.texts)
        codes, pairs = compressed(names * count + writers)
        table = [(self._names.texts[p // count], p % count) for p in pairs]
        return tuple(Series(n, self._writers.texts[w]) for n, w in table), codes


def compressed(codes: Array) -> tuple[Array, list[int]]:
    """Renumbers codes without gaps; also which codes there were."""
    if codes.max(initial=0) > _SMALL:
        distinct, renumbered = np.unique(codes, return_inverse=True)
        return renumbered, distinct.tolist()
    present = np.flatnonzero(np.bincount(codes))
    renumbered = np.zeros(present.max(initial=0) + 1, np.int64)
    renumbered[present] = np.arange(len(present))
    return renumbered[codes], present.tolist()


def _odd_values(
    block: Block, starts: Array, ends: Array, odd: Array
) -> tuple[dict[int, float], dict[int, str]]:
    """The values that are no plain decimals: as numbers, and the rest as texts."""
    exact: dict[int, float] = {}
    texts: dict[int, str] = {}
    for row in odd.tolist():
        text = block.data[starts[row] : ends[row]].decode("utf-8", "replace")
        value = values.scalar(text)
        if isinstance(value, str):
            texts[row] = value
        exact[row] = float("nan") if isinstance(value, str) else value
    return exact, texts


def _parse(
    data: bytes, starts: list[int], ends: list[int], exact: dict[int, float]
) -> Array:
    spans = zip(starts, ends, strict=True)
    if not exact:
        return np.array([float(data[a:b]) for a, b in spans], np.float64)
    rows = enumerate(spans)
    found = [exact[r] if r in exact else float(data[a:b]) for r, (a, b) in rows]
    return np.array(found, np.float64)


Row = tuple[str, str, int, "float | str", int]


def listed(rows: Iterable[Row]) -> Columns:
    """The columns of events given as name, writer, step, value and place."""
    table: dict[Series, int] = {}
    columns: tuple[list[int], list[int], list[int], list[float]] = ([], [], [], [])
    codes, steps, places, numbers = columns
    texts: dict[int, str] = {}
    for row, (name, writer, step, value, place) in enumerate(rows):
        codes.append(table.setdefault(Series(name, writer), len(table)))
        steps.append(step)
        places.append(place)
        if isinstance(value, str):
            texts[row] = value
        numbers.append(float("nan") if isinstance(value, str) else value)
    array = np.array(numbers, np.float64)
    nonfinite = ~np.isfinite(array)
    for row, text in texts.items():
        nonfinite[row] = is_nonfinite(text)
    return Columns(
        tuple(table),
        np.array(codes, np.int64),
        np.array(steps, np.int64),
        np.array(places, np.int64),
        array,
        texts,
        nonfinite,
    )


def merged(one: Columns, two: Columns) -> Columns:
    """Both, in the order of their places."""
    series = tuple(dict.fromkeys(one.series + two.series))
    index = {each: code for code, each in enumerate(series)}
    renumbered = np.array([index[each] for each in two.series], np.int64)
    places = np.concatenate([one.places, two.places])
    order = np.argsort(places, kind="stable")
    new_row = np.empty(len(order), np.int64)
    new_row[order] = np.arange(len(order))
    shift = len(one.steps)
    texts = {int(new_row[row]): text for row, text in one.texts.items()}
    texts |= {int(new_row[shift + row]): text for row, text in two.texts.items()}

    def in_order(first: Array, second: Array) -> Array:
        return np.concatenate([first, second])[order]

    return Columns(
        series,
        in_order(one.codes, renumbered[two.codes]),
        in_order(one.steps, two.steps),
        places[order],
        lambda: in_order(_now(one.values), _now(two.values)),
        texts,
        in_order(one.nonfinite, two.nonfinite),
    )


def _now(column: Values) -> Array:
    return column() if callable(column) else column

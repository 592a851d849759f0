"""Reads a CSV table of numeric features with a class column.

Everything that can be wrong with such a file is said with its line: the reader
is strict, because a bandit trained on a misread table looks healthy.
"""

from __future__ import annotations

import array
import csv
import dataclasses
import itertools
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np

# Each class is an arm. TF-Agents' classification environment samples a reward
# for every (class, arm) pair of every batch entry, so the cost grows squared.
MAX_CLASSES = 200
_DELIMITERS = ",;\t|"


class TableError(ValueError):
    """A table that cannot be used; the message names file, line and cure."""


@dataclasses.dataclass(frozen=True)
class Table:
    """Numeric features with a class for each row.

    Attributes:
      features: float32 array of shape `[rows, features]`, each column with mean
        0 and variance 1 over all rows (0 throughout where a column is constant).
      labels: int32 array of shape `[rows]`, indices into `classes`.
      feature_names: one name per feature column.
      classes: the class labels as text; whole numbers in numeric order, others
        in alphabetical order.
    """

    features: Any
    labels: Any
    feature_names: tuple[str, ...]
    classes: tuple[str, ...]


def make_table(
    features: Any, labels: Sequence[str], feature_names: Sequence[str]
) -> Table:
    """A `Table` of raw `features` (shape `[rows, features]`) and label texts."""
    classes = tuple(sorted(set(labels), key=_class_order))
    index = {name: i for i, name in enumerate(classes)}
    return Table(
        features=standardise(features),
        labels=np.array([index[label] for label in labels], np.int32),
        feature_names=tuple(feature_names),
        classes=classes,
    )


def standardise(features: Any) -> Any:
    """Shifts and scales each column to mean 0 and variance 1, as float32.

    The statistics are those of all rows. Features of one size let the linear
    agents explore evenly and the neural ones train at one learning rate.

    Args:
      features: array of shape `[rows, features]`.
    """
    features = np.asarray(features, np.float64)
    # By the largest value first: squares of huge numbers would overflow.
    largest = np.abs(features).max(axis=0)
    features = features / np.where(largest > 0, largest, 1.0)
    centred = features - features.mean(axis=0)
    spread = centred.std(axis=0)
    constant = spread < 1e-12
    scaled = centred / np.where(constant, 1.0, spread)
    return np.where(constant, 0.0, scaled).astype(np.float32)


def read_table(path: str | os.PathLike[str], label_column: str | None) -> Table:
    """Reads a CSV file whose first row names the columns.

    The delimiter is the one of comma, semicolon, tab and bar that splits the
    header most. A byte order mark, CRLF line ends, quoted cells and blank lines
    are fine. Cells are stripped. The class column may hold text or whole
    numbers; every other column must hold finite numbers.

    Args:
      path: the file, in UTF-8.
      label_column: the name of the class column.

    Raises:
      TableError: the file cannot be read, or is no such table.
    """
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            return _Reader(os.fspath(path), file).read(label_column)
    except OSError as error:
        raise TableError(f"{os.fspath(path)}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise TableError(_undecodable(path)) from error


def _undecodable(path: str | os.PathLike[str]) -> str:
    """Names the first line that is not UTF-8 (decoding runs ahead of reading)."""
    lines = Path(path).read_bytes().splitlines()
    number = next((i for i, line in enumerate(lines, 1) if not _is_text(line)), 1)
    return f"{os.fspath(path)}:{number}: not UTF-8 text; save the file as UTF-8"


def _is_text(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class _Reader:
    """One pass over one file; keeps the place for error messages."""

    def __init__(self, name: str, file: TextIO) -> None:
        self._name = name
        self._file = file
        self._line = 1

    def read(self, label_column: str | None) -> Table:
        rows = self._rows()
        header = self._header(next(rows, None))
        position = self._label_position(header, label_column)
        names = header[:position] + header[position + 1 :]
        features, labels = array.array("d"), []
        for row in rows:
            self._check_width(row, header)
            labels.append(self._label(row.pop(position), header[position]))
            features.extend(map(self._number, row, names))
        self._check_classes(set(labels), header[position])
        numbers = np.frombuffer(features, np.float64).reshape(len(labels), -1)
        return make_table(numbers, labels, names)

    def _rows(self) -> Iterator[list[str]]:
        """Rows of stripped cells, blank ones left out; sets the current line."""
        before, first = 0, self._file.readline()
        while first.isspace():
            before, first = before + 1, self._file.readline()
        lines = csv.reader(
            itertools.chain([first], self._file),
            delimiter=max(_DELIMITERS, key=first.count),
            skipinitialspace=True,
            strict=True,
        )
        while True:
            start = before + lines.line_num + 1
            try:
                row = next(lines, None)
            except csv.Error as error:
                self._line = start
                raise self._error(f"not readable as CSV: {error}") from error
            if row is None:
                return
            if any(cells := [cell.strip() for cell in row]):
                self._line = start
                yield cells

    def _header(self, header: list[str] | None) -> list[str]:
        if header is None:
            raise self._error("empty file; the first row must name the columns")
        if "" in header:
            raise self._error(
                f"column {header.index('') + 1} has no name; name it, or remove it "
                "(a row number is no feature)"
            )
        if twice := [name for name in header if header.count(name) > 1]:
            raise self._error(f"two columns are called {twice[0]!r}")
        if len(header) < 2:
            raise self._error(
                f"only one column, {header[0]!r}; a class column and at least one "
                "feature are needed"
            )
        return header

    def _label_position(self, header: list[str], label_column: str | None) -> int:
        columns = f"columns: {_shortened(header)}"
        if label_column is None:
            raise self._error(f"name the class column with --label_column; {columns}")
        if label_column.strip() not in header:
            raise self._error(f"no column {label_column!r}; {columns}")
        return header.index(label_column.strip())

    def _check_width(self, row: list[str], header: list[str]) -> None:
        if len(row) != len(header):
            raise self._error(
                f"{len(row)} cells, but the header names {len(header)} columns"
            )

    def _label(self, cell: str, column: str) -> str:
        if not cell:
            raise self._error(f"class column {column!r} is empty")
        try:
            number = float(cell)
        except ValueError:
            return cell
        if not number.is_integer():
            raise self._error(
                f"class column {column!r} holds {cell!r}; a class is a text or a "
                "whole number"
            )
        return str(int(number))  # "1" and "1.0" are one class.

    def _number(self, cell: str, column: str) -> float:
        if not cell:
            raise self._error(f"column {column!r} is empty; a number is needed")
        try:
            number = float(cell.replace("_", "?"))  # float() takes "1_000".
        except ValueError:
            raise self._error(
                f"column {column!r} holds {cell!r}; features must be numbers"
            ) from None
        if not math.isfinite(number):
            raise self._error(
                f"column {column!r} holds {cell!r}; features must be finite"
            )
        return number

    def _check_classes(self, classes: set[str], column: str) -> None:
        if not classes:
            raise self._error("no rows below the header")
        if len(classes) == 1:
            raise self._error(
                f"class column {column!r} holds one class only, "
                f"{next(iter(classes))!r}; at least two are needed"
            )
        if len(classes) > MAX_CLASSES:
            raise self._error(
                f"class column {column!r} holds {len(classes)} classes; at most "
                f"{MAX_CLASSES} are allowed"
            )

    def _error(self, problem: str) -> TableError:
        return TableError(f"{self._name}:{self._line}: {problem}")


def _shortened(names: Sequence[str], limit: int = 12) -> str:
    more = f", and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def _class_order(name: str) -> tuple[bool, int, str]:
    """Whole numbers first, by value; then texts, by alphabet."""
    try:
        return False, int(name), ""
    except ValueError:
        return True, 0, name

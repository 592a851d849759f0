"""Tables read, and everything that can be wrong with one named with its line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets

from trainer import tables

Write = Callable[[str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: str | bytes) -> Path:
        path = tmp_path / "table.csv"
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(data)
        return path

    return write


def test_features_labels_and_names(write: Write) -> None:
    table = tables.read_table(write("a,kind,b\n1,x,4\n3,y,8\n"), "kind")

    assert table.feature_names == ("a", "b")
    assert table.classes == ("x", "y")
    assert table.labels.dtype == np.int32
    assert table.features.dtype == np.float32
    np.testing.assert_array_equal(table.labels, [0, 1])
    np.testing.assert_array_equal(table.features, [[-1, -1], [1, 1]])


@pytest.mark.parametrize(
    "content",
    [
        "a,kind\r\n1,x\r\n3,y\r\n",
        "\ufeffa,kind\n1,x\n3,y\n",
        "a,kind\n1,x\n3,y",
        "\n \na,kind\n\n1,x\n,\n3,y\n\n",
        '"a","kind"\n"1","x"\n3,"y"\n',
        'a, kind\n 1 , x \n 3, "y"\n',
        "a;kind\n1;x\n3;y\n",
        "a\tkind\n1\tx\n3\ty\n",
        "a|kind\n1|x\n3|y\n",
        "a,kind\r1,x\r3,y\r",
        "a,kind\n1e0,x\n+3.0,y\n",
    ],
    ids=[
        "crlf",
        "byte order mark",
        "no newline at the end",
        "blank lines",
        "quotes",
        "spaces",
        "semicolons",
        "tabs",
        "bars",
        "old Mac line ends",
        "number forms",
    ],
)
def test_odd_but_fine(write: Write, content: str) -> None:
    table = tables.read_table(write(content), "kind")

    assert table.feature_names == ("a",)
    assert table.classes == ("x", "y")
    np.testing.assert_array_equal(table.features, [[-1], [1]])
    np.testing.assert_array_equal(table.labels, [0, 1])


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["b", "a", "b"], ("a", "b")),
        (["10", "9", "-1"], ("-1", "9", "10")),
        (["1.0", "1", "2"], ("1", "2")),
        (["2", "x", "10"], ("2", "10", "x")),
    ],
)
def test_order_of_classes(
    write: Write, labels: list[str], classes: tuple[str, ...]
) -> None:
    rows = "".join(f"{i},{label}\n" for i, label in enumerate(labels))
    table = tables.read_table(write(f"a,kind\n{rows}"), "kind")

    assert table.classes == classes


def test_a_quoted_cell_may_hold_delimiters_and_line_ends(write: Write) -> None:
    table = tables.read_table(write('a,kind\n1,"x,\ny"\n2,z\n'), "kind")

    assert table.classes == ("x,\ny", "z")


BAD = {
    "empty": ("", ":1: empty file; the first row must name the columns"),
    "blank": ("\n\n", ":1: empty file; the first row must name the columns"),
    "no rows": ("a,kind\n", ":1: no rows below the header"),
    "only blank rows": ("a,kind\n\n,\n", ":1: no rows below the header"),
    "missing column": ("a,b\n1,2\n", ":1: no column 'kind'; columns: a, b"),
    "one column": (
        "kind\nx\n",
        ":1: only one column, 'kind'; a class column and at least one feature are "
        "needed",
    ),
    "unnamed column": (
        ",a,kind\n0,1,x\n",
        ":1: column 1 has no name; name it, or remove it (a row number is no feature)",
    ),
    "column twice": ("a,a,kind\n1,2,x\n", ":1: two columns are called 'a'"),
    "short row": (
        "a,b,kind\n1,2,x\n1,y\n",
        ":3: 2 cells, but the header names 3 columns",
    ),
    "long row": (
        "a,kind\n1,x\n\n1,y,\n",
        ":4: 3 cells, but the header names 2 columns",
    ),
    "text": (
        "a,kind\n1,x\nred,y\n",
        ":3: column 'a' holds 'red'; features must be numbers",
    ),
    "decimal comma": (
        "a;kind\n1,5;x\n2;y\n",
        ":2: column 'a' holds '1,5'; features must be numbers",
    ),
    "underscore": (
        "a,kind\n1_0,x\n2,y\n",
        ":2: column 'a' holds '1_0'; features must be numbers",
    ),
    "missing number": (
        "a,kind\n1,x\n,y\n",
        ":3: column 'a' is empty; a number is needed",
    ),
    "nan": (
        "a,kind\nNaN,x\n1,y\n",
        ":2: column 'a' holds 'NaN'; features must be finite",
    ),
    "infinite": (
        "a,kind\n1,x\n1,y\n-inf,x\n",
        ":4: column 'a' holds '-inf'; features must be finite",
    ),
    "missing class": ("a,kind\n1,x\n2,\n", ":3: class column 'kind' is empty"),
    "fraction as class": (
        "a,kind\n1,0.5\n2,1\n",
        ":2: class column 'kind' holds '0.5'; a class is a text or a whole number",
    ),
    "one class": (
        "a,kind\n1,x\n2,x\n",
        ":3: class column 'kind' holds one class only, 'x'; at least two are needed",
    ),
    "too many classes": (
        "a,kind\n" + "".join(f"1,{i}\n" for i in range(201)),
        ":202: class column 'kind' holds 201 classes; at most 200 are allowed",
    ),
    "open quote": (
        'a,kind\n1,x\n2,"y\n3,z\n',
        ":3: not readable as CSV: unexpected end of data",
    ),
    "line of a row after a cell of two lines": (
        'a,kind\n1,"x\ny"\nz,x\n',
        ":4: column 'a' holds 'z'; features must be numbers",
    ),
    "latin-1": (
        b"a,kind\n1,x\n2,\xe9t\xe9\n",
        ":3: not UTF-8 text; save the file as UTF-8",
    ),
    "utf-16": (
        "a,kind\n1,x\n".encode("utf-16"),
        ":1: not UTF-8 text; save the file as UTF-8",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables(write: Write, case: str) -> None:
    content, message = BAD[case]
    path = write(content)

    with pytest.raises(tables.TableError, match=f"^{re.escape(f'{path}{message}')}$"):
        tables.read_table(path, "kind")


def test_without_a_label_column_the_columns_are_named(write: Write) -> None:
    header = ",".join(f"c{i}" for i in range(14))

    with pytest.raises(tables.TableError, match=r"--label_column.*c11, and 2 more$"):
        tables.read_table(write(f"{header}\n"), None)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(tables.TableError, match=r"nowhere\.csv: No such file"):
        tables.read_table(tmp_path / "nowhere.csv", "kind")
    with pytest.raises(tables.TableError, match="Is a directory"):
        tables.read_table(tmp_path, "kind")


def test_standardise_is_mean_0_and_variance_1() -> None:
    random = np.random.default_rng(0)
    features = tables.standardise(random.normal(1000.0, 50.0, [500, 3]))

    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(features.std(axis=0), 1, atol=1e-4)


def test_standardise_survives_constant_and_huge_columns() -> None:
    features = tables.standardise([[7.0, 1e308, 1e-300], [7.0, -1e308, 3e-300]])

    np.testing.assert_array_equal(features, [[0, 1, -1], [0, -1, 1]])


def test_real_data(tmp_path: Path) -> None:
    """scikit-learn's iris flowers, written to a file and read back."""
    iris = datasets.load_iris()
    lines = [",".join([*iris.feature_names, "species"])]
    for row, label in zip(iris.data, iris.target, strict=True):
        lines.append(",".join([*map(repr, map(float, row)), iris.target_names[label]]))
    path = tmp_path / "iris.csv"
    path.write_text("\n".join(lines), encoding="utf-8")

    table = tables.read_table(path, "species")

    assert table.classes == ("setosa", "versicolor", "virginica")
    np.testing.assert_array_equal(table.labels, iris.target)
    np.testing.assert_array_equal(table.features, tables.standardise(iris.data))

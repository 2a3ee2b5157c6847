"""An analyst's table in, the same kind of table out, and every fault of it by its row."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.models import (
    TRANSFORMS,
    BadPath,
    NoColumn,
    NoModel,
    NoTransform,
    PathRow,
    Paths,
    TimesNeeded,
    attribute,
    choose,
    credit_table,
    read_paths,
)
from clickclock.attribution.models.markov import Markov

ROWS = [
    {"path": "GA", "total_conversions": 2, "total_conversion_value": 20.0, "total_null": 1},
    {"path": "Mail", "total_conversions": 1, "total_conversion_value": 10.0, "total_null": 0},
    {"path": "GA > Mail", "total_conversions": 1, "total_conversion_value": 10.0, "total_null": 0},
]
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}
TABLES = [
    pytest.param(ROWS, id="dicts"),
    pytest.param(pd.DataFrame(ROWS, index=[7, 7, 3]), id="pandas"),
    pytest.param(
        pd.DataFrame(ROWS).astype({"path": object}).convert_dtypes(dtype_backend="pyarrow"), id="pandas on Arrow"
    ),
    pytest.param(pl.DataFrame(ROWS), id="Polars"),
    pytest.param(pa.table(COLUMNS), id="Arrow"),
]


def as_dicts(table: Any) -> list[dict[str, Any]]:
    match table:
        case pd.DataFrame():
            found: Any = table.to_dict("records")
        case pl.DataFrame():
            found = table.to_dicts()
        case pa.Table():
            found = table.to_pylist()
        case _:
            found = table
    return list(found)


@pytest.mark.parametrize("table", TABLES)
def test_a_table_of_any_kind_becomes_one_of_the_same_kind(table: Any) -> None:
    credited = attribute(table, "markov", order=1)
    assert type(credited) is type(table)
    assert [list(row) for row in as_dicts(credited)] == [["channel", "conversions", "value"]] * 2
    found = {row["channel"]: (row["conversions"], row["value"]) for row in as_dicts(credited)}
    assert found == {"GA": pytest.approx((2.4, 24), rel=1e-12), "Mail": pytest.approx((1.6, 16), rel=1e-12)}


@pytest.mark.parametrize("table", TABLES[1:])
def test_a_table_without_rows_has_no_channels(table: Any) -> None:
    for model in ("linear", "markov", "shapley_rate"):
        credited = attribute(table[:0], model)
        assert type(credited) is type(table)
        assert as_dicts(credited) == []


def test_a_model_of_ones_own_takes_the_place_of_a_name() -> None:
    assert attribute(ROWS, Markov(2, with_nulls=False)) == attribute(ROWS, "markov", order=2, with_nulls=False)


def test_columns_may_have_any_name_and_those_that_are_not_there_count_as_zero() -> None:
    renamed = [{"p": "a;b", "n": Decimal("2.5"), "v": "1e1"}, {"p": "c", "n": np.int32(1), "v": Fraction(1, 2)}]
    assert list(read_paths(renamed, path="p", conversions="n", value="v", separator=";")) == [
        PathRow(("a", "b"), 2.5, 10, 0),
        PathRow(("c",), 1, 0.5, 0),
    ]
    assert list(read_paths(renamed[:1], path="p", conversions="n")) == [PathRow(("a;b",), 2.5, 0, 0)]


@pytest.mark.parametrize(
    "names",
    [
        ("conversions", "value", "null"),
        ("Conv", "Revenue", "Nulls"),
        ("Total Conversions", "CONV_VALUE", "total_nulls"),
    ],
)
def test_columns_are_found_by_their_usual_names(names: tuple[str, str, str]) -> None:
    renamed = pd.DataFrame(ROWS).set_axis(["path", *names], axis=1)
    assert as_dicts(attribute(renamed, "markov")) == attribute(ROWS, "markov")


def test_of_two_columns_that_could_be_meant_neither_is_taken() -> None:
    table = [{"path": "a", "conversions": 1, "value": 2, "revenue": 3, "null": 4, "total_null": 5}]
    with pytest.raises(
        NoColumn, match=r"^Each of value, revenue may be the column for value; name the one that is meant\.$"
    ):
        read_paths(table)
    assert list(read_paths(table, value="revenue")) == [PathRow(("a",), 1, 3, 5)]


WORDS = st.text("ab->~ ", min_size=1, max_size=4).filter(str.strip)


@given(st.lists(st.lists(WORDS, min_size=1, max_size=4), max_size=6), st.sampled_from([">", "->", ">>", "~", "a"]))
def test_paths_are_read_as_python_splits_and_strips_them(written: list[list[str]], separator: str) -> None:
    texts = [separator.join(words) for words in written]
    expected = [tuple(word.strip() for word in text.split(separator)) for text in texts]
    table = pl.DataFrame({"path": texts, "n": [1] * len(texts)}, schema={"path": pl.String, "n": pl.Int64})
    if all(all(path) for path in expected):
        assert [row.path for row in read_paths(table, conversions="n", separator=separator)] == expected
    else:
        with pytest.raises(BadPath, match=r"has an empty channel|has no path"):
            read_paths(table, conversions="n", separator=separator)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_is_applied_to_every_path(name: str) -> None:
    read = read_paths([{"path": "D>A>B>B>C>D>C>C", "total_conversions": 1}], transform=name)
    assert [row.path for row in read] == [TRANSFORMS[name](tuple("DABBCDCC"))]


def test_every_column_that_lacks_is_named() -> None:
    with pytest.raises(NoColumn) as caught:
        attribute(pd.DataFrame({"journey": ["a"], "n": [1]}), conversions="conversions", value="worth")
    assert str(caught.value).splitlines() == [
        "There is no column path for path; there are: journey, n.",
        "There is no column conversions for conversions; there are: journey, n.",
        "There is no column worth for value; there are: journey, n.",
    ]
    with pytest.raises(NoColumn, match="there are: none"):
        attribute([])
    for twice in (pd.DataFrame([["a", "b"]], columns=["path", "path"]), pa.table([["a"], ["b"]], ["path", "path"])):
        with pytest.raises(NoColumn, match="'path' 2 times"):
            attribute(twice)


def test_every_fault_of_a_table_is_named_with_its_row() -> None:
    table = [
        {"path": "a > b", "total_conversions": "1,234.50"},
        {"path": "a", "total_conversions": 1},
        {"path": "  ", "total_conversions": -1},
        {"path": None, "total_conversions": float("nan")},
        {"path": "a >  > b", "total_conversions": "1_000"},
        {"path": 7, "total_conversions": True},
        {"path": "a", "total_conversions": 10**5000},
        {"path": "a"},
    ]
    with pytest.raises(BadPath) as caught:
        attribute(table, "first")
    faults = [line.partition(";")[0] for line in str(caught.value).splitlines()]
    assert faults == [
        "Row 1 has `1,234.50` as its total_conversions",
        "Row 3 has `-1` as its total_conversions",
        "Row 3 has no path",
        "Row 4 has `nan` as its total_conversions",
        "Row 4 has no path",
        "Row 5 has `1_000` as its total_conversions",
        "Row 5 has an empty channel in its path `a >  > b`",
        "Row 6 has `7`, which is no text, as its path",
        "Row 6 has `True` as its total_conversions",
        "Row 7 has `inf` as its total_conversions",
        "… and 1 more.",
    ]


@pytest.mark.parametrize("model", ["first", "shapley", "shapley_rate", "markov"])
def test_a_number_is_refused_where_sums_of_it_could_be_infinite(model: str) -> None:
    table: list[dict[str, Any]] = [
        {"path": "a > b", "conversions": 1e150, "nulls": 0},
        {"path": "b", "conversions": 1e150, "nulls": 1e150},
    ]
    assert sum(row["conversions"] for row in attribute(table, model)) == pytest.approx(2e150)
    with pytest.raises(BadPath, match=r"^Row 2 has `1e\+308` as its conversions; give a number of at most 1e\+150"):
        attribute([{**table[0], "nulls": 0}, {"path": "b", "conversions": 1e308, "nulls": 0}], model)


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame, pa.table], ids=["Polars", "pandas", "Arrow"])
def test_a_number_that_is_missing_is_a_fault_and_not_zero(kind: Any) -> None:
    with pytest.raises(BadPath, match=r"Row 2 has .* total_null"):
        attribute(kind({"path": ["a", "b"], "total_conversions": [1, 2], "total_null": [1, None]}))


def test_a_column_of_pandas_may_be_called_by_a_number() -> None:
    table: Any = pd.DataFrame({0: ["a > b"], 1: [2]})
    path: Any = 0
    conversions: Any = 1
    found = attribute(table, "first", path=path, conversions=conversions)
    assert found.to_dict("records")[0] == {"channel": "a", "conversions": 2.0, "value": 0.0}


def test_an_empty_separator_is_refused() -> None:
    with pytest.raises(ValueError, match="The separator is empty"):
        attribute(ROWS, separator="")


def test_what_is_no_table_is_refused() -> None:
    for what in ("paths.csv", pl.LazyFrame({"path": ["a"]}), {"path": ["a"]}, [("a", 1)]):
        with pytest.raises(TypeError, match="pandas, Polars or Arrow, or a list of dicts"):
            attribute(what)


def test_a_model_or_a_transform_that_does_not_exist_is_refused() -> None:
    with pytest.raises(NoModel, match="no model magic"):
        attribute(ROWS, "magic")
    with pytest.raises(NoTransform, match="no transform magic; there are unique, exposure, first, frequency"):
        attribute(ROWS, transform="magic")
    with pytest.raises(TimesNeeded, match="as in every table of paths"):
        attribute(ROWS, "time_decay")


def test_a_model_of_one_journey_at_a_time_credits_a_table_too() -> None:
    class Second:
        needs_times = False

        def weights(self, journey: Any) -> list[float]:
            return [float(place == 1 or len(journey.channels) == 1) for place, _ in enumerate(journey.channels)]

    paths = Paths.of([PathRow(("a", "b"), 3, 9), PathRow(("a",), 1, 1)])
    assert credit_table(Second(), paths) == {"a": (1, 1), "b": (3, 9)}
    assert credit_table(choose("last", {}), paths) == {"a": (1, 1), "b": (3, 9)}

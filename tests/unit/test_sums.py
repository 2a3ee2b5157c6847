"""Sums over what is said of orders: equal for equal rows, however these come, and no others."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.lake import Sums, differing

ID = "01a05c4bab827648a0780ee1edcbcf00"
ANOTHER = "01a05c4bab827648a0780ee1edcbcf01"
TEXTS = st.sampled_from([None, "", "a", "b", ID[:-1], ID, ANOTHER, "0" + ID, "é" * 16, "é" * 32])
ROWS = st.lists(st.fixed_dictionaries({"order_id": TEXTS, "click_id": TEXTS, "place": st.integers(0, 2)}), max_size=8)
SCHEMA = pa.schema([("client_id", pa.string()), ("order_id", pa.string()), ("click_id", pa.string()), ("place", "i4")])


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{"client_id": "c"} | row for row in rows], SCHEMA)


def _sums(*tables: pa.Table) -> Sums:
    sums = Sums()
    for table in tables:
        sums.add(table)
    return sums


@given(ROWS, st.data())
def test_the_same_rows_have_the_same_sums_in_whatever_order_and_parts_they_come(
    rows: list[dict[str, Any]], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(rows)))
    again = _table(data.draw(st.permutations(rows)))
    assert not len(differing(_sums(_table(rows)), _sums(again.slice(0, cut), again.slice(cut))))


@pytest.mark.parametrize("now", [ANOTHER, ID[1:] + ID[0], ID[:-1], "", None])
def test_another_id_makes_an_order_differ(now: str | None) -> None:
    standing = {"order_id": ANOTHER, "click_id": ID, "place": 1}
    then: list[dict[str, Any]] = [{"order_id": ID, "click_id": ID, "place": 1}, standing]
    after: list[dict[str, Any]] = [{"order_id": ID, "click_id": now, "place": 1}, standing]
    assert len(differing(_sums(_table(then)), _sums(_table(after)))) == 1

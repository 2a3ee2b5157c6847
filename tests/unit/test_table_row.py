"""Rows of tables as the fields that JSON would have: nothing empty, no digit lost, no amount made of a number."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.importing.historical import Unusable
from clickclock.attribution.importing.table_row import as_json, fields
from clickclock.attribution.orders.order_fields import read_json


def test_cells_become_text_and_empty_ones_nothing() -> None:
    row = {"a": 7, "b": 7.0, "c": "", "d": None, "e": float("nan"), "f": Decimal("7.10"), "g": " x ", "h": b"y"}
    assert fields(row) == {"a": "7", "b": "7", "f": "7.10", "g": " x ", "h": "y"}


def test_ids_that_are_floats_stay_floats_to_be_refused() -> None:
    assert fields({"order_id": 5123460000000.0, "campaign": 7.0}) == {"order_id": 5123460000000.0, "campaign": 7.0}


def test_amounts_that_are_numbers_stay_numbers_to_be_refused() -> None:
    assert fields({"amount": 7, "items": [{"price": 1.5, "quantity": 2.0, "seller_id": None}]}) == {
        "amount": 7,
        "items": [{"price": 1.5, "quantity": "2"}],
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (date(2026, 11, 20), "2026-11-20"),
        (datetime(2026, 11, 20, tzinfo=UTC), "2026-11-20"),
        (datetime(2026, 11, 20, 5, tzinfo=UTC), "2026-11-20T05:00:00+00:00"),
    ],
)
def test_a_day_is_written_as_one_and_an_instant_in_milliseconds(value: date, text: str) -> None:
    assert fields({"day": value}) == {"day": text}
    assert fields({"event_time": datetime(2026, 1, 1, tzinfo=UTC)}) == {"event_time": "1767225600000"}
    assert fields({"event_time": date(2026, 1, 1)}) == {"event_time": "2026-01-01"}


@pytest.mark.parametrize(
    "record", [{"a": ""}, {"fb_ad_id": 23851234567890123.0}, {"a": object()}, b"[]", b'{"a":', b"{}"]
)
def test_what_is_no_row_says_so(record: Any) -> None:
    with pytest.raises(Unusable):
        fields(record)


@given(st.dictionaries(st.text(), st.text()))
def test_what_is_written_as_json_is_read_as_the_same(row: dict[str, str]) -> None:
    assert read_json(as_json(row)) == row


def test_what_utf_8_cannot_hold_survives_as_an_escape() -> None:
    assert read_json(as_json({"a": "\udcff"})) == {"a": "\udcff"}


@given(
    st.recursive(
        st.text() | st.integers() | st.booleans(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_fields_are_written_as_every_release_wrote_them(value: Any) -> None:
    """Ids of orders are made of it, so not one byte may change."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert as_json(value) == text.encode("utf-8", "backslashreplace")
    ordered = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    assert as_json(value, is_sorted=True) == ordered.encode("utf-8", "backslashreplace")

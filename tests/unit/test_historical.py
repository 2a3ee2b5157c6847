"""Clicks of the past: rows become the queries that the collector would have got."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.clicks.query import split
from clickclock.attribution.importing.historical import Historical, Unusable, id_of, of_row, time_of

NEW_YEAR_MS = 1_767_225_600_000


@given(
    st.dictionaries(st.from_regex(r"[a-z_]{1,9}", fullmatch=True), st.text(min_size=1).filter(lambda t: "\0" not in t))
)
def test_every_value_of_a_row_reaches_the_query_unchanged(row: dict[str, str]) -> None:
    columns = {name: value for name, value in row.items() if name not in ("query", "received_at")}
    if not columns:
        with pytest.raises(Unusable, match="empty"):
            of_row(columns)
    else:
        assert split(of_row(columns).query) == columns


def test_the_columns_are_parameters_and_two_have_a_meaning_of_their_own() -> None:
    row = {"client_id": "shop-1", "asvt": "a|b", "received_at": "2026-01-01T00:00:00Z", "empty": "", "none": None}
    assert of_row(row) == Historical(b"client_id=shop-1&asvt=a|b", NEW_YEAR_MS)
    assert of_row({"query": "?a=%7C", "client_id": "not this"}) == Historical(b"a=%7C", None)
    exported = {"query": "a=b", "user_agent": "curl", "referer": "https://s/", "address": "0123456789abcdef"}
    assert of_row(exported) == Historical(b"a=b", None, b"curl", b"https://s/")


@pytest.mark.parametrize(
    "told",
    [
        *(NEW_YEAR_MS, f"{NEW_YEAR_MS}", float(NEW_YEAR_MS), datetime(2026, 1, 1, tzinfo=UTC)),
        "2026-01-01T01:00:00+01:00",
    ],
    ids=["int", "text", "float", "datetime", "iso"],
)
def test_a_time_may_come_in_any_form_that_tables_have(told: object) -> None:
    assert of_row({"client_id": "c", "received_at": told}).received_ms == NEW_YEAR_MS
    assert of_row({"event_time": told}).query == b"event_time=1767225600000"


@pytest.mark.parametrize("column", ["received_at", "event_time"])
@pytest.mark.parametrize(
    "told",
    ["2026-01-01T00:00:00", "2026-01-01", date(2026, 1, 1), datetime(2026, 1, 1)],  # noqa: DTZ001 - tables hold such
    ids=["text", "text of a day", "date", "datetime"],
)
def test_a_time_without_a_zone_is_refused_in_every_format(column: str, told: object) -> None:
    with pytest.raises(Unusable, match=rf"{column} is 2026-01-01.*, which has no time zone; give one"):
        of_row({"client_id": "c", column: told})


def test_a_time_keeps_its_milliseconds() -> None:
    assert of_row({"query": "a=b", "received_at": "2026-01-01T00:00:00.123Z"}).received_ms == NEW_YEAR_MS + 123
    assert of_row({"event_time": datetime(2026, 1, 1, 0, 0, 0, 123_000, UTC)}).query == b"event_time=1767225600123"


@pytest.mark.parametrize("told", ["soon", NEW_YEAR_MS // 1000, "1e12", True, 0, "99999999999999"])
def test_a_receipt_that_is_no_time_in_milliseconds_or_with_a_zone_is_refused(told: object) -> None:
    with pytest.raises(Unusable, match=r"received_at is .*; give milliseconds"):
        of_row({"client_id": "c", "received_at": told})


def test_a_number_that_a_reader_made_a_float_is_whole_again() -> None:
    row: dict[str, object] = {"fb_ad_id": 23851234567890, "clicks": 7.0, "gone": float("nan"), "flag": True}
    row |= {"price": 0.5, "id": Decimal("7.10")}
    assert of_row(row).query == b"fb_ad_id=23851234567890&clicks=7&flag=true&price=0.5&id=7.10"


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"a": 23851234567890123.0}, "digits were lost"),
        ({"fb_ad_id": 7.0}, "fb_ad_id: `7.0` is an id that a program took for a number"),
        ({"cli_ubid": "5,12346E+12"}, r"cli_ubid: `5,12346E\+12` is an id that a program took for a number"),
        ({"utm_campaign": "1.2023E+17"}, "export the column as text"),
        ({"gclid": "#NAME?"}, "`#NAME[?]` is a spreadsheet's error"),
        ({"a": []}, "a is a list"),
        ({"a": "", "b": None}, "the row is empty"),
        ({"query": "?"}, "the query is empty"),
        ({"query": "a" * 65_537}, "at most 65,536"),
        ({"a": "\ud800"}, "surrogate"),
    ],
)
def test_a_row_that_cannot_be_read_says_why(row: dict[str, object], sentence: str) -> None:
    with pytest.raises(Unusable, match=sentence):
        of_row(row)


def test_bytes_that_are_not_utf_8_stay_as_they_are() -> None:
    assert of_row({"a": b"\xff".decode("utf-8", "surrogateescape")}).query == b"a=%FF"
    assert of_row({"query": b"a=\xff"}).query == b"a=\xff"


@pytest.mark.parametrize(
    ("query", "time_ms"),
    [
        (b"a=b&event_time=1767225600000", NEW_YEAR_MS),
        (b"a=%C3%BC&event_time=1767225600000", NEW_YEAR_MS),
        (b"a=%zz&event_time=1767225600000", NEW_YEAR_MS),
        (b"event_time=1767225600", NEW_YEAR_MS),
        (b"event_time=soon", 0),
        (b"event_time=17672256", 0),
        (b"event_time=99999999999999", 0),
        (b"%zz", 0),
    ],
)
def test_where_nobody_wrote_down_when_a_click_came_it_says_so_itself(query: bytes, time_ms: int) -> None:
    for now_ms in (5, NEW_YEAR_MS, 2 * NEW_YEAR_MS):
        assert time_of(Historical(query, None), now_ms) == time_ms
    assert time_of(Historical(query, 7), NEW_YEAR_MS) == 7


def test_a_receipt_in_the_future_is_refused_and_clocks_may_differ_a_little() -> None:
    assert time_of(Historical(b"a=b", NEW_YEAR_MS + 300_000), NEW_YEAR_MS) == NEW_YEAR_MS + 300_000
    with pytest.raises(Unusable, match="future"):
        time_of(Historical(b"a=b", NEW_YEAR_MS + 300_001), NEW_YEAR_MS)


def test_the_same_click_has_the_same_id_and_ids_sort_by_time() -> None:
    assert id_of(5, b"a=b", 0) == id_of(5, b"a=b", 0)
    assert len({id_of(5, b"a=b", 0), id_of(5, b"a=b", 1), id_of(6, b"a=b", 0), id_of(5, b"a=c", 0)}) == 4
    assert id_of(5, b"a=b", 0) < id_of(6, b"a=b", 0)
    made = id_of(NEW_YEAR_MS, b"a=b", 0)
    assert (len(made), made[12], made[16] in "89ab") == (32, "8", True)

"""Months and days of instants, held to what `datetime` says for each."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickclock.attribution.crediting.columns.months import days, days_of, months, name, number, pieces, span_ms
from clickclock.foundation.instant import DAY_MS

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",  # half an hour of daylight saving
    "America/St_Johns",  # clocks went back at one minute past midnight, into the day and month before
    "America/Asuncion",  # clocks go forward at midnight, on a first of the month in some years
    "Pacific/Apia",  # had no 30th of December 2011
    "Africa/Casablanca",  # four jumps a year
]
ZONE = st.sampled_from(ZONES).map(ZoneInfo)
INSTANTS_MS = st.integers(-2 * 10**12, 9_999_999_999_999) | st.integers(1_200_000_000_000, 1_800_000_000_000)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def shown(instant_ms: int, zone: ZoneInfo) -> date:
    return (EPOCH + timedelta(milliseconds=instant_ms)).astimezone(zone).date()


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


@settings(deadline=None)  # the first look at three hundred years takes half a second
@given(st.lists(INSTANTS_MS, max_size=8), ZONE)
def test_an_instant_is_in_the_month_and_on_the_day_that_its_clocks_show(instants: list[int], zone: ZoneInfo) -> None:
    asked = np.array(instants, np.int64)
    dates = [shown(instant, zone) for instant in instants]
    assert [EPOCH.date() + timedelta(days=day) for day in days(asked, zone).tolist()] == dates
    assert [name(month) for month in months(asked, zone).tolist()] == [f"{each:%Y-%m}" for each in dates]


@pytest.mark.parametrize("zone", ZONES)
def test_the_clocks_jump_exactly_when_they_do(zone: str) -> None:
    there = ZoneInfo(zone)
    since_ms, offsets_ms = pieces(ms("2005-01-01T00:00Z"), ms("2030-12-31T00:00Z"), there)
    jumps = [at for at, changes in zip(since_ms[1:].tolist(), np.diff(offsets_ms).tolist(), strict=True) if changes]
    around = np.array([instant for jump in jumps for instant in (jump - 1, jump)], np.int64)
    looked_up = offsets_ms[np.searchsorted(since_ms, around, side="right") - 1].tolist()
    shown_at = [(EPOCH + timedelta(milliseconds=instant)).astimezone(there) for instant in around.tolist()]
    assert looked_up == [(each.utcoffset() or timedelta()) // timedelta(milliseconds=1) for each in shown_at]


def test_a_minute_of_november_can_come_before_the_end_of_october() -> None:
    newfoundland = ZoneInfo("America/St_Johns")
    minutes = np.array([ms("2009-11-01T00:00:59.999-02:30"), ms("2009-10-31T23:01:00-03:30")])
    assert np.diff(minutes).tolist() == [1]
    assert [name(month) for month in months(minutes, newfoundland)] == ["2009-11", "2009-10"]
    october = span_ms(*days_of(number("2009-10")), newfoundland)
    november = span_ms(*days_of(number("2009-11")), newfoundland)
    assert october == (ms("2009-10-01T00:00-02:30"), ms("2009-11-01T00:00-03:30"))
    assert november == (ms("2009-11-01T00:00-02:30"), ms("2009-12-01T00:00-03:30"))


def test_a_day_begins_after_the_gap_in_which_its_midnight_is() -> None:
    paraguay = ZoneInfo("America/Asuncion")
    first, _ = days_of(number("2017-10"))
    assert span_ms(first, first, paraguay) == (ms("2017-10-01T01:00-03:00"), ms("2017-10-02T00:00-03:00"))


def test_a_day_that_was_left_out_has_no_instant() -> None:
    samoa = ZoneInfo("Pacific/Apia")
    lost = (date(2011, 12, 30) - EPOCH.date()).days
    from_ms, to_ms = span_ms(lost, lost, samoa)
    assert from_ms == to_ms == ms("2011-12-31T00:00+14:00")


@given(st.integers(0, 900), st.integers(0, 3), ZONE)
def test_every_instant_of_a_span_of_months_lies_in_it(month: int, more: int, zone: ZoneInfo) -> None:
    from_ms, to_ms = span_ms(days_of(month)[0], days_of(month + more)[1], zone)
    ends = np.array([from_ms, to_ms - 1])
    assert months(ends, zone).tolist() == [month, month + more]
    near = np.concatenate([end + np.arange(-2 * DAY_MS, 2 * DAY_MS, 1_799_999) for end in (from_ms, to_ms)])
    inside = months(near, zone)
    is_inside = (inside >= month) & (inside <= month + more)
    assert np.all((near[is_inside] >= from_ms) & (near[is_inside] < to_ms))


@given(st.integers(-2000, 9000))
def test_a_month_is_the_one_that_it_is_named(month: int) -> None:
    assert number(name(month)) == month
    first, last = days_of(month)
    assert (EPOCH.date() + timedelta(days=first)).strftime("%d") == "01"
    assert last + 1 == days_of(month + 1)[0]


@pytest.mark.parametrize("text", ["2026", "2026-13", "2026-1-1", "", "January", "26-01"])
def test_what_is_no_month_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="2026-07"):
        number(text)


def test_no_instants_have_no_months() -> None:
    assert len(months(np.empty(0, np.int64), ZoneInfo("UTC"))) == len(days(np.empty(0, np.int64), ZoneInfo("UTC"))) == 0

"""Windows: the days of a zone, and the instants that divide an hour."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clickclock.scheduler.insight.window import HOUR, Days, dividing, hour_of

ZONES = (
    "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe", "Asia/Beirut",
    "America/Havana", "Pacific/Apia", "America/St_Johns",
)  # fmt: skip
INSTANTS = st.datetimes(datetime(2000, 1, 1), datetime(2036, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 (Hypothesis adds the zone)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "noon", "start", "end", "hours"),
    [
        ("Europe/Berlin", "2026-03-29T12:00", "2026-03-28T23:00", "2026-03-29T22:00", 23),
        ("Europe/Berlin", "2026-10-25T12:00", "2026-10-24T22:00", "2026-10-25T23:00", 25),
        ("America/New_York", "2026-11-01T17:00", "2026-11-01T04:00", "2026-11-02T05:00", 25),
        ("Australia/Lord_Howe", "2026-04-04T20:00", "2026-04-04T13:00", "2026-04-05T13:30", 24.5),
        ("Asia/Beirut", "2026-03-29T12:00", "2026-03-28T22:00", "2026-03-29T21:00", 23),
        ("Asia/Kolkata", "2026-11-20T12:00", "2026-11-19T18:30", "2026-11-20T18:30", 24),
        ("Pacific/Apia", "2011-12-30T09:59", "2011-12-29T10:00", "2011-12-30T10:00", 24),
        ("UTC", "2026-11-20T00:00", "2026-11-20T00:00", "2026-11-21T00:00", 24),
    ],
)
def test_a_day_lasts_from_midnight_to_midnight_on_its_zones_clocks(
    zone: str, noon: str, start: str, end: str, hours: float
) -> None:
    days = Days(ZoneInfo(zone))
    assert days.start_of(utc(noon)) == utc(start)
    assert days.end_of(utc(start)) == utc(end)
    assert utc(end) - utc(start) == hours * HOUR


@given(st.sampled_from(ZONES), INSTANTS)
@example("America/St_Johns", utc("2010-11-07T02:45"))
def test_every_instant_is_in_its_day_and_days_follow_each_other_without_a_gap(zone: str, instant: datetime) -> None:
    days = Days(ZoneInfo(zone))
    start = days.start_of(instant)
    end = days.end_of(start)
    assert start <= instant < end
    assert days.start_of(end) == end
    assert days.start_of(end - timedelta(microseconds=1)) == start


def test_the_days_that_start_in_a_window_leave_out_those_at_its_ends() -> None:
    days = Days(ZoneInfo("Asia/Kolkata"))
    since, until = utc("2026-11-19T18:30"), utc("2026-11-22T18:30")
    assert days.starting_in(since, until) == [utc("2026-11-20T18:30"), utc("2026-11-21T18:30")]
    assert days.starting_in(since, since + HOUR) == []


def test_an_instant_on_the_full_hour_divides_none() -> None:
    half, full = utc("2026-11-20T10:30"), utc("2026-11-20T10:00")
    assert dividing([full, half, full + HOUR, half]) == [half]
    assert hour_of(half.astimezone(ZoneInfo("Asia/Kolkata"))) == full


def test_a_day_whose_midnight_comes_twice_begins_at_the_first() -> None:
    days = Days(ZoneInfo("America/Havana"))
    start = days.start_of(datetime(2026, 11, 1, 12, tzinfo=UTC))
    assert start == datetime(2026, 11, 1, 4, tzinfo=UTC)
    assert days.end_of(start) - start == timedelta(hours=25)

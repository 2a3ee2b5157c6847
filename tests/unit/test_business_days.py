"""Calendars: which days are business days, and how a timetable goes by them."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickclock.scheduler.business_days import Calendar, CalendarRule, Days, Weekday
from clickclock.scheduler.calendar import ScheduleKind, Timetable, timetable
from clickclock.scheduler.trigger import SkipReason

ANCHOR = datetime(2026, 11, 20, 10, tzinfo=UTC)
WORKDAYS = [day for day in Weekday if day not in {Weekday.SATURDAY, Weekday.SUNDAY}]


def days(rule: CalendarRule = CalendarRule.BUSINESS_DAYS, **fields: object) -> Days:
    said = {"calendar_name": "shop", "business_days": WORKDAYS, **fields}
    return Calendar.model_validate(said).days(rule)


def cron(expression: str, of: Days, **words: object) -> Timetable:
    return timetable(kind=ScheduleKind.CRON, expression=expression, days=of, anchor=ANCHOR, **words)  # type: ignore[arg-type] # as a test says them


def test_an_included_date_is_a_business_day_whatever_its_weekday() -> None:
    shop = days(include_dates=["2026-12-19"], exclude_dates=["2026-12-25"])
    assert [date(2026, 12, day) in shop for day in (18, 19, 20, 25)] == [True, True, False, False]
    others = days(CalendarRule.OTHER_DAYS, include_dates=["2026-12-19"], exclude_dates=["2026-12-25"])
    assert [date(2026, 12, day) in others for day in (18, 19, 20, 25)] == [False, False, True, True]


def test_the_next_business_day_is_found_over_weekends_and_holidays_or_not_at_all() -> None:
    assert days(exclude_dates=["2026-11-23"]).next_after(date(2026, 11, 20)) == date(2026, 11, 24)
    only = days(business_days=[], include_dates=["2030-01-01"])
    assert only.next_after(date(2026, 11, 20)) == date(2030, 1, 1)
    assert only.next_after(date(2030, 1, 1)) is None


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(Weekday), unique=True),
    st.sets(st.dates(date(2026, 1, 1), date(2026, 2, 1))),
    st.sets(st.dates(date(2026, 1, 1), date(2026, 2, 1))),
    st.sampled_from(CalendarRule),
    st.dates(date(2025, 12, 1), date(2026, 3, 1)),
)
def test_the_next_day_is_the_first_later_one_that_is_among_them(
    weekdays: list[Weekday], excluded: set[date], included: set[date], rule: CalendarRule, day: date
) -> None:
    of = days(rule, business_days=weekdays, exclude_dates=sorted(excluded), include_dates=sorted(included))
    later = (date.fromordinal(day.toordinal() + ahead) for ahead in range(1, 200))
    assert of.next_after(day) == next((each for each in later if each in of), None)


def test_an_excluded_time_is_told_with_its_reason_and_one_look_leaves_all_of_them() -> None:
    times = cron("* * * * * *", days())
    friday = datetime(2026, 11, 20, 23, 59, 59, tzinfo=UTC)
    saturday = times.after(friday)
    assert saturday is not None
    assert saturday.skip_reason is SkipReason.EXCLUDED
    assert saturday.note == "2026-11-21 is not a business day of the calendar shop."
    monday = times.fires_after(friday)
    assert monday is not None
    assert monday.at == datetime(2026, 11, 23, tzinfo=UTC)


def test_the_days_of_a_calendar_begin_in_its_own_zone() -> None:
    tokyo = days(time_zone="Asia/Tokyo", business_days=list(Weekday), exclude_dates=["2026-11-21"])
    times = cron("0 * * * *", tokyo)
    found = times.fires_after(datetime(2026, 11, 20, 14, 30, tzinfo=UTC))
    assert found is not None
    assert found.at == datetime(2026, 11, 21, 15, tzinfo=UTC)


def test_a_day_whose_midnight_the_clock_jumps_over_begins_after_the_jump() -> None:
    # Sao Paulo had no 00:00 on 4 November 2018.
    times = cron(
        "*/20 * * * *",
        days(business_days=list(Weekday), exclude_dates=["2018-11-03"]),
        time_zone="America/Sao_Paulo",
    )
    found = times.fires_after(datetime(2018, 11, 3, 12, tzinfo=UTC))
    assert found is not None
    assert found.local.isoformat() == "2018-11-04T01:00:00-02:00"


@pytest.mark.parametrize("expression", ["0 9 * * SAT", "0 9 * * 6,0"])
def test_a_timetable_that_its_calendar_leaves_nothing_of_never_fires(expression: str) -> None:
    assert cron(expression, days()).fires_after(ANCHOR) is None

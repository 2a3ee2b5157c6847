"""Calendars: which days are business days, and how a timetable goes by them."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickclock.scheduler.jobs.trigger import SkipReason
from clickclock.scheduler.times.business_days import Calendar, CalendarRule, Days, Weekday
from clickclock.scheduler.times.calendar import ScheduleKind, Timetable, timetable

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


GERMANY = {"exclude_dates": ["2026-04-03", "2026-04-06", "2026-05-01", "2026-12-24", "2026-12-25", "2026-12-31"]}


@pytest.mark.parametrize(
    ("rule", "fields", "expected"),
    [
        # January and May 2026 end on a Saturday and a Sunday, February on a Saturday.
        (CalendarRule.LAST_BUSINESS_DAY, GERMANY, {1: 30, 2: 27, 3: 31, 4: 30, 5: 29, 12: 30}),
        (CalendarRule.FIRST_BUSINESS_DAY, GERMANY, {1: 1, 2: 2, 3: 2, 4: 1, 5: 4, 8: 3, 11: 2}),
        (CalendarRule.LAST_BUSINESS_DAY, {"include_dates": ["2026-01-31"]}, {1: 31, 2: 27}),
        (CalendarRule.LAST_BUSINESS_DAY, {"business_days": ["saturday"]}, {1: 31, 2: 28, 3: 28, 5: 30}),
    ],
)
def test_the_first_and_the_last_business_day_of_a_month_know_weekends_and_holidays(
    rule: CalendarRule, fields: dict[str, object], expected: dict[int, int]
) -> None:
    times = cron("0 9 * * *", days(rule, **fields))
    found = times.fires_after(datetime(2026, 1, 1, tzinfo=UTC))
    fired: dict[int, int] = {}
    while found is not None and found.at.year == 2026:
        assert fired.setdefault(found.at.month, found.at.day) == found.at.day
        found = times.fires_after(found.at)
    assert len(fired) == 12
    assert {month: fired[month] for month in expected} == expected


def test_the_last_weekday_is_one_in_cron_lines_rules_and_calendars() -> None:
    """Thirty years: `LW`, `BYSETPOS=-1` and the calendar's last business day without holidays."""
    anchor = datetime(2020, 1, 1, tzinfo=UTC)
    rule = "DTSTART:20200101T090000Z\nRRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1"
    ways = [
        timetable(kind=ScheduleKind.CRON, expression="0 9 LW * *", anchor=anchor),
        timetable(kind=ScheduleKind.RRULE, expression=rule, anchor=anchor),
        timetable(
            kind=ScheduleKind.CRON,
            expression="0 9 26-31 * *",
            anchor=anchor,
            days=days(CalendarRule.LAST_BUSINESS_DAY),
        ),
    ]
    told = []
    for times in ways:
        found, fired = times.fires_after(anchor), []
        while found is not None and found.at.year < 2050:
            fired.append(found.at)
            found = times.fires_after(found.at)
        told.append(fired)
    assert len(told[0]) == 360
    assert told[0] == told[1] == told[2]


def test_another_day_says_which_day_it_is_not() -> None:
    found = cron("0 9 * * *", days(CalendarRule.LAST_BUSINESS_DAY)).after(datetime(2026, 11, 20, 10, tzinfo=UTC))
    assert found is not None
    assert found.note == "2026-11-21 is not the month's last business day of the calendar shop."


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

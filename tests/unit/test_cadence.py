"""A timetable walked backwards, and what templates may ask of a job's schedules."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.scheduler.times.cadence import cadence_of, fires_before
from clickclock.scheduler.times.calendar import ScheduleKind, Timetable, timetable

ANCHOR = datetime(2026, 1, 1, tzinfo=UTC)


def table(
    expression: str, kind: ScheduleKind = ScheduleKind.CRON, zone: str = "Europe/Berlin", **bounds: datetime
) -> Timetable:
    return timetable(kind=kind, expression=expression, time_zone=zone, anchor=ANCHOR, **bounds)  # type: ignore[arg-type]


TABLES = [
    *(table(each) for each in ("30 2 * * *", "*/7 * * * *", "0 9-17 * * 1-5", "0 0 1 * *", "0 30 1-3 * * *")),
    table("PT7M", ScheduleKind.INTERVAL),
    table("FREQ=WEEKLY;BYDAY=TU;BYHOUR=2;BYMINUTE=30", ScheduleKind.RRULE),
]


@given(
    st.sampled_from(TABLES), st.datetimes(datetime.fromisoformat("2026-03-01"), datetime.fromisoformat("2026-12-01"))
)
def test_the_time_before_is_followed_by_none_that_is_earlier_than_the_instant(
    times: Timetable, naive: datetime
) -> None:
    instant = naive.replace(tzinfo=UTC)
    found = fires_before(times, instant)
    assert found is not None
    assert found < instant
    following = times.fires_after(found)
    assert following is not None
    assert following.at >= instant
    assert times.fires_after(found - timedelta(milliseconds=1)).at == found  # type: ignore[union-attr]


def test_days_that_are_left_out_are_passed_over() -> None:
    times = timetable(
        kind=ScheduleKind.CRON, expression="0 9 * * 1-5", exclude_dates=[date(2026, 11, 20)], anchor=ANCHOR
    )
    monday = datetime(2026, 11, 23, 9, tzinfo=UTC)
    assert fires_before(times, monday) == datetime(2026, 11, 19, 9, tzinfo=UTC)


def test_a_burst_is_bisected_and_not_walked() -> None:
    assert fires_before(table("* * 9 * * *", zone="UTC"), datetime(2026, 11, 20, 9, tzinfo=UTC)) == datetime(
        2026, 11, 19, 9, 59, 59, tzinfo=UTC
    )
    assert fires_before(table("0 0 29 2 *", zone="UTC"), datetime(2026, 11, 20, tzinfo=UTC)) == datetime(
        2024, 2, 29, tzinfo=UTC
    )


@pytest.mark.parametrize(("kind", "expression"), [(ScheduleKind.CRON, "0 2 * * *"), (ScheduleKind.INTERVAL, "P1D")])
def test_bounds_take_no_time_before_or_after_away(kind: ScheduleKind, expression: str) -> None:
    first = datetime(2026, 11, 20, 2, tzinfo=UTC)
    cadence = cadence_of([table(expression, kind, "UTC", start_at=first, end_at=first)])
    assert cadence.around is not None
    assert cadence.around(first) == (first - timedelta(days=1), first + timedelta(days=1))


def test_a_single_instant_has_none_before_or_after() -> None:
    cadence = cadence_of([table("2026-11-20T02:00:00Z", ScheduleKind.ONCE)])
    assert cadence.around is not None
    assert cadence.around(datetime(2026, 11, 20, 2, tzinfo=UTC)) == (None, None)


def test_a_job_without_a_schedule_has_utc_and_one_with_several_only_what_they_share() -> None:
    nightly = TABLES[0]
    assert cadence_of([]).zone == cadence_of([table("0 0 * * *", zone="UTC")]).zone
    several = cadence_of([nightly, TABLES[1]])
    assert (several.zone, several.around) == (nightly.zone, None)
    mixed = cadence_of([nightly, table("0 0 * * *", zone="UTC")])
    assert (mixed.zone, mixed.around, mixed.lack) == (
        None,
        None,
        "the job has schedules in several zones, and the run is of none of them",
    )

"""Timetables: the three kinds, bounds, excluded dates, and every fault at once."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clickclock.foundation.errors import Invalid
from clickclock.scheduler.jobs.trigger import SkipReason
from clickclock.scheduler.times.calendar import (
    FoldPolicy,
    GapPolicy,
    Occurrence,
    ScheduleKind,
    Timetable,
    reading,
    timetable,
)
from clickclock.scheduler.times.cron_times import interval_meant
from clickclock.scheduler.times.schedule import Schedule

ANCHOR = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
MS = timedelta(milliseconds=1)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def cron(expression: str, **words: object) -> Timetable:
    return timetable(kind=ScheduleKind.CRON, expression=expression, anchor=ANCHOR, **words)  # type: ignore[arg-type]


def interval(expression: str, **words: object) -> Timetable:
    return timetable(kind=ScheduleKind.INTERVAL, expression=expression, anchor=ANCHOR, **words)  # type: ignore[arg-type]


def once(expression: str, **words: object) -> Timetable:
    return timetable(kind=ScheduleKind.ONCE, expression=expression, anchor=ANCHOR, **words)  # type: ignore[arg-type]


def first(times: Timetable, start: str, count: int) -> list[Occurrence]:
    found: list[Occurrence] = []
    at = utc(start)
    while len(found) < count and (occurrence := times.after(at)) is not None:
        found.append(occurrence)
        at = occurrence.at
    return found


def written(occurrences: list[Occurrence]) -> list[str]:
    return [occurrence.at.isoformat().removesuffix("+00:00").removesuffix(":00") for occurrence in occurrences]


def faults(kind: ScheduleKind, expression: str, **words: object) -> dict[str, str]:
    with pytest.raises(Invalid) as refused:
        timetable(kind=kind, expression=expression, anchor=ANCHOR, **words)  # type: ignore[arg-type]
    return {fault.field: fault.message for fault in refused.value.faults}


def test_an_interval_counts_from_when_the_schedule_was_made() -> None:
    expected = ["2026-11-20T10:15", "2026-11-20T10:30", "2026-11-20T10:45"]
    assert written(first(interval("PT15M"), "2026-01-01", 3)) == expected


def test_an_interval_with_a_start_has_its_first_time_there() -> None:
    times = interval("PT15M", start_at=utc("2026-11-20T10:07"))
    assert written(first(times, "2026-01-01", 2)) == ["2026-11-20T10:07", "2026-11-20T10:22"]


def test_an_interval_follows_elapsed_time_whatever_the_clocks_show() -> None:
    times = interval("P1D", start_at=utc("2026-03-07T17:00"), time_zone="America/New_York")
    found = first(times, "2026-03-01", 3)
    assert written(found) == ["2026-03-07T17:00", "2026-03-08T17:00", "2026-03-09T17:00"]
    assert [occurrence.local.hour for occurrence in found] == [12, 13, 13]


@pytest.mark.parametrize(
    ("expression", "seconds"),
    [
        ("PT15M", 900),
        ("P1D", 86_400),
        ("P1DT12H", 129_600),
        ("P2W", 1_209_600),
        ("P1W1D", 691_200),
        ("PT0.5H", 1800),
        ("PT1H30M15S", 5415),
        ("pt1s", 1),
        ("90", 90),
        ("1.5", 1.5),
        ("P3660D", 3660 * 86_400),
    ],
)
def test_an_interval_is_a_duration_or_seconds(expression: str, seconds: float) -> None:
    occurrence = interval(expression).after(ANCHOR)
    assert occurrence is not None
    assert occurrence.at - ANCHOR == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("expression", "advice"),
    [
        ("P1M", "years or months, whose length varies"),
        ("P1Y", "years or months, whose length varies"),
        ("P1MT5M", "years or months, whose length varies"),
        ("0.5", "at least 1 second"),
        ("PT0S", "at least 1 second"),
        ("P3661D", "at most 3660 days"),
        ("999999999", "at most 3660 days"),
        ("P999999999W", "at most 3660 days"),
        ("", "use an ISO 8601 duration"),
        ("P", "use an ISO 8601 duration"),
        ("PT", "use an ISO 8601 duration"),
        ("P1DT", "use an ISO 8601 duration"),
        ("PT1M1H", "use an ISO 8601 duration"),
        ("-5", "use an ISO 8601 duration"),
        ("nan", "use an ISO 8601 duration"),
        ("1e9", "use an ISO 8601 duration"),
        ("٣", "use an ISO 8601 duration"),
    ],
)
def test_an_interval_that_cannot_be_is_refused_with_advice(expression: str, advice: str) -> None:
    assert advice in faults(ScheduleKind.INTERVAL, expression)["expression"]


@settings(max_examples=100, deadline=None)
@given(st.integers(1_000_000, 10**12), st.integers(-(10**14), 10**15))
def test_the_next_time_of_an_interval_is_at_most_one_period_away(period_us: int, offset_us: int) -> None:
    period = timedelta(microseconds=period_us)
    times = interval(f"{period_us / 10**6:.6f}", start_at=ANCHOR)
    instant = ANCHOR + timedelta(microseconds=offset_us)
    occurrence = times.after(instant)
    assert occurrence is not None
    assert occurrence.at.microsecond % 1000 == 0
    assert -(occurrence.at - ANCHOR) % period < MS
    assert occurrence.at == ANCHOR if instant < ANCHOR else timedelta(0) < occurrence.at - instant <= period + MS


@pytest.mark.parametrize("expression", ["1.000001", "1.0005", "PT0.0003H", "60"])
def test_a_walk_from_each_kept_time_to_the_next_never_stands_still_and_never_drifts(expression: str) -> None:
    start = utc("2026-11-20T10:00:00.123456")
    times = interval(expression, start_at=start)
    at, found = ANCHOR, []
    for _ in range(1000):
        occurrence = times.after(at)
        assert occurrence is not None
        at = occurrence.at - timedelta(microseconds=occurrence.at.microsecond % 1000)  # as the store keeps it
        found.append(at)
    assert len(set(found)) == 1000
    period = float(expression) if expression[0].isdigit() else 1.08
    assert abs((found[-1] - start).total_seconds() - 999 * period) < 0.002


def test_a_single_run_is_due_at_the_beginning_of_its_millisecond() -> None:
    times = once("2026-11-20T10:00:00.123999Z")
    occurrence = times.after(ANCHOR - 1000 * MS)
    assert occurrence is not None
    assert occurrence.at.microsecond == 123_000
    assert times.after(occurrence.at) is None


def test_a_single_run_comes_once_and_may_be_in_the_past() -> None:
    times = once("2020-05-01T12:00:00+02:00", time_zone="Europe/London")
    (occurrence,) = first(times, "2000-01-01", 2)
    assert occurrence.at == utc("2020-05-01T10:00")
    assert occurrence.local.isoformat() == "2020-05-01T11:00:00+01:00"
    assert times.after(utc("2020-05-01T10:00")) is None


@pytest.mark.parametrize(
    ("expression", "zone", "expected"),
    [
        ("2026-07-01T12:00:00", "UTC", ["2026-07-01T12:00"]),
        ("2026-07-01T12:00:00", "Europe/London", ["2026-07-01T11:00"]),
        ("2026-07-01 12:00", "Asia/Kolkata", ["2026-07-01T06:30"]),
        ("2026-07-01T12:00:00.250Z", "UTC", ["2026-07-01T12:00:00.250000"]),
        ("2026-07-01t12:00:00z", "Europe/London", ["2026-07-01T12:00"]),
        ("2026-03-08T02:30:00", "America/New_York", ["2026-03-08T07:00"]),
        ("2026-11-01T01:30:00", "America/New_York", ["2026-11-01T05:30", "2026-11-01T06:30"]),
        ("2011-12-30T12:00:00", "Pacific/Apia", []),
    ],
)
def test_a_single_run_without_an_offset_is_a_local_time(expression: str, zone: str, expected: list[str]) -> None:
    times = once(expression, time_zone=zone, fold_policy=FoldPolicy.BOTH)
    assert written(first(times, "2000-01-01", 3)) == expected


def test_a_single_run_in_a_gap_can_be_skipped() -> None:
    times = once("2026-03-08T02:30:00.5", time_zone="America/New_York", gap_policy=GapPolicy.SKIP)
    (occurrence,) = first(times, "2026-01-01", 2)
    assert (occurrence.at, occurrence.skip_reason) == (utc("2026-03-08T07:00"), SkipReason.DST_GAP)
    assert times.fires_after(utc("2026-01-01")) is None


@pytest.mark.parametrize(
    "expression",
    ["", "now", "2026-11-20", "20261120T100000Z", "2026-02-30T10:00:00Z", "2026-11-20T10:00:60Z", "10000-01-01T00:00Z"],
)
def test_what_is_not_a_time_is_refused(expression: str) -> None:
    assert "use RFC 3339" in faults(ScheduleKind.ONCE, expression)["expression"]


@pytest.mark.parametrize("expression", ["0001-01-01T00:00:00", "9999-12-31T23:59:59-12:00"])
def test_a_year_out_of_range_is_refused(expression: str) -> None:
    assert "out of range" in faults(ScheduleKind.ONCE, expression)["expression"]


def test_a_schedule_runs_from_its_start_to_its_end_both_included() -> None:
    times = cron("0 * * * *", start_at=utc("2026-11-20T10:00"), end_at=utc("2026-11-20T12:00"))
    expected = ["2026-11-20T10:00", "2026-11-20T11:00", "2026-11-20T12:00"]
    assert written(first(times, "2026-01-01", 9)) == expected


def test_a_schedule_with_no_time_between_its_bounds_is_valid_and_never_fires() -> None:
    times = cron("0 0 1 1 *", start_at=utc("2026-02-01"), end_at=utc("2026-03-01"))
    assert times.after(utc("2020-01-01")) is None


def test_an_excluded_date_is_a_local_date_and_its_times_are_skipped() -> None:
    times = cron("0 1,20 * * *", time_zone="America/New_York", exclude_dates=(date(2026, 12, 25),))
    found = first(times, "2026-12-25T04:00", 3)
    assert written(found) == ["2026-12-25T06:00", "2026-12-26T01:00", "2026-12-26T06:00"]
    assert [occurrence.skip_reason for occurrence in found] == [SkipReason.EXCLUDED, SkipReason.EXCLUDED, None]


def test_what_daylight_saving_moves_to_the_next_day_belongs_to_that_day() -> None:
    # Toronto, 30 March 1919: the clock went from 23:30 to 00:30 of the 31st.
    times = cron("45 23 * * *", time_zone="America/Toronto", exclude_dates=(date(1919, 3, 31),))
    (occurrence,) = first(times, "1919-03-30T12:00", 1)
    assert (occurrence.at, occurrence.skip_reason) == (utc("1919-03-31T04:30"), SkipReason.EXCLUDED)


@pytest.mark.parametrize(
    ("zone", "day", "start", "expected"),
    [
        ("UTC", date(2026, 12, 25), "2026-12-24T23:59:59", "2026-12-26"),
        ("America/New_York", date(2026, 3, 8), "2026-03-08T04:59:59", "2026-03-09T04:00"),
        ("America/New_York", date(2026, 11, 1), "2026-11-01T03:59:59", "2026-11-02T05:00"),
        # The 17th of February 2018 ended twice in São Paulo.
        ("America/Sao_Paulo", date(2018, 2, 17), "2018-02-17T01:59:59", "2018-02-18T03:00"),
        ("Pacific/Apia", date(2011, 12, 29), "2011-12-29T09:59:59", "2011-12-30T10:00"),
    ],
)
def test_an_excluded_day_of_a_schedule_of_every_second_is_left_in_few_steps(
    zone: str, day: date, start: str, expected: str
) -> None:
    for times in (cron("* * * * * *", time_zone=zone, exclude_dates=(day,)), interval("1", start_at=utc("1990-01-01"))):
        occurrence = times.fires_after(utc(start))
        assert occurrence is not None
        assert occurrence.at == (utc(expected) if times.exclude_dates else utc(start) + timedelta(seconds=1))


def test_a_date_of_a_repeated_stretch_is_excluded_without_the_other_one() -> None:
    # Toronto, 26 October 1919, went back an hour at midnight, into the 25th.
    times = cron("*/10 * * * *", time_zone="America/Toronto", exclude_dates=(date(1919, 10, 25),))
    occurrence = times.fires_after(utc("1919-10-25T12:00"))
    assert occurrence is not None
    assert occurrence.local.date() == date(1919, 10, 26)
    assert times.fires_after(occurrence.at - timedelta(microseconds=1)) == occurrence


def test_all_faults_of_a_schedule_are_reported_together() -> None:
    found = faults(
        ScheduleKind.CRON,
        "0 25 * * *",
        time_zone="Europe/Lodnon",
        start_at=utc("2026-11-20"),
        end_at=utc("2026-11-19"),
    )
    assert set(found) == {"expression", "timeZone", "endAt"}
    assert found["timeZone"] == 'There is no time zone "Europe/Lodnon"; did you mean "Europe/London"?'
    assert found["endAt"] == "endAt is before startAt; give a later endAt, or none."


@pytest.mark.parametrize(
    ("zone", "advice"),
    [
        ("europe/london", '"Europe/London"'),
        ("America/NewYork", '"America/New_York"'),
        ("PST", '"America/Los_Angeles"'),
        ("edt", '"America/New_York"'),
        ("CEST", '"Europe/Berlin"'),
        ("Z", '"UTC"'),
        ("GMT+3", '"Etc/GMT-3"? In these names the sign is the other way round'),
        ("UTC-05:00", '"Etc/GMT+5"? In these names'),
        ("+0300", '"Etc/GMT-3"? In these names'),
        ("UTC+05:30", "an IANA name"),
        ("GMT+15", "an IANA name"),
        ("", "an IANA name"),
        ("../etc/passwd", "an IANA name"),
        ("/usr/share/zoneinfo/UTC", "an IANA name"),
        ("localtime", "There is no time zone"),
        ("right/UTC", "There is no time zone"),
        ("Europe", "There is no time zone"),
        ("\x00", "an IANA name"),
        ("x" * 10_000, "an IANA name"),
    ],
)
def test_an_unknown_zone_is_refused_with_the_nearest_name(zone: str, advice: str) -> None:
    message = faults(ScheduleKind.CRON, "0 0 * * *", time_zone=zone)["timeZone"]
    assert advice in message
    assert len(message) < 250


def test_the_same_words_give_the_same_timetable_and_only_an_interval_minds_its_anchor() -> None:
    def made(kind: ScheduleKind, expression: str, hour: int) -> Timetable:
        return timetable(kind=kind, expression=expression, anchor=datetime(2026, 1, 1, hour, tzinfo=UTC))

    assert made(ScheduleKind.CRON, "1 2 3 4 *", 5) is made(ScheduleKind.CRON, "1 2 3 4 *", 6)
    assert made(ScheduleKind.INTERVAL, "90", 5) is made(ScheduleKind.INTERVAL, "90", 5)
    assert made(ScheduleKind.INTERVAL, "90", 5) != made(ScheduleKind.INTERVAL, "90", 6)


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Etc/GMT+12"])
def test_the_ends_of_time_are_no_error(zone: str) -> None:
    start, end = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    for times in (cron("* * * * *", time_zone=zone), interval("P1D", time_zone=zone), once("2026-01-01T00:00:00")):
        assert times.after(start) is not None
        assert times.after(end) is None
        assert times.after(end - timedelta(days=365 * 1000)) is None


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("5m", "PT5M"),
        ("every 5 minutes", "PT5M"),
        ("@every 5m", "PT5M"),
        ("every minute", "PT1M"),
        ("1h30m", "PT1H30M"),
        ("2 days", "P2D"),
        ("1d12h", "P1DT12H"),
        ("every 1 hour, 10 sec", "PT1H10S"),
    ],
)
def test_an_interval_in_other_words_is_refused_with_the_duration_that_it_means(words: str, meant: str) -> None:
    assert f"write {meant}." in faults(ScheduleKind.INTERVAL, words)["expression"]
    if not words.startswith("@every"):
        assert f"kind interval with {meant}," in faults(ScheduleKind.CRON, words)["expression"]


@pytest.mark.parametrize("words", ["every mon", "5 months", "minute", "@hourly", "PT5M", "90", "m", "every"])
def test_what_is_no_interval_in_other_words_is_not_taken_for_one(words: str) -> None:
    assert interval_meant(words) is None


def test_an_every_of_go_is_an_interval() -> None:
    every, interval = (
        timetable(kind=kind, expression=expression, anchor=ANCHOR)
        for kind, expression in ((ScheduleKind.CRON, "@every 1h30m"), (ScheduleKind.INTERVAL, "PT1H30M"))
    )
    assert every == interval
    assert reading(ScheduleKind.CRON, "@every 1h30m")[0].startswith("@every 1h30m: an interval of PT1H30M")
    assert "@every" in faults(ScheduleKind.CRON, "@every often")["expression"]


def test_an_h_is_the_jobs_number_wherever_its_times_are_computed() -> None:
    made = [Schedule(application="shop", job_name=name, expression="H H * * *") for name in ("a", "b", "a")]
    first, other, again = (each.timetable(ANCHOR).after(ANCHOR) for each in made)
    assert first == again != other
    assert timetable(kind=ScheduleKind.CRON, expression="H H * * *", anchor=ANCHOR).after(ANCHOR) is not None
    assert "a hash of the job" in reading(ScheduleKind.CRON, "H H * * *")[0]
    assert "Jenkins" in faults(ScheduleKind.CRON, "H(5-1) * * * *")["expression"]

"""Rules of RFC 5545: its own examples, an independent implementation, daylight saving, and every fault at once."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from dateutil.rrule import rrulestr
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from clickclock.foundation.errors import Invalid
from clickclock.scheduler.jobs.trigger import SkipReason
from clickclock.scheduler.times import rrule_times
from clickclock.scheduler.times.calendar import FoldPolicy, GapPolicy, ScheduleKind, Timetable, timetable
from clickclock.scheduler.times.rrule_lines import WEEKDAYS, recurrence
from clickclock.scheduler.times.rrule_times import Recurrence

NEW_YORK = "America/New_York"
ANCHOR = datetime(2026, 11, 20, 14, 37, 22, 123_000, tzinfo=UTC)
NO_ZONE = ZoneInfo("UTC")


def wall(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=None)


def walk(times: Recurrence, after: datetime) -> Iterator[datetime]:
    found = times.after(after)
    while found is not None:
        yield found
        found = times.after(found)


def rrule(expression: str, time_zone: str = "UTC", anchor: datetime = ANCHOR, **words: object) -> Timetable:
    return timetable(
        kind=ScheduleKind.RRULE,
        expression=expression,
        time_zone=time_zone,
        anchor=anchor,
        **words,  # type: ignore[arg-type] # as a test says them
    )


def first(times: Timetable, after: str, count: int) -> list[str]:
    found: list[str] = []
    at = datetime.fromisoformat(after)
    while len(found) < count and (occurrence := times.after(at)) is not None:
        at = occurrence.at
        found.append(occurrence.local.strftime("%Y-%m-%dT%H:%M"))
    return found


def faults(expression: str, **words: object) -> list[str]:
    with pytest.raises(Invalid) as refused:
        rrule(expression, **words)  # type: ignore[arg-type] # as a test says them
    assert {fault.field for fault in refused.value.faults} == {"expression"}
    return [fault.message for fault in refused.value.faults]


RFC_EXAMPLES = [
    ("FREQ=DAILY;COUNT=10", "09-02 09-03 09-04 09-05 09-06 09-07 09-08 09-09 09-10 09-11", 10),
    ("FREQ=DAILY;INTERVAL=2", "09-02 09-04 09-06 09-08 09-10", 5),
    ("FREQ=DAILY;INTERVAL=10;COUNT=5", "09-02 09-12 09-22 10-02 10-12", 9),
    ("FREQ=WEEKLY;COUNT=10", "09-02 09-09 09-16 09-23 09-30 10-07 10-14 10-21 10-28 11-04", 11),
    ("FREQ=WEEKLY;INTERVAL=2;WKST=SU", "09-02 09-16 09-30 10-14 10-28 11-11", 6),
    ("FREQ=WEEKLY;UNTIL=19971007T000000Z;WKST=SU;BYDAY=TU,TH",
     "09-02 09-04 09-09 09-11 09-16 09-18 09-23 09-25 09-30 10-02", 20),
    ("FREQ=WEEKLY;INTERVAL=2;WKST=SU;BYDAY=MO,WE,FR;COUNT=6", "09-03 09-05 09-15 09-17 09-19 09-29", 9),
    ("FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH", "09-02 09-04 09-16 09-18 09-30 10-02 10-14 10-16", 9),
    ("FREQ=MONTHLY;COUNT=4;BYDAY=1FR", "09-05 10-03 11-07 12-05", 9),
    ("FREQ=MONTHLY;INTERVAL=2;COUNT=10;BYDAY=1SU,-1SU", "09-07 09-28 11-02 11-30", 4),
    ("FREQ=MONTHLY;COUNT=4;BYDAY=-2MO", "09-22 10-20 11-17 12-22", 9),
    ("FREQ=MONTHLY;BYMONTHDAY=-3", "09-28 10-29 11-28 12-29", 4),
    ("FREQ=MONTHLY;COUNT=8;BYMONTHDAY=2,15", "09-02 09-15 10-02 10-15 11-02 11-15 12-02 12-15", 9),
    ("FREQ=MONTHLY;COUNT=7;BYMONTHDAY=1,-1", "09-30 10-01 10-31 11-01 11-30 12-01 12-31", 9),
    ("FREQ=MONTHLY;INTERVAL=18;COUNT=10;BYMONTHDAY=10,11,12,13,14,15",
     "09-10 09-11 09-12 09-13 09-14 09-15 1999-03-10", 7),
    ("FREQ=MONTHLY;INTERVAL=2;BYDAY=TU", "09-02 09-09 09-16 09-23 09-30 11-04 11-11", 7),
    ("FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", "1998-02-13 1998-03-13 1998-11-13 1999-08-13 2000-10-13", 5),
    ("FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13", "09-13 10-11 11-08 12-13 1998-01-10", 5),
    ("FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3", "09-04 10-07 11-06", 9),
    ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2", "09-29 10-30 11-27 12-30 1998-01-29", 5),
    ("FREQ=YEARLY;INTERVAL=2;COUNT=3;BYMONTH=1,2,3", "1999-01-02 1999-02-02 1999-03-02", 9),
    ("FREQ=YEARLY;INTERVAL=3;COUNT=4;BYYEARDAY=1,100,200", "2000-01-01 2000-04-09 2000-07-18 2003-01-01", 9),
    ("FREQ=YEARLY;BYDAY=20MO", "1998-05-18 1999-05-17 2000-05-15", 3),
    ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "1998-05-11 1999-05-17 2000-05-15", 3),
    ("FREQ=YEARLY;BYMONTH=3;BYDAY=TH", "1998-03-05 1998-03-12 1998-03-19 1998-03-26 1999-03-04", 5),
    ("FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;BYMONTHDAY=2,3,4,5,6,7,8", "11-04 2001-11-06 2005-11-08", 3),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "days", "count"), RFC_EXAMPLES, ids=[rule for rule, *_ in RFC_EXAMPLES])
def test_an_example_of_rfc_5545_has_the_times_that_it_lists(rule: str, days: str, count: int) -> None:
    expression = f"DTSTART;TZID={NEW_YORK}:19970902T090000\nRRULE:{rule}"
    expected = [f"{day if len(day) > 5 else '1997-' + day}T09:00" for day in days.split()]
    assert first(rrule(expression, NEW_YORK), "1997-01-01T00:00Z", count) == expected


def test_the_examples_of_times_within_a_day_have_the_times_that_they_list() -> None:
    start = "DTSTART:19970902T090000\nRRULE:"
    hours = rrule(start + "FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T170000")
    assert first(hours, "1997-01-01T00:00Z", 9) == ["1997-09-02T09:00", "1997-09-02T12:00", "1997-09-02T15:00"]
    quarters = rrule(start + "FREQ=MINUTELY;INTERVAL=90;COUNT=4")
    assert [each[11:] for each in first(quarters, "1997-01-01T00:00Z", 9)] == ["09:00", "10:30", "12:00", "13:30"]
    by_day = rrule(start + "FREQ=DAILY;BYHOUR=9,10,11,12,13,14,15,16;BYMINUTE=0,20,40")
    by_minute = rrule(start + "FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,10,11,12,13,14,15,16")
    assert first(by_day, "1997-01-01T00:00Z", 60) == first(by_minute, "1997-01-01T00:00Z", 60)


def test_the_week_start_decides_which_week_is_the_second() -> None:
    start = "DTSTART:19970805T090000\nRRULE:FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST="
    by_monday = [each[:10] for each in first(rrule(start + "MO"), "1997-01-01T00:00Z", 9)]
    by_sunday = [each[:10] for each in first(rrule(start + "SU"), "1997-01-01T00:00Z", 9)]
    assert by_monday == ["1997-08-05", "1997-08-10", "1997-08-19", "1997-08-24"]
    assert by_sunday == ["1997-08-05", "1997-08-17", "1997-08-19", "1997-08-31"]


def test_weekdays_with_and_without_a_number_stand_beside_each_other() -> None:
    times = rrule("DTSTART:20260701T090000\nRRULE:FREQ=MONTHLY;BYMONTH=7;BYDAY=-1TU,WE;COUNT=6")
    assert [each[8:10] for each in first(times, "2026-01-01T00:00Z", 9)] == ["01", "08", "15", "22", "28", "29"]


def test_a_day_that_a_month_has_not_is_left_out_of_it() -> None:
    times = rrule("DTSTART:20070115T090000\nRRULE:FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5")
    days = [each[:10] for each in first(times, "2007-01-01T00:00Z", 9)]
    assert days == ["2007-01-15", "2007-01-30", "2007-02-15", "2007-03-15", "2007-03-30"]


def test_dates_are_added_and_left_out_by_lines_of_their_own() -> None:
    times = rrule(
        "DTSTART:20261101T090000\nRRULE:FREQ=DAILY;COUNT=4\nEXDATE:20261102T090000\nEXDATE;VALUE=DATE:20261103\n"
        "RDATE:20261105T123000\n ,20261107T090000"
    )
    expected = ["2026-11-01T09:00", "2026-11-04T09:00", "2026-11-05T12:30", "2026-11-07T09:00"]
    assert first(times, "2026-01-01T00:00Z", 9) == expected


def test_a_rule_may_be_dates_alone() -> None:
    assert first(rrule("RDATE:20261224T120000,20261231T120000"), "2026-01-01T00:00Z", 9) == [
        "2026-12-24T12:00",
        "2026-12-31T12:00",
    ]


def test_without_a_start_a_rule_begins_at_the_midnight_before_the_schedule_was_made() -> None:
    assert first(rrule("FREQ=DAILY;BYHOUR=9"), "2026-11-20T14:37Z", 2) == ["2026-11-21T09:00", "2026-11-22T09:00"]
    assert first(rrule("FREQ=MINUTELY;INTERVAL=15"), "2026-11-20T14:37Z", 2) == ["2026-11-20T14:45", "2026-11-20T15:00"]


def test_start_at_is_the_start_of_a_rule_that_has_none_itself() -> None:
    times = rrule("FREQ=DAILY;INTERVAL=3;COUNT=3", start_at=datetime(2026, 12, 1, 8, 30, tzinfo=UTC))
    assert first(times, "2026-01-01T00:00Z", 9) == ["2026-12-01T08:30", "2026-12-04T08:30", "2026-12-07T08:30"]


def test_until_may_be_a_day_a_local_time_or_a_time_in_utc() -> None:
    start = "DTSTART:20261101T090000\nRRULE:FREQ=DAILY;UNTIL="
    for until in ("20261103", "20261103T090000", "20261103T140000Z"):
        days = [each[:10] for each in first(rrule(start + until, NEW_YORK), "2026-01-01T00:00Z", 9)]
        assert days == ["2026-11-01", "2026-11-02", "2026-11-03"]
    assert len(first(rrule(start + "20261103T135959Z", NEW_YORK), "2026-01-01T00:00Z", 9)) == 2


def test_a_day_in_a_gap_of_the_clock_runs_once_after_it_or_is_skipped() -> None:
    nightly = "DTSTART:20260307T023000\nRRULE:FREQ=DAILY;COUNT=3"
    moved = rrule(nightly, NEW_YORK)
    assert first(moved, "2026-01-01T00:00Z", 9) == ["2026-03-07T02:30", "2026-03-08T03:00", "2026-03-09T02:30"]
    skipped = rrule(nightly, NEW_YORK, gap_policy=GapPolicy.SKIP).after(datetime(2026, 3, 8, tzinfo=UTC))
    assert skipped is not None
    assert skipped.skip_reason is SkipReason.DST_GAP


def test_a_day_in_a_fold_of_the_clock_runs_at_the_first_of_both_or_at_both() -> None:
    nightly = "DTSTART:20261031T013000\nRRULE:FREQ=DAILY;COUNT=3"
    assert len(first(rrule(nightly, NEW_YORK), "2026-01-01T00:00Z", 9)) == 3
    assert len(first(rrule(nightly, NEW_YORK, fold_policy=FoldPolicy.BOTH), "2026-01-01T00:00Z", 9)) == 4


def test_hours_that_no_rule_fixes_follow_elapsed_time() -> None:
    hourly = rrule("DTSTART:20260308T003000\nRRULE:FREQ=HOURLY;COUNT=5", NEW_YORK)
    assert [each[11:] for each in first(hourly, "2026-03-08T00:00Z", 9)] == ["00:30", "01:30", "03:30", "04:30"]


def test_a_rule_of_every_second_that_began_long_ago_looks_at_a_handful_of_periods(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rrule_times, "STEPS_SEARCHED", 5)
    times = rrule("DTSTART:20161120T000003\nRRULE:FREQ=SECONDLY;INTERVAL=7")
    asked = datetime(2026, 11, 20, 10, tzinfo=UTC)
    found = times.after(asked)
    assert found is not None
    assert (found.at - datetime(2016, 11, 20, 0, 0, 3, tzinfo=UTC)) % timedelta(seconds=7) == timedelta(0)
    assert found.at - asked <= timedelta(seconds=7)


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=31",
        "FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=31",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=31",
        "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=31",
        "FREQ=HOURLY;INTERVAL=2;BYHOUR=1",
        "FREQ=SECONDLY;INTERVAL=60;BYSECOND=30",
        "FREQ=DAILY;BYHOUR=9;BYSETPOS=2",
        "DTSTART:20261120T090000\nRRULE:FREQ=DAILY;UNTIL=20261119",
    ],
)
def test_a_rule_that_never_comes_has_no_next_time(rule: str) -> None:
    assert rrule(rule).after(ANCHOR) is None


LISTS = {
    "BYMONTH": (1, 12, 4),
    "BYMONTHDAY": (-31, 31, 6),
    "BYYEARDAY": (-366, 366, 40),
    "BYHOUR": (0, 23, 3),
    "BYMINUTE": (0, 59, 3),
    "BYSECOND": (0, 59, 3),
}


@st.composite
def rules(draw: st.DrawFn) -> str:
    """Rules of every frequency and with every part, as RFC 5545 lets them go together."""
    frequency = draw(st.sampled_from(["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"]))
    parts = [f"FREQ={frequency}", f"INTERVAL={draw(st.sampled_from([1, 1, 2, 3, 5, 7, 11, 24, 45]))}"]
    for name, (least, most, length) in LISTS.items():
        if name == "BYMONTHDAY" and frequency == "WEEKLY":
            continue
        if name == "BYYEARDAY" and frequency in {"DAILY", "WEEKLY", "MONTHLY"}:
            continue
        if draw(st.integers(0, 2)) == 0:
            numbers = st.integers(least, most)
            if least < 0:
                numbers = numbers.filter(bool)
            chosen = draw(st.lists(numbers, min_size=1, max_size=length, unique=True))
            parts.append(f"{name}={','.join(map(str, sorted(chosen)))}")
    days = draw(st.lists(st.sampled_from(WEEKDAYS), max_size=4, unique=True))
    if days and frequency == "YEARLY" and draw(st.booleans()):
        weeks = st.integers(-53, 53).filter(bool)
        parts.append("BYWEEKNO=" + ",".join(map(str, draw(st.lists(weeks, min_size=1, max_size=4, unique=True)))))
    elif days and frequency in {"YEARLY", "MONTHLY"} and draw(st.booleans()):
        # dateutil takes "MO,1TU" for Mondays that are a first Tuesday, so that all have a number here, or none.
        days = [f"{draw(st.sampled_from([1, 2, -1, -2, 5]))}{day}" for day in days]
    if days:
        parts.append("BYDAY=" + ",".join(days))
    parts.append("WKST=" + draw(st.sampled_from(WEEKDAYS)))
    # dateutil chooses among the rest of the first week, where RFC 5545 says: of the week.
    if any(part.startswith("BY") for part in parts) and frequency != "WEEKLY" and draw(st.booleans()):
        parts.append(f"BYSETPOS={draw(st.sampled_from(['1', '-1', '2', '1,-1', '3', '-2']))}")
    if draw(st.booleans()):
        parts.append(f"COUNT={draw(st.integers(1, 12))}")
    return ";".join(parts)


STARTS = st.datetimes(datetime(1995, 1, 1), datetime(2030, 12, 31)).map(lambda start: start.replace(microsecond=0))  # noqa: DTZ001 (times on the wall)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(rules(), STARTS)
def test_a_rule_has_the_times_that_dateutil_finds(rule: str, start: datetime) -> None:
    ours = recurrence(f"DTSTART:{start:%Y%m%dT%H%M%S}\nRRULE:{rule}", NO_ZONE, None)
    found = list(islice(walk(ours, start - timedelta(days=1)), 5))
    # It goes to rare times an hour, minute or second at a time, and to those that never come until the year 9999.
    near_h = {"HOURLY": 1000, "MINUTELY": 24, "SECONDLY": 1}.get(rule.partition(";")[0].removeprefix("FREQ="), 50_000)
    assume(found and found[-1] < start + timedelta(hours=near_h))
    theirs = rrulestr(rule, dtstart=start)
    assert found == list(islice(theirs, len(found)))


@settings(deadline=None, max_examples=25)
@given(rules(), STARTS, st.integers(0, 10**9))
def test_a_walk_may_begin_anywhere(rule: str, start: datetime, seconds: int) -> None:
    times = recurrence(f"DTSTART:{start:%Y%m%dT%H%M%S}\nRRULE:{rule}", NO_ZONE, None)
    here = start + timedelta(seconds=seconds)
    found = times.after(here)
    if found is not None:
        assert found > here
        assert times.after(found - timedelta(seconds=1)) == found
        assert times.after(here + (found - here) / 2) == found


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("", "There is no rule; give one"),
        ("FREQ=FORTNIGHTLY", "A rule begins with FREQ; give FREQ=YEARLY, MONTHLY"),
        ("BYDAY=MO", "A rule begins with FREQ"),
        ("FREQ=DAILY;BYHOURS=9", "'BYHOURS' is not a part of a rule; did you mean BYHOUR?"),
        ("FREQ=DAILY;BYHOUR=24", "BYHOUR is '24'; use whole numbers from 0 to 23"),
        ("FREQ=DAILY;BYSECOND=60", "BYSECOND is '60'; use whole numbers from 0 to 59"),
        ("FREQ=MONTHLY;BYMONTHDAY=0", "use whole numbers from -31 to 31 without 0"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL is '0'; use whole numbers from 1"),
        ("FREQ=DAILY;INTERVAL=2;INTERVAL=3", "INTERVAL is given twice"),
        ("FREQ=DAILY;BYHOUR=", "BYHOUR has no value"),
        ("FREQ=DAILY;COUNT=20000", "COUNT is '20000'; use whole numbers from 1 to 10,000"),
        ("FREQ=DAILY;COUNT=3", "COUNT counts from the rule's start; give startAt, or a DTSTART line"),
        ("FREQ=DAILY;UNTIL=tomorrow", "UNTIL is 'TOMORROW', which is not a time"),
        ("FREQ=DAILY;UNTIL=20260230", "UNTIL is '20260230', which is not a time"),
        ("FREQ=DAILY;WKST=XX", "WKST is 'XX'; give one of MO, TU"),
        ("FREQ=WEEKLY;BYDAY=MON", "BYDAY has 'MON'; use MO to SU"),
        ("FREQ=WEEKLY;BYDAY=2MO", "A number before a weekday, such as 2TU, is for FREQ=MONTHLY and YEARLY"),
        ("FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY does not go with FREQ=WEEKLY"),
        ("FREQ=MONTHLY;BYWEEKNO=1", "BYWEEKNO is for FREQ=YEARLY alone"),
        ("FREQ=DAILY;BYYEARDAY=1", "BYYEARDAY does not go with FREQ=DAILY"),
        ("FREQ=DAILY;BYSETPOS=1", "BYSETPOS chooses among the times of another part"),
        ("EXRULE:FREQ=DAILY", "EXRULE is no longer part of RFC 5545"),
        ("DTSTAR:20260101T000000\nRRULE:FREQ=DAILY", "'DTSTAR' is not a line of a recurrence; did you mean DTSTART?"),
        ("RRULE:FREQ=DAILY\nRRULE:FREQ=WEEKLY", "There is more than one RRULE"),
        ("DTSTART;TZID=Europe/Berlin:20260101T000000\nRRULE:FREQ=DAILY", "and the schedule's timeZone is UTC"),
        ("DTSTART;X-A=1:20260101T000000\nRRULE:FREQ=DAILY", "DTSTART has X-A=1, which is not understood"),
    ],
)
def test_a_rule_that_cannot_be_read_says_what_to_do(expression: str, sentence: str) -> None:
    assert any(sentence in each for each in faults(expression)), faults(expression)


def test_all_faults_of_a_rule_are_told_together() -> None:
    told = faults("FREQ=DAILY;BYHOUR=25;BYMINUTE=61;COUNT=2;UNTIL=20270101\nEXDATE:x")
    assert len(told) == 5
    assert len(faults("FREQ=FORTNIGHTLY;BYDAY=XX;INTERVAL=0;UNTIL=x")) == 4

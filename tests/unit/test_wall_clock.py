"""Daylight saving, worked out by hand in nine zones, and checked against a minute-by-minute count in all of them."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clickclock.scheduler.jobs.trigger import SkipReason
from clickclock.scheduler.times.calendar import FoldPolicy, GapPolicy, Occurrence, ScheduleKind, Timetable, timetable

ANCHOR = datetime(2026, 1, 1, tzinfo=UTC)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def cron(
    expression: str,
    time_zone: str,
    gap_policy: GapPolicy = GapPolicy.FIRE_AFTER_GAP,
    fold_policy: FoldPolicy = FoldPolicy.FIRST,
) -> Timetable:
    return timetable(
        kind=ScheduleKind.CRON,
        expression=expression,
        time_zone=time_zone,
        gap_policy=gap_policy,
        fold_policy=fold_policy,
        anchor=ANCHOR,
    )


def between(times: Timetable, start: datetime, end: datetime) -> list[Occurrence]:
    """Every occurrence in (start, end], skipped ones included."""
    found = []
    while (occurrence := times.after(start)) is not None and occurrence.at <= end:
        found.append(occurrence)
        start = occurrence.at
    return found


def written(occurrences: list[Occurrence]) -> list[str]:
    return [occurrence.at.isoformat().removesuffix("+00:00").removesuffix(":00") for occurrence in occurrences]


NEW_YORK, SAO_PAULO, CAIRO = "America/New_York", "America/Sao_Paulo", "Africa/Cairo"
LORD_HOWE, APIA, TROLL = "Australia/Lord_Howe", "Pacific/Apia", "Antarctica/Troll"
CASEY, DUBLIN, CASABLANCA = "Antarctica/Casey", "Europe/Dublin", "Africa/Casablanca"
KWAJALEIN, KATHMANDU, SAO_TOME = "Pacific/Kwajalein", "Asia/Kathmandu", "Africa/Sao_Tome"

# (zone, expression, from, to, every occurrence in between), all in UTC
FIXED_TIMES = [
    # New York, 8 March 2026: at 07:00 UTC the clock goes from 02:00 to 03:00.
    (NEW_YORK, "30 2 * * *", "2026-03-07T12:00", "2026-03-10", ["2026-03-08T07:00", "2026-03-09T06:30"]),
    (NEW_YORK, "15,45 2 * * *", "2026-03-07T12:00", "2026-03-09T06:20", ["2026-03-08T07:00", "2026-03-09T06:15"]),
    (NEW_YORK, "0 2,3 * * *", "2026-03-08", "2026-03-09T06:30", ["2026-03-08T07:00", "2026-03-09T06:00"]),
    (NEW_YORK, "0 30 2 * * *", "2026-03-08", "2026-03-10", ["2026-03-08T07:00", "2026-03-09T06:30"]),
    (NEW_YORK, "30 30 2 * * *", "2026-03-08", "2026-03-10", ["2026-03-08T07:00", "2026-03-09T06:30:30"]),
    (NEW_YORK, "* 30 2 * * *", "2026-03-08", "2026-03-09T06:30", ["2026-03-08T07:00", "2026-03-09T06:30"]),
    (
        NEW_YORK,
        "30 0-3 * * *",
        "2026-03-08T06:00",
        "2026-03-09",
        ["2026-03-08T06:30", "2026-03-08T07:00", "2026-03-08T07:30"],
    ),
    # New York, 1 November 2026: at 06:00 UTC the clock goes from 02:00 back to 01:00.
    (NEW_YORK, "30 1 * * *", "2026-10-31T12:00", "2026-11-03", ["2026-11-01T05:30", "2026-11-02T06:30"]),
    (NEW_YORK, "0 1,2 * * *", "2026-11-01", "2026-11-02", ["2026-11-01T05:00", "2026-11-01T07:00"]),
    (NEW_YORK, "15 30 1 * * *", "2026-11-01", "2026-11-02", ["2026-11-01T05:30:15"]),
    # São Paulo, 4 November 2018: at 03:00 UTC the clock goes from 00:00 to 01:00.
    (SAO_PAULO, "0 0 * * *", "2018-11-03T12:00", "2018-11-06", ["2018-11-04T03:00", "2018-11-05T02:00"]),
    # São Paulo, 18 February 2018: at 02:00 UTC the clock goes from 00:00 back to 23:00 of the 17th.
    (SAO_PAULO, "30 23 * * *", "2018-02-17T12:00", "2018-02-19T12:00", ["2018-02-18T01:30", "2018-02-19T02:30"]),
    (SAO_PAULO, "0 0 * * *", "2018-02-17", "2018-02-19", ["2018-02-17T02:00", "2018-02-18T03:00"]),
    # Cairo, 26 April 2024: at 22:00 UTC the clock goes from 00:00 to 01:00; 31 October: at 21:00 UTC back to 23:00.
    (CAIRO, "0 0 * * *", "2024-04-25T12:00", "2024-04-27T12:00", ["2024-04-25T22:00", "2024-04-26T21:00"]),
    (CAIRO, "0,30 0 * * *", "2024-04-25T12:00", "2024-04-26T12:00", ["2024-04-25T22:00"]),
    (CAIRO, "30 23 * * *", "2024-10-31", "2024-11-02", ["2024-10-31T20:30", "2024-11-01T21:30"]),
    # Lord Howe, 4 October 2026: at 15:30 UTC the clock goes from 02:00 to 02:30; 5 April: at 15:00 UTC back to 01:30.
    (LORD_HOWE, "15 2 * * *", "2026-10-03", "2026-10-05", ["2026-10-03T15:30", "2026-10-04T15:15"]),
    (LORD_HOWE, "15,30 2 * * *", "2026-10-03", "2026-10-04", ["2026-10-03T15:30"]),
    (LORD_HOWE, "45 1 * * *", "2026-04-04", "2026-04-06", ["2026-04-04T14:45", "2026-04-05T15:15"]),
    # Troll, 2026: on 29 March at 01:00 UTC from 01:00 to 03:00, on 25 October at 01:00 UTC from 03:00 back to 01:00.
    (TROLL, "30 1,2 * * *", "2026-03-28T12:00", "2026-03-30", ["2026-03-29T01:00", "2026-03-29T23:30"]),
    (TROLL, "30 1,2 * * *", "2026-10-24T12:00", "2026-10-25T12:00", ["2026-10-24T23:30", "2026-10-25T00:30"]),
    # Dublin has its daylight saving in winter, so to speak: the time zone database gives it a negative one.
    (DUBLIN, "30 1 * * *", "2026-03-28T12:00", "2026-03-31", ["2026-03-29T01:00", "2026-03-30T00:30"]),
    (DUBLIN, "30 1 * * *", "2026-10-24T12:00", "2026-10-27", ["2026-10-25T00:30", "2026-10-26T01:30"]),
    # Casablanca puts its clock back for Ramadan: on 15 February 2026 at 02:00 UTC from 03:00 to 02:00.
    (CASABLANCA, "30 2 * * *", "2026-02-14T12:00", "2026-02-17", ["2026-02-15T01:30", "2026-02-16T02:30"]),
    # Kathmandu moved its clock by a quarter of an hour at the turn of 1986, São Tomé by an hour at that of 2019.
    (KATHMANDU, "5 0 * * *", "1985-12-31", "1986-01-02", ["1985-12-31T18:30", "1986-01-01T18:20"]),
    (SAO_TOME, "30 1 * * *", "2018-12-31T12:00", "2019-01-03", ["2019-01-01T00:30", "2019-01-02T01:30"]),
]

ELAPSED_TIMES = [
    (
        NEW_YORK,
        "30 * * * *",
        "2026-03-08T05:00",
        "2026-03-08T08:00",
        ["2026-03-08T05:30", "2026-03-08T06:30", "2026-03-08T07:30"],
    ),
    (NEW_YORK, "30 */2 * * *", "2026-03-08T05:00", "2026-03-08T09:00", ["2026-03-08T05:30", "2026-03-08T08:30"]),
    (NEW_YORK, "*/15 2 * * *", "2026-03-08", "2026-03-09T06:15", ["2026-03-09T06:00", "2026-03-09T06:15"]),
    (
        NEW_YORK,
        "30 * * * *",
        "2026-11-01T05:00",
        "2026-11-01T08:00",
        ["2026-11-01T05:30", "2026-11-01T06:30", "2026-11-01T07:30"],
    ),
    (
        LORD_HOWE,
        "*/15 * * * *",
        "2026-04-04T14:40",
        "2026-04-04T15:30",
        ["2026-04-04T14:45", "2026-04-04T15:00", "2026-04-04T15:15", "2026-04-04T15:30"],
    ),
    (
        LORD_HOWE,
        "0 * * * *",
        "2026-10-03T14:00",
        "2026-10-03T17:00",
        ["2026-10-03T14:30", "2026-10-03T16:00", "2026-10-03T17:00"],
    ),
]

CLOCK_CHANGES = [
    # Apia has no 30 December 2011: at 10:00 UTC its clock goes from the end of the 29th to the start of the 31st.
    (
        APIA,
        "0 12 * * *",
        "2011-12-29T12:00",
        "2012-01-01",
        ["2011-12-29T22:00", "2011-12-30T22:00", "2011-12-31T22:00"],
    ),
    (APIA, "0 0 * * *", "2011-12-29", "2011-12-31", ["2011-12-29T10:00", "2011-12-30T10:00"]),
    (APIA, "59 23 30 12 *", "2011-01-01", "2013-01-01", ["2012-12-30T09:59"]),
    # Casey: three hours forward on 22 October 2016 (16:00 UTC, from 00:00), and back on 11 March 2018 (17:00 UTC).
    (CASEY, "30 1 * * *", "2016-10-20T18:00", "2016-10-23", ["2016-10-22T14:30"]),
    (CASEY, "30 2 * * *", "2018-03-10", "2018-03-12", ["2018-03-10T15:30", "2018-03-10T18:30", "2018-03-11T18:30"]),
    # Kwajalein crossed the date line twice: it had 30 September 1969 almost twice, and no 21 August 1993.
    (KWAJALEIN, "0 12 * * *", "1969-09-29T12:00", "1969-10-01T12:00", ["1969-09-30T01:00", "1969-10-01T00:00"]),
    (
        KWAJALEIN,
        "0 12 * * *",
        "1993-08-20T12:00",
        "1993-08-23",
        ["1993-08-21T00:00", "1993-08-22T00:00", "1993-08-23T00:00"],
    ),
]


@pytest.mark.parametrize(("zone", "expression", "start", "end", "expected"), FIXED_TIMES)
def test_a_fixed_time_runs_exactly_once_per_local_day(
    zone: str, expression: str, start: str, end: str, expected: list[str]
) -> None:
    assert written(between(cron(expression, zone), utc(start), utc(end))) == expected


@pytest.mark.parametrize(("zone", "expression", "start", "end", "expected"), ELAPSED_TIMES)
def test_a_wildcard_hour_or_minute_follows_elapsed_time(
    zone: str, expression: str, start: str, end: str, expected: list[str]
) -> None:
    for gap in GapPolicy:
        for fold in FoldPolicy:
            assert written(between(cron(expression, zone, gap, fold), utc(start), utc(end))) == expected


@pytest.mark.parametrize(("zone", "expression", "start", "end", "expected"), CLOCK_CHANGES)
def test_a_jump_of_three_hours_or_more_is_a_plain_clock_change(
    zone: str, expression: str, start: str, end: str, expected: list[str]
) -> None:
    for gap in GapPolicy:
        for fold in FoldPolicy:
            assert written(between(cron(expression, zone, gap, fold), utc(start), utc(end))) == expected


def test_the_gap_policy_skip_leaves_a_row_but_no_run() -> None:
    times = cron("30 2 * * *", NEW_YORK, GapPolicy.SKIP)
    skipped = times.after(utc("2026-03-08"))
    assert skipped is not None
    assert skipped.at == utc("2026-03-08T07:00")
    assert skipped.skip_reason is SkipReason.DST_GAP
    assert skipped.note == (
        "02:30 does not exist on 2026-03-08, when the clock goes from 02:00 to 03:00: "
        "it is left out, as dstGapPolicy says."
    )
    fires = times.fires_after(utc("2026-03-08"))
    assert fires is not None
    assert fires.at == utc("2026-03-09T06:30")


def test_a_time_at_the_very_end_of_a_gap_runs_even_when_the_gap_is_skipped() -> None:
    (occurrence,) = between(cron("0 2,3 * * *", NEW_YORK, GapPolicy.SKIP), utc("2026-03-08"), utc("2026-03-09"))
    assert (occurrence.at, occurrence.skip_reason) == (utc("2026-03-08T07:00"), None)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (FoldPolicy.FIRST, ["2026-11-01T05:00", "2026-11-01T05:30"]),
        (FoldPolicy.SECOND, ["2026-11-01T06:00", "2026-11-01T06:30"]),
        (FoldPolicy.BOTH, ["2026-11-01T05:00", "2026-11-01T05:30", "2026-11-01T06:00", "2026-11-01T06:30"]),
    ],
)
def test_the_fold_policy_chooses_the_pass(policy: FoldPolicy, expected: list[str]) -> None:
    times = cron("0,30 1 * * *", NEW_YORK, fold_policy=policy)
    assert written(between(times, utc("2026-11-01"), utc("2026-11-02"))) == expected


def test_an_occurrence_says_in_a_sentence_what_daylight_saving_did() -> None:
    moved = cron("30 2 * * *", NEW_YORK).after(utc("2026-03-08"))
    chosen = cron("30 1 * * *", NEW_YORK).after(utc("2026-11-01"))
    plain = cron("30 1 * * *", NEW_YORK).after(utc("2026-11-02"))
    assert moved is not None
    assert chosen is not None
    assert plain is not None
    assert moved.note == (
        "02:30 does not exist on 2026-03-08, when the clock goes from 02:00 to 03:00: "
        "it runs at the first instant after the gap."
    )
    assert moved.local.isoformat() == "2026-03-08T03:00:00-04:00"
    assert chosen.note == "01:30 comes twice on 2026-11-01: this is the first."
    assert chosen.local.isoformat() == "2026-11-01T01:30:00-04:00"
    assert plain.note is None


def test_a_fold_is_left_quickly_by_a_line_with_thousands_of_times_in_it() -> None:
    times = cron("0-59 0-59 1 * * *", NEW_YORK)
    following = times.after(utc("2026-11-01T06:00"))
    assert following is not None
    assert following.at == utc("2026-11-02T06:00")


@dataclass(frozen=True)
class Jump:
    zone: str
    at: datetime


JUMPS = [
    Jump(NEW_YORK, utc("2026-03-08T07:00")), Jump(NEW_YORK, utc("2026-11-01T06:00")),
    Jump(SAO_PAULO, utc("2018-11-04T03:00")), Jump(SAO_PAULO, utc("2018-02-18T02:00")),
    Jump(CAIRO, utc("2024-04-25T22:00")), Jump(CAIRO, utc("2024-10-31T21:00")),
    Jump(LORD_HOWE, utc("2026-10-03T15:30")), Jump(LORD_HOWE, utc("2026-04-04T15:00")),
    Jump(TROLL, utc("2026-03-29T01:00")), Jump(TROLL, utc("2026-10-25T01:00")),
    Jump(CASEY, utc("2016-10-21T16:00")), Jump(CASEY, utc("2018-03-10T17:00")),
    Jump(APIA, utc("2011-12-30T10:00")), Jump(KWAJALEIN, utc("1993-08-21T12:00")),
    Jump(KWAJALEIN, utc("1969-09-30T13:00")), Jump(KATHMANDU, utc("1985-12-31T18:30")),
    Jump(SAO_TOME, utc("2019-01-01T01:00")), Jump("America/Toronto", utc("1919-03-31T04:30")),
    Jump("UTC", utc("2026-01-01")), Jump("Asia/Kolkata", utc("2026-06-01")),
]  # fmt: skip
MINUTE = timedelta(minutes=1)
THREE_HOURS = timedelta(hours=3)


def shown_by(zone: ZoneInfo, instant: datetime) -> datetime:
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


class Count:
    """What a line is due at in a window, found by looking at every single minute; nothing shared with the product."""

    def __init__(self, expression: str, jump: Jump, gap: GapPolicy, fold: FoldPolicy) -> None:
        self.cron = CronSim(expression, datetime(2000, 1, 1))  # noqa: DTZ001 - a wall-clock time
        minute, hour = expression.split()[-5:-3]
        self.fixed = not minute.startswith("*") and not hour.startswith("*")
        self.gap, self.fold = gap, fold
        self.zone = ZoneInfo(jump.zone)
        self.at = jump.at
        self.before = shown_by(self.zone, self.at - MINUTE) + MINUTE
        self.shows = shown_by(self.zone, self.at)
        self.ruled = self.fixed and abs(self.shows - self.before) < THREE_HOURS

    def matches(self, wall: datetime) -> bool:
        cron = self.cron
        if wall.minute not in cron.minutes or wall.hour not in cron.hours or wall.second not in cron.seconds:
            return False
        return wall.month in cron.months and cron.match_day(wall.date())

    def wanted(self, instant: datetime, wall: datetime) -> bool:
        comes_twice = self.shows <= wall < self.before
        if not self.ruled or not comes_twice or self.fold is FoldPolicy.BOTH:
            return True
        return (instant < self.at) == (self.fold is FoldPolicy.FIRST)

    def between(self, start: datetime, end: datetime) -> dict[datetime, bool]:
        """Due instants in (start, end], and whether each is skipped."""
        due = {}
        if self.ruled:
            gap = (self.before + n * MINUTE for n in range((self.shows - self.before) // MINUTE))
            if any(self.matches(wall) for wall in gap):
                due[self.at] = self.gap is GapPolicy.SKIP
        instant = start + MINUTE
        while instant <= end:
            wall = shown_by(self.zone, instant)
            if self.matches(wall) and self.wanted(instant, wall):
                due[instant] = False
            instant += MINUTE
        return dict(sorted(due.items()))


def field(low: int, high: int) -> st.SearchStrategy[str]:
    value = st.integers(low, high)
    return st.one_of(
        value.map(str),
        st.just("*"),
        st.lists(value, min_size=2, max_size=4).map(lambda values: ",".join(map(str, values))),
        st.tuples(value, value).map(lambda pair: f"{min(pair)}-{max(pair)}"),
        st.integers(1, high).map(lambda step: f"*/{step}"),
    )


# Most jumps are near midnight or 02:00, so hours there are drawn more often.
hours = st.one_of(field(0, 23), st.sampled_from(["0", "1", "2", "3", "23", "0-3", "1,2", "*/2", "0,23"]))
minutes = st.one_of(field(0, 59), st.sampled_from(["0", "30", "0,30", "15,45", "0-59", "*"]))
days = st.sampled_from(["* *", "* *", "* *", "L *", "1-15 *", "* SUN", "1 MON", "31 *", "LW *"])


@st.composite
def lines(draw: st.DrawFn) -> str:
    day, weekday = draw(days).split()
    return f"{draw(minutes)} {draw(hours)} {day} * {weekday}"


@settings(max_examples=250, deadline=None)
@given(
    jump=st.sampled_from(JUMPS),
    expression=lines(),
    gap=st.sampled_from(GapPolicy),
    fold=st.sampled_from(FoldPolicy),
    starts=st.lists(st.integers(-35 * 60, 35 * 60), max_size=8),
)
@example(JUMPS[1], "0-59 1 * * *", GapPolicy.SKIP, FoldPolicy.BOTH, [-1, 0, 1, 59])
@example(JUMPS[9], "0,30 1,2 * * *", GapPolicy.SKIP, FoldPolicy.SECOND, [-119, -61, 0, 119])
@example(JUMPS[14], "0 1 * * *", GapPolicy.SKIP, FoldPolicy.SECOND, [-1380, -61, 0, 119])
def test_after_is_the_earliest_occurrence_later_than_any_instant(
    jump: Jump, expression: str, gap: GapPolicy, fold: FoldPolicy, starts: list[int]
) -> None:
    start, end = jump.at - timedelta(hours=36), jump.at + timedelta(hours=36)
    expected = Count(expression, jump, gap, fold).between(start, end)
    times = cron(expression, jump.zone, gap, fold)
    walked = between(times, start, end)
    assert {found.at: found.skip_reason is SkipReason.DST_GAP for found in walked} == expected
    assert [found.at for found in walked] == list(expected)
    for minute in [-1, 0, *starts]:
        for instant in (jump.at + minute * MINUTE, jump.at + minute * MINUTE - timedelta(microseconds=1)):
            following = times.after(instant)
            assert following is not None
            assert following.at > instant
            if any(at > instant for at in expected):
                assert following == next(found for found in walked if found.at > instant)
            else:
                assert following.at > end


@settings(max_examples=60, deadline=None)
@given(jump=st.sampled_from(JUMPS), expression=lines(), second=st.sampled_from(["0", "7", "59"]))
def test_a_seconds_field_changes_nothing_but_the_second(jump: Jump, expression: str, second: str) -> None:
    start, end = jump.at - timedelta(hours=30), jump.at + timedelta(hours=30)
    shift = timedelta(seconds=int(second))
    without = [found.at for found in between(cron(expression, jump.zone), start, end)]
    found_with = between(cron(f"{second} {expression}", jump.zone), start + shift, end + shift)
    # A time moved out of a gap loses its second, and may meet one that is due in the first minute after the gap.
    seen = [found.at if found.note is not None and "gap" in found.note else found.at - shift for found in found_with]
    assert list(dict.fromkeys(seen)) == without

"""A schedule's timetable: from its words (a cron line, a duration, a moment, a rule) to its next time.

Never asks what time it is, and never decides what to do about a time that is due (`schedule.py`).
`cron_times.py` reads cron lines, `rrule_lines.py` rules, `wall_clock.py` knows daylight saving; here they meet bounds
and the days that are left out (`business_days.py`).
A further kind of schedule is one more member of `ScheduleKind` and one more case in `_source`.
Invariants: `after(x)` is the earliest occurrence later than x, so that walking along it never stands still, never
goes back and leaves nothing out, wherever the walk begins; every time is a whole millisecond, as it is kept and told;
a timetable never changes.

>>> nightly = timetable(kind=ScheduleKind.CRON, expression="30 2 * * *", time_zone="America/New_York",
...                     anchor=datetime(2026, 1, 1, tzinfo=UTC))
>>> nightly.after(datetime(2026, 3, 8, tzinfo=UTC)).at.isoformat()
'2026-03-08T07:00:00+00:00'
"""

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple, Protocol
from zoneinfo import ZoneInfo

import msgspec

from clickclock.foundation.errors import Fault, Invalid, collect
from clickclock.foundation.zone import zone_named
from clickclock.scheduler.jobs.trigger import SkipReason
from clickclock.scheduler.times.business_days import Days
from clickclock.scheduler.times.cron_fields import hashed
from clickclock.scheduler.times.cron_times import cron_times, interval_meant, long_steps_of, reading_of
from clickclock.scheduler.times.rrule_lines import has_start, recurrence
from clickclock.scheduler.times.wall_clock import (
    TICK,
    FoldPolicy,
    GapPolicy,
    Moment,
    Once,
    WallClock,
    seam_between,
)

__all__ = [
    "FoldPolicy",
    "GapPolicy",
    "Occurrence",
    "ScheduleKind",
    "Timetable",
    "check_steps",
    "hashed",
    "reading",
    "timetable",
]

FIRST_YEAR, LAST_YEAR = 1900, 8999
"""Nothing is due outside these years: time zones are not defined before, and dates run out after."""

INTERVAL_MIN = timedelta(seconds=1)
INTERVAL_MAX = timedelta(days=3660)
"""Ten years: who waits longer means a date."""

TIMETABLES_KEPT = 2048
"""About 1 kB each. The planner needs those that fire often; what fires once a day is quickly made again."""

SKIPS_SEARCHED = 2000
"""Days in a row that may be left out: 38 years of a weekly schedule. After more, a schedule counts as over."""

_EARLIEST = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)
_END_OF_TIME = datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC)
_DURATION = re.compile(
    r"P(?:(?P<weeks>\d{1,9}(?:\.\d{1,6})?)W)?(?:(?P<days>\d{1,9}(?:\.\d{1,6})?)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d{1,9}(?:\.\d{1,6})?)H)?(?:(?P<minutes>\d{1,9}(?:\.\d{1,6})?)M)?"
    r"(?:(?P<seconds>\d{1,9}(?:\.\d{1,6})?)S)?)?",
    re.ASCII,
)
_UNITS_S = {"weeks": 604_800, "days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}
_INTERVAL_FORMS = "use an ISO 8601 duration such as PT15M or P1DT12H, or seconds such as 90."
_EVERY = re.compile(r"@every\s+(?:\d{1,9}(?:\.\d{1,6})?[hms])+", re.ASCII | re.IGNORECASE)
"""How cron of Go writes an interval."""
_SECONDS = re.compile(r"\d{1,9}(?:\.\d{1,6})?", re.ASCII)
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?P<offset>[Zz]|[+-]\d\d:\d\d)?", re.ASCII)


class ScheduleKind(StrEnum):
    """How a schedule's expression is to be read."""

    CRON = "cron"
    INTERVAL = "interval"
    ONCE = "once"
    RRULE = "rrule"


class Occurrence(msgspec.Struct, frozen=True):
    """One nominal time: `at` in UTC, `local` in the schedule's zone (both aware).

    `note` is a sentence where daylight saving moved, dropped or chose it. With a `skip_reason` (`DST_GAP`,
    `EXCLUDED`) the job is not to run then, and the reason is worth a row.
    """

    at: datetime
    local: datetime
    note: str | None = None
    skip_reason: SkipReason | None = None


class Source(Protocol):
    """Where due times come from, before bounds and excluded dates."""

    def after(self, instant: datetime) -> Moment | None:
        """The first one strictly after `instant` (aware), or None."""
        ...


class Every(msgspec.Struct, frozen=True):
    """`first`, and every `period` of elapsed time after it, each at the beginning of its millisecond."""

    first: datetime
    period: timedelta

    def after(self, instant: datetime) -> Moment | None:
        count = max(0, (instant - self.first) // self.period + 1)
        at = _whole_ms(self.first + count * self.period)
        # Its millisecond may have begun before `instant`, and the rest of it is no time of its own.
        return Moment(at if at > instant else _whole_ms(self.first + (count + 1) * self.period))


class At(msgspec.Struct, frozen=True):
    """One instant."""

    instant: datetime

    def after(self, instant: datetime) -> Moment | None:
        return Moment(self.instant) if instant < self.instant else None


class Timetable(msgspec.Struct, frozen=True):
    """All times of one schedule, from `start_at` to `end_at` (both inclusive). Made by `timetable`."""

    source: Source
    zone: ZoneInfo
    start_at: datetime | None = None
    end_at: datetime | None = None
    exclude_dates: frozenset[date] = frozenset()
    days: Days | None = None

    def after(self, instant: datetime) -> Occurrence | None:
        """The first occurrence strictly after `instant` (aware), skipped ones included; None when there are no more."""
        if self.start_at is not None and instant < self.start_at:
            instant = self.start_at - TICK
        if instant >= _END_OF_TIME:
            return None
        moment = self.source.after(max(instant.astimezone(UTC), _EARLIEST))
        if moment is None or moment.at >= _END_OF_TIME or (self.end_at is not None and moment.at > self.end_at):
            return None
        local = moment.at.astimezone(self.zone)
        if self.exclude_dates and local.date() in self.exclude_dates:
            return Occurrence(moment.at, local, moment.note, SkipReason.EXCLUDED)
        if self.days is not None and (day := self._day_of(moment.at)) not in self.days:
            return Occurrence(moment.at, local, self.days.refusal(day), SkipReason.EXCLUDED)
        return Occurrence(moment.at, local, moment.note, SkipReason.DST_GAP if moment.skipped else None)

    def fires_after(self, instant: datetime) -> Occurrence | None:
        """The first occurrence strictly after `instant` (aware) that is not skipped; None when there are no more.

        More than `SKIPS_SEARCHED` days left out in a row count as no more.
        """
        for _ in range(SKIPS_SEARCHED):
            found = self.after(instant)
            if found is None or found.skip_reason is None:
                return found
            instant = found.at
            if found.skip_reason is SkipReason.EXCLUDED:
                last = self._last_left_out(found)
                if last is None:
                    return None
                instant = max(instant, last)
        return None

    def _day_of(self, instant: datetime) -> date:
        """The day on which the calendar has `instant`."""
        return instant.astimezone((self.days and self.days.zone) or self.zone).date()

    def _last_left_out(self, occurrence: Occurrence) -> datetime | None:
        """The last instant before the next day that counts, as far as one look tells; None if there is no such day.

        Excluded days are left in one step: a schedule of every second has 86,400 times on each.
        """
        if self.exclude_dates and occurrence.local.date() in self.exclude_dates:
            return _last_before(self.zone, occurrence.local.date() + timedelta(days=1), occurrence.at)
        assert self.days is not None
        day = self.days.next_after(self._day_of(occurrence.at))
        return None if day is None else _last_before(self.days.zone or self.zone, day, occurrence.at)


def _last_before(zone: ZoneInfo, day: date, since: datetime) -> datetime:
    """The last instant before `day` begins, or before the clock jumps over its midnight; `since` is before that."""
    midnight = datetime.combine(day, time())
    first, second = (midnight.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    # Where midnight does not exist, its two readings lie on both sides of the jump; where it comes twice, the first.
    begin = first if first <= second else seam_between(zone, second, first).at
    return max(begin - TICK, since)


class _Words(NamedTuple):
    """All that a timetable is made from; equal words, one timetable."""

    kind: ScheduleKind
    expression: str
    time_zone: str
    start_at: datetime | None
    end_at: datetime | None
    exclude_dates: frozenset[date]
    days: Days | None
    gap_policy: GapPolicy
    fold_policy: FoldPolicy
    anchor: datetime


def timetable(  # noqa: PLR0913 - one keyword for each field of a schedule that says when
    *,
    kind: ScheduleKind,
    expression: str,
    time_zone: str = "UTC",
    start_at: datetime | None = None,
    end_at: datetime | None = None,
    exclude_dates: Iterable[date] = (),
    days: Days | None = None,
    gap_policy: GapPolicy = GapPolicy.FIRE_AFTER_GAP,
    fold_policy: FoldPolicy = FoldPolicy.FIRST,
    anchor: datetime,
) -> Timetable:
    """The timetable of a schedule; the same one again for the same words.

    `expression` is, by kind: a cron line; an ISO 8601 duration of weeks, days, hours, minutes and seconds, or plain
    seconds; an RFC 3339 instant, where one without an offset is a local time in `time_zone`, subject to both policies.
    An interval counts from `start_at`, which is its first time, or else from `anchor` (aware: when the schedule was
    made), and then its first time is one interval later. The lines of an RFC 5545 rule start at their own DTSTART, or
    else at `start_at`, or else at the midnight before `anchor`. `exclude_dates` are local dates in `time_zone`, and
    `days` what a calendar leaves.
    Raises `Invalid` with every fault at once, by the field names of the API.
    """
    # Only what has no start of its own looks at its anchor; all other schedules can share one timetable.
    is_anchored = start_at is None and (
        kind is ScheduleKind.INTERVAL
        or (kind is ScheduleKind.CRON and _every(expression) is not None)
        or (kind is ScheduleKind.RRULE and not has_start(expression))
    )
    return _timetable(
        _Words(
            kind,
            expression,
            time_zone,
            start_at and _whole_ms(start_at.astimezone(UTC)),
            end_at and _whole_ms(end_at.astimezone(UTC)),
            frozenset(exclude_dates),
            days,
            gap_policy,
            fold_policy,
            _within_time(anchor.astimezone(UTC)) if is_anchored else _EARLIEST,
        )
    )


@lru_cache(maxsize=TIMETABLES_KEPT)
def _timetable(words: _Words) -> Timetable:
    faults: list[Fault] = []
    zone = collect(faults, lambda: zone_named(words.time_zone))
    # UTC stands in for an unknown zone, so that a bad expression is reported all the same.
    source = collect(faults, lambda: _source(words, zone or ZoneInfo("UTC")))
    if words.start_at is not None and words.end_at is not None and words.end_at < words.start_at:
        faults.append(Fault("endAt", "endAt is before startAt; give a later endAt, or none."))
    if faults or zone is None or source is None:
        raise Invalid(faults=faults)
    return Timetable(source, zone, words.start_at, words.end_at, words.exclude_dates, words.days)


def _source(words: _Words, zone: ZoneInfo) -> Source:
    match words.kind:
        case ScheduleKind.CRON if (every := _every(words.expression)) is not None:
            period = _period(every)
            return Every(words.start_at or words.anchor + period, period)
        case ScheduleKind.CRON:
            return WallClock(cron_times(hashed(words.expression, "")), zone, words.gap_policy, words.fold_policy)
        case ScheduleKind.INTERVAL:
            period = _period(words.expression)
            return Every(words.start_at or words.anchor + period, period)
        case ScheduleKind.ONCE:
            moment = _moment(words.expression)
            if moment.tzinfo is None:
                return WallClock(Once(moment), zone, words.gap_policy, words.fold_policy)
            return At(moment.astimezone(UTC))
        case ScheduleKind.RRULE:
            start = words.start_at and _whole_second(_within_time(words.start_at).astimezone(zone))
            midnight = datetime.combine(words.anchor.astimezone(zone), time())
            times = recurrence(words.expression, zone, start, midnight)
            return WallClock(times, zone, words.gap_policy, words.fold_policy)


def check_steps(kind: ScheduleKind, expression: str) -> None:
    """Refuse what can be read, and cannot be meant. Raises `Invalid`.

    It is asked of what somebody writes now, and not of schedules that an earlier release took.
    """
    if kind is ScheduleKind.CRON and _every(expression) is None and (faults := long_steps_of(hashed(expression, ""))):
        raise Invalid(faults=faults)


def reading(kind: ScheduleKind, expression: str) -> list[str]:
    """What an expression means where not every program reads it alike, a sentence each. Raises `Invalid`.

    >>> reading(ScheduleKind.CRON, "0 0 L-2 * *")
    ['L-2: 2 days before the last day of the month.']
    """
    if kind is not ScheduleKind.CRON:
        return []
    every = _every(expression)
    if every is None:
        return reading_of(expression)
    return [f"{expression.strip()}: an interval of {every}, counted from startAt, else from when the schedule is made."]


def _every(expression: str) -> str | None:
    """The interval of an `@every`, as an ISO 8601 duration."""
    text = expression.strip()
    return f"PT{text.split()[1].upper()}" if _EVERY.fullmatch(text) else None


def _within_time(instant: datetime) -> datetime:
    """What can be reckoned with: a day before the first instant, or after the last, is no date."""
    return max(_EARLIEST, min(instant, _END_OF_TIME))


def _whole_ms(moment: datetime) -> datetime:
    """The beginning of its millisecond: a time is kept, and told, by that."""
    rest = moment.microsecond % 1000
    return moment - timedelta(microseconds=rest) if rest else moment


def _whole_second(moment: datetime) -> datetime:
    """What the wall shows at the first whole second that is not before it."""
    up = timedelta(microseconds=-moment.microsecond % 1_000_000)
    return (moment + up).replace(tzinfo=None, fold=0)


def _refusal(field: str, message: str) -> Invalid:
    return Invalid(faults=[Fault(field, message)])


def _period(expression: str) -> timedelta:
    """The length of an interval: `PT15M`, `P1DT12H`, `P2W`, or seconds such as `90`."""
    text = expression.strip().upper()
    if _SECONDS.fullmatch(text):
        length_s = float(text)
    elif re.match(r"P[0-9.WD]*[YM]", text):
        raise _refusal(
            "expression",
            f'"{expression[:64]}" has years or months, whose length varies; '
            "use weeks, days, hours, minutes and seconds, or a cron line.",
        )
    elif (match := _DURATION.fullmatch(text)) and any(match.groups()):
        length_s = sum(float(number) * _UNITS_S[unit] for unit, number in match.groupdict(default="0").items())
    else:
        raise _refusal(
            "expression",
            f'"{expression[:64]}" is not an interval; '
            + (f"write {meant}." if (meant := interval_meant(expression)) else _INTERVAL_FORMS),
        )
    if length_s < INTERVAL_MIN.total_seconds():
        raise _refusal("expression", "The interval is shorter than 1 second; use at least 1 second.")
    if length_s > INTERVAL_MAX.total_seconds():
        raise _refusal("expression", f"The interval is too long; use at most {INTERVAL_MAX.days} days.")
    return timedelta(seconds=length_s)


def _moment(expression: str) -> datetime:
    """The time of a single run: aware if it has an offset, naive if it is a local time."""
    text = expression.strip()
    try:
        moment = datetime.fromisoformat(text.upper()) if _INSTANT.fullmatch(text) else None
    except ValueError:
        moment = None
    if moment is None:
        raise _refusal(
            "expression",
            f'"{expression[:64]}" is not a time; '
            "use RFC 3339 such as 2026-11-20T10:00:00Z, or 2026-11-20T10:00:00 for a local time in timeZone.",
        )
    if not FIRST_YEAR < moment.year < LAST_YEAR:
        raise _refusal(
            "expression", f"The year {moment.year} is out of range; use {FIRST_YEAR + 1} to {LAST_YEAR - 1}."
        )
    return _whole_ms(moment)

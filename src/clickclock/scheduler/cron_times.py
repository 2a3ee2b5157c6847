"""A cron line as a set of wall-clock times, and the walk from one to the next.

Never knows a zone or daylight saving (`wall_clock.py` does): every time here is what a clock on the wall shows.
`cronsim` reads the fields, with Debian cron's rules; the walk is ours, over bit sets, because it is several times
faster and works on one line's few integers instead of its sets.
Invariants: `after` is strictly later than what it was given; a `CronTimes` always has a next time.

>>> cron_times("30 2 * * MON-FRI").after(datetime(2026, 11, 20, 2, 30))
datetime.datetime(2026, 11, 23, 2, 30)
"""

import re
from calendar import monthrange
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache

from cronsim.cronsim import CronSim, CronSimError, Field

from clickclock.foundation.errors import Fault, Invalid

LINE_LENGTH_MAX = 256
"""Characters in a cron line: longer ones are mistakes, and reading them would cost."""

SEARCH_YEARS = 50
"""How far a match may be: the rarest date, a 29 February on a given weekday, is never more than 40 years away."""

NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_FIELDS = (
    ("second", "0-59"),
    ("minute", "0-59"),
    ("hour", "0-23"),
    ("day of month", "1-31, L (the last day), LW (the last weekday) or 15W (the weekday nearest the 15th)"),
    ("month", "1-12 or JAN-DEC"),
    ("day of week", "0-7 or SUN-SAT (0 and 7 are Sunday), 5L (the last Friday) or 5#2 (the second Friday)"),
)
NEAREST = -1002
"""Marks a `15W`, next to `cronsim`'s own marks for `L` and `LW`."""

Value = int | tuple[int, int]
_SECOND = timedelta(seconds=1)
_BEFORE_EVERY_KIND_OF_YEAR = datetime.combine(date(1999, 12, 31), time.max)
"""All fourteen kinds come within 28 years of it, so a line without a match from here on never has one."""
_EVERY_SEVENTH = sum(1 << day for day in range(0, 31, 7))
_EVERY_DAY = sum(1 << day for day in range(1, 32))
_EVERY_WEEKDAY = frozenset(range(7))


def _numbers(values: Iterable[Value]) -> int:
    """The plain numbers among `values` as bits, without `cronsim`'s marks, which are below zero or pairs."""
    return sum(1 << value for value in values if isinstance(value, int) and value >= 0)


def _lowest(bits: int, start: int) -> int:
    """The lowest bit of `bits` at or above `start`; -1 if there is none."""
    rest = bits >> start
    return start + (rest & -rest).bit_length() - 1 if rest else -1


def _nearest_weekday(day: int, first_weekday: int, length: int) -> int:
    """The Monday to Friday nearest to `day`, without leaving the month."""
    match (first_weekday + day - 1) % 7:  # 5 is Saturday, 6 is Sunday
        case 5:
            return day - 1 if day > 1 else day + 2
        case 6:
            return day + 1 if day < length else day - 2
    return day


@dataclass(frozen=True, slots=True)
class Days:
    """Which days of a month match. Weekdays count from Monday = 0; bit n of `numbers` is day n."""

    numbers: int
    nearest: frozenset[int]
    last: bool
    last_weekday: bool
    weekdays: frozenset[int]
    nth_weekdays: frozenset[tuple[int, int]]
    last_of_weekdays: frozenset[int]
    both: bool
    """Whether day of month and day of week must both match (one begins with `*`) or either will do."""

    def of(self, year: int, month: int) -> int:
        """The matching days of that month as bits: bit n is day n."""
        first_weekday, length = monthrange(year, month)
        whole_month = (1 << length + 1) - 2
        by_number = self.numbers & whole_month
        if self.last:
            by_number |= 1 << length
        if self.last_weekday:
            by_number |= 1 << _nearest_weekday(length, first_weekday, length)
        for day in self.nearest:
            if day <= length:
                by_number |= 1 << _nearest_weekday(day, first_weekday, length)
        by_weekday = self._by_weekday(first_weekday, length) & whole_month
        return by_number & by_weekday if self.both else by_number | by_weekday

    def _by_weekday(self, first_weekday: int, length: int) -> int:
        if self.weekdays == _EVERY_WEEKDAY:
            return _EVERY_DAY
        bits = 0
        for weekday in self.weekdays:
            bits |= _EVERY_SEVENTH << 1 + (weekday - first_weekday) % 7
        for weekday, nth in self.nth_weekdays:
            bits |= 1 << 1 + (weekday - first_weekday) % 7 + 7 * (nth - 1)
        for weekday in self.last_of_weekdays:
            fifth = 29 + (weekday - first_weekday) % 7
            bits |= 1 << (fifth if fifth <= length else fifth - 7)
        return bits


@dataclass(frozen=True, slots=True)
class CronTimes:
    """The wall-clock times of one cron line. Bit n of a field is its value n."""

    seconds: int
    minutes: int
    hours: int
    months: int
    days: Days
    fixed: bool
    """Whether it names times of day: neither its minute nor its hour field begins with `*`."""

    def after(self, wall: datetime) -> datetime | None:
        """The first match strictly after `wall` (naive); None if there is none in `SEARCH_YEARS` years."""
        start = wall.replace(microsecond=0) + _SECOND
        year, month, day = start.year, start.month, start.day
        days = self._days(year, month)
        if days >> day & 1 and (clock := self._time_from(start.hour, start.minute, start.second)):
            return start.replace(year, month, day, *clock)
        day += 1
        while (found := _lowest(days, day)) < 0:
            year, month, day = year + month // 12, month % 12 + 1, 1
            if year > start.year + SEARCH_YEARS:
                return None
            days = self._days(year, month)
        first_hour, first_minute, first_second = (_lowest(bits, 0) for bits in (self.hours, self.minutes, self.seconds))
        return start.replace(year, month, found, first_hour, first_minute, first_second)

    def _days(self, year: int, month: int) -> int:
        return self.days.of(year, month) if self.months >> month & 1 else 0

    def _time_from(self, hour: int, minute: int, second: int) -> tuple[int, int, int] | None:
        """The first matching time of day at or after the given one, on that day."""
        if self.hours >> hour & 1:
            if self.minutes >> minute & 1 and (found := _lowest(self.seconds, second)) >= 0:
                return hour, minute, found
            if (found := _lowest(self.minutes, minute + 1)) >= 0:
                return hour, found, _lowest(self.seconds, 0)
        if (found := _lowest(self.hours, hour + 1)) >= 0:
            return found, _lowest(self.minutes, 0), _lowest(self.seconds, 0)
        return None


@lru_cache(maxsize=2048)
def cron_times(line: str) -> CronTimes:
    """Read a cron line: five fields, six with seconds first, or a nickname such as `@daily`.

    Raises `Invalid` with one fault for each field that cannot be read, or one if no date ever matches.
    """
    texts = _split(line)
    values: list[frozenset[Value]] = []
    faults = []
    for field, text in zip(Field, texts, strict=True):
        try:
            values.append(_values(field, text))
        except CronSimError:
            name, allowed = _FIELDS[field]
            faults.append(
                Fault(
                    "expression",
                    f'The {name} field "{text}" cannot be read; use {allowed}, '
                    "with commas for lists, ranges that run upwards, and / for steps.",
                )
            )
    if faults:
        raise Invalid(faults=faults)
    times = _assemble(texts, values)
    if times.after(_BEFORE_EVERY_KIND_OF_YEAR) is None:
        raise _refusal(f'No date matches "{line}"; change its day of month, month or day of week.')
    return times


def _refusal(message: str) -> Invalid:
    return Invalid(faults=[Fault("expression", message)])


def _split(line: str) -> list[str]:
    """The six fields of a line, with seconds put in where it has none."""
    if len(line) > LINE_LENGTH_MAX:
        raise _refusal(f"The cron line has {len(line)} characters; use at most {LINE_LENGTH_MAX}.")
    text = line.strip()
    if text.startswith("@"):
        if text.lower() not in NICKNAMES:
            raise _refusal(f'There is no nickname "{text}"; use {", ".join(NICKNAMES)}, or a cron line.')
        text = NICKNAMES[text.lower()]
    fields = text.upper().split()
    if len(fields) == len(_FIELDS) - 1:
        return ["0", *fields]
    if len(fields) != len(_FIELDS):
        raise _refusal(
            "A cron line has 5 fields (minute, hour, day of month, month, day of week), "
            f"or 6 with the second first; this one has {len(fields)}."
        )
    return fields


@lru_cache(maxsize=2048)
def _values(field: Field, text: str) -> frozenset[Value]:
    """What one field names. `cronsim` reads all of it but the `15W` terms, which it does not know."""
    terms = text.split(",")
    nearest = {term for term in terms if field is Field.DAY and re.fullmatch(r"[0-9]{1,2}W", term)}
    values: set[Value] = {(field.int(term[:-1]), NEAREST) for term in nearest}
    return frozenset(values.union(*(_term(field, term) for term in terms if term not in nearest)))


def _term(field: Field, text: str) -> set[Value]:
    """What one term names. From a range of one value, such as `10-10/7`, `cronsim` would step on to the end."""
    values: set[Value] = field.parse(text)
    bounds, slash, _ = text.partition("/")
    return values & field.parse(bounds) if slash and "-" in bounds else values


def _assemble(texts: list[str], values: list[frozenset[Value]]) -> CronTimes:
    """Put what the fields name into bits."""
    return CronTimes(
        seconds=_numbers(values[Field.SECOND]),
        minutes=_numbers(values[Field.MINUTE]),
        hours=_numbers(values[Field.HOUR]),
        months=_numbers(values[Field.MONTH]),
        days=_days(texts[Field.DAY], texts[Field.DOW]),
        fixed=not texts[Field.MINUTE].startswith("*") and not texts[Field.HOUR].startswith("*"),
    )


@lru_cache(maxsize=2048)
def _days(day_text: str, weekday_text: str) -> Days:
    """The days that two fields name together; most lines of an installation share a few of these."""
    days, weekdays = _values(Field.DAY, day_text), _values(Field.DOW, weekday_text)
    nth = {value for value in weekdays if isinstance(value, tuple)}
    return Days(
        numbers=_numbers(days),
        nearest=frozenset(day[0] for day in days if isinstance(day, tuple)),
        last=CronSim.LAST in days,
        last_weekday=CronSim.LAST_WEEKDAY in days,
        weekdays=frozenset((weekday - 1) % 7 for weekday in weekdays if isinstance(weekday, int)),
        nth_weekdays=frozenset(((weekday - 1) % 7, n) for weekday, n in nth if n != CronSim.LAST),
        last_of_weekdays=frozenset((weekday - 1) % 7 for weekday, n in nth if n == CronSim.LAST),
        both=day_text.startswith("*") or weekday_text.startswith("*"),
    )

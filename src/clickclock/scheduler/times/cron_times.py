"""A cron line as a set of wall-clock times, and the walk from one to the next.

Never knows a zone or daylight saving (`wall_clock.py` does): every time here is what a clock on the wall shows.
`cron_fields.py` reads the fields, with Debian cron's rules; the walk is over bit sets, because it is several times
faster than `cronsim`'s and works on one line's few integers instead of its sets.
Invariants: `after` is strictly later than what it was given; a `CronTimes` without years always has a next time.

>>> cron_times("30 2 * * MON-FRI").after(datetime(2026, 11, 20, 2, 30))
datetime.datetime(2026, 11, 23, 2, 30)
"""

import re
from calendar import monthrange
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from functools import lru_cache

import msgspec
from cronsim.cronsim import CronSim, Field

from clickclock.foundation.errors import Fault, Invalid
from clickclock.scheduler.times.cron_fields import (
    BEFORE_LAST,
    NEAREST,
    Unclear,
    Value,
    hashed,
    long_steps,
    meanings,
    refuse_numbered_weekdays,
    values,
    years,
)

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

_UNIT = r"(?:w(?:eeks?)?|d(?:ays?)?|h(?:ours?|rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)"
_INTERVAL = re.compile(rf"(?:@?every\s+)?((?:\d{{1,9}}\s*{_UNIT}[\s,]*)+|(?<=y\s)({_UNIT}))", re.ASCII | re.IGNORECASE)
_LENGTH = re.compile(rf"(\d+)\s*({_UNIT})", re.ASCII | re.IGNORECASE)
_ELSEWHERE = {
    "@every": "an interval with a length behind it, such as @every 1h30m",
    "@reboot": "no time: let the machine's init start it, for example a systemd unit that calls `clickclock trigger`",
}
"""Words of Go's and of Debian's cron that are no line of five fields."""
_FIELDS = 6
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


class Days(msgspec.Struct, frozen=True):
    """Which days of a month match. Weekdays count from Monday = 0; bit n of `numbers` is day n."""

    numbers: int
    nearest: frozenset[int]
    before_last: frozenset[int]
    """How many days before the last."""
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
        for days in self.before_last:
            if days < length:
                by_number |= 1 << length - days
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


class CronTimes(msgspec.Struct, frozen=True):
    """The wall-clock times of one cron line. Bit n of a field is its value n."""

    seconds: int
    minutes: int
    hours: int
    months: int
    days: Days
    fixed: bool
    """Whether it names times of day: neither its minute nor its hour field begins with `*`."""
    years: frozenset[int] | None = None
    """None: every one."""

    def after(self, wall: datetime) -> datetime | None:
        """The first match strictly after `wall` (naive); None if there is none in `SEARCH_YEARS` years."""
        start = wall.replace(microsecond=0) + _SECOND
        if self.years is not None and start.year not in self.years:
            later = [each for each in self.years if each > start.year]
            if not later:
                return None
            start = datetime.combine(date(min(later), 1, 1), time())
        year, month, day = start.year, start.month, start.day
        days = self._days(year, month)
        if days >> day & 1 and (clock := self._time_from(start.hour, start.minute, start.second)):
            return start.replace(year, month, day, *clock)
        day += 1
        while (found := _lowest(days, day)) < 0:
            year, month, day = year + month // 12, month % 12 + 1, 1
            if year > start.year + SEARCH_YEARS or (self.years is not None and year > max(self.years)):
                return None
            days = self._days(year, month)
        first_hour, first_minute, first_second = (_lowest(bits, 0) for bits in (self.hours, self.minutes, self.seconds))
        return start.replace(year, month, found, first_hour, first_minute, first_second)

    def _days(self, year: int, month: int) -> int:
        is_wanted = self.months >> month & 1 and (self.years is None or year in self.years)
        return self.days.of(year, month) if is_wanted else 0

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
    """Read a cron line: five fields, six with seconds first, seven with the year last, or a nickname such as `@daily`.

    Raises `Invalid` with one fault for each field that cannot be read, or one if no date ever matches.
    """
    texts, year_text = _split(line)
    faults = []
    for field, text in zip(Field, texts, strict=True):
        try:
            values(field, text)
        except Unclear as unclear:
            faults.append(Fault("expression", str(unclear)))
    try:
        wanted = years(year_text)
    except Unclear as unclear:
        faults.append(Fault("expression", str(unclear)))
    if faults:
        raise Invalid(faults=faults)
    times = _assemble(texts, wanted)
    begin = _BEFORE_EVERY_KIND_OF_YEAR if wanted is None else datetime.combine(date(min(wanted) - 1, 12, 31), time.max)
    if times.after(begin) is None:
        raise _refusal(f'No date matches "{line}"; change its day of month, month or day of week.')
    return times


def long_steps_of(line: str) -> list[Fault]:
    """A fault for each step of a readable line that is longer than what it divides."""
    texts, _ = _split(line)
    found = (sentence for field, text in zip(Field, texts, strict=True) for sentence in long_steps(field, text))
    return [Fault("expression", sentence) for sentence in found]


def reading_of(line: str) -> list[str]:
    """What a cron line means where not every cron knows it, a sentence each. Raises `Invalid`."""
    plain = hashed(line, "")
    cron_times(plain)
    given, line = line, plain
    texts, year_text = _split(line)
    found = [
        f"{given.strip()}: H and ~ are numbers by a hash of the job's application and name; here it is {line}."
    ] * (line != given)
    found += [sentence for field, text in zip(Field, texts, strict=True) for sentence in meanings(field, text)]
    if line.strip().startswith("@"):
        found.append(f"{line.strip()}: {NICKNAMES[line.strip().lower()]}.")
    if len(line.split()) == _FIELDS + 1:
        found.append(f"{year_text}: the year, behind the second, which comes first.")
    if "?" in line:
        found.append("?: any day; the other day field decides.")
    day, weekday = texts[Field.DAY], texts[Field.DOW]
    if "*" not in {day, weekday}:
        both = day.startswith("*") or weekday.startswith("*")
        found.append(
            f"Day of month {day} and day of week {weekday}: {'both must match' if both else 'either will do'}."
        )
    return found


def interval_meant(text: str) -> str | None:
    """The ISO 8601 duration that other forms of an interval mean; None for what is no such form.

    >>> interval_meant("5m"), interval_meant("every 2 hours"), interval_meant("@every 1h30m"), interval_meant("*/5")
    ('PT5M', 'PT2H', 'PT1H30M', None)
    """
    found = _INTERVAL.fullmatch(text.strip())
    if found is None:
        return None
    lengths = {unit[0].lower(): number for number, unit in _LENGTH.findall(f"1 {found[1]}" if found[2] else found[1])}
    days = "".join(f"{lengths[unit]}{unit.upper()}" for unit in "wd" if unit in lengths)
    rest = "".join(f"{lengths[unit]}{unit.upper()}" for unit in "hms" if unit in lengths)
    return f"P{days}T{rest}" if rest else f"P{days}"


def _refusal(message: str) -> Invalid:
    return Invalid(faults=[Fault("expression", message)])


def _split(line: str) -> tuple[list[str], str]:
    """The six fields of a line, with seconds put in where it has none, and that of the year."""
    if len(line) > LINE_LENGTH_MAX:
        raise _refusal(f"The cron line has {len(line)} characters; use at most {LINE_LENGTH_MAX}.")
    text = line.strip()
    _refuse_elsewhere(text)
    text = NICKNAMES.get(text.lower(), text)
    fields = text.upper().split()
    if len(fields) == _FIELDS - 1:
        fields = ["0", *fields]
    if len(fields) not in {_FIELDS, _FIELDS + 1}:
        raise _refusal(
            "A cron line has 5 fields (minute, hour, day of month, month, day of week), 6 with the second first, "
            f"or 7 with the year last as well; this one has {len(fields)}."
        )
    texts, year_text = fields[:_FIELDS], (fields[_FIELDS:] or ["*"])[0]
    day, weekday = texts[Field.DAY], texts[Field.DOW]
    if day == weekday == "?":
        raise _refusal("Both day fields are ?, so that no day is named; write * for one of them.")
    if "?" in {day, weekday} or len(fields) > _FIELDS:
        try:
            refuse_numbered_weekdays(weekday)
        except Unclear as unclear:
            raise _refusal(str(unclear)) from unclear
    for field in (Field.DAY, Field.DOW):
        texts[field] = "*" if texts[field] == "?" else texts[field]
    return texts, year_text


def _refuse_elsewhere(text: str) -> None:
    """Lines that are another program's as a whole, with what to write instead."""
    word = text.partition(" ")[0].lower()
    if word in _ELSEWHERE:
        raise _refusal(f"{word} is {_ELSEWHERE[word]}.")
    if (meant := interval_meant(text)) and not word.startswith("@every"):
        raise _refusal(f'"{text[:64]}" is an interval, not a cron line; use kind interval with {meant}, or @every.')
    if word.startswith("@") and text.lower() not in NICKNAMES:
        raise _refusal(f'There is no nickname "{text}"; use {", ".join(NICKNAMES)}, or a cron line.')
    if word.startswith(("cron(", "rate(")):
        raise _refusal("cron(…) and rate(…) are EventBridge's: write the fields alone, or kind interval with PT5M.")
    if "tz=" in word:
        raise _refusal(f'"{text.split(maxsplit=1)[0]}" names a zone, as Go\'s cron does; put it into timeZone.')
    if "*-*-*" in word:
        raise _refusal("This is a line of systemd's OnCalendar; write minute, hour, day, month and day of week.")


def _assemble(texts: list[str], wanted: frozenset[int] | None) -> CronTimes:
    """Put what the fields name into bits."""
    return CronTimes(
        seconds=_numbers(values(Field.SECOND, texts[Field.SECOND])),
        minutes=_numbers(values(Field.MINUTE, texts[Field.MINUTE])),
        hours=_numbers(values(Field.HOUR, texts[Field.HOUR])),
        months=_numbers(values(Field.MONTH, texts[Field.MONTH])),
        days=_days(texts[Field.DAY], texts[Field.DOW]),
        fixed=not texts[Field.MINUTE].startswith("*") and not texts[Field.HOUR].startswith("*"),
        years=wanted,
    )


@lru_cache(maxsize=2048)
def _days(day_text: str, weekday_text: str) -> Days:
    """The days that two fields name together; most lines of an installation share a few of these."""
    days, weekdays = values(Field.DAY, day_text), values(Field.DOW, weekday_text)
    marked = [value for value in days if isinstance(value, tuple)]
    nth = {value for value in weekdays if isinstance(value, tuple)}
    return Days(
        numbers=_numbers(days),
        nearest=frozenset(day for day, mark in marked if mark == NEAREST),
        before_last=frozenset(day for day, mark in marked if mark == BEFORE_LAST),
        last=CronSim.LAST in days,
        last_weekday=CronSim.LAST_WEEKDAY in days,
        weekdays=frozenset((weekday - 1) % 7 for weekday in weekdays if isinstance(weekday, int)),
        nth_weekdays=frozenset(((weekday - 1) % 7, n) for weekday, n in nth if n != CronSim.LAST),
        last_of_weekdays=frozenset((weekday - 1) % 7 for weekday, n in nth if n == CronSim.LAST),
        both=day_text.startswith("*") or weekday_text.startswith("*"),
    )

"""A recurrence rule of RFC 5545 as a set of wall-clock times, and the walk from one to the next.

Never reads a rule's text (`rrule_lines.py` does) and never knows a zone or daylight saving (`wall_clock.py` does).
A rule is a row of periods (years, months, …, seconds), every `interval`-th one counted from its start; the period of
any moment is found by arithmetic, so a rule that began ten years ago is as fast as one that begins today.
Invariants: `after` is strictly later than what it was given and looks at a bounded number of periods; a period's
times are computed from their place in it and never listed.

>>> weekdays = Rule(Frequency.MONTHLY, by_day=tuple((0, day) for day in range(5)), by_set_pos=(-1,))
>>> RuleTimes(weekdays, datetime(2026, 1, 1, 17)).after(datetime(2026, 5, 1))
datetime.datetime(2026, 5, 29, 17, 0)
"""

from bisect import bisect_right
from calendar import isleap, monthrange
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from enum import IntEnum
from itertools import islice

import msgspec
from msgspec.structs import replace

_TICK = timedelta(microseconds=1)
_LAST = datetime.combine(date(8999, 12, 31), time(23, 59, 59))
"""Where `calendar.py` ends, too."""
_MIDNIGHT = time()


class Frequency(IntEnum):
    """What a rule's periods are, the longest first."""

    YEARLY = 0
    MONTHLY = 1
    WEEKLY = 2
    DAILY = 3
    HOURLY = 4
    MINUTELY = 5
    SECONDLY = 6


_SECONDS = {Frequency.HOURLY: 3600, Frequency.MINUTELY: 60, Frequency.SECONDLY: 1}
PERIODS_SEARCHED = {Frequency.YEARLY: 400, Frequency.MONTHLY: 4800}
"""The calendar repeats itself after 400 years: what has not come by then never comes."""
STEPS_SEARCHED = 10_000
"""The same for shorter periods, where a step leads over a whole month, day or hour that the rule leaves out: about
27 years of days. A rarer time counts as never."""
STEPS_COUNTED = 200_000
"""How far the end of a COUNT is looked for: 20 steps for each of the 10,000 times that it may have."""


class Rule(msgspec.Struct, frozen=True):
    """What an RRULE says. Weekdays count from Monday = 0; `by_day` has (n, weekday), n = 0 for every one of them.

    What is empty is not said. `until` is a wall-clock time, and is included.
    """

    frequency: Frequency
    interval: int = 1
    count: int | None = None
    until: datetime | None = None
    by_month: tuple[int, ...] = ()
    by_week_no: tuple[int, ...] = ()
    by_year_day: tuple[int, ...] = ()
    by_month_day: tuple[int, ...] = ()
    by_day: tuple[tuple[int, int], ...] = ()
    by_hour: tuple[int, ...] = ()
    by_minute: tuple[int, ...] = ()
    by_second: tuple[int, ...] = ()
    by_set_pos: tuple[int, ...] = ()
    week_start: int = 0

    def completed(self, start: datetime) -> "Rule":
        """With what it leaves open taken from its start, as RFC 5545 says."""
        days: dict[str, tuple[int, ...] | tuple[tuple[int, int], ...]] = {}
        names_days = self.by_year_day or self.by_month_day or self.by_day
        if self.frequency is Frequency.WEEKLY or self.by_week_no:
            if not names_days:
                days["by_day"] = ((0, start.weekday()),)
        elif self.frequency <= Frequency.MONTHLY and not names_days:
            days["by_month_day"] = (start.day,)
            if self.frequency is Frequency.YEARLY and not self.by_month:
                days["by_month"] = (start.month,)
        return replace(
            self,
            by_hour=self.by_hour or ((start.hour,) if self.frequency < Frequency.HOURLY else ()),
            by_minute=self.by_minute or ((start.minute,) if self.frequency < Frequency.MINUTELY else ()),
            by_second=self.by_second or ((start.second,) if self.frequency < Frequency.SECONDLY else ()),
            **days,
        )


class _Times:
    """The times of one period, in their order: a sequence that is never listed."""

    __slots__ = ("_days", "_hours", "_minutes", "_places", "_seconds")

    def __init__(
        self, days: Sequence[date], hours: Sequence[int], minutes: Sequence[int], seconds: Sequence[int],
        set_pos: Sequence[int],
    ) -> None:  # fmt: skip
        self._days, self._hours, self._minutes, self._seconds = days, hours, minutes, seconds
        all_of_them = range(len(days) * len(hours) * len(minutes) * len(seconds))
        self._places: Sequence[int] = all_of_them
        if set_pos:
            wanted = {each - 1 if each > 0 else len(all_of_them) + each for each in set_pos}
            self._places = sorted(each for each in wanted if each in all_of_them)

    def __len__(self) -> int:
        return len(self._places)

    def at(self, place: int) -> datetime:
        """The time at this place among those that the rule wants."""
        rest, second = divmod(self._places[place], len(self._seconds))
        rest, minute = divmod(rest, len(self._minutes))
        day, hour = divmod(rest, len(self._hours))
        return datetime.combine(self._days[day], time(self._hours[hour], self._minutes[minute], self._seconds[second]))

    def up_to(self, wall: datetime) -> int:
        """How many of them are not later than `wall`."""
        return bisect_right(range(len(self)), wall, key=self.at)


class RuleTimes:
    """The times of a rule that starts at `start` (naive, whole seconds), which is one of them only if it matches."""

    __slots__ = ("_first_unit", "_last", "_last_unit", "_months", "_rule", "_seen", "_start", "fixed")

    def __init__(self, rule: Rule, start: datetime) -> None:
        self._rule = rule.completed(start)
        self._start = start
        self._months = frozenset(self._rule.by_month)
        self.fixed = rule.frequency <= Frequency.DAILY or bool(rule.by_hour)
        self._first_unit = self._unit_of(start)
        self._seen: tuple[int, _Times] | None = None
        self._last = min(rule.until or _LAST, _LAST)
        self._last_unit = self._unit_of(self._last)
        if rule.count is not None:
            self._last = self._time_number(rule.count)
            self._last_unit = self._unit_of(self._last)

    def after(self, wall: datetime) -> datetime | None:
        """The first time strictly after `wall`, or None."""
        wall = max(wall, self._start - _TICK)
        for times in self._periods(self._unit_of(wall), STEPS_SEARCHED):
            place = times.up_to(wall)
            if place < len(times):
                found = times.at(place)
                return found if found <= self._last else None
        return None

    def _time_number(self, number: int) -> datetime:
        """The time of that number, from 1; if it is further away than is searched, so is the end."""
        before = self._start - _TICK
        for times in self._periods(self._first_unit, STEPS_COUNTED):
            earlier = times.up_to(before)
            if len(times) - earlier >= number:
                return times.at(earlier + number - 1)
            number -= len(times) - earlier
        return _LAST

    def _periods(self, unit: int, steps: int) -> Iterator[_Times]:
        """The times of each period from `unit` on that may have some, as far as the search goes."""
        interval = self._rule.interval
        for _ in range(PERIODS_SEARCHED.get(self._rule.frequency, steps)):
            # Up to the next period that counts.
            unit = self._first_unit + -((self._first_unit - unit) // interval) * interval
            if unit > self._last_unit:
                return
            following = self._leap(unit)
            if following > unit:
                unit = following
                continue
            if self._seen is None or self._seen[0] != unit:
                self._seen = unit, self._times(unit)
            yield self._seen[1]
            unit += 1

    def _unit_of(self, wall: datetime) -> int:
        """The number of the period that `wall` is in, were every one counted from the year 1."""
        match self._rule.frequency:
            case Frequency.YEARLY:
                return wall.year
            case Frequency.MONTHLY:
                return wall.year * 12 + wall.month - 1
            case Frequency.WEEKLY:
                return (wall.toordinal() - 1 - self._rule.week_start) // 7
            case Frequency.DAILY:
                return wall.toordinal()
            case frequency:
                seconds = wall.toordinal() * 86_400 + wall.hour * 3600 + wall.minute * 60 + wall.second
                return seconds // _SECONDS[frequency]

    def _leap(self, unit: int) -> int:
        """The first period, from `unit` on, that no coarser part of the rule leaves out, as far as one look tells."""
        rule = self._rule
        if rule.frequency < Frequency.DAILY:
            return unit
        if rule.frequency is Frequency.DAILY:
            day = date.fromordinal(unit)
            return unit if self._has_month(day) else self._unit_of(self._next_month(day))
        days, second = divmod(unit * _SECONDS[rule.frequency], 86_400)
        day = date.fromordinal(days)
        if not self._has_month(day):
            return self._unit_of(self._next_month(day))
        here = datetime.combine(day, _MIDNIGHT) + timedelta(seconds=second)
        if not self._wants(day):
            return self._unit_of(datetime.combine(day, _MIDNIGHT) + timedelta(days=1))
        if rule.by_hour and here.hour not in rule.by_hour:
            return self._unit_of(here.replace(minute=0, second=0) + timedelta(hours=1))
        if rule.frequency >= Frequency.MINUTELY and rule.by_minute and here.minute not in rule.by_minute:
            return self._unit_of(here.replace(second=0) + timedelta(minutes=1))
        if rule.frequency is Frequency.SECONDLY and rule.by_second and here.second not in rule.by_second:
            return unit + 1 if here.second < rule.by_second[-1] else unit + 60 - here.second
        return unit

    def _has_month(self, day: date) -> bool:
        return not self._months or day.month in self._months

    def _next_month(self, day: date) -> datetime:
        """The beginning of the next month that the rule names."""
        ahead = min((month - day.month - 1) % 12 + 1 for month in self._months)
        years, month = divmod(day.month - 1 + ahead, 12)
        return datetime.combine(date(day.year + years, month + 1, 1), _MIDNIGHT)

    def _times(self, unit: int) -> _Times:
        rule = self._rule
        if rule.frequency <= Frequency.DAILY:
            days = [day for day in self._days(unit) if self._wants(day)]
            return _Times(days, rule.by_hour, rule.by_minute, rule.by_second, rule.by_set_pos)
        # `_leap` has seen to it that day, hour, … of this period are wanted.
        days_before, second = divmod(unit * _SECONDS[rule.frequency], 86_400)
        minutes = rule.by_minute if rule.frequency < Frequency.MINUTELY else (second // 60 % 60,)
        seconds = rule.by_second if rule.frequency < Frequency.SECONDLY else (second % 60,)
        return _Times([date.fromordinal(days_before)], (second // 3600,), minutes, seconds, rule.by_set_pos)

    def _days(self, unit: int) -> Iterator[date]:
        """The days of a period of a day or more; whole months that the rule leaves out are left out."""
        match self._rule.frequency:
            case Frequency.YEARLY:
                for month in sorted(self._months) or range(1, 13):
                    yield from _days_of(unit, month)
            case Frequency.MONTHLY:
                year, month = divmod(unit, 12)
                if not self._months or month + 1 in self._months:
                    yield from _days_of(year, month + 1)
            case Frequency.WEEKLY:
                first = unit * 7 + 1 + self._rule.week_start
                yield from filter(self._has_month, map(date.fromordinal, range(first, first + 7)))
            case _:
                yield date.fromordinal(unit)

    def _wants(self, day: date) -> bool:
        """Whether every part of the rule that names days names this one; months are seen to before."""
        rule = self._rule
        if rule.by_month_day:
            length = monthrange(day.year, day.month)[1]
            if day.day not in rule.by_month_day and day.day - length - 1 not in rule.by_month_day:
                return False
        if rule.by_day and not any(self._is_nth(day, n) for n, weekday in rule.by_day if weekday == day.weekday()):
            return False
        if rule.by_year_day:
            number, length = day.timetuple().tm_yday, 366 if isleap(day.year) else 365
            if number not in rule.by_year_day and number - length - 1 not in rule.by_year_day:
                return False
        if rule.by_week_no:
            number, weeks = _week(day, rule.week_start)
            return number in rule.by_week_no or number - weeks - 1 in rule.by_week_no
        return True

    def _is_nth(self, day: date, n: int) -> bool:
        """Whether it is the n-th of its weekday: in the month, or in the year where the rule is about years."""
        if n == 0:
            return True
        if self._rule.frequency is Frequency.YEARLY and not self._months:
            number, length = day.timetuple().tm_yday, 366 if isleap(day.year) else 365
        else:
            number, length = day.day, monthrange(day.year, day.month)[1]
        return (number - 1) // 7 + 1 == n if n > 0 else -((length - number) // 7 + 1) == n


def _days_of(year: int, month: int) -> Iterator[date]:
    return (date(year, month, day) for day in range(1, monthrange(year, month)[1] + 1))


def _week(day: date, week_start: int) -> tuple[int, int]:
    """The number of its week, and how many weeks that week's year has: week 1 is the first with four days in it."""
    # The year of a week is that of its fourth day.
    fourth = date.fromordinal(day.toordinal() - (day.weekday() - week_start) % 7 + 3)
    number = (fourth.timetuple().tm_yday - 1) // 7 + 1
    last_day = fourth.replace(month=12, day=31).timetuple().tm_yday
    return number, number + (last_day - fourth.timetuple().tm_yday) // 7


class Recurrence(msgspec.Struct, frozen=True):
    """The times of a rule without those in `left_out`, and with those in `added` (in their order)."""

    rule: RuleTimes | None
    added: tuple[datetime, ...] = ()
    left_out: frozenset[datetime] = frozenset()

    @property
    def fixed(self) -> bool:
        return self.rule is None or self.rule.fixed

    def after(self, wall: datetime) -> datetime | None:
        """The first time strictly after `wall`, or None."""
        by_rule = None if self.rule is None else self.rule.after(wall)
        while self.rule is not None and by_rule is not None and by_rule in self.left_out:
            by_rule = self.rule.after(by_rule)
        later = islice(self.added, bisect_right(self.added, wall), None)
        by_date = next((each for each in later if each not in self.left_out), None)
        return min((each for each in (by_rule, by_date) if each is not None), default=None)

"""Named calendars: which days are business days, for any number of schedules.

Never asks what day it is, and never computes a due time (`calendar.py` does). Invariants: a day is a business day or
it is not, whatever the time; a calendar has at least one business day.

>>> shop = Calendar(calendar_name="shop", exclude_dates=[date(2026, 12, 25)])
>>> date(2026, 12, 24) in shop.days(CalendarRule.BUSINESS_DAYS), date(2026, 12, 25) in shop.days("businessDays")
(True, False)
"""

from calendar import monthrange
from collections.abc import Iterable
from datetime import date, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

import msgspec
from pydantic import Field

from clickclock.foundation.errors import Fault, Invalid
from clickclock.foundation.record import Instant, Record
from clickclock.foundation.zone import zone_named
from clickclock.scheduler.jobs.job import Name, Text

DATES_MAX = 5000
"""Twenty years of every holiday and bridging day; they are read whenever a schedule is planned anew."""
_DAY = timedelta(days=1)


class Weekday(StrEnum):
    """A day of the week."""

    MONDAY = "monday"
    TUESDAY = "tuesday"
    WEDNESDAY = "wednesday"
    THURSDAY = "thursday"
    FRIDAY = "friday"
    SATURDAY = "saturday"
    SUNDAY = "sunday"


class CalendarRule(StrEnum):
    """On which days of its calendar a schedule runs."""

    BUSINESS_DAYS = "businessDays"
    OTHER_DAYS = "otherDays"
    FIRST_BUSINESS_DAY = "firstBusinessDay"
    LAST_BUSINESS_DAY = "lastBusinessDay"


class Days(msgspec.Struct, frozen=True):
    """The days on which a schedule may run, as one calendar and one rule say; `zone` is where they begin and end."""

    calendar_name: str
    rule: CalendarRule
    weekdays: frozenset[int]
    excluded: frozenset[date]
    included: frozenset[date]
    zone: ZoneInfo | None

    def __contains__(self, day: date) -> bool:
        if self.rule is CalendarRule.OTHER_DAYS:
            return not self._is_business_day(day)
        others: Iterable[int] = ()
        if self.rule is CalendarRule.FIRST_BUSINESS_DAY:
            others = range(1, day.day)
        elif self.rule is CalendarRule.LAST_BUSINESS_DAY:
            others = range(monthrange(day.year, day.month)[1], day.day, -1)
        return self._is_business_day(day) and not any(self._is_business_day(day.replace(day=each)) for each in others)

    def _is_business_day(self, day: date) -> bool:
        return day in self.included or (day.weekday() in self.weekdays and day not in self.excluded)

    def next_after(self, day: date) -> date | None:
        """The first of them after `day`; None if none is left."""
        named = sorted(each for each in self.excluded | self.included if each > day)
        if len(self.weekdays) == (len(Weekday) if self.rule is CalendarRule.OTHER_DAYS else 0):
            # No weekday is one of them: only dates that are named can be, and the next may be centuries away.
            return next((each for each in named if each in self), None)
        while True:
            day += _DAY
            if day in self:
                return day

    def refusal(self, day: date) -> str:
        """Why nothing runs on `day`, which is none of them."""
        return f"{day} is {_REFUSALS[self.rule]} of the calendar {self.calendar_name}."


_REFUSALS = {
    CalendarRule.BUSINESS_DAYS: "not a business day",
    CalendarRule.OTHER_DAYS: "a business day",
    CalendarRule.FIRST_BUSINESS_DAY: "not the month's first business day",
    CalendarRule.LAST_BUSINESS_DAY: "not the month's last business day",
}


class Calendar(Record):
    """Which days are business days."""

    calendar_name: Name = Field(description="Unique name.", examples=["germany"])
    description: Text | None = Field(None, description="What the calendar is for.")
    time_zone: str | None = Field(
        None,
        max_length=64,
        description="IANA time zone in which its days begin and end; that of each schedule if not given.",
        examples=["Europe/Berlin"],
    )
    business_days: list[Weekday] = Field(
        default_factory=lambda: list(Weekday),
        max_length=7,
        description="Weekdays that are business days; all seven if not given.",
        examples=[["monday", "tuesday", "wednesday", "thursday", "friday"]],
    )
    exclude_dates: list[date] = Field(
        default_factory=list,
        max_length=DATES_MAX,
        description="Dates that are no business days, such as holidays.",
        examples=[["2026-12-25", "2026-12-26"]],
    )
    include_dates: list[date] = Field(
        default_factory=list,
        max_length=DATES_MAX,
        description="Dates that are business days whatever else is said, such as a Saturday before Christmas.",
        examples=[["2026-12-19"]],
    )

    managed_by: Name | None = Field(
        None, description="The set of files that it is applied from; set by `PUT declaration`.", examples=["shop-repo"]
    )

    def days(self, rule: CalendarRule) -> Days:
        """The days on which a schedule with that rule may run."""
        weekdays = frozenset(number for number, each in enumerate(Weekday) if each in self.business_days)
        return Days(
            self.calendar_name,
            CalendarRule(rule),
            weekdays,
            frozenset(self.exclude_dates),
            frozenset(self.include_dates),
            ZoneInfo(self.time_zone) if self.time_zone else None,
        )

    def check(self) -> None:
        """Raise `Invalid` for an unknown zone, no business day at all, or two things said of one date."""
        faults: list[Fault] = []
        if self.time_zone is not None:
            try:
                zone_named(self.time_zone)
            except Invalid as invalid:
                faults += invalid.faults
        if not self.business_days and not self.include_dates:
            sentence = "The calendar excludes every day, so nothing would ever run; name a weekday, or includeDates."
            faults.append(Fault("businessDays", sentence))
        twice = sorted(set(self.exclude_dates) & set(self.include_dates))
        if twice:
            sentence = f"{twice[0]} is in excludeDates and in includeDates; leave it in one of them."
            faults.append(Fault("includeDates", sentence))
        if faults:
            raise Invalid(faults=faults)


class StoredCalendar(Calendar):
    """A calendar as the service keeps it."""

    schedules: int = Field(0, description="Schedules that use it.", examples=[3])
    version: int = Field(description="Grows with every change; the ETag.", examples=[1])
    created_at: Instant = Field(description="When it was created.")
    updated_at: Instant = Field(description="When it last changed.")

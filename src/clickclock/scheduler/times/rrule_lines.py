"""The lines of an RFC 5545 recurrence, read: RRULE, and if wanted DTSTART, RDATE and EXDATE.

Never computes a time of the rule (`rrule_times.py` does) and never applies daylight saving (`wall_clock.py` does).
Invariants: what RFC 5545 forbids is refused, never guessed at, and all faults are reported together; every time is
one on the wall in the schedule's zone: what is given in UTC is shown there first.

>>> rule = recurrence("FREQ=WEEKLY;BYDAY=MO,FR", ZoneInfo("Europe/Berlin"), datetime(2026, 11, 20, 9))
>>> rule.after(datetime(2026, 11, 20, 9))
datetime.datetime(2026, 11, 23, 9, 0)
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, time
from difflib import get_close_matches
from typing import Any
from zoneinfo import ZoneInfo

from clickclock.foundation.errors import Fault, Invalid
from clickclock.scheduler.times.rrule_times import Frequency, Recurrence, Rule, RuleTimes

COUNT_MAX = 10_000
"""They are counted from the start whenever a schedule is read (about 30 ms for so many)."""
INTERVAL_MAX = 1_000_000
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")

_NUMBERS = {
    "BYMONTH": ("by_month", 1, 12),
    "BYWEEKNO": ("by_week_no", -53, 53),
    "BYYEARDAY": ("by_year_day", -366, 366),
    "BYMONTHDAY": ("by_month_day", -31, 31),
    "BYHOUR": ("by_hour", 0, 23),
    "BYMINUTE": ("by_minute", 0, 59),
    "BYSECOND": ("by_second", 0, 59),
    "BYSETPOS": ("by_set_pos", -366, 366),
}
"""Lists of numbers, with their bounds. A leap second is never shown, so 60 is none of them."""
_PARTS = ("FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", *_NUMBERS)
_LINES = ("RRULE", "DTSTART", "RDATE", "EXDATE")
_INTEGER = re.compile(r"[+-]?\d{1,7}", re.ASCII)
_DAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
_TIME = re.compile(r"(\d{8})(?:T(\d{6})(Z?))?", re.ASCII)


class _Reading:
    """One text being read, with the faults found so far."""

    def __init__(self, zone: ZoneInfo) -> None:
        self._zone = zone
        self.faults: list[str] = []

    def lines(self, text: str) -> dict[str, list[tuple[str, str]]]:
        """The lines by name, each with its parameters and its value; a rule may stand alone, without its name."""
        found: dict[str, list[tuple[str, str]]] = {}
        # A line that begins with a blank goes on with the one before.
        for line in filter(None, (each.strip() for each in re.sub(r"\r?\n[ \t]", "", text).splitlines())):
            named, colon, value = line.partition(":")
            name, _, parameters = named.partition(";") if colon else ("RRULE", "", "")
            value = value if colon else line
            if name.upper() == "EXRULE":
                self.faults.append("EXRULE is no longer part of RFC 5545; leave single times out with EXDATE.")
            elif name.upper() not in _LINES:
                self.faults.append(
                    f"{name[:32]!r} is not a line of a recurrence{_nearest(name, _LINES)}; use {', '.join(_LINES)}."
                )
            else:
                found.setdefault(name.upper(), []).append((parameters, value.strip()))
        for name in ("RRULE", "DTSTART"):
            if len(found.get(name, ())) > 1:
                self.faults.append(f"There is more than one {name}; give one, and a schedule for each further rule.")
        return found

    def times(self, name: str, values: Iterable[tuple[str, str]]) -> list[tuple[datetime, bool]]:
        """The times on such lines; with each, whether it is a whole day."""
        read: list[tuple[datetime, bool]] = []
        for parameters, value in values:
            for parameter in filter(None, parameters.upper().split(";")):
                if parameter.startswith("TZID="):
                    if parameter != f"TZID={self._zone.key}".upper():
                        self.faults.append(
                            f"{name} has {parameter[:64]}, and the schedule's timeZone is {self._zone.key}; "
                            "give that zone as timeZone, and leave TZID out."
                        )
                elif parameter not in {"VALUE=DATE", "VALUE=DATE-TIME"}:
                    self.faults.append(f"{name} has {parameter[:64]}, which is not understood; leave it out.")
            read += [found for each in value.split(",") if (found := self.time(name, each)) is not None]
        return read

    def time(self, name: str, text: str) -> tuple[datetime, bool] | None:
        """A time on the wall, and whether it is a whole day."""
        match = _TIME.fullmatch(text.strip().upper())
        try:
            moment = match and datetime.strptime(f"{match[1]}{match[2] or '000000'}", "%Y%m%d%H%M%S")  # noqa: DTZ007 (a time on the wall)
            if match and moment:
                if match[3]:
                    moment = moment.replace(tzinfo=UTC).astimezone(self._zone).replace(tzinfo=None, fold=0)
                return moment, match[2] is None
        except (ValueError, OverflowError):
            pass
        self.faults.append(
            f"{name} is {text[:32]!r}, which is not a time; use 20261120T090000 for one in timeZone, "
            "20261120T080000Z for one in UTC, or 20261120 for a day."
        )
        return None

    def rule(self, text: str) -> Rule | None:
        """The rule, if nothing is wrong with it."""
        before = len(self.faults)
        parts: dict[str, str] = {}
        for part in filter(None, text.upper().split(";")):
            name, _, value = part.partition("=")
            if name not in _PARTS:
                self.faults.append(f"{name[:32]!r} is not a part of a rule{_nearest(name, _PARTS)}.")
            elif name in parts:
                self.faults.append(f"{name} is given twice; give it once.")
            elif not value:
                self.faults.append(f"{name} has no value; give one, or leave it out.")
            parts[name] = value
        frequency = Frequency.__members__.get(parts.get("FREQ", ""))
        if frequency is None:
            self.faults.append(f"A rule begins with FREQ; give FREQ={', '.join(Frequency.__members__)}.")
        # YEARLY, which goes with most of the parts, stands in for what cannot be read.
        fields: dict[str, Any] = {"frequency": frequency or Frequency.YEARLY}
        for name, most in (("INTERVAL", INTERVAL_MAX), ("COUNT", COUNT_MAX)):
            if name in parts:
                fields[name.lower()] = self._integer(name, parts[name], 1, most)
        if "UNTIL" in parts and (until := self.time("UNTIL", parts["UNTIL"])):
            # A day is meant to its end.
            fields["until"] = datetime.combine(until[0], time(23, 59, 59)) if until[1] else until[0]
        if parts.get("WKST", "MO") in WEEKDAYS:
            fields["week_start"] = WEEKDAYS.index(parts.get("WKST", "MO"))
        else:
            self.faults.append(f"WKST is {parts['WKST'][:32]!r}; give one of {', '.join(WEEKDAYS)}.")
        for name, (field, least, most) in _NUMBERS.items():
            if name in parts:
                numbers = {self._integer(name, each, least, most) for each in parts[name].split(",")}
                fields[field] = tuple(sorted(numbers))
        if "BYDAY" in parts:
            fields["by_day"] = self._days(parts["BYDAY"])
        self._refuse_what_does_not_go_together(parts, fields)
        return Rule(**fields) if len(self.faults) == before else None

    def _integer(self, name: str, text: str, least: int, most: int) -> int:
        number = int(text) if _INTEGER.fullmatch(text.strip()) else None
        if number is None or not least <= number <= most or (least < 0 and number == 0):
            without = " without 0" if least < 0 else ""
            self.faults.append(f"{name} is {text[:32]!r}; use whole numbers from {least:,} to {most:,}{without}.")
            return most
        return number

    def _days(self, text: str) -> tuple[tuple[int, int], ...]:
        days = set()
        for each in text.split(","):
            match = _DAY.fullmatch(each.strip())
            if match is None or (match[1] is not None and not 1 <= abs(int(match[1])) <= 53):  # noqa: PLR2004 (weeks of a year)
                self.faults.append(f"BYDAY has {each[:32]!r}; use MO to SU, or 2TU for the second, -1FR for the last.")
            else:
                days.add((int(match[1] or 0), WEEKDAYS.index(match[2])))
        return tuple(sorted(days))

    def _refuse_what_does_not_go_together(self, parts: dict[str, str], fields: dict[str, Any]) -> None:
        """What RFC 5545 says must not be."""
        frequency: Frequency = fields["frequency"]
        wrong = {
            "COUNT and UNTIL both end the rule; give one of them.": "COUNT" in parts and "UNTIL" in parts,
            "BYWEEKNO is for FREQ=YEARLY alone; use BYMONTH or BYDAY.": "BYWEEKNO" in parts
            and frequency is not Frequency.YEARLY,
            "BYYEARDAY does not go with FREQ=DAILY, WEEKLY or MONTHLY; use BYMONTH and BYMONTHDAY.": "BYYEARDAY"
            in parts
            and frequency in {Frequency.DAILY, Frequency.WEEKLY, Frequency.MONTHLY},
            "BYMONTHDAY does not go with FREQ=WEEKLY; use FREQ=MONTHLY, or BYDAY.": "BYMONTHDAY" in parts
            and frequency is Frequency.WEEKLY,
            "A number before a weekday, such as 2TU, is for FREQ=MONTHLY and YEARLY, and not beside BYWEEKNO; leave it "
            "out, or use BYSETPOS.": any(n for n, _ in fields.get("by_day", ()))
            and (frequency > Frequency.MONTHLY or "BYWEEKNO" in parts),
            "BYSETPOS chooses among the times of another part; give BYDAY or another BY… part, too.": "BYSETPOS"
            in parts
            and not any(name.startswith("BY") and name != "BYSETPOS" for name in parts),
        }
        self.faults += [sentence for sentence, is_wrong in wrong.items() if is_wrong]


def has_start(expression: str) -> bool:
    """Whether the lines say themselves where the rule starts."""
    return "DTSTART" in expression.upper()


def recurrence(
    expression: str, zone: ZoneInfo, start: datetime | None, otherwise: datetime | None = None
) -> Recurrence:
    """The times that the lines mean. Raises `Invalid` with every fault.

    The rule starts at its own DTSTART, or else at `start`, or else at `otherwise`: a start that nobody named, from
    which no COUNT can be counted. All are naive; the latter two are times on the wall in `zone`, to the second.
    """
    reading = _Reading(zone)
    lines = reading.lines(expression)
    named = reading.times("DTSTART", lines.get("DTSTART", ())[:1])
    rules = [reading.rule(text) for _, text in lines.get("RRULE", ())[:1]]
    added = reading.times("RDATE", lines.get("RDATE", ()))
    left_out = reading.times("EXDATE", lines.get("EXDATE", ()))
    if not rules and not added:
        reading.faults.append("There is no rule; give one such as FREQ=MONTHLY;BYDAY=1MO;BYHOUR=9;BYMINUTE=0.")
    first = named[0][0] if named else start
    if any("COUNT=" in text.upper() for _, text in lines.get("RRULE", ())) and first is None:
        reading.faults.append("COUNT counts from the rule's start; give startAt, or a DTSTART line before the rule.")
    first = first or otherwise
    if reading.faults or first is None:
        raise Invalid(faults=[Fault("expression", sentence) for sentence in reading.faults])
    times = [RuleTimes(rule, first) for rule in rules if rule is not None]
    return Recurrence(
        times[0] if times else None,
        # A day without a time has that of the start.
        tuple(sorted({datetime.combine(at, first.time()) if whole else at for at, whole in added})),
        frozenset(datetime.combine(at, first.time()) if whole else at for at, whole in left_out),
    )


def _nearest(name: str, names: Iterable[str]) -> str:
    nearest = get_close_matches(name.upper()[:32], list(names), n=1)
    return f"; did you mean {nearest[0]}?" if nearest else ""

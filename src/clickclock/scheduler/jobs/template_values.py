"""The values of templates: what a run is asked for, computed.

Never reads a clock. Invariants: days, weeks, months and years are counted on the calendar of a zone, hours and less are
elapsed time; a time that no filter `date` has written is RFC 3339 in UTC; what has no value is an error that says why.

>>> due = datetime.fromisoformat("2026-03-30T00:30+02:00")
>>> run = Values("t", 1, due, {}, Cadence(zone_named("Europe/Berlin")))
>>> evaluate("nominalTime | add(days=-1) | date('%Y-%m-%d %H:%M')", run)
'2026-03-29 00:30'
"""

import re
from calendar import monthrange
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from zoneinfo import ZoneInfo

import msgspec

from clickclock.foundation.errors import Fault, Invalid
from clickclock.foundation.record import rfc3339
from clickclock.foundation.zone import zone_named
from clickclock.scheduler.jobs.template import (
    DEFAULT_FORM,
    DIRECTIVE,
    EARLIEST,
    LATEST,
    NEIGHBOURS,
    PARAMETER,
    TIMES,
    Expression,
    Shift,
    read,
    shown,
)


class Cadence(msgspec.Struct, frozen=True):
    """The schedule of a run, as far as templates may ask about it. `zone` is None where no one zone is known.

    `around` gives the schedule's times before and after an instant; None where the run has no one schedule. `lack` says
    why something is missing.
    """

    zone: ZoneInfo | None
    around: Callable[[datetime], tuple[datetime | None, datetime | None]] | None = None
    lack: str = "the job has no schedule"


NO_SCHEDULE = Cadence(ZoneInfo("UTC"))
"""The zone of a run by hand, or after an upstream job, where the job has no schedule of its own."""


@dataclass(frozen=True)
class Values:
    """What the templates of one attempt may ask about. `nominal_time` is aware."""

    trigger_id: str
    attempt: int
    nominal_time: datetime
    parameters: Mapping[str, str] = field(default_factory=dict)
    cadence: Cadence = NO_SCHEDULE

    @cached_property
    def plain(self) -> dict[str, str]:
        """The values of names that need no computing."""
        return {
            "nominalTime": rfc3339(self.nominal_time),
            "triggerId": self.trigger_id,
            "attempt": str(self.attempt),
            **{PARAMETER + name: text for name, text in self.parameters.items()},
        }


def evaluate(text: str, values: Values) -> str:
    """The value of a template without faults. Raises `Invalid` where the run has none, and says why."""
    expression = read(text)
    if expression.name == "zone":
        return _zone_of(None, values, text).key
    if expression.name not in TIMES:
        return values.plain[expression.name]
    instant = _named(expression, values, text)
    for shift in expression.shifts:
        instant = _shifted(instant, shift, values, text)
    if expression.form is None:
        return rfc3339(instant)
    return _written(instant.astimezone(_zone_of(expression.form.zone, values, text)), expression.form.format)


def _named(expression: Expression, values: Values, text: str) -> datetime:
    if expression.name == "nominalTime":
        return values.nominal_time.astimezone(UTC)
    found: datetime | None = None
    why = values.cadence.lack
    if values.cadence.around is not None:
        found = values.cadence.around(values.nominal_time)[NEIGHBOURS.index(expression.name)]
        place = "before" if expression.name == NEIGHBOURS[0] else "after"
        why = f"its schedule has no time {place} {rfc3339(values.nominal_time)}"
    if found is None and expression.default is None:
        raise _missing(text, f"{why}; give one by | {DEFAULT_FORM}")
    return (found or expression.default or values.nominal_time).astimezone(UTC)


def _zone_of(name: str | None, values: Values, text: str) -> ZoneInfo:
    if name is not None:
        return zone_named(name)
    if values.cadence.zone is None:
        raise _missing(text, f"{values.cadence.lack}; name the zone, such as 'Europe/Berlin'")
    return values.cadence.zone


def _shifted(instant: datetime, shift: Shift, values: Values, text: str) -> datetime:
    """Years and months first, to the month's last day where it is shorter; then days; then elapsed time."""
    amounts = dict(shift.amounts)
    try:
        if months := amounts.get("years", 0) * 12 + amounts.get("months", 0):
            instant = _on_calendar(instant, _zone_of(shift.zone, values, text), months=months)
        if days := amounts.get("weeks", 0) * 7 + amounts.get("days", 0):
            instant = _on_calendar(instant, _zone_of(shift.zone, values, text), days=days)
        instant += timedelta(**{unit: amounts.get(unit, 0) for unit in ("hours", "minutes", "seconds")})
    except (OverflowError, ValueError):
        instant = LATEST
    if not EARLIEST < instant < LATEST:
        raise _missing(text, "the time that it asks for is not in the years 1 to 9999")
    return instant


def _on_calendar(instant: datetime, zone: ZoneInfo, *, months: int = 0, days: int = 0) -> datetime:
    """The same time on the wall of another day; where a clock jumps over it, as much later as the jump is long."""
    wall = instant.astimezone(zone).replace(tzinfo=None, fold=0)
    if months:
        year, month = divmod(wall.year * 12 + wall.month - 1 + months, 12)
        wall = wall.replace(year=year, month=month + 1, day=min(wall.day, monthrange(year, month + 1)[1]))
    return (wall + timedelta(days=days)).replace(tzinfo=zone).astimezone(UTC)


def _written(local: datetime, format_: str) -> str:
    def part(found: re.Match[str]) -> str:
        match found[1]:
            case "Y":
                return f"{local.year:04}"
            case "F":
                return f"{local.year:04}-{local.month:02}-{local.day:02}"
            case "T":
                return f"{local:%H:%M:%S}"
            case "s":
                return str((local - datetime.fromtimestamp(0, UTC)) // timedelta(seconds=1))
            case "%":
                return "%"
            case directive:
                return local.strftime(f"%{directive}")

    return DIRECTIVE.sub(part, format_)


def _missing(text: str, why: str) -> Invalid:
    return Invalid(
        "The command uses a time that this run does not have.",
        [Fault("command", f"The template {{{{ {shown(text)} }}}} has no value: {why}.")],
    )


def parameters_in(texts: Collection[str]) -> frozenset[str]:
    """The parameters that templates name."""
    return frozenset(text.removeprefix(PARAMETER) for text in texts if text.startswith(PARAMETER))


def refuse_missing(names: Collection[str]) -> None:
    """Raise `Invalid` if a run lacks parameters of these names."""
    if names:
        raise Invalid(
            "The command uses parameters that the trigger does not have; trigger the job again.",
            [Fault(PARAMETER + name, f"Give a value for {name}.") for name in sorted(names)],
        )

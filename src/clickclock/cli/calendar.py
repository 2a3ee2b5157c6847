"""`clickclock calendar`: calendars of business days, one by one.

Never computes a day. Invariant: a change leaves what it does not name, and fails if someone else was faster.

>>> "create" in calendar.commands
True
"""

from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.asking import asks, may_ask
from clickclock.cli.calling import calls
from clickclock.cli.completing import complete_calendar, complete_zone
from clickclock.cli.fields import body, field, names, needs_fields, page
from clickclock.cli.lazy import Commands
from clickclock.cli.rendering import record, says
from clickclock.cli.tables import table

if TYPE_CHECKING:
    from clickclock.client import Client, Payload

NAME = click.argument("calendar_name", metavar="CALENDAR", shell_complete=complete_calendar)
OPTIONS = (
    field("--description", help="What the calendar is for."),
    field(
        "--time-zone",
        shell_complete=complete_zone,
        help="IANA time zone of its days; that of each schedule if not given.",
    ),
    field("--business-day", "business_days", multiple=True, help="A weekday such as monday; may be repeated."),
    field(
        "--exclude-date",
        "exclude_dates",
        multiple=True,
        help="A date that is no business day, whatever its weekday; may be repeated.",
    ),
    field(
        "--include-date",
        "include_dates",
        multiple=True,
        help="A date that is a business day, whatever its weekday; may be repeated.",
    ),
)


@click.group(cls=Commands)
def calendar() -> None:
    """Calendars: which days are business days."""


@calendar.command("list")
@page
@calls(
    table(
        "calendars",
        ("calendar", "calendarName"),
        ("time zone", "timeZone"),
        ("schedules", "schedules"),
        ("description", "description"),
    )
)
def list_calendars(client: "Client", **filters: Any) -> "Payload":
    """List calendars."""
    return client.list_calendars(**names(filters))


@calendar.command()
@NAME
@calls(record("calendars.0"))
def show(client: "Client", calendar_name: str) -> "Payload":
    """Show one calendar."""
    return client.calendar(calendar_name)


@calendar.command()
@NAME
@body(*OPTIONS)
@calls(says("Calendar {calendar_name} is created."))
def create(client: "Client", calendar_name: str, fields: dict[str, Any]) -> "Payload":
    """Create a calendar."""
    return client.create_calendar({**fields, "calendarName": calendar_name})


@calendar.command()
@NAME
@body(*OPTIONS)
@calls(says("Calendar {calendar_name} is changed (version {calendar[version]})."))
@needs_fields
def update(client: "Client", calendar_name: str, fields: dict[str, Any]) -> "Payload":
    """Change some fields of a calendar; its schedules follow from their next time on."""
    return client.change_calendar(calendar_name, fields)


@calendar.command()
@NAME
@may_ask
@calls(says("Calendar {calendar_name} is deleted."))
@asks("Delete calendar {calendar_name}?")
def delete(client: "Client", calendar_name: str) -> "Payload":
    """Delete a calendar that no schedule uses."""
    return client.delete_calendar(calendar_name)

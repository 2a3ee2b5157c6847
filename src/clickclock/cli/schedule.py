"""`clickclock schedule`: schedules, one by one, and what an expression would do.

Never computes a time. Invariant: a change leaves what it does not name, and fails if someone else was faster.

>>> "preview" in schedule.commands
True
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.asking import asks, may_ask
from clickclock.cli.calling import calls, service
from clickclock.cli.completing import complete_calendar, complete_schedule, complete_zone, one_of
from clickclock.cli.fields import Instant, Pair, body, field, flag, job_arguments, names, needs_fields, of_jobs, page
from clickclock.cli.lazy import Commands
from clickclock.cli.rendering import duration, plain, record, says, when
from clickclock.cli.tables import table

if TYPE_CHECKING:
    from clickclock.client import Client, Payload

KIND = field(
    "--kind",
    shell_complete=one_of("cron", "interval", "once", "rrule"),
    help="How the expression is read: cron, interval, once or rrule.",
)
TIME_ZONE = field(
    "--time-zone", shell_complete=complete_zone, help="IANA time zone, such as Europe/Berlin; UTC if not given."
)
DST_POLICIES = (
    field(
        "--dst-gap-policy",
        shell_complete=one_of("fireAfterGap", "skip"),
        help="For a fixed time that the clock jumps over: fireAfterGap or skip.",
    ),
    field(
        "--dst-fold-policy",
        shell_complete=one_of("first", "second", "both"),
        help="For a fixed time that the clock shows twice: first, second or both.",
    ),
)
CALENDAR = (
    field("--calendar", "calendar_name", shell_complete=complete_calendar, help="The calendar to follow."),
    field(
        "--calendar-rule",
        shell_complete=one_of("businessDays", "otherDays", "firstBusinessDay", "lastBusinessDay"),
        help="One of businessDays (if not given), otherDays, firstBusinessDay and lastBusinessDay of a month.",
    ),
)
OPTIONS = (
    field("--expression", help="A cron line, a duration such as PT15M, a time such as +2h, or an RFC 5545 rule."),
    KIND,
    TIME_ZONE,
    field("--name", "schedule_name", help="Its name, unique within the job."),
    field("--description", help="What the schedule is for."),
    field("--start-at", type=Instant(), help="Ignore times before this."),
    field("--end-at", type=Instant(), help="Ignore times after this."),
    field("--exclude-date", "exclude_dates", multiple=True, help="A local date to leave out; may be repeated."),
    *CALENDAR,
    field("--pause-after-failures", type=int, help="Pause it after so many failures in a row."),
    field("--jitter-seconds", type=float, help="Spread the start over this many seconds."),
    *DST_POLICIES,
    field(
        "--overlap-policy",
        shell_complete=one_of("skip", "queue", "replace", "allow"),
        help="While the last trigger is unfinished: skip, queue, replace or allow.",
    ),
    field("--param", "parameters", type=Pair(), help="A value for a parameter; may be repeated."),
    flag("paused", help="While paused, due times are skipped."),
    field("--pause-reason", help="Why it is paused."),
)
TIMES = table(
    "times",
    ("time", "time", when),
    ("in its zone", "localTime"),
    ("note", "note"),
    ("skipped", "skipReason"),
    empty="Never again.",
)


def _previewed(payload: "Payload") -> None:
    """The times, below what the expression means where not every program reads it alike."""
    for sentence in payload["reading"]:
        click.echo(plain(sentence))
    TIMES(payload)


TOLD = table(
    "times",
    ("time", "nominalTime", when),
    ("state", "state"),
    ("skipped for", "skipReason"),
    ("times", "skippedCount"),
    ("lag", "lagMs", duration),
    ("took", "durationMs", duration),
    ("trigger", "triggerId"),
    ("message", "message"),
    empty="No time was decided yet.",
)
FORESEEN = table(
    "times",
    ("time", "time", when),
    ("application", "application"),
    ("job", "jobName"),
    ("schedule", "scheduleName"),
    empty="Nothing will be due.",
)


def _foreseen(payload: "Payload") -> None:
    """The times of all lanes in one list, and what is left out of it."""
    foreseen = payload["forecast"]
    times = [
        {**lane, "time": datetime.fromtimestamp(ms / 1000, UTC).isoformat()}
        for lane in foreseen["lanes"]
        for ms in lane["timesMs"]
    ]
    FORESEEN({"times": sorted(times, key=lambda each: each["time"])})
    for lane in foreseen["lanes"]:
        if lane["skipReason"]:
            click.echo(plain(f"{lane['application']}/{lane['jobName']} is skipped: {lane['skipReason']}."), err=True)
    if foreseen["truncated"]:
        click.echo(f"There is more: add --from {foreseen['to']}", err=True)


@click.group(cls=Commands)
def schedule() -> None:
    """Schedules: when to run a job."""


@schedule.command("list")
@of_jobs()
@click.option("--name", "schedule_name", help="Only those with this name.")
@page
@calls(
    table(
        "schedules",
        ("id", "scheduleId"),
        ("application", "application"),
        ("job", "jobName"),
        ("name", "scheduleName"),
        ("expression", "expression"),
        ("time zone", "timeZone"),
        ("next", "nextFireAt", when),
        ("paused", "paused"),
    )
)
def list_schedules(client: "Client", **filters: Any) -> "Payload":
    """List schedules: all, an application's, or a job's."""
    return client.list_schedules(**names(filters))


@schedule.command()
@click.argument("schedule_id", shell_complete=complete_schedule)
@calls(record("schedules.0"))
def show(client: "Client", schedule_id: str) -> "Payload":
    """Show one schedule."""
    return client.schedule(schedule_id)


def _timed(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields, with the relative time of a schedule that is due once as an instant.

    A time of day is of the schedule's zone if that is given, else of this machine. An exact time is left as it is.
    """
    text = fields.get("expression")
    if not isinstance(text, str) or fields.get("kind", "once") not in {None, "once"}:
        return fields
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415 (only a time needs it)

    from clickclock.cli.moment import Ambiguous, is_exact, read_moment  # noqa: PLC0415 (as above)
    from clickclock.foundation.clock import SystemClock  # noqa: PLC0415 (as above)

    if is_exact(text):
        return fields
    try:
        zone = ZoneInfo(fields["timeZone"]) if fields.get("timeZone") else None
        moment = read_moment(text, SystemClock().now(), zone)
    except Ambiguous:
        if fields.get("kind") == "once":
            raise click.BadParameter(
                f"{text!r} may be past or to come; write +{text}", param_hint="'expression'"
            ) from None
        return fields
    except (ValueError, OverflowError, ZoneInfoNotFoundError):
        return fields
    instant = moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return fields | {"kind": "once", "expression": instant}


@schedule.command()
@job_arguments()
@body(field("--id", "schedule_id", help="Its id; chosen by the service if not given."), *OPTIONS)
@calls(says("Schedule {schedule[scheduleId]} is created."))
def create(client: "Client", application: str, job_name: str, fields: dict[str, Any]) -> "Payload":
    """Create a schedule for a job."""
    return client.create_schedule({**_timed(fields), "application": application, "jobName": job_name})


@schedule.command()
@click.argument("schedule_id", shell_complete=complete_schedule)
@body(*OPTIONS)
@calls(says("Schedule {schedule_id} is changed (version {schedule[version]})."))
@needs_fields
def update(client: "Client", schedule_id: str, fields: dict[str, Any]) -> "Payload":
    """Change some fields of a schedule."""
    return client.update_schedule(schedule_id, _timed(fields))


@schedule.command()
@click.argument("schedule_id", shell_complete=complete_schedule)
@click.pass_obj
def edit(url: str, schedule_id: str) -> None:
    """Edit a schedule as YAML in VISUAL or EDITOR.

    Faults are written into the file, and the file is opened again. Nobody else's change is overwritten.
    """
    from clickclock.cli.editing import Editable  # noqa: PLC0415 (loaded when it is used)
    from clickclock.cli.editing import edit as edited  # noqa: PLC0415 (as above)
    from clickclock.cli.naming import whole_id  # noqa: PLC0415 (as above)

    with service(url) as client:
        whole = whole_id(client, schedule_id, "schedule_id")

        def read() -> "Payload":
            found: Payload = client.schedule(whole)["schedules"][0]
            return found

        def write(_before: "Payload", changes: "Payload", version: int) -> "Payload":
            return client.update_schedule(whole, changes, version)

        answer = edited(Editable(f"schedule {whole}", read, write))
    if answer is not None:
        click.echo(f"Schedule {whole} is changed (version {answer['schedule']['version']}).")


@schedule.command()
@click.argument("schedule_id", shell_complete=complete_schedule)
@may_ask
@calls(says("Schedule {schedule_id} is deleted."))
@asks("Delete schedule {schedule_id}?")
def delete(client: "Client", schedule_id: str) -> "Payload":
    """Delete a schedule."""
    return client.delete_schedule(schedule_id)


@schedule.command()
@click.argument("schedule_id", shell_complete=complete_schedule)
@click.option("--reason", help="Why.")
@calls(says("Schedule {schedule_id} is paused."))
def pause(client: "Client", schedule_id: str, reason: str | None) -> "Payload":
    """Pause a schedule: its times are skipped until it is resumed."""
    return client.update_schedule(schedule_id, {"paused": True, "pauseReason": reason})


@schedule.command()
@click.argument("schedule_id", shell_complete=complete_schedule)
@calls(says("Schedule {schedule_id} is resumed."))
def resume(client: "Client", schedule_id: str) -> "Payload":
    """Resume a schedule; what it missed is not made up."""
    return client.update_schedule(schedule_id, {"paused": False, "pauseReason": None})


@schedule.command()
@click.argument("expression")
@KIND
@TIME_ZONE
@DST_POLICIES[0]
@DST_POLICIES[1]
@CALENDAR[0]
@CALENDAR[1]
@click.option("--start-at", type=Instant(), help="Ignore times before this; a rule or an interval begins here.")
@click.option("--from", "from_", type=Instant(), help="Show times after this; now if not given.")
@click.option("--count", type=int, help="How many times to show.")
@calls(_previewed)
def preview(client: "Client", **query: Any) -> "Payload":
    """Show when an expression would be due."""
    return client.preview_schedule(**_timed(names(query)))


@schedule.command()
@of_jobs(group=True)
@click.option("--schedule-id", shell_complete=complete_schedule, help="Only this schedule.")
@click.option("--from", "from_", type=Instant(), help="Show times at this or later; now if not given.")
@click.option("--to", type=Instant(), help="Show times before this; a day later if not given.")
@calls(_foreseen)
def forecast(client: "Client", **query: Any) -> "Payload":
    """Show when schedules will be due, all or some, jitter included."""
    return client.forecast(**names(query))


@schedule.command()
@click.argument("schedule_id", shell_complete=complete_schedule)
@click.option("--from", "from_", type=Instant(looks_back=True), help="Only nominal times at this or later.")
@click.option("--to", type=Instant(looks_back=True), help="Only nominal times before this.")
@click.option("--limit", type=click.IntRange(1, 1000), help="At most this many; 48 if not given.")
@calls(lambda payload: TOLD(payload["schedules"][0]))
def times(client: "Client", schedule_id: str, **query: Any) -> "Payload":
    """Show what became of a schedule's times, newest first, and why some were skipped."""
    return client.schedule_times([schedule_id], **names(query))

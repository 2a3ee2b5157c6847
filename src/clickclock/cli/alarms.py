"""`clickclock alarms`: what is wrong, who is on it, and who is left in peace.

Never resolves an alarm: it is over when its job is well again.

>>> sorted(alarms.commands)
['ack', 'list', 'silence', 'silences', 'unsilence']
"""

import getpass
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.calling import calls
from clickclock.cli.completing import complete_alarm, complete_application, complete_group, complete_job, one_of
from clickclock.cli.fields import names, of_jobs, page
from clickclock.cli.lazy import Commands
from clickclock.cli.rendering import says, when
from clickclock.cli.tables import table

if TYPE_CHECKING:
    from clickclock.client import Client, Payload

ALARMS = table(
    "alarms",
    ("id", "alarmId"),
    ("kind", "kind"),
    ("application", "application"),
    ("job", "jobName"),
    ("since", "openedAt", when),
    ("times", "count"),
    ("over", "resolvedAt", when),
    ("taken on by", "acknowledgedBy"),
    ("message", "message"),
)


def _scope(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option("--group", "group_name", shell_complete=complete_group, help="The jobs of this group.")(
        command
    )
    command = click.option("--job", "job_name", shell_complete=complete_job, help="This job of the application alone.")(
        command
    )
    return click.option("--application", shell_complete=complete_application, help="The jobs of this application.")(
        command
    )


def _by(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--by", help="Who does this; your user name if not given.")(command)


def _me(by: str | None) -> str:
    return by or getpass.getuser()


@click.group(cls=Commands)
def alarms() -> None:
    """Alarms: jobs that failed, did not run, or run too long."""


@alarms.command("list")
@click.option("--all", "everything", is_flag=True, help="Include alarms that are over.")
@of_jobs(group=True)
@click.option(
    "--kind",
    shell_complete=one_of("missed", "longRun", "failure", "skip"),
    help="Only those of this kind: missed, longRun, failure or skip.",
)
@page
@calls(ALARMS)
def list_alarms(client: "Client", everything: bool, **filters: Any) -> "Payload":
    """List open alarms, newest first."""
    return client.list_alarms(isOpen=None if everything else True, **names(filters))


@alarms.command()
@click.argument("alarm_id", shell_complete=complete_alarm)
@_by
@click.option("--note", help="What you know about it.")
@calls(says("Alarm {alarm_id} is acknowledged by {alarm[acknowledgedBy]}."))
def ack(client: "Client", alarm_id: str, by: str | None, note: str | None) -> "Payload":
    """Acknowledge an alarm."""
    return client.acknowledge_alarm(alarm_id, _me(by), note)


@alarms.command()
@click.argument("minutes", type=click.FloatRange(min=0, min_open=True))
@_scope
@_by
@click.option("--note", help="Why.")
@calls(says("Alarms are silenced until {silence[until]}."))
def silence(client: "Client", minutes: float, by: str | None, **scope: Any) -> "Payload":
    """Silence alarms for this many minutes."""
    return client.silence(minutes * 60, _me(by), **names(scope))


@alarms.command()
@_scope
@calls(says("The silence is ended."))
def unsilence(client: "Client", **scope: Any) -> "Payload":
    """End a silence."""
    return client.end_silence(**names(scope))


@alarms.command()
@click.option("--limit", type=click.IntRange(min=1), help="Show at most this many; all if not given.")
@calls(
    table(
        "silences",
        ("application", "application"),
        ("job", "jobName"),
        ("group", "groupName"),
        ("until", "until", when),
        ("by", "silencedBy"),
        ("note", "note"),
    )
)
def silences(client: "Client", limit: int | None) -> "Payload":
    """List the silences in force."""
    payload = client.list_silences()
    return payload | {"silences": payload["silences"][:limit]}

"""`clickclock triggers`: what ran, what runs, and ending it.

Never starts anything (`trigger.py` does).

>>> sorted(triggers.commands)
['cancel', 'list', 'show']
"""

from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.calling import calls
from clickclock.cli.completing import (
    complete_backfill,
    complete_kind,
    complete_schedule,
    complete_state,
    complete_trigger,
)
from clickclock.cli.fields import Instant, names, of_jobs, page
from clickclock.cli.lazy import Commands
from clickclock.cli.rendering import at, record, says, sections, when
from clickclock.cli.tables import TRIGGERS, table

if TYPE_CHECKING:
    from clickclock.client import Client, Payload

ATTEMPTS = (
    ("attempt", "attempt"),
    ("state", "state"),
    ("started", "startedAt", when),
    ("finished", "finishedAt", when),
    ("exit code", "exitCode"),
    ("signal", "signal"),
    ("node", "node"),
    ("preempted by", "preemptedBy"),
    ("message", "message"),
)
WAITS = table(
    "triggers.0.waitsFor",
    ("reason", "reason"),
    ("until", "until", when),
    ("ahead", "ahead"),
    ("message", "message"),
    title="Waits for",
)
UPSTREAM = (
    ("application", "application"),
    ("job", "jobName"),
    ("when", "when"),
    ("state", "state"),
    ("trigger", "triggerId"),
)


def _itself(payload: "Payload") -> None:
    """The trigger and, while something holds it up, what that is."""
    record("triggers.0")(payload)
    if at(payload, "triggers.0.waitsFor"):
        click.echo()
        WAITS(payload)


@click.group(cls=Commands)
def triggers() -> None:
    """Triggers: single runs of jobs, past and present."""


@triggers.command("list")
@of_jobs(group=True)
@click.option(
    "--state",
    shell_complete=complete_state,
    help="Only those in this state, such as running, or in several: failed,lost.",
)
@click.option(
    "--kind", shell_complete=complete_kind, help="Only those of this kind: manual, schedule, backfill or dependency."
)
@click.option("--schedule-id", shell_complete=complete_schedule, help="Only those of this schedule.")
@click.option("--backfill-id", shell_complete=complete_backfill, help="Only those of this backfill.")
@click.option(
    "--from", "--since", "from_", type=Instant(looks_back=True), help="Only those recorded at this time or later."
)
@click.option("--to", type=Instant(looks_back=True), help="Only those recorded before this time.")
@page
@calls(table("triggers", *TRIGGERS))
def list_triggers(client: "Client", **filters: Any) -> "Payload":
    """List triggers, newest first: all, an application's, or a job's."""
    return client.list_triggers(**names(filters))


@triggers.command()
@click.argument("trigger_id", shell_complete=complete_trigger)
@calls(
    sections(
        _itself,
        table("triggers.0.upstream", *UPSTREAM, title="Upstream", empty="It depends on no other trigger."),
        table("triggers.0.attempts", *ATTEMPTS, empty="No attempt yet."),
    )
)
def show(client: "Client", trigger_id: str) -> "Payload":
    """Show one trigger and its attempts."""
    return client.get_trigger(trigger_id)


@triggers.command()
@click.argument("trigger_id", shell_complete=complete_trigger)
@calls(says("Trigger {trigger_id} is asked to end."))
def cancel(client: "Client", trigger_id: str) -> "Payload":
    """Cancel a trigger; if it is running, by SIGTERM and in the end SIGKILL."""
    return client.cancel_trigger(trigger_id)

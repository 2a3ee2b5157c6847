"""`clickclock backfill`: the past times of a schedule, run beside everything else.

Never computes a time. Invariant: a dry run starts nothing.

>>> "start" in backfill.commands
True
"""

import time
from typing import TYPE_CHECKING, Any, Final

import click

from clickclock.cli.calling import calls, service
from clickclock.cli.completing import complete_backfill, complete_schedule
from clickclock.cli.exit_codes import INTERRUPTED
from clickclock.cli.fields import Instant, body, field, names, needs_fields, of_jobs, page
from clickclock.cli.lazy import Commands
from clickclock.cli.naming import whole_id
from clickclock.cli.progress import progress
from clickclock.cli.rendering import Payload as Answer
from clickclock.cli.rendering import record, says, when
from clickclock.cli.tables import table
from clickclock.foundation.advance import tell

if TYPE_CHECKING:
    from clickclock.client import Client, Payload

ENDS: Final = frozenset({"done", "cancelled"})
LOOK_S: Final = 1.0
"""How often it is asked how far a backfill is."""
ID = click.argument("backfill_id", shell_complete=complete_backfill)
PACE = (
    field("--max-concurrent-triggers", type=int, help="How many may be unfinished at once; 1 if not given."),
    field(
        "--max-triggers-per-second", type=float, help="How many triggers to create per second at most; 20 if not given."
    ),
)


def _started(payload: Answer) -> None:
    """What a dry run, or a start, is answered with."""
    if "dryRun" in payload:
        record("dryRun")(payload)
    else:
        says("Backfill {backfill[backfillId]} is started: {backfill[total]} times.")(payload)
        click.echo(f"Follow it: clickclock backfill follow {payload['backfill']['backfillId']}", err=True)


@click.group(cls=Commands)
def backfill() -> None:
    """Backfills: runs for past times of a schedule."""


@backfill.command("list")
@of_jobs()
@click.option("--schedule-id", shell_complete=complete_schedule, help="Only those of this schedule.")
@click.option("--state", help="Only those in this state.")
@page
@calls(
    table(
        "backfills",
        ("id", "backfillId"),
        ("application", "application"),
        ("job", "jobName"),
        ("state", "state"),
        ("total", "total"),
        ("done", "done"),
        ("failed", "failed"),
        ("skipped", "skipped"),
        ("up to", "settledThrough", when),
        ("message", "message"),
    )
)
def list_backfills(client: "Client", **filters: Any) -> "Payload":
    """List backfills and their progress, newest first."""
    return client.list_backfills(**names(filters))


@backfill.command()
@ID
@calls(record("backfills.0"))
def show(client: "Client", backfill_id: str) -> "Payload":
    """Show one backfill."""
    return client.backfill(backfill_id)


@backfill.command()
@click.argument("schedule_id", shell_complete=complete_schedule)
@click.option("--from", "from_", type=Instant(looks_back=True), required=True, help="The first nominal time to run.")
@click.option(
    "--to", type=Instant(looks_back=True), required=True, help="The last nominal time to run; not in the future."
)
@click.option("--dry-run", is_flag=True, help="Show what would run, and run nothing.")
@body(*PACE, field("--reason", help="Why; recorded on each of its triggers."))
@calls(_started)
def start(client: "Client", schedule_id: str, from_: str, to: str, dry_run: bool, fields: dict[str, Any]) -> "Payload":
    """Run a schedule's times in a range of the past; those that ran already are left out."""
    return client.start_backfill(schedule_id, **{**fields, "from": from_, "to": to, "dryRun": dry_run or None})


@backfill.command()
@ID
@click.pass_context
def follow(ctx: click.Context, backfill_id: str) -> None:
    """Show how far a backfill is until it has ended.

    The exit code is 0 if each of its triggers succeeded, else 1. Ctrl-C lets go, and the backfill goes on.
    """
    with service(ctx.obj) as client:
        backfill_id = whole_id(client, backfill_id, "backfill_id")
        try:
            click.echo(f"Backfill {backfill_id} is {client.backfill(backfill_id)['backfills'][0]['state']}.", err=True)
            ended = _ended(client, backfill_id)
        except KeyboardInterrupt:
            again = f"clickclock backfill follow {backfill_id}"
            click.echo(f"\nNo longer watching; the backfill goes on. Watch it with: {again}", err=True)
            ctx.exit(INTERRUPTED)
    says("Backfill {backfillId} is {state}: {done} of {total} ended, {failed} failed, {skipped} skipped.")(ended)
    ctx.exit(int(ended["failed"] > 0 or ended["cancelled"] > 0 or ended["state"] != "done"))


def _ended(client: "Client", backfill_id: str) -> "Payload":
    """The backfill when nothing of it is to come, waits or runs."""
    with progress("Running past times"):
        while True:
            found: Payload = client.backfill(backfill_id)["backfills"][0]
            settled = found["done"] + found["skipped"]
            tell(f"Backfill {found['state']}, {found['failed']} failed", settled, found["total"])
            if found["state"] in ENDS and not found["queued"] + found["running"]:
                return found
            time.sleep(LOOK_S)


@backfill.command()
@ID
@body(*PACE)
@calls(says("Backfill {backfill_id} is changed (version {backfill[version]})."))
@needs_fields
def update(client: "Client", backfill_id: str, fields: dict[str, Any]) -> "Payload":
    """Change the pace of a backfill."""
    return client.change_backfill(backfill_id, fields)


@backfill.command()
@ID
@calls(says("Backfill {backfill_id} is paused."))
def pause(client: "Client", backfill_id: str) -> "Payload":
    """Pause a backfill; what is queued or running goes on."""
    return client.change_backfill(backfill_id, {"paused": True})


@backfill.command()
@ID
@calls(says("Backfill {backfill_id} is resumed."))
def resume(client: "Client", backfill_id: str) -> "Payload":
    """Resume a paused backfill."""
    return client.change_backfill(backfill_id, {"paused": False})


@backfill.command()
@ID
@calls(says("Backfill {backfill_id} is cancelled."))
def cancel(client: "Client", backfill_id: str) -> "Payload":
    """Cancel a backfill, with what it has queued and running."""
    return client.cancel_backfill(backfill_id)

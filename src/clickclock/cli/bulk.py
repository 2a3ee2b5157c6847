"""`clickclock bulk`: the same done to many triggers or schedules.

Never chooses anything by itself: the service finds what the filter means. Invariant: without `--yes` nothing is done.

>>> bulk.name
'bulk'
"""

from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.calling import calls
from clickclock.cli.completing import complete_backfill, complete_schedule, complete_state
from clickclock.cli.fields import Instant, names, of_jobs
from clickclock.cli.progress import progress
from clickclock.cli.rendering import counted, plain
from clickclock.cli.tables import table
from clickclock.foundation.advance import tell

if TYPE_CHECKING:
    from clickclock.client import Client, Payload

ITEMS = table(
    "items",
    ("trigger", "triggerId"),
    ("schedule", "scheduleId"),
    ("done", "done"),
    ("new trigger", "newTriggerId"),
    ("message", "message"),
    empty="Nothing matches.",
)


def _shown(payload: "Payload") -> None:
    """The outcome for each item, done or planned."""
    if payload["dryRun"] is None:
        ITEMS(payload)
        return
    for state, count in payload["dryRun"]["states"].items():
        click.echo(plain(f"{state}: {count:,}"))
    total = sum(payload["dryRun"]["states"].values())
    least = "" if payload["dryRun"]["isComplete"] else "at least "
    click.echo(f"It would be done to {least}{counted(total, 'item')}; add --yes to do it.", err=True)


@click.command()
@click.argument("action", type=click.Choice(["cancel", "runAgain", "pause", "resume"]))
@of_jobs(group=True)
@click.option(
    "--schedule-id", shell_complete=complete_schedule, help="Only this schedule, or the triggers that it decided."
)
@click.option("--backfill-id", shell_complete=complete_backfill, help="Only the triggers of this backfill.")
@click.option(
    "--state",
    "states",
    shell_complete=complete_state,
    multiple=True,
    help="Only triggers in this state; may be repeated.",
)
@click.option(
    "--from", "--since", "from_", type=Instant(looks_back=True), help="Only triggers recorded at this time or later."
)
@click.option("--to", type=Instant(looks_back=True), help="Only triggers recorded before this time.")
@click.option("--reason", help="Why.")
@click.option("--yes", "-y", is_flag=True, help="Do it; without this, only count what it would be done to.")
@calls(_shown)
def bulk(client: "Client", action: str, *, yes: bool, reason: str | None, **filters: Any) -> "Payload":
    """Cancel or run again many triggers, or pause or resume many schedules, with an answer for each."""
    filter_ = {name: value for name, value in names(filters).items() if value not in {None, ()}}
    if not yes:
        return client.count_bulk(action, filter_)
    items: list[Payload] = []
    with progress("The service does it"):
        for each in client.bulk(action, filter_, reason):
            items.append(each)
            tell("The service does it", len(items))
    return {"items": items, "dryRun": None}

"""`clickclock search`: what has a name like this.

Never looks anything up by itself: the service does.

>>> search.name
'search'
"""

from typing import TYPE_CHECKING

import click

from clickclock.cli.calling import calls
from clickclock.cli.tables import table

if TYPE_CHECKING:
    from clickclock.client import Client, Payload


@click.command()
@click.argument("text")
@click.option("--limit", type=click.IntRange(1, 100), help="At most this many of each kind; 20 if not given.")
@calls(
    table(
        "matches",
        ("kind", "kind"),
        ("name", "name"),
        ("application", "application"),
        ("job", "jobName"),
        ("schedule", "scheduleId"),
        empty="Nothing has such a name.",
    )
)
def search(client: "Client", text: str, limit: int | None) -> "Payload":
    """Find applications, groups, jobs, schedules and calendars by a part of their name."""
    return client.search(text, limit)

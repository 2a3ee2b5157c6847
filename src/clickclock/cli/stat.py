"""`clickclock stat`: how jobs did over a window.

Never sums anything up: the service does.

>>> stat.name
'stat'
"""

from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.calling import calls
from clickclock.cli.fields import Instant, job_arguments, names
from clickclock.cli.rendering import duration, record, sections, share, size, table, when

if TYPE_CHECKING:
    from clickclock.client import Client, Payload

MEASURES = (
    ("total", "totalTriggers"),
    ("succeeded", "succeeded"),
    ("failed", "failed"),
    ("timed out", "timedOut"),
    ("lost", "lost"),
    ("cancelled", "cancelled"),
    ("skipped", "skipped"),
    ("success", "successRate", share),
    ("p50", "durationMs.p50", duration),
    ("p95", "durationMs.p95", duration),
    ("lag p95", "lagMs.p95", duration),
    ("most memory", "maxMemoryBytes", size),
)


NOW = (
    ("running", "running"),
    ("queued", "queued"),
    ("streak", "currentStreak"),
    ("last success", "lastSuccessAt", when),
    ("last failure", "lastFailureAt", when),
)


@click.command()
@job_arguments(required=False)
@click.option("--group", "group_name", help="The jobs of this group.")
@click.option("--from", "from_", type=Instant(), help="Beginning of the window; 7 days ago if not given.")
@click.option("--to", type=Instant(), help="End of the window; now if not given.")
@click.option("--bucket", type=click.Choice(["hour", "day"]), help="By hour or by day, in UTC; by day if not given.")
@calls(
    sections(
        record("jobStat", ("from", "from", when), ("to", "to", when), *NOW, *MEASURES),
        table("jobStat.buckets", ("from", "from", when), *MEASURES, empty="Nothing ended in this time."),
    )
)
def stat(client: "Client", **filters: Any) -> "Payload":
    """Show statistics of jobs, applications or a group."""
    return client.job_stat(**names(filters))

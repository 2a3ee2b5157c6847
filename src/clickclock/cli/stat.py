"""`clickclock stat`: how jobs did over a window.

Never sums anything up: the service does.

>>> stat.name
'stat'
"""

from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.calling import calls
from clickclock.cli.completing import complete_group, complete_zone
from clickclock.cli.fields import Instant, job_arguments, names
from clickclock.cli.rendering import duration, record, sections, share, size, when
from clickclock.cli.tables import table

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
    ("preempted", "preemptionCount"),
    ("success", "successRate", share),
    ("flaky", "flakiness", share),
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
    ("undivided hours", "undividedHours"),
)

PEAKS = (
    ("id", "triggerId"),
    ("application", "application"),
    ("job", "jobName"),
    ("state", "state"),
    ("due", "dueTime", when),
    ("took", "durationMs", duration),
    ("lag", "lagMs", duration),
)
SHOWN = sections(
    record("jobStat", ("from", "from", when), ("to", "to", when), *NOW, *MEASURES),
    table("jobStat.buckets", ("from", "from", when), *MEASURES, empty="Nothing ended in this window."),
    table("jobStat.slowest", *PEAKS, title="The slowest", empty="Nothing ran in this window."),
    table("jobStat.latest", *PEAKS, title="The latest", empty="Nothing started in this window."),
)
RANKED = table("jobStat.jobs", ("application", "application"), ("job", "jobName"), *MEASURES, empty="No jobs to list.")


def show(payload: "Payload") -> None:
    """Print the ranking that was asked for, or else all the rest."""
    (SHOWN if payload["jobStat"]["jobs"] is None else RANKED)(payload)


@click.command()
@job_arguments(required=False)
@click.option("--group", "group_name", shell_complete=complete_group, help="Only the jobs of this group.")
@click.option(
    "--from",
    "--since",
    "from_",
    type=Instant(looks_back=True),
    help="Beginning of the window; 7 days ago if not given.",
)
@click.option("--to", type=Instant(looks_back=True), help="End of the window; now if not given.")
@click.option(
    "--bucket", type=click.Choice(["hour", "day"]), help="Group by hour (UTC) or by day; by day if not given."
)
@click.option("--time-zone", shell_complete=complete_zone, help="IANA time zone of the days; UTC if not given.")
@click.option(
    "--rank",
    type=click.Choice(["slowest", "latest", "flaky", "failing"]),
    help="List the worst jobs in this respect, the worst first.",
)
@click.option("--limit", type=click.IntRange(1, 50), help="With --rank: list at most this many jobs; 10 if not given.")
@calls(show)
def stat(client: "Client", **filters: Any) -> "Payload":
    """Show statistics of jobs, applications or a group."""
    return client.job_stat(**names(filters))

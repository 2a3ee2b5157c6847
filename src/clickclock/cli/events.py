"""`clickclock events`: what changed, and with `--follow` what changes, a line each.

Never stops at a restart of the service: it goes on where it was. Invariants: an interrupt ends the watching and nothing
else; standard output has the events, and standard error what is said about the watching.

>>> line_of({"type": "clickclock.job.created", "time": "2026-11-20T10:00:00Z", "subject": "shop/x", "data": {}})[1:]
('job.created', 'shop/x', '')
"""

import json
from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.calling import print_json, service
from clickclock.cli.exit_codes import INTERRUPTED
from clickclock.cli.fields import names
from clickclock.cli.rendering import plain, when

if TYPE_CHECKING:
    from clickclock.client import Payload

PREFIX = "clickclock."
SHOWN = ("attempt", "exitCode", "signal", "skipReason", "stopReason", "reason", "message")


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Keep showing events until Ctrl-C.")
@click.option("--after", help="With --follow: begin after the event with this id.")
@click.option("--application", help="Only those of this application.")
@click.option("--job", "job_name", help="Only those of jobs with this name.")
@click.option("--group", "group_name", help="Only those of this group.")
@click.option("--type", help="Only these types, such as trigger.failed,alarm.")
@click.option("--limit", type=click.IntRange(1, 1000), help="Show at most this many past events; 100 if not given.")
@click.option("--json", "as_json", is_flag=True, help="Print CloudEvents: a list, or with --follow one on each line.")
@click.pass_context
def events(
    ctx: click.Context, /, follow: bool, after: str | None, limit: int | None, as_json: bool, **filters: Any
) -> None:
    """Show changes of triggers, jobs, schedules, groups, alarms."""
    if after is not None and not follow:
        raise click.UsageError("--after goes with --follow.")
    with service(ctx.obj) as client:
        if not follow:
            payload = client.list_events(limit=limit, **names(filters))
            if as_json:
                print_json(payload)
            else:
                for event in reversed(payload["events"]):
                    _show(event)
            return
        try:
            for event in client.follow_events(after=after, **names(filters)):
                if as_json:
                    click.echo(json.dumps(event, ensure_ascii=False))
                else:
                    _show(event)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)


def _show(event: "Payload") -> None:
    if event["type"] == "missed":
        click.echo(plain(event["data"]["message"]), err=True)
    else:
        click.echo("  ".join(filter(None, line_of(event))))


def line_of(event: "Payload") -> tuple[str, str, str, str]:
    """When, what, of which, and what else is known, in words."""
    data = event["data"]
    job = "/".join(plain(data[name]) for name in ("application", "jobName") if data.get(name))
    subject = plain(event["subject"])
    which = subject if job in {"", subject} else f"{job} {subject}"
    known = "; ".join(f"{name} {plain(data[name])}" for name in SHOWN if data.get(name) not in {None, 0})
    return when(event["time"]), f"{event['type'].removeprefix(PREFIX):<18}".rstrip(), which, known

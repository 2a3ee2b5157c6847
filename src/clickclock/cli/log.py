"""`clickclock log`: what an attempt wrote.

Never changes a byte on the way to a pipe. Invariants: an interrupt ends the reading and nothing else; a terminal gets
text, colours and styles, unless `--raw` asks for all.

>>> log.name
'log'
"""

import codecs
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from clickclock.cli.calling import print_json, service
from clickclock.cli.completing import complete_job, complete_trigger_or_application
from clickclock.cli.exit_codes import INTERRUPTED
from clickclock.cli.fields import Instant, names
from clickclock.cli.following import Shown
from clickclock.cli.naming import LOOKED_AT, latest_that_ran, whole_id
from clickclock.cli.rendering import when

if TYPE_CHECKING:
    from clickclock.client import Client, Payload


@click.command()
@click.argument("trigger_or_application", metavar="TRIGGER|APP", shell_complete=complete_trigger_or_application)
@click.argument("job_name", metavar="[JOB]", required=False, shell_complete=complete_job)
@click.option("--attempt", type=click.IntRange(min=1), help="Which attempt; the last one if not given.")
@click.option("--since", type=Instant(looks_back=True), help="All attempts that started at this time or later.")
@click.option("--offset", type=click.IntRange(min=0), help="Skip this many bytes.")
@click.option("--tail", type=click.IntRange(min=1), help="Only the last so many lines.")
@click.option("--follow", "-f", is_flag=True, help="Keep showing output until the trigger has finished.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object; with --follow or --since one on each line.")
@click.option("--raw", is_flag=True, help="Let a terminal obey what the job wrote, and not only its colours.")
@click.pass_context
def log(  # noqa: PLR0913 (click gives each option by its name)
    ctx: click.Context,
    /,
    *,
    trigger_or_application: str,
    job_name: str | None,
    attempt: int | None,
    since: str | None,
    offset: int | None,
    tail: int | None,
    follow: bool,
    as_json: bool,
    raw: bool,
) -> None:
    """Show the output of an attempt.

    Of a trigger, by its id or the beginning of it, or of the latest of a job. With --since, of all attempts since then,
    the oldest first.
    """
    if tail is not None and follow:
        raise click.UsageError("--tail shows what there is, and --follow what comes; give one of them.")
    if since is not None and (follow or attempt is not None or offset is not None):
        raise click.UsageError("--since shows several attempts whole; leave out --follow, --attempt and --offset.")
    with service(ctx.obj) as client:
        if since is not None:
            _show_since(client, trigger_or_application, job_name, since, tail, as_json=as_json, raw=raw)
            return
        if job_name is None:
            trigger_id = whole_id(client, trigger_or_application)
        else:
            trigger_id = latest_that_ran(client, trigger_or_application, job_name)
        if not follow:
            pieces = _last(client.log(trigger_id, attempt, offset or 0), tail)
            if as_json:
                print_json({"triggerId": trigger_id, "text": b"".join(pieces).decode(errors="replace")})
            else:
                _write(pieces, raw=raw)
            return
        if attempt is not None:
            output = client.follow_log(trigger_id, attempt, offset or 0)
        else:
            last = client.get_trigger(trigger_id)["triggers"][0]["attempt"]
            output = client.follow_trigger(trigger_id, max(last, 1), offset or 0)
        try:
            if as_json:
                for event in output:
                    click.echo(json.dumps(names(asdict(event)), ensure_ascii=False))
            else:
                Shown(to_stderr=False, is_raw=raw).all_of(output)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)


def _show_since(
    client: "Client", named: str, job_name: str | None, since: str, tail: int | None, *, as_json: bool, raw: bool
) -> None:
    """The output of every attempt that started since then, each below a line that says which it is."""
    if job_name is None:
        triggers = client.get_trigger(whole_id(client, named))["triggers"]
    else:
        latest_that_ran(client, named, job_name)  # refuses a job that is not there, or has not run
        listed = client.list_triggers(application=named, jobName=job_name, limit=LOOKED_AT)["triggers"]
        ran = [each for each in listed if each["attempt"] and (each["finishedAt"] or since) >= since]
        triggers = [client.get_trigger(each["triggerId"])["triggers"][0] for each in reversed(ran)]
    started = [
        (trigger, attempt)
        for trigger in triggers
        for attempt in sorted(trigger["attempts"], key=lambda each: int(each["attempt"]))
        if attempt["startedAt"] is not None and attempt["startedAt"] >= since
    ]
    if not started:
        click.echo(f"No attempt has started since {when(since)}.", err=True)
    for trigger, attempt in started:
        pieces = _last(_log_of(client, trigger, attempt), tail)
        told = {"triggerId": trigger["triggerId"], "attempt": attempt["attempt"], "startedAt": attempt["startedAt"]}
        if as_json:
            text = b"".join(pieces).decode(errors="replace")
            click.echo(json.dumps({**told, "state": attempt["state"], "text": text}, ensure_ascii=False))
            continue
        heading = f"{told['triggerId']}, attempt {told['attempt']}, {when(told['startedAt'])}: {attempt['state']}"
        click.secho(heading, err=True, dim=True)
        _write(pieces, raw=raw)


def _log_of(client: "Client", trigger: "Payload", attempt: "Payload") -> Iterator[bytes]:
    from clickclock.client import NotFound  # noqa: PLC0415 (loaded long since, and only here when it is used)

    try:
        yield from client.log(trigger["triggerId"], attempt["attempt"])
    except NotFound as error:  # its output was removed, and that of others is to be shown
        click.echo(str(error), err=True)


def _last(pieces: Iterator[bytes], lines: int | None) -> Iterator[bytes]:
    return pieces if lines is None else iter(b"".join(pieces).splitlines(keepends=True)[-lines:])


def _write(pieces: Iterator[bytes], *, raw: bool) -> None:
    is_guarded = sys.stdout.isatty() and not raw
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    for piece in pieces:
        click.echo(decoder.decode(piece) if is_guarded else piece, nl=False)

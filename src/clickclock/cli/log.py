"""`clickclock log`: what an attempt wrote.

Never changes a byte on the way to a pipe. Invariants: an interrupt ends the reading and nothing else; a terminal gets
text, colours and styles, unless `--raw` asks for all.

>>> log.name
'log'
"""

import codecs
import json
import sys
from dataclasses import asdict

import click

from clickclock.cli.calling import complete_application, complete_job, print_json, service
from clickclock.cli.fields import names
from clickclock.cli.following import INTERRUPTED, Shown
from clickclock.cli.trigger_id import latest_that_ran, whole_id


@click.command()
@click.argument("trigger_or_application", metavar="TRIGGER|APP", shell_complete=complete_application)
@click.argument("job_name", metavar="[JOB]", required=False, shell_complete=complete_job)
@click.option("--attempt", type=click.IntRange(min=1), help="Which attempt; the last one if not given.")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Skip this many bytes.")
@click.option("--tail", type=click.IntRange(min=1), help="Only the last so many lines.")
@click.option("--follow", "-f", is_flag=True, help="Keep showing output until the trigger has finished.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object; with --follow one on each line.")
@click.option("--raw", is_flag=True, help="Let a terminal obey what the job wrote, and not only its colours.")
@click.pass_context
def log(  # noqa: PLR0913 (click gives each option by its name)
    ctx: click.Context,
    /,
    *,
    trigger_or_application: str,
    job_name: str | None,
    attempt: int | None,
    offset: int,
    tail: int | None,
    follow: bool,
    as_json: bool,
    raw: bool,
) -> None:
    """Show the output of an attempt: of a trigger, by its id or the beginning of it, or of the latest of a job."""
    if tail is not None and follow:
        raise click.UsageError("--tail shows what there is, and --follow what comes; give one of them.")
    with service(ctx.obj) as client:
        if job_name is None:
            trigger_id = whole_id(client, trigger_or_application)
        else:
            trigger_id = latest_that_ran(client, trigger_or_application, job_name)
        if not follow:
            pieces = client.log(trigger_id, attempt, offset)
            if tail is not None:
                pieces = iter(b"".join(pieces).splitlines(keepends=True)[-tail:])
            if as_json:
                print_json({"triggerId": trigger_id, "text": b"".join(pieces).decode(errors="replace")})
            else:
                is_guarded = sys.stdout.isatty() and not raw
                decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
                for piece in pieces:
                    click.echo(decoder.decode(piece) if is_guarded else piece, nl=False)
            return
        if attempt is not None:
            output = client.follow_log(trigger_id, attempt, offset)
        else:
            last = client.get_trigger(trigger_id)["triggers"][0]["attempt"]
            output = client.follow_trigger(trigger_id, max(last, 1), offset)
        try:
            if as_json:
                for event in output:
                    click.echo(json.dumps(names(asdict(event)), ensure_ascii=False))
            else:
                Shown(to_stderr=False, is_raw=raw).all_of(output)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)

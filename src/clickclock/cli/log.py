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

from clickclock.cli.calling import print_json, service
from clickclock.cli.fields import names
from clickclock.cli.following import INTERRUPTED, Shown


@click.command()
@click.argument("trigger_id")
@click.option("--attempt", type=click.IntRange(min=1), help="Which attempt; the last one if not given.")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Skip this many bytes.")
@click.option("--follow", "-f", is_flag=True, help="Keep showing output until the trigger has finished.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object; with --follow one on each line.")
@click.option("--raw", is_flag=True, help="Let a terminal obey what the job wrote, and not only its colours.")
@click.pass_context
def log(
    ctx: click.Context, trigger_id: str, attempt: int | None, offset: int, follow: bool, as_json: bool, raw: bool
) -> None:
    """Show the output of an attempt."""
    with service(ctx.obj) as client:
        if not follow:
            pieces = client.log(trigger_id, attempt, offset)
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

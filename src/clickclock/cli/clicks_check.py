"""`clickclock clicks check`: what the collector would make of an address, a query or a line of a log.

Never registers a click. Invariants: the exit code is 1 if the collector would not take it; with `--json`, standard
output is the verdict and nothing else.

>>> check.name
'check'
"""

import sys
from collections.abc import Iterator

import click

from clickclock.cli.calling import print_json, service
from clickclock.cli.rendering import Payload, plain


@click.command()
@click.argument("text")
@click.option("--client-id", help="Client that the tag names; for landing pages.")
@click.option("--seller-id", help="Seller that the tag names; for landing pages.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON.")
@click.pass_context
def check(ctx: click.Context, text: str, client_id: str | None, seller_id: str | None, as_json: bool) -> None:
    """Check what the collector would make of a click.

    TEXT is the address of a landing page, of /aclick or of /aview, a query, or a line of a server's log; - reads
    standard input. Nothing is kept.
    """
    with service(ctx.obj) as client:
        payload = client.check_click(sys.stdin.read() if text == "-" else text, client_id, seller_id)
    told = payload["check"]
    if as_json:
        print_json(payload)
    else:
        for line in _lines(told):
            click.echo(plain(line))
    if not told["accepted"]:
        ctx.exit(1)


def _lines(told: Payload) -> Iterator[str]:
    if told["accepted"]:
        yield f"accepted: the collector answers {told['answer']}"
    elif told["answer"] is None:
        yield "not sent"
    else:
        yield f"refused: the collector answers {told['answer']}"
    yield from (f"  {note}" for note in told["notes"])
    yield from (f"  {fault['field']}: {fault['message']}" for fault in told["faults"])
    if told["flags"]:
        yield f"flags: {', '.join(told['flags'])}"
    if told["account"] is not None:
        yield f"profile: {told['account']['profile']}"
    channel = told["channel"]
    yield f"channel: {channel['channel']}. {channel['why']} {_window(channel['windowDays'], told)}"
    yield "the same ad: " + ", ".join(f"{name}={value}" for name, value in told["dedup"]["ad"].items())


def _window(days: float, told: Payload) -> str:
    if not told.get("isView"):
        return f"It counts for {days:g} days."
    if not days:
        return "A view of this channel earns no credit; give it a window in view_windows of the configuration."
    return f"The view counts for {round(24 * days)} hours."

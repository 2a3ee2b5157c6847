"""`clickclock attribution diff`: every order that differs between two result versions, and why.

Never explains more than was asked for. Invariants: the exit code is 0 whether or not anything differs; with
`--json`, standard output is the comparison and nothing else.

>>> diff.name
'diff'
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clickclock.attribution.reporting.difference import LIMIT, LIMIT_MAX
from clickclock.cli.answering import answered
from clickclock.cli.calling import print_json
from clickclock.cli.rendering import Payload, counted, plain
from clickclock.cli.settings import OF_LAKE, settings

if TYPE_CHECKING:
    from clickclock.client import Client
    from clickclock.foundation.config import Config


@click.command()
@click.argument("before", type=click.IntRange(1))
@click.argument("after", type=click.IntRange(1))
@click.option("--client-id", help="Only this client.")
@click.option(
    "--limit",
    type=click.IntRange(1, LIMIT_MAX),
    default=LIMIT,
    show_default=True,
    help="Explain at most this many orders.",
)
@settings(OF_LAKE)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
def diff(
    config: Path | None, before: int, after: int, client_id: str | None, limit: int, as_json: bool, **options: Any
) -> None:
    """Show which orders differ between two versions, and why."""

    def read(loaded: "Config") -> Payload:
        # Here and not at the top, so that neither the help of other commands nor a mistyped folder waits for it.
        from clickclock.app.comparing import compare  # noqa: PLC0415 (see the line above)

        return compare(loaded, before, after, client_id, limit)

    def ask(client: "Client") -> Payload:
        told: Payload = client.difference(before, after, client_id, limit)["diff"]
        return told

    payload = answered(ask, read, config, options)
    if as_json:
        print_json(payload)
        return
    for line in _lines(payload):
        click.echo(plain(line))
    untold = payload["differing"] - len(payload["orders"])
    if untold:
        click.echo(f"… and {untold:,} more; causes are counted in those above.", err=True)


def _lines(payload: Payload) -> Iterator[str]:
    for verb, names in payload["models"].items():
        if names:
            yield f"models {verb}: {', '.join(names)}"
    for each in payload["settings"]:
        yield f"setting {each['name']}: {plain(each['before']) or 'none'}, now {plain(each['after']) or 'none'}"
    differing = counted(payload["differing"], "order differs", "orders differ")
    yield f"{differing}; new: {payload['new']:,}, gone: {payload['gone']:,}"
    for cause, count in payload["causes"].items():
        yield f"{count:,} × {_words(cause)}"
    for order in payload["orders"]:
        why = "; ".join(f"{_words(told['cause'])}: {told['what']}" for told in order["causes"])
        yield f"order {order['orderId']} of {order['clientId']}: {why}"
        yield from _credits(order["before"], order["after"])


def _credits(before: Payload | None, after: Payload | None) -> Iterator[str]:
    """A line for each model that gives something else."""
    then, now = (_parts(standing) for standing in (before, after))
    for model in dict.fromkeys([*then, *now]):
        if then.get(model) != now.get(model):
            yield f"  {model}: {then.get(model, 'nothing')} → {now.get(model, 'nothing')}"


def _parts(standing: Payload | None) -> Mapping[str, str]:
    if standing is None:
        return {}
    return {
        model: ", ".join(f"{channel} {amount}" for channel, amount in by_channel.items())
        for model, by_channel in standing["credits"].items()
    }


def _words(cause: str) -> str:
    return cause.replace("_", " ")

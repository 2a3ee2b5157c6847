"""`clickclock attribution orders`: the orders behind a row of a report, latest first.

Never decides what fits. Invariants: with `--json`, standard output is the page and nothing else; the
filters are those of `GET /attribution/orders`.

>>> orders.name
'orders'
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.answering import answered, query
from clickclock.cli.attribution_report import parameters_of, usage
from clickclock.cli.calling import print_json
from clickclock.cli.fields import Day
from clickclock.cli.rendering import Payload, plain
from clickclock.cli.settings import OF_LAKE, settings
from clickclock.cli.tables import table
from clickclock.foundation.errors import Malformed

if TYPE_CHECKING:
    from clickclock.foundation.config import Config

ASKED = (
    *("client_id", "seller_id", "channel", "campaign", "ad_set", "ad", "kind", "currency", "since", "until"),
    *("credited", "reason", "models", "version", "limit", "cursor"),
)

REASONS = ("shared_identifier", "no_click", "no_touchpoint", "none_eligible")


def _path(steps: list[str]) -> str:
    return plain(" > ".join(steps) or None)


def _credits(credits_: dict[str, dict[str, str]]) -> str:
    parts = [
        f"{model}: " + ", ".join(f"{channel} {amount}" for channel, amount in by_channel.items())
        for model, by_channel in credits_.items()
        if by_channel
    ]
    return plain("; ".join(parts) or None)


SHOW = table(
    "orders",
    ("placed", "placedAt"),
    ("client", "clientId"),
    ("order", "orderId"),
    ("kind", "kind"),
    ("amount", "amount"),
    ("currency", "currency"),
    ("status", "status"),
    ("path", "path", _path),
    ("credit", "credits", _credits),
    empty="No order fits what was asked.",
)


@click.command()
@click.option("--client-id", help="Only this client.")
@click.option("--seller-id", help="Only this seller.")
@click.option("--channel", help="With a touchpoint of this channel.")
@click.option("--campaign", help="With a touchpoint of this campaign; empty for one without a campaign.")
@click.option("--ad-set", help="With a touchpoint of this ad set.")
@click.option("--ad", help="With a touchpoint of this ad.")
@click.option("--kind", help="Only of this kind, such as purchase or lead.")
@click.option("--currency", help="Only this currency, such as EUR.")
@click.option("--from", "since", type=Day(), help="First day, as 2026-11-20 or -7d, in the account's time zone.")
@click.option("--to", "until", type=Day(), help="Last day.")
@click.option("--credited/--not-credited", default=None, help="Only those with a touchpoint, or without one.")
@click.option("--reason", type=click.Choice(REASONS), help="Only those that are credited to nobody for this reason.")
@click.option("--model", "models", multiple=True, help="Model; may be repeated.  [default: last]")
@click.option("--version", help="Result version; the latest if not given.")
@click.option("--limit", help="At most this many, up to 200; 50 if not given.")
@click.option("--cursor", help="Where to continue: nextCursor of the page before, as --json shows it.")
@settings(OF_LAKE)
@click.option("--json", "as_json", is_flag=True, help="Print the page as JSON.")
def orders(config: Path | None, credited: bool | None, as_json: bool, **options: Any) -> None:
    """List the orders of a result version, latest first."""
    asked = {name: options.pop(name) for name in ASKED if name != "credited"}
    asked["credited"] = None if credited is None else str(credited).lower()
    parameters = parameters_of(asked)

    def read(loaded: "Config") -> Payload:
        # Here and not at the top, so that neither the help of other commands nor a mistyped folder waits for it.
        from clickclock.app.reporting import orders as page_of  # noqa: PLC0415 (see the line above)
        from clickclock.attribution.reporting.listing import read_orders  # noqa: PLC0415 (see the line above)

        try:
            return page_of(loaded, read_orders(parameters))
        except Malformed as error:
            raise usage(error, ASKED) from error

    page = answered(lambda client: client.orders(**query(parameters)), read, config, options)
    if as_json:
        print_json({"status": "success"} | page)
    else:
        SHOW(page)

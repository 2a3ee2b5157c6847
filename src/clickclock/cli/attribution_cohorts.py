"""`clickclock attribution cohorts`: what customers ordered in each month since their first order.

Never counts anything. Invariant: with `--json`, standard output is the answer and nothing else.

>>> cohorts.name
'cohorts'
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.answering import answered, query
from clickclock.cli.attribution_report import parameters_of, usage
from clickclock.cli.calling import print_json
from clickclock.cli.rendering import Payload, plain
from clickclock.cli.settings import OF_LAKE, settings
from clickclock.cli.tables import table
from clickclock.foundation.errors import Malformed

if TYPE_CHECKING:
    from clickclock.foundation.config import Config

ASKED = ("client_id", "currency", "version")
SHOW = table(
    "cohorts",
    ("first order", "firstMonth"),
    ("channel", "channel", lambda channel: plain(channel or "(none)")),
    ("months later", "month"),
    ("customers", "customers"),
    ("orders", "orders"),
    ("revenue", "revenue"),
    ("refunds", "refunds"),
    ("currency", "currency"),
    empty="No order of a known customer fits what was asked.",
)


@click.command()
@click.option("--client-id", help="Only this client.")
@click.option("--currency", help="Only this currency, such as EUR.")
@click.option("--version", help="Result version; the latest if not given.")
@settings(OF_LAKE)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def cohorts(config: Path | None, as_json: bool, **options: Any) -> None:
    """Show what customers ordered since their first order.

    Customers are grouped by the month and the first channel of their first order.
    """
    parameters = parameters_of({name: options.pop(name) for name in ASKED})

    def read(loaded: "Config") -> Payload:
        # Here and not at the top, so that neither the help of other commands nor a mistyped folder waits for it.
        from clickclock.app.reporting import cohorts as compute  # noqa: PLC0415 (see the line above)
        from clickclock.attribution.reporting.cohorts import read as read_question  # noqa: PLC0415 (see the line above)

        try:
            return compute(loaded, read_question(parameters))
        except Malformed as error:
            raise usage(error, ASKED) from error

    answer = answered(lambda client: client.cohorts(**query(parameters)), read, config, options)
    if as_json:
        print_json({"status": "success"} | answer)
    else:
        SHOW(answer)

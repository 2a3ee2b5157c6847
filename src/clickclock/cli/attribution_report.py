"""`clickclock attribution report`: what clicks brought, by channel, campaign, day and whatever else they have.

Never asks the service: it reads the lake. Invariants: a file is there in full or not at all; with `--format json`,
standard output is the report and nothing else; the table has the same rows.

>>> report.name
'report'
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.clicks_export import RAW, refuse_raw, sink
from clickclock.cli.fields import camel_case
from clickclock.cli.rendering import Column, plain, table
from clickclock.cli.settings import FILE, OF_LAKE, configuration, expect_lake, settings
from clickclock.foundation.errors import Malformed

if TYPE_CHECKING:
    from clickclock.attribution.reporting.report import Report

TABLE = "table"
FORMATS = (TABLE, "json", "csv", "parquet")
ASKED = ("by", "figures", "models", "since", "until", "client_id", "seller_id", "channel", "currency", "version")
NONE = "(none)"
NAMES = {"models": "model", "since": "from", "until": "to", "form": "format"}
"""What an argument of another name is called as an option, and as a parameter of the interface."""


@click.command()
@click.option(
    "--by", help="Dimensions, separated by commas: client, seller, channel, campaign, ad_set, ad, day, model."
)
@click.option("--figures", help="Figures, separated by commas; all if not given. `people` is the slowest.")
@click.option("--model", "models", multiple=True, help="Model; may be repeated.  [default: last]")
@click.option("--from", "since", help="First day, as 2026-11-20, in the account's time zone.")
@click.option("--to", "until", help="Last day.")
@click.option("--client-id", help="Only this client.")
@click.option("--seller-id", help="Only this seller.")
@click.option("--channel", help="Only this channel.")
@click.option("--currency", help="Only this currency, such as EUR.")
@click.option("--version", help="Result version; the latest if not given.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="Output format.")
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
@RAW
@click.option("--output", type=FILE, help="File to write; standard output if not given.")
@settings(OF_LAKE)
def report(config: Path | None, form: str, raw: bool, output: Path | None, **options: Any) -> None:
    """Report what clicks brought.

    Clicks, people, orders, revenue, credit, refunds, cost, ROAS and CPA of a result version.
    """
    if form == TABLE and output is not None:
        raise click.UsageError("Say with --format how the file is to be written: json, csv or parquet.")
    refuse_raw(raw=raw, form=form)
    asked = {name: options.pop(name) for name in ASKED}
    asked |= {"form": None if form == TABLE else form, "raw": "true" if raw else None}
    with configuration(config, options) as loaded:
        expect_lake(loaded)
        # Here and not at the top, so that neither the help of other commands nor a mistyped folder waits for it.
        from clickclock.app.reporting import report as compute  # noqa: PLC0415 (see the line above)
        from clickclock.attribution.agents.reporter import write  # noqa: PLC0415 (see the line above)
        from clickclock.attribution.reporting.report import read  # noqa: PLC0415 (see the line above)

        try:
            told = compute(loaded, read(parameters_of(asked)))
        except Malformed as error:
            raise usage(error, ASKED) from error
        if form == TABLE:
            _show(told)
        else:
            with sink(output) as file:
                write(told, file)
    if form != "json":
        for note in told.notes if told.rows else ():
            click.echo(note, err=True)


def parameters_of(options: dict[str, Any]) -> dict[str, list[str]]:
    """The options as the interface would get them."""
    named = {NAMES.get(name) or camel_case(name): value for name, value in options.items()}
    lists = {name: list(value) if isinstance(value, tuple) else [value] for name, value in named.items()}
    return {name: values for name, values in lists.items() if values and values != [None]}


def _show(told: "Report") -> None:
    from clickclock.attribution.reporting.report import as_text  # noqa: PLC0415 (loaded when it is used)

    figures = set(told.asked.figures)
    columns: list[Column] = [(name, name, plain if name in figures else _name) for name in told.columns]
    rows = [{name: as_text(value) for name, value in row.items()} for row in told.rows]
    table("rows", *columns, empty=" ".join(told.notes))({"rows": rows})


def _name(value: Any) -> str:
    return NONE if value is None else plain(value)


def usage(error: Malformed, asked: Sequence[str]) -> click.UsageError:
    """Every fault, by the options' names; exit code 2."""
    options = {NAMES.get(name) or camel_case(name): NAMES.get(name, name) for name in asked}
    lines = [f"--{options.get(fault.field, fault.field).replace('_', '-')}: {fault.message}" for fault in error.faults]
    return click.UsageError("\n".join(lines))

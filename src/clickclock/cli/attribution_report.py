"""`clickclock attribution report`: what clicks brought, by channel, campaign, day and whatever else they have.

Never computes anything. Invariants: a file is there in full or not at all; with `--format json`,
standard output is the report and nothing else; the table has the same rows.

>>> report.name
'report'
"""

import json
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click

from clickclock.attribution.reporting.difference import LIMIT_MAX
from clickclock.cli.answering import answered, query
from clickclock.cli.attribution_why import why
from clickclock.cli.clicks_export import RAW, refuse_raw, sink
from clickclock.cli.fields import Day
from clickclock.cli.rendering import Column, Payload, plain
from clickclock.cli.settings import FILE, OF_LAKE, settings
from clickclock.cli.tables import table
from clickclock.cli.words import camel_case
from clickclock.foundation.errors import Malformed

if TYPE_CHECKING:
    from clickclock.client import Client
    from clickclock.foundation.config import Config

TABLE = "table"
FILES = ("csv", "parquet")
FORMATS = (TABLE, "json", *FILES)
ASKED = (
    "by",
    "figures",
    "models",
    "since",
    "until",
    "compare",
    "holdout",
    "every_day",
    "client_id",
    "seller_id",
    "channel",
    "kind",
    "currency",
    "version",
)
NONE = "(none)"
NAMES = {"models": "model", "since": "from", "until": "to", "form": "format"}
"""What an argument of another name is called as an option, and as a parameter of the interface."""


@click.command()
@click.option(
    "--by",
    multiple=True,
    help="Dimensions, separated by commas: client, seller, channel, campaign, ad_set, ad, day, customer, kind, "
    "reason, source, medium, keyword, page, device, country, model.",
)
@click.option(
    "--figures", multiple=True, help="Figures, separated by commas; all if not given. `people` is the slowest."
)
@click.option("--model", "models", multiple=True, help="Model; may be repeated.  [default: last]")
@click.option("--from", "since", type=Day(), help="First day, as 2026-11-20 or -7d, in the account's time zone.")
@click.option("--to", "until", type=Day(), help="Last day.")
@click.option(
    "--compare",
    type=click.Choice(("previous", "last_year", "models")),
    help="Compare with the days before, with the same days a year before, or all models with each other.",
)
@click.option(
    "--holdout",
    multiple=True,
    metavar="COUNTRIES",
    help="Countries in which ads were off from --from to --to, such as AT,CH: their orders, beside what the other "
    "countries let expect.",
)
@click.option(
    "--every-day",
    flag_value="true",
    help="A row for each day, also where nothing happened. This needs day among the dimensions, --from and --to.",
)
@click.option("--client-id", help="Only this client.")
@click.option("--seller-id", help="Only this seller.")
@click.option("--channel", help="Only this channel.")
@click.option("--kind", help="Only orders of this kind, such as purchase or lead.")
@click.option("--currency", help="Only this currency, such as EUR.")
@click.option("--version", help="Result version; the latest if not given.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="Output format.")
@click.option("--json", "form", flag_value="json", help="The same as --format json.")
@RAW
@click.option("--output", type=FILE, help="File to write; standard output if not given.")
@click.option("--why", "is_asked_why", is_flag=True, help="Say what changed since the version before, and why.")
@settings(OF_LAKE)
def report(config: Path | None, form: str, raw: bool, output: Path | None, is_asked_why: bool, **options: Any) -> None:
    """Report what clicks brought.

    Clicks, people, orders, revenue, credit, refunds, cost, ROAS and CPA of a result version.
    """
    if form == TABLE and output is not None:
        raise click.UsageError("Say with --format how the file is to be written: json, csv or parquet.")
    if is_asked_why and form != TABLE:
        raise click.UsageError(
            "--why is for the table; `clickclock attribution diff --json` says the same for programs."
        )
    refuse_raw(raw=raw, form=form)
    asked = {name: options.pop(name) for name in ASKED}
    asked |= {"form": None if form == TABLE else form, "raw": "true" if raw else None}
    parameters = parameters_of(asked)

    def read(loaded: "Config") -> _Told:
        # Here and not at the top, so that neither the help of other commands nor a mistyped folder waits for it.
        from clickclock.app.reporting import report as compute  # noqa: PLC0415 (see the line above)
        from clickclock.attribution.agents.reporter import write  # noqa: PLC0415 (see the line above)
        from clickclock.attribution.reporting.question import read as read_question  # noqa: PLC0415 (see the line above)

        try:
            told = compute(loaded, read_question(parameters))
        except Malformed as error:
            raise usage(error, ASKED) from error
        return _Told(told.wire(), lambda file: write(told, file))

    def ask(client: "Client") -> _Told:
        questions = query(parameters)
        file = client.report_file(**questions) if form in FILES else b""
        told = client.report(**{name: value for name, value in questions.items() if name not in {"format", "raw"}})
        return _Told(told["report"], lambda sink: sink.write(file))

    told = answered(ask, read, config, options)
    if form == TABLE:
        _show(told.report)
    else:
        with sink(output) as file:
            told.write(file) if form in FILES else file.write(_json(told.report))
    if form != "json":
        for note in told.report["notes"] if told.report["rows"] else ():
            click.echo(note, err=True)
    if is_asked_why:
        click.echo()
        for line in why(told.report["version"], asked["client_id"], LIMIT_MAX, config, options):
            click.echo(line)


class _Told(NamedTuple):
    """A report as the interface has it, and what writes it as the file that was asked for."""

    report: Payload
    write: Callable[[IO[bytes]], object]


def _json(report: Payload) -> bytes:
    return json.dumps(report, ensure_ascii=False, separators=(",", ":")).encode()


def parameters_of(options: dict[str, Any]) -> dict[str, list[str]]:
    """The options as the interface would get them."""
    named = {NAMES.get(name) or camel_case(name): value for name, value in options.items()}
    lists = {name: list(value) if isinstance(value, tuple) else [value] for name, value in named.items()}
    return {name: values for name, values in lists.items() if values and values != [None]}


def _show(report: Payload) -> None:
    rows = report["rows"]
    names = {*report["by"], "model", "currency"}
    columns: list[Column] = [
        (_snake_case(name), name, _name if name in names else _percent if name.endswith(_CHANGE) else plain)
        for name in (rows[0] if rows else ())
        if not name.endswith(_BEFORE)  # a terminal has no room for them; files and JSON have
    ]
    table("rows", *columns, empty=" ".join(report["notes"]))(report)


_BEFORE, _CHANGE = "Before", ("Change", "ChangeLow", "ChangeHigh")


def _percent(value: Any) -> str:
    """A change as people say it; nothing where there was nothing to compare with."""
    return "" if value is None else f"{100 * Decimal(value):+.1f} %"


def _snake_case(name: str) -> str:
    return re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", name)


def _name(value: Any) -> str:
    return NONE if value is None else plain(value)


def usage(error: Malformed, asked: Sequence[str]) -> click.UsageError:
    """Every fault, by the options' names; exit code 2."""
    options = {NAMES.get(name) or camel_case(name): NAMES.get(name, name) for name in asked}
    lines = [f"--{options.get(fault.field, fault.field).replace('_', '-')}: {fault.message}" for fault in error.faults]
    return click.UsageError("\n".join(lines))

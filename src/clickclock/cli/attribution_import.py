"""`clickclock attribution import-…`: clicks, orders and costs of the past, from tables.

Never judges by itself, and needs no service. Invariants: the exit code is 0 if a row was accepted; doing it again
keeps nothing twice; with `--json`, standard output is the report and nothing else.

>>> import_orders.name
'import-orders'
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.calling import print_json
from clickclock.cli.importing import (
    AS_JSON,
    CLICKS,
    DRY_RUN,
    IDENTITIES,
    MAPPING,
    ORDERS,
    SKIP_UNREADABLE,
    import_files,
    refuse_emptiness,
    rows_of,
    show_table,
    warn_of_cuts,
    working,
)
from clickclock.cli.rendering import counted
from clickclock.cli.settings import OF_LAKE, settings
from clickclock.cli.tables import table

if TYPE_CHECKING:
    from clickclock.attribution.agents.cost_importer import CostsReport
    from clickclock.foundation.config import Config

FILES = click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
FORMAT = click.option(
    "--format",
    "form",
    type=click.Choice(("csv", "ndjson", "parquet")),
    help="Format of the files; known by their endings if not given.",
)
FAULTY = table("faultyRows", ("file", "file"), ("row", "number"), ("refused", "message"), empty="")
SUMS = table(
    "sums",
    ("client", "clientId"),
    ("from", "from"),
    ("until", "until"),
    ("rows", "rows"),
    ("amount", "amount"),
    ("currency", "currency"),
    empty="",
)


def _importer(what: str, description: str) -> click.Command:
    """The command for clicks, or for orders: both are asked, and tell, the same."""

    @click.command(f"import-{what}", help=description)
    @FILES
    @FORMAT
    @MAPPING
    @SKIP_UNREADABLE
    @DRY_RUN
    @settings(OF_LAKE)
    @AS_JSON
    @click.pass_context
    def bring(
        ctx: click.Context,
        /,
        files: tuple[str, ...],
        form: str | None,
        mapping: Path | None,
        **options: Any,
    ) -> None:
        each = [(file, form) for file in files]
        said = {name: options.pop(name) for name in ("skip_unreadable", "dry_run", "as_json")}
        import_files(ctx, what, each, options, mapping=mapping, **said)

    return bring


import_clicks = _importer(CLICKS, "Register clicks from tables.\n\nThe columns are named after the parameters.")
import_orders = _importer(
    ORDERS, "Register orders from tables.\n\nRefunds and corrections, too; the columns are named after the fields."
)

import_identities = _importer(
    IDENTITIES,
    "Tie visitors and devices to customers, from tables.\n\nThe columns are the fields of `POST /identify`.",
)


@click.command()
@FILES
@FORMAT
@MAPPING
@DRY_RUN
@settings(OF_LAKE)
@AS_JSON
@click.pass_context
def import_costs(
    ctx: click.Context,
    /,
    files: tuple[str, ...],
    form: str | None,
    mapping: Path | None,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Import what ads cost, by day.

    For a day and an ad, the last import counts.
    """

    def work(config: "Config") -> "CostsReport":
        from clickclock.app.importing import import_costs as load  # noqa: PLC0415 (loaded when it is used)

        return load(config, rows_of(config, [(file, form) for file in files], mapping, "costs"), dry_run=dry_run)

    report = working(ctx, options, work, "Reading costs")
    answer = _told(report, dry_run=dry_run)
    if as_json:
        print_json(answer)
    else:
        _show(answer)
    if report.faulty:
        raise click.ClickException(
            f"{counted(report.faulty, 'row')} cannot be imported, so nothing was; fix the named rows."
        )
    refuse_emptiness(report.empty, report.rows)


def _told(report: "CostsReport", *, dry_run: bool) -> dict[str, Any]:
    return {
        "dryRun": dry_run,
        "rows": report.rows,
        "faulty": report.faulty,
        "faultyRows": [each._asdict() for each in report.faulty_rows],
        "sums": [
            {
                "clientId": each.client_id,
                "from": each.first.isoformat(),
                "until": each.last.isoformat(),
                "rows": each.rows,
                "amount": each.amount,
                "currency": each.currency,
            }
            for each in report.sums
        ],
        "openEnded": report.open_ended,
        "empty": report.empty,
        "done": report.is_done,
    }


def _show(answer: dict[str, Any]) -> None:
    click.echo(f"{counted(answer['rows'], 'row')} looked at.")
    show_table(answer, "sums", SUMS)
    show_table(answer, "faultyRows", FAULTY, "faulty")
    warn_of_cuts(answer)
    click.echo()
    if answer["done"]:
        click.echo("They are in the lake, and count in the next report.")
    elif answer["dryRun"]:
        click.echo("Nothing was kept: this is a dry run.")

"""`clickclock attribution paths`: a model on a file of paths, for whoever has a table and no lake.

Never asks the service, and never decides anything. Invariant: with `--json` or `--csv`, standard output is the credits
and nothing else.

>>> paths.name
'paths'
"""

import csv
import sys
from typing import Any

import click

from clickclock.attribution.importing.csv_cell import as_cell
from clickclock.cli.calling import print_json
from clickclock.cli.clicks_export import RAW, refuse_raw
from clickclock.cli.fields import Json
from clickclock.cli.settings import given
from clickclock.cli.tables import table
from clickclock.foundation.errors import ClickclockError

TRANSFORMS = ("unique", "exposure", "first", "frequency")
SHOW = table(
    "channels",
    ("channel", "channel"),
    ("conversions", "conversions", lambda number: f"{number:,.4f}"),
    ("value", "value", lambda number: f"{number:,.4f}"),
    empty="There is no path in it.",
)


@click.command()
@click.argument("file", type=click.Path())
@click.option(
    "--model", default="markov", show_default=True, help="Name of the model, built in or from another package."
)
@click.option("--order", type=int, help="For markov: how many channels back a path remembers, 1 to 4; 1 if not given.")
@click.option("--no-null-paths", is_flag=True, help="For markov: leave out paths that did not convert.")
@click.option(
    "--set", "fields", type=Json(), multiple=True, metavar="NAME=VALUE", help="Another setting of the model, as JSON."
)
@click.option(
    "--transform",
    type=click.Choice(TRANSFORMS),
    default="unique",
    show_default=True,
    help="How repeated channels of a path count.",
)
@click.option("--separator", default=">", show_default=True, help="What separates the channels of a path.")
@click.option("--path", default="path", show_default=True, help="Column of the paths.")
@click.option("--conversions", help="Column of the conversions; found by its usual names if not given.")
@click.option("--value", help="Column of their value; found by its usual names, else 0, if not given.")
@click.option(
    "--nulls", help="Column of how often the path did not convert; found by its usual names, else 0, if not given."
)
@click.option("--csv", "form", flag_value="csv", help="Print the credits as CSV, with all their digits.")
@click.option("--json", "form", flag_value="json", help="Print the credits as JSON.")
@RAW
def paths(
    file: str,
    model: str,
    order: int | None,
    no_null_paths: bool,
    fields: tuple[dict[str, Any], ...],
    form: str | None,
    raw: bool,
    **columns: Any,
) -> None:
    """Credit the channels of a table of paths by a model.

    FILE is CSV, NDJSON or Parquet with a row for each path, or - for CSV on standard input.
    """
    refuse_raw(raw=raw, form=form)
    # Here and not at the top, so that the help of all other commands does not wait for it.
    from clickclock.app.models import known_models  # noqa: PLC0415 (see the line above)
    from clickclock.app.table import read_table  # noqa: PLC0415 (see the line above)
    from clickclock.attribution.models import attribute, choose  # noqa: PLC0415 (see the line above)

    settings: dict[str, Any] = given({"order": order, "with_nulls": False if no_null_paths else None})
    for field in fields:
        settings |= field
    try:
        chosen = choose(model, settings, known_models())
        credits_ = attribute(read_table(file, columns["path"]), chosen, **columns)
    except (ClickclockError, ValueError) as error:  # what a model or a table is refused for is a ValueError
        raise click.ClickException(str(error)) from error
    answer = {"channels": credits_.to_pylist()}
    if form == "json":
        print_json(answer)
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(credits_.column_names)
        as_name = str if raw else as_cell
        writer.writerows({**each, "channel": as_name(each["channel"])}.values() for each in answer["channels"])
    else:
        SHOW(answer)

"""`clickclock attribution`: what brings clicks of the past in.

Never judges by itself. Invariant: `attribution replay` is `replay`.

>>> sorted(attribution.commands)
['import-clicks', 'replay']
"""

from typing import Any

import click

from clickclock.cli.replay import AS_JSON, DRY_RUN, SKIP_UNREADABLE, import_files, replay
from clickclock.cli.settings import OF_LAKE, settings

FORMATS = ("csv", "ndjson", "parquet")


@click.group()
def attribution() -> None:
    """Bring in clicks of the past."""


@attribution.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option(
    "--format", "form", type=click.Choice(FORMATS), help="What the files are; their endings say if not given."
)
@SKIP_UNREADABLE
@DRY_RUN
@settings(OF_LAKE)
@AS_JSON
@click.pass_context
def import_clicks(
    ctx: click.Context,
    /,
    files: tuple[str, ...],
    form: str | None,
    skip_unreadable: bool,
    dry_run: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Register clicks from tables, whose columns are named after the parameters."""
    each = [(file, form) for file in files]
    import_files(ctx, each, options, skip_unreadable=skip_unreadable, dry_run=dry_run, as_json=as_json)


attribution.add_command(replay)

"""`clickclock attribution retain`: what is older than the configuration lets it be goes for good.

Never asks the service. Invariants: the exit code is 0 when nothing too old is left; without days configured, nothing
is ever deleted; with `--json`, standard output is the receipt, or null, and nothing else.

>>> retain.name
'retain'
"""

from pathlib import Path
from typing import Any

import click

from clickclock.cli.attribution_erase import tell
from clickclock.cli.calling import print_json
from clickclock.cli.settings import OF_LAKE, configuration, expect_lake, settings


@click.command()
@settings(OF_LAKE)
@click.option("--json", "as_json", is_flag=True, help="Print the receipt as JSON, null if nothing was deleted.")
def retain(config: Path | None, as_json: bool, **options: Any) -> None:
    """Delete what is older than configured.

    By click_retention_days and order_retention_days; old versions are deleted, too.
    """
    with configuration(config, options) as loaded:
        expect_lake(loaded)
        # Here and not at the top, so that neither the help of other commands nor a mistyped folder waits for it.
        from clickclock.app import erasing  # noqa: PLC0415 (see the line above)

        made = erasing.retain(loaded)
    if as_json:
        print_json({"receipt": None if made is None else made.wire})
    elif made is None:
        click.echo("Nothing is old enough to delete.")
    else:
        tell(made)

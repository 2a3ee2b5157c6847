"""`clickclock serve`: the service, in the foreground.

Never loads the service for `--help`. Invariant: every fault of the configuration is said before anything starts.

>>> serve.name
'serve'
"""

import gc
from pathlib import Path
from typing import Any

import click

from clickclock.cli.settings import OF_SERVE, configuration, settings
from clickclock.foundation.seal import seal


@click.command()
@settings(OF_SERVE)
@click.option("--new-store", is_flag=True, help="Begin anew with the database that is there, or with an empty one.")
@click.pass_context
def serve(ctx: click.Context, /, config: Path | None, new_store: bool, **options: Any) -> None:
    """Run the scheduler and the click collectors.

    Until SIGTERM or Ctrl-C. Running jobs outlive it, unless --stop-jobs is given.
    """
    seal()
    gc.disable()  # until it has started: all that a start makes is kept
    # Here and not at the top, so that the help of all other commands does not wait for it.
    from clickclock.app import service  # noqa: PLC0415 (see the line above)

    with configuration(config, options) as loaded:
        code = service.serve(loaded, config, new_store=new_store)
    ctx.exit(code)

"""`clickclock collect`: the collector of clicks and orders alone, in the foreground.

Never loads it for `--help`. Invariant: every fault of the configuration is said before anything starts.

>>> collect.name
'collect'
"""

from pathlib import Path
from typing import Any

import click

from clickclock.cli.settings import OF_COLLECT, configuration, settings
from clickclock.foundation.seal import seal


@click.command()
@settings(OF_COLLECT)
@click.pass_context
def collect(ctx: click.Context, /, config: Path | None, **options: Any) -> None:
    """Run the click collectors alone.

    Until SIGTERM or Ctrl-C. `serve` includes them.
    """
    seal()
    # Here and not at the top, so that the help of all other commands does not wait for it.
    from clickclock.app import collectors  # noqa: PLC0415 (see the line above)

    with configuration(config, options) as loaded:
        code = collectors.collect(loaded)
    ctx.exit(code)

"""`clickclock clicks`: the clicks that came in, as they arrive and from the lake.

Never loads what a command does not use.

>>> clicks.list_commands(click.Context(clicks))
['tail', 'export']
"""

import click

from clickclock.cli.lazy import LazyGroup

COMMANDS = {
    "tail": "clickclock.cli.clicks_tail:tail",
    "export": "clickclock.cli.clicks_export:export",
}


@click.group(cls=LazyGroup, commands_at=COMMANDS)
def clicks() -> None:
    """Watch clicks arrive, or export them from the lake."""

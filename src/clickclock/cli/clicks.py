"""`clickclock clicks`: clicks as they arrive and from the lake, and what becomes of one.

Never loads what a command does not use.

>>> clicks.list_commands(click.Context(clicks))
['tail', 'check', 'export']
"""

import click

from clickclock.cli.lazy import LazyGroup

COMMANDS = {
    "tail": "clickclock.cli.clicks_tail:tail",
    "check": "clickclock.cli.clicks_check:check",
    "export": "clickclock.cli.clicks_export:export",
}


@click.group(cls=LazyGroup, commands_at=COMMANDS)
def clicks() -> None:
    """Watch clicks arrive, check what becomes of one, or export them from the lake."""

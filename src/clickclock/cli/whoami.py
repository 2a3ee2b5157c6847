"""`clickclock whoami`: who the service takes the caller for, and what it may do.

Never decides it: the service does.

>>> whoami.name
'whoami'
"""

from typing import TYPE_CHECKING

import click

from clickclock.cli.calling import calls
from clickclock.cli.rendering import record, sections
from clickclock.cli.tables import table

if TYPE_CHECKING:
    from clickclock.client import Client, Payload


@click.command()
@calls(
    sections(
        record("whoami"),
        table("whoami.grants", ("role", "role"), ("applications", "applications"), ("clients", "clients")),
    )
)
def whoami(client: "Client") -> "Payload":
    """Show who the service takes you for, and what you may do."""
    return client.whoami()

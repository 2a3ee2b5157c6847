"""`clickclock mapping`: which image a command gets, by its first words.

Never chooses an image: the service does, and says why.

>>> sorted(mapping.commands)
['delete', 'explain', 'list', 'set']
"""

from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.asking import asks, may_ask
from clickclock.cli.calling import calls
from clickclock.cli.completing import complete_prefix
from clickclock.cli.fields import names, page
from clickclock.cli.lazy import Commands
from clickclock.cli.rendering import record, says, when
from clickclock.cli.tables import table

if TYPE_CHECKING:
    from clickclock.client import Client, Payload


@click.group(cls=Commands)
def mapping() -> None:
    """Mappings from command prefixes to container images."""


@mapping.command("list")
@page
@calls(
    table(
        "commandPrefixImageMappings",
        ("prefix", "prefix"),
        ("image", "image"),
        ("description", "description"),
        ("changed", "updatedAt", when),
    )
)
def list_mappings(client: "Client", **filters: Any) -> "Payload":
    """List prefixes with their images."""
    return client.list_mappings(**names(filters))


@mapping.command("set")
@click.argument("prefix", shell_complete=complete_prefix)
@click.argument("image")
@click.option("--description", help="What the image is for.")
@calls(says("Commands that begin with `{prefix}` run in {image}."))
def set_mapping(client: "Client", prefix: str, image: str, description: str | None) -> "Payload":
    """Set the image of commands that begin with PREFIX."""
    return client.put_mapping(prefix, image, description=description)


@mapping.command()
@click.argument("prefix", shell_complete=complete_prefix)
@may_ask
@calls(says("`{prefix}` is no longer mapped."))
@asks("Remove the mapping of {prefix}?")
def delete(client: "Client", prefix: str) -> "Payload":
    """Remove a prefix from the mapping."""
    return client.delete_mapping(prefix)


@mapping.command()
@click.argument("command")
@click.option("--shell", is_flag=True, default=None, help="A shell is to run it.")
@calls(record("choice"))
def explain(client: "Client", command: str, shell: bool | None) -> "Payload":
    """Show which image COMMAND would run in, and why."""
    return client.list_mappings(command=command, shell=shell)

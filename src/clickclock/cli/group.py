"""`clickclock group`: groups, one by one.

Never counts anything. Invariant: a change leaves what it does not name, and fails if someone else was faster.

>>> "pause" in group.commands
True
"""

from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.asking import asks, may_ask
from clickclock.cli.calling import calls
from clickclock.cli.completing import complete_group
from clickclock.cli.fields import body, field, flag, names, needs_fields, page
from clickclock.cli.lazy import Commands
from clickclock.cli.rendering import record, says
from clickclock.cli.tables import table

if TYPE_CHECKING:
    from clickclock.client import Client, Payload

NAME = click.argument("group_name", metavar="GROUP", shell_complete=complete_group)
OPTIONS = (
    field("--description", help="What the group is for."),
    field("--max-concurrent-triggers", type=int, help="How many triggers of the group may run at once."),
    flag("paused", help="While paused, the group starts nothing."),
    field("--pause-reason", help="Why it is paused."),
)


@click.group(cls=Commands)
def group() -> None:
    """Groups: shared policy for a set of jobs."""


@group.command("list")
@click.option("--paused/--not-paused", default=None, help="Only those that are paused, or that are not.")
@page
@calls(
    table(
        "groups",
        ("group", "groupName"),
        ("jobs", "jobs"),
        ("running", "running"),
        ("queued", "queued"),
        ("at most", "maxConcurrentTriggers"),
        ("paused", "paused"),
        ("reason", "pauseReason"),
    )
)
def list_groups(client: "Client", **filters: Any) -> "Payload":
    """List groups, and what they hold now."""
    return client.list_groups(**names(filters))


@group.command()
@NAME
@calls(record("groups.0"))
def show(client: "Client", group_name: str) -> "Payload":
    """Show one group."""
    return client.group(group_name)


@group.command()
@NAME
@body(*OPTIONS)
@calls(says("Group {group_name} is created."))
def create(client: "Client", group_name: str, fields: dict[str, Any]) -> "Payload":
    """Create a group."""
    return client.create_group({**fields, "groupName": group_name})


@group.command()
@NAME
@body(*OPTIONS)
@calls(says("Group {group_name} is changed (version {group[version]})."))
@needs_fields
def update(client: "Client", group_name: str, fields: dict[str, Any]) -> "Payload":
    """Change some fields of a group."""
    return client.change_group(group_name, fields)


@group.command()
@NAME
@may_ask
@calls(says("Group {group_name} is deleted."))
@asks("Delete group {group_name}?")
def delete(client: "Client", group_name: str) -> "Payload":
    """Delete a group that has no jobs."""
    return client.delete_group(group_name)


@group.command()
@NAME
@click.option("--reason", help="Why.")
@calls(says("Group {group_name} is paused."))
def pause(client: "Client", group_name: str, reason: str | None) -> "Payload":
    """Pause a group: it starts nothing; what is running goes on."""
    return client.change_group(group_name, {"paused": True, "pauseReason": reason})


@group.command()
@NAME
@calls(says("Group {group_name} is resumed."))
def resume(client: "Client", group_name: str) -> "Payload":
    """Resume a group: it starts jobs again."""
    return client.change_group(group_name, {"paused": False, "pauseReason": None})

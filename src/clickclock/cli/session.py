"""`clickclock session`: browsers that are signed in, and how an admin ends that.

Never signs anybody in or out here: `login`, `open` and the dashboard do. Invariant: one call of the service each.

>>> sorted(session.commands)
['end', 'list']
"""

from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.asking import asks, may_ask
from clickclock.cli.calling import calls
from clickclock.cli.fields import names, page
from clickclock.cli.lazy import Commands
from clickclock.cli.rendering import grants, when
from clickclock.cli.tables import table

if TYPE_CHECKING:
    from clickclock.client import Client, Payload


@click.group(cls=Commands)
def session() -> None:
    """Sessions: browsers that are signed in."""


@session.command("list")
@click.option("--name", help="Only those of this person or token.")
@page
@calls(
    table(
        "sessions",
        ("name", "name"),
        ("is a", "kind"),
        ("grants", "grants", grants),
        ("by the token", "token"),
        ("signed in", "createdAt", when),
        ("last used", "lastUsedAt", when),
        ("ends", "expiresAt", when),
        ("session", "sessionId"),
        empty="No browser is signed in.",
    )
)
def list_sessions(client: "Client", **filters: Any) -> "Payload":
    """List browsers that are signed in."""
    return client.list_sessions(**names(filters))


@session.command()
@click.argument("name")
@click.option("--session", "session_id", help="Only this session of theirs, as `list` shows it.")
@may_ask
@calls(lambda payload: click.echo(f"Sessions ended: {payload['ended']}."))
@asks("Sign out the browsers of {name}?")
def end(client: "Client", name: str, session_id: str | None) -> "Payload":
    """Sign out the browsers of a person or a token, on every replica."""
    return client.end_sessions(name, session_id)

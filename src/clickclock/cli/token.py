"""`clickclock token`: tokens by which programs and people prove who they are.

Never keeps a token. Invariants: standard output has the token and nothing else, so that it can go into a file; without
`--url` and without a context, what is changed is the store on this host, and no service is needed.

>>> sorted(token.commands)
['create', 'list', 'revoke', 'rotate']
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from clickclock.cli.asking import asks, may_ask
from clickclock.cli.calling import Render, in_forms, service, show
from clickclock.cli.completing import complete_application, complete_token
from clickclock.cli.fields import Instant
from clickclock.cli.lazy import Commands
from clickclock.cli.place import context_in_use
from clickclock.cli.rendering import grants, when
from clickclock.cli.settings import CONFIG, DATA_DIR, configuration, settings
from clickclock.cli.tables import table
from clickclock.foundation.permission import Role

if TYPE_CHECKING:
    from clickclock.app.keyring import Keyring
    from clickclock.client import Client, Payload

    Keys = Client | Keyring

NAME = click.argument("name", shell_complete=complete_token)
OF_TOKENS = (CONFIG, DATA_DIR, click.option("--database-url", help="sqlite:///FILE or postgresql://USER@HOST/NAME."))


@click.group(cls=Commands)
def token() -> None:
    """Tokens: who may do what. Without --url and context, on the store of this host, without a service."""


def _keyed(render: Render) -> Callable[[Callable[..., "Payload"]], Callable[..., None]]:
    """Give a command the service's tokens, or those of the store on this host, and print what it returns."""

    def decorate(command: Callable[..., "Payload"]) -> Callable[..., None]:
        @settings(OF_TOKENS)
        @in_forms
        @functools.wraps(command)
        def run(
            *,
            form: str | None,
            config: Path | None,
            data_dir: Path | None,
            database_url: str | None,
            **arguments: Any,
        ) -> None:
            with _keys(config, {"data_dir": data_dir, "database_url": database_url}) as keys:
                payload = command(keys, **arguments)
            show(payload, form, render)

        return run

    return decorate


@contextmanager
def _keys(config: Path | None, options: dict[str, Any]) -> Iterator["Keys"]:
    context = click.get_current_context()
    root = context.find_root()
    is_of_store = any(value is not None for value in (config, *options.values()))
    is_elsewhere = root.get_parameter_source("url") is not ParameterSource.DEFAULT
    if is_elsewhere or (not is_of_store and context_in_use(root) is not None):
        with service(context.obj) as client:
            yield client
        return
    from clickclock.app.keyring import Keyring  # noqa: PLC0415 (loaded when it is used)

    with configuration(config, options) as loaded:
        yield Keyring(loaded)


def _tell(payload: "Payload") -> None:
    click.echo(f"The token {payload['token']['name']}, which is not shown again:", err=True)
    click.echo(payload["secret"])


def _revoked(payload: "Payload") -> None:
    click.echo(f"The token {payload['token']['name']} is revoked.")


@token.command()
@NAME
@click.option(
    "--role",
    "roles",
    type=click.Choice([each.value for each in Role]),
    multiple=True,
    required=True,
    help="What it may do; may be repeated.",
)
@click.option(
    "--application",
    "applications",
    shell_complete=complete_application,
    multiple=True,
    help="Only in this application; may be repeated.",
)
@click.option("--client", "clients", multiple=True, help="Only of this client account; may be repeated.")
@click.option("--expires-at", type=Instant(), help="When it ends, such as +90d; never if not given.")
@_keyed(_tell)
def create(
    keys: "Keys",
    name: str,
    roles: tuple[str, ...],
    applications: tuple[str, ...],
    clients: tuple[str, ...],
    expires_at: str | None,
) -> "Payload":
    """Create a token and print it, this once."""
    scope: dict[str, Any] = {}
    if applications or clients:  # what is not named then is not granted
        scope = {"applications": list(applications), "clients": list(clients)}
    return keys.create_token(name, [{"role": role, **scope} for role in roles], expires_at)


@token.command("list")
@_keyed(
    table(
        "tokens",
        ("name", "name"),
        ("grants", "grants", grants),
        ("created", "createdAt", when),
        ("by", "createdBy"),
        ("expires", "expiresAt", when),
        ("last used", "lastUsedAt", when),
        ("revoked", "revokedAt", when),
    )
)
def list_tokens(keys: "Keys") -> "Payload":
    """List tokens, those that are revoked or expired among them."""
    return keys.list_tokens()


@token.command()
@NAME
@_keyed(_tell)
def rotate(keys: "Keys", name: str) -> "Payload":
    """Print another token of the same name and grants; the old one is refused from then on."""
    return keys.rotate_token(name)


@token.command()
@NAME
@may_ask
@_keyed(_revoked)
@asks("Revoke the token {name}? Nothing brings it back.")
def revoke(keys: "Keys", name: str) -> "Payload":
    """Revoke a token; nothing brings it back."""
    return keys.revoke_token(name)

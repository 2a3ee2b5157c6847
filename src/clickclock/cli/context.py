"""`clickclock context`: services by name, each with its address and its token.

Never asks a service, and never shows a token. Invariant: a command goes to the context in use, unless an address is
given.

>>> sorted(context.commands)
['add', 'list', 'remove', 'use']
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clickclock.cli.calling import print_json, refusal
from clickclock.cli.lazy import Commands
from clickclock.cli.place import complete_context
from clickclock.cli.program import address
from clickclock.cli.tables import table
from clickclock.foundation.errors import ClickclockError

if TYPE_CHECKING:
    from clickclock.foundation.contexts import Contexts

_SHOW = table(
    "contexts", ("name", "name"), ("in use", "isInUse"), ("address", "url"), ("token", "token"), ("CA", "caFile")
)
NAME = click.argument("name", shell_complete=complete_context)


@click.group(cls=Commands)
def context() -> None:
    """Contexts: services by name, with their tokens."""


@contextmanager
def kept() -> Iterator[tuple["Contexts", Path]]:
    """The contexts of this user, and their file; what is wrong with them ends the command."""
    from clickclock.foundation.contexts import Contexts, contexts_file  # noqa: PLC0415 (loaded when it is used)

    file = contexts_file()
    try:
        yield Contexts.read(file), file
    except ClickclockError as error:
        raise refusal(error) from error


@context.command()
@click.argument("name")
@click.option("--url", required=True, callback=address, help="Where the service is.")
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    help="The file with its token, which is read each time; - keeps the token of standard input with the context.",
)
@click.option("--ca-file", type=click.Path(dir_okay=False, path_type=Path), help="Certificates to believe, too.")
def add(name: str, url: str, token_file: Path | None, ca_file: Path | None) -> None:
    """Add a context, or change it, and use it."""
    from clickclock.foundation.contexts import Context  # noqa: PLC0415 (loaded when it is used)

    token = None
    if token_file == Path("-"):
        token, token_file = sys.stdin.read().strip(), None
    key, trusted = (None if each is None else str(each.absolute()) for each in (token_file, ca_file))
    with kept() as (contexts, file):
        contexts.having(name, Context(url, token, key, trusted)).write(file)
    click.echo(f"The context {name} is in use: {url}")


@context.command()
@NAME
def use(name: str) -> None:
    """Use a context from now on."""
    with kept() as (contexts, file):
        found = contexts.find(name)
        assert found is not None
        contexts.having(name, found).write(file)
    click.echo(f"The context {name} is in use: {found.url}")


@context.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def list_contexts(*, as_json: bool) -> None:
    """Show the contexts, and which one is in use."""
    with kept() as (contexts, _):
        rows = [
            {
                "name": name,
                "isInUse": name == contexts.current,
                "url": each.url,
                "token": each.token_file or ("kept here" if each.token else None),
                "caFile": each.ca_file,
            }
            for name, each in contexts.named.items()
        ]
    payload = {"contexts": rows}
    if as_json:
        print_json(payload)
    else:
        _SHOW(payload)


@context.command()
@NAME
def remove(name: str) -> None:
    """Remove a context, and its token from this machine."""
    with kept() as (contexts, file):
        contexts.without(name).write(file)
    click.echo(f"The context {name} is removed. Its token goes on working; `clickclock token revoke` ends it.")

"""Where a command goes: the address, the token and the certificates that were given, or those of the context in use.

Never asks a service. Invariants: an address that is given beats the context in use, and takes none of its token; who
has no contexts pays nothing for them.

>>> address_of(click.Context(click.Command("x")))   # doctest: +SKIP
'http://127.0.0.1:8080'
"""

from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from clickclock.foundation.errors import ConfigurationError
from clickclock.foundation.user_settings import has_contexts

if TYPE_CHECKING:
    from pathlib import Path

    from click.shell_completion import CompletionItem

    from clickclock.foundation.contexts import Context


def address_of(ctx: click.Context) -> str:
    """Where the service is. Raises `ConfigurationError`."""
    root = ctx.find_root()
    context = context_in_use(root)
    return str(root.params["url"]) if context is None else context.url


def token_of(ctx: click.Context) -> str | None:
    """The token of the context in use; None without one, and where the caller says which token to send."""
    root = ctx.find_root()
    context = context_in_use(root)
    if context is None or root.params.get("token_file") is not None or _environment_has_token():
        return None
    return context.key()


def ca_file_of(ctx: click.Context) -> "Path | None":
    """The file of further certificates to believe."""
    from pathlib import Path  # noqa: PLC0415 (only who calls a service needs it)

    root = ctx.find_root()
    if (given := root.params.get("ca_file")) is not None:
        return Path(given)
    context = context_in_use(root)
    return None if context is None or context.ca_file is None else Path(context.ca_file)


def context_in_use(root: click.Context) -> "Context | None":
    """The context that was asked for; else the current one, if no address was given. Raises `ConfigurationError`."""
    name, source = root.params.get("context"), root.get_parameter_source
    if source("url") is ParameterSource.COMMANDLINE:
        if source("context") is ParameterSource.COMMANDLINE:
            raise ConfigurationError("Give --url or --context, and not both: a token goes to its own service only.")
        return None
    if name is None and (source("url") is not ParameterSource.DEFAULT or not has_contexts()):
        return None
    from clickclock.foundation.contexts import Contexts, contexts_file  # noqa: PLC0415 (see the invariants)

    return Contexts.read(contexts_file()).find(name)


def complete_context(_ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """The contexts that begin so, each with its address."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415 (only who presses Tab needs it)

    from clickclock.foundation.contexts import Contexts, contexts_file  # noqa: PLC0415 (as above)

    try:
        named = Contexts.read(contexts_file()).named
    except ConfigurationError:
        return []
    return [CompletionItem(name, help=each.url) for name, each in named.items() if name.startswith(incomplete)]


def _environment_has_token() -> bool:
    from clickclock.client.site import token_of_environment  # noqa: PLC0415 (loaded by who calls a service)

    return bool(token_of_environment())

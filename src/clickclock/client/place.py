"""Where a client goes, by which token, and whose certificates it believes: as it was given, or of a context.

Never opens a connection. Invariant: the token of a context goes to the address of that context.

>>> place_of("http://127.0.0.1:8080", None, None, "", None).url
'http://127.0.0.1:8080'
"""

from pathlib import Path

from clickclock.client.site import token_of_environment, token_of_this_user
from clickclock.foundation.contexts import Context, Contexts, contexts_file
from clickclock.foundation.errors import ConfigurationError


def place_of(
    default: str, url: str | None, context: str | None, token: str | None, ca_file: Path | str | None
) -> Context:
    """Address, token and certificates. Raises `ConfigurationError`.

    Without a token, `CLICKCLOCK_TOKEN` of the environment is taken, or what a service of this user left for it.
    """
    found = Context(url or default)
    if context is not None:
        if url is not None:
            raise ConfigurationError("Give base_url or context, not both: a token goes to its own service only.")
        named = Contexts.read(contexts_file()).find(context)
        assert named is not None
        found = named
        token = found.key() if token is None else token
    if token is None:
        token = token_of_environment() or token_of_this_user(found.url)
    trusted = found.ca_file if ca_file is None else str(ca_file)
    return Context(found.url, token, None, trusted)

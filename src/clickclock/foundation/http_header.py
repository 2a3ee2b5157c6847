"""Headers that a caller adds to its requests, such as those that a proxy asks for.

Never repeats a value: it may be a secret. Invariant: what is returned can be sent as it is.
Source: RFC 9110, section 5 (field names and values).

>>> parsed("X-Team: shop")
('X-Team', 'shop')
"""

import re

from clickclock.foundation.errors import ConfigurationError

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e]*")


def parsed(line: str) -> tuple[str, str]:
    """`Name: value` as name and value. Raises `ConfigurationError`."""
    name, colon, value = line.partition(":")
    if not colon:
        raise ConfigurationError("A header has no colon; give it as 'Name: value'.")
    return checked(name, value)


def checked(name: str, value: str) -> tuple[str, str]:
    """A header without the space around its value. Raises `ConfigurationError`, with its name at the most."""
    value = value.strip()
    if not _NAME.fullmatch(name):
        raise ConfigurationError("A header's name is letters, digits and signs such as - and _; give 'Name: value'.")
    if not _VALUE.fullmatch(value):
        raise ConfigurationError(f"The value of the header {name} has other characters than printable ASCII.")
    return name, value


def bearer(token: str) -> str:
    """The `Authorization` that a token is sent as. Raises `ConfigurationError`."""
    token = token.strip()
    if not _VALUE.fullmatch(token) or not token or " " in token or "\t" in token:
        raise ConfigurationError("A token is printable ASCII without spaces; look at CLICKCLOCK_TOKEN.")
    return f"Bearer {token}"

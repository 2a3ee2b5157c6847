"""Addresses without the passwords and tokens in them, for messages, logs and listings.

Never changes what an address leads to: only what people read of it. Errs on the side of silence: a password that was
not escaped (`hu/sh`, `h@sh`) is covered up to the last `@` of its word. Invariant: a text without an address is as it
was, and a redacted text is not changed by a second look.

>>> redacted("http://me:hush@one/x answers 401; see https://one/help")
'http://me:**********@one/x answers 401; see https://one/help'
"""

import re
from typing import Any

STARS = "**********"
_ADDRESS = re.compile(
    # A path of an address has one slash.
    r"(?P<scheme>\b[A-Za-z][A-Za-z0-9+.-]*)(?P<slashes>://?)(?P<user>[^\s/?#@:]*)"
    # After a port, an `@` belongs to the path.
    r"(?P<password>:(?!\d{0,5}[/?#])\S*)?@"
)
_PARAMETER = re.compile(
    r"([?&;](?:[\w.-]*(?:passw(?:or)?d|secret|token|api[_-]?key|signature)|sig|pwd)=)[^&\s\"'<>]+", re.IGNORECASE
)
_WORDS_OF_ONE = re.compile(r"\s(?=.*@)", re.DOTALL)


def redacted(text: str) -> str:
    """A text, with stars for the passwords of all addresses in it, and for tokens in the place of a user's name.

    >>> redacted("https://ghp_hush@one, postgresql://me@db/jobs?sslpassword=hush&sslmode=require")
    'https://**********@one, postgresql://me@db/jobs?sslpassword=**********&sslmode=require'
    """
    if ":/" in text:
        text = _ADDRESS.sub(_covered, text)
    return _PARAMETER.sub(rf"\1{STARS}", text) if "=" in text else text


def redacted_value(value: Any) -> Any:
    """A setting's value, with all addresses in it redacted; a text is one address, and may have spaces.

    >>> redacted_value({"url": ["postgresql://me:hu sh@db/jobs"]})
    {'url': ['postgresql://me:**********@db/jobs']}
    """
    match value:
        case str():
            return redacted(_WORDS_OF_ONE.sub("_", value) if "://" in value else value)
        case dict():
            return {name: redacted_value(each) for name, each in value.items()}
        case list():
            return [redacted_value(each) for each in value]
    return value


def _covered(found: re.Match[str]) -> str:
    user, is_token = found["user"], found["password"] is None and found["scheme"].lower() in {"http", "https"}
    if found["password"] is None:
        return f"{found['scheme']}{found['slashes']}{STARS if is_token and user else user}@"
    return f"{found['scheme']}{found['slashes']}{user}:{STARS}@"

"""Tokens as they are written, sent and kept: `cck_`, 43 characters for 256 random bits, and 6 of a checksum.

Never makes the random bits, and never keeps a token: what is kept is its digest. Invariant: a token that was cut or
mistyped is known as one without asking anybody.

>>> token = written(bytes(32))
>>> len(token), is_whole(token), is_whole(token[:-1] + "x")
(53, True, False)
"""

import re
from binascii import crc32
from collections.abc import Sequence
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Final

PREFIX: Final = "cck_"
SECRET_BYTES: Final = 32
_ALPHABET: Final = digits + ascii_uppercase + ascii_lowercase
_SECRET_CHARS: Final = 43
_CHECK_CHARS: Final = 6
_WHOLE: Final = re.compile(rf"{PREFIX}[0-9A-Za-z]{{{_SECRET_CHARS + _CHECK_CHARS}}}")
_IN_AN_ADDRESS: Final = re.compile(rb"cck_[0-9A-Za-z]{8}|(?:^|&)access_token=")
COOKIES: Final = ("__Host-clickclock", "clickclock")
"""What a browser keeps a token in: under TLS the first, which no other host can set."""
_HOW: Final = "Send a token as `Authorization: Bearer cck_…`"


class Unreadable(ValueError):
    """A request says who asks in a way that is not taken; the message says what to send instead."""


def written(secret: bytes) -> str:
    """A token of 32 random bytes."""
    body = _base62(int.from_bytes(secret), _SECRET_CHARS)
    return f"{PREFIX}{body}{_check(body)}"


def is_whole(text: str) -> bool:
    """Whether it is a token with the right checksum."""
    return bool(_WHOLE.fullmatch(text)) and _check(text[len(PREFIX) : -_CHECK_CHARS]) == text[-_CHECK_CHARS:]


def digest(token: str) -> str:
    """The digest that stands for a token in the store."""
    return sha256(token.encode()).hexdigest()


def token_of(headers: Sequence[tuple[bytes, bytes]], query: bytes) -> str | None:
    """The token of a request, of its cookie if it has no other; None if it has none. Raises `Unreadable`."""
    if b"c" in query and _IN_AN_ADDRESS.search(query):
        raise Unreadable(f"A token in an address is not taken, because addresses are logged; revoke it. {_HOW}.")
    given = [value for name, value in headers if name == b"authorization"]
    if not given:
        return _kept_by_a_browser(headers)
    if len(given) > 1:
        raise Unreadable(f"The request has {len(given)} Authorization headers; send one.")
    scheme, _, token = given[0].decode("latin-1").strip().partition(" ")
    if scheme.lower() != "bearer":
        raise Unreadable(f"Authorization of the kind {scheme[:20] or '(none)'} is not taken. {_HOW}.")
    token = token.strip()
    if not is_whole(token):
        raise Unreadable(
            f"This is no token of clickclock, or not the whole of one. {_HOW}: it has 53 characters, without spaces."
        )
    return token


def cookie(token: str, *, seconds: int, is_secure: bool) -> str:
    """The `Set-Cookie` that has a browser keep a token, out of reach of its scripts; none for 0 seconds."""
    name = COOKIES[0] if is_secure else COOKIES[1]
    secure = "; Secure" if is_secure else ""
    return f"{name}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"


def _kept_by_a_browser(headers: Sequence[tuple[bytes, bytes]]) -> str | None:
    kept: SimpleCookie = SimpleCookie()
    try:
        for name, value in headers:
            if name == b"cookie" and PREFIX.encode() in value:
                kept.load(value.decode("latin-1"))
    except CookieError:
        return None
    token = next((kept[name].value for name in COOKIES if name in kept), None)
    if token is not None and not is_whole(token):
        raise Unreadable("The cookie of this browser holds no token of clickclock. Sign in again.")
    return token


def _check(body: str) -> str:
    return _base62(crc32(body.encode()), _CHECK_CHARS)


def _base62(number: int, length: int) -> str:
    letters = []
    for _ in range(length):
        number, place = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[place])
    return "".join(reversed(letters))

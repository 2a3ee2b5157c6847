"""Tokens and sessions as they are written, sent and kept: a prefix, 43 characters for 256 random bits, 6 of a checksum.

A program sends a token (`cck_…`) in a header, a browser sends its session (`ccs_…`) in a cookie. Never makes the random
bits, and never keeps any of them: what is kept is the digest. Invariants: what was cut or mistyped is known as such
without asking anybody; a token counts in a header alone, and a session in a cookie alone.

>>> token = written(bytes(32))
>>> len(token), is_whole(token), is_whole(token[:-1] + "x")
(53, True, False)
"""

import re
from binascii import crc32
from collections.abc import Sequence
from hashlib import sha256
from hmac import compare_digest
from hmac import digest as hmac_digest
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Final

PREFIX: Final = "cck_"
SESSION_PREFIX: Final = "ccs_"
SIGN_IN_PREFIX: Final = "ccl_"
"""Prefix of a secret that makes a session or a token, once and within minutes."""
ADMIN_TOKEN: Final = "admin-token"  # noqa: S105 (the name of a file)
"""In the data folder: the token of the service's own user, where the kernel cannot say who asks."""
SECRET_BYTES: Final = 32
_ALPHABET: Final = digits + ascii_uppercase + ascii_lowercase
_SECRET_CHARS: Final = 43
_CHECK_CHARS: Final = 6
_WHOLE: Final = re.compile(rf"[0-9A-Za-z]{{{_SECRET_CHARS + _CHECK_CHARS}}}")
_IN_AN_ADDRESS: Final = re.compile(rb"cc[ksl]_[0-9A-Za-z]{8}|(?:^|&)access_token=")
COOKIES: Final = ("__Host-clickclock", "clickclock")
"""What a browser keeps its session in: under TLS the first, which no other host can set."""
SESSION_TOKEN: Final = "x-session-token"  # noqa: S105 (the name of a header)
"""The header by which a change shows that a page of this service asks for it: other sites cannot read its value."""
_HOW: Final = "Send a token as `Authorization: Bearer cck_…`"


class Unreadable(ValueError):
    """A request says who asks in a way that is not taken; the message says what to send instead."""


def written(secret: bytes, prefix: str = PREFIX) -> str:
    """A token of 32 random bytes, or what another prefix says."""
    body = _base62(int.from_bytes(secret), _SECRET_CHARS)
    return f"{prefix}{body}{_check(body)}"


def is_whole(text: str, prefix: str = PREFIX) -> bool:
    """Whether it is a token (or what the prefix says) with the right checksum."""
    body = text.removeprefix(prefix)
    is_prefixed = len(body) + len(prefix) == len(text)
    return is_prefixed and bool(_WHOLE.fullmatch(body)) and _check(body[:_SECRET_CHARS]) == body[_SECRET_CHARS:]


def digest(token: str) -> str:
    """The digest that stands for a token in the store."""
    return sha256(token.encode()).hexdigest()


def session_token(session: str) -> str:
    """What a page of this service sends with each change, made from the session that its scripts cannot read."""
    return hmac_digest(session.encode(), b"a change by a page of this service", "sha256").hex()


def has_session_token(headers: Sequence[tuple[bytes, bytes]], session: str) -> bool:
    """Whether a request brings the token of its session in `SESSION_TOKEN`."""
    given = [value for name, value in headers if name == SESSION_TOKEN.encode()]
    return len(given) == 1 and compare_digest(given[0], session_token(session).encode())


_OTHER_KINDS: Final = frozenset(("apikey", "basic", "digest", "dpop", "hmac", "negotiate", "ntlm", "token"))


def key_of(headers: Sequence[tuple[bytes, bytes]], query: bytes) -> str | None:
    """The token of a request, or the session of its cookie if it has no token; None without both.

    Raises `Unreadable`.
    """
    if b"cc" in query and _IN_AN_ADDRESS.search(query):
        raise Unreadable(f"A token in an address is not taken, because addresses are logged; revoke it. {_HOW}.")
    given = [value for name, value in headers if name == b"authorization"]
    if not given:
        return _session_of(headers)
    if len(given) > 1:
        raise Unreadable(f"The request has {len(given)} Authorization headers; send one.")
    scheme, _, token = given[0].decode("latin-1").strip().partition(" ")
    if scheme.lower() != "bearer":
        # Any other word may be a part of a secret.
        kind = f"Authorization of the kind {scheme}" if scheme.lower() in _OTHER_KINDS else "That Authorization"
        raise Unreadable(f"{kind} is not taken. {_HOW}.")
    token = token.strip()
    if not is_whole(token):
        raise Unreadable(
            f"This is no token of clickclock, or not the whole of one. {_HOW}: it has 53 characters, without spaces."
        )
    return token


def cookie(session: str, *, seconds: int, is_secure: bool) -> str:
    """The `Set-Cookie` that has a browser keep a session, out of reach of its scripts; none for 0 seconds."""
    name = COOKIES[0] if is_secure else COOKIES[1]
    secure = "; Secure" if is_secure else ""
    return f"{name}={session}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"


def _session_of(headers: Sequence[tuple[bytes, bytes]]) -> str | None:
    ours = SESSION_PREFIX.encode()
    kept = dict[str, str]()
    for name, value in headers:
        if name == b"cookie" and ours in value:
            pairs = (pair.strip().partition("=") for pair in value.decode("latin-1").split(";"))
            kept |= {cookie_name: content.strip('"') for cookie_name, _, content in pairs}
    session = next((kept[name] for name in COOKIES if name in kept), None)
    if session is not None and not is_whole(session, SESSION_PREFIX):
        raise Unreadable("The cookie of this browser holds no session of clickclock. Sign in again.")
    return session


def _check(body: str) -> str:
    return _base62(crc32(body.encode()), _CHECK_CHARS)


def _base62(number: int, length: int) -> str:
    letters = []
    for _ in range(length):
        number, place = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[place])
    return "".join(reversed(letters))

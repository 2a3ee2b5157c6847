"""The address of a service, and what is sent with each request to it: a proxy in front of it may ask who calls.

Never keeps a name or a password in an address, because errors and logs tell addresses: they become a header.
Invariant: the headers of one origin (scheme, host and port) are never sent to another.

>>> Site.of("http://me:hush@one/")
Site(url='http://one')
"""

import os
import stat
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import SplitResult, unquote, urlsplit

from clickclock.foundation.bearer import ADMIN_TOKEN
from clickclock.foundation.http_header import bearer, checked

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1", "0.0.0.0", "::"})  # noqa: S104 (whom to ask, not to listen)
_ESCAPE = "a password in an address has %2F, %3F, %23 and %40 for / ? # and @"


@dataclass(frozen=True, slots=True)
class Site:
    """Where a service is. `headers` are lower-case names with their values."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    parts: SplitResult = field(repr=False, compare=False)

    @classmethod
    def of(cls, address: str, headers: Mapping[str, str] | None = None, token: str | None = None) -> Self:
        """Take an address apart. A header of its own goes before the address's password, and that before the token.

        Raises `ValueError` where the host or the port is none, and `ConfigurationError` where a header cannot be sent.
        Neither repeats a password.
        """
        parts = _parts(address)
        credentials, _, place = parts.netloc.rpartition("@")
        sent = {} if not token else {"authorization": bearer(token)}
        if credentials:
            user, _, password = credentials.partition(":")
            basic = b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()
            sent["authorization"] = f"Basic {basic}"
        sent |= {name.lower(): value for name, value in (checked(*each) for each in (headers or {}).items())}
        clean = parts._replace(netloc=place)
        return cls((clean.geturl() if credentials else address).rstrip("/"), sent, clean)

    def is_at(self, url: str) -> bool:
        """Whether a URL is of this origin."""
        other = urlsplit(url)
        return (other.scheme, other.netloc) == (self.parts.scheme, self.parts.netloc)


def token_of_environment() -> str | None:
    """The token that requests carry if the caller gives none."""
    return os.environ.get("CLICKCLOCK_TOKEN")  # noqa: TID251 (it is the caller's, not a setting of the service)


def is_of_this_machine(url: str) -> bool:
    """Whether an address is one of this machine's own; what is no address is not."""
    try:
        return urlsplit(url).hostname in LOOPBACK
    except ValueError:
        return False


def token_of_this_user(url: str) -> str | None:
    """The token that a service of this user left in its data folder, where the kernel cannot say who asks.

    Only for an address of this machine, and only from a file that is this user's and nobody else may read.
    """
    if not is_of_this_machine(url):
        return None
    file = Path(os.environ.get("CLICKCLOCK_DATA_DIR", "clickclock-data")) / ADMIN_TOKEN  # noqa: TID251 (as above)
    try:
        found = file.lstat()
        is_ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
        return file.read_text(encoding="ascii").strip() if is_ours else None
    except (OSError, UnicodeDecodeError):
        return None


def _parts(address: str) -> SplitResult:
    try:
        parts = urlsplit(address)
        (parts.hostname or "").encode("idna")
        _ = parts.port
    except ValueError:
        if "@" in address:  # the error would quote what follows the password's first such character
            raise ValueError(_ESCAPE) from None
        raise
    return parts

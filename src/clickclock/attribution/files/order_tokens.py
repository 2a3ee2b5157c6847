"""The door to order tokens: a file of digests that the scheduler keeps, and each collector reads anew when it changes.

Never has a token, and never asks a database: a look is one system call, on a timer and on no request's path.
Invariants: an account that ever had an order token needs one, so that revoking the last one does not open it; a file
that cannot be read leaves what was known; what is written is there whole or not at all.

>>> OrderTokens(None).needs("shop-1")
False
"""

import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

EVERY: Final = "*"
"""In the place of a client: tokens that are good for each of them."""
_log = logging.getLogger(__name__)


class OrderToken(msgspec.Struct, frozen=True, rename="camel"):
    """A token's digest in hexadecimal, and when it ends, in milliseconds since 1970."""

    sha256: str
    expires_at_ms: int | None = None


class OrderTokens:
    """What one collector knows."""

    def __init__(self, file: Path | None, *, are_needed: bool = False) -> None:
        """Without a file there are none. `are_needed`: by every account, also by one that never had any."""
        self._file = file
        self._are_needed = are_needed
        self._seen: tuple[int, int, int] | None = None
        self._known: dict[str, dict[str, int | None]] = {}

    def needs(self, client_id: str) -> bool:
        """Whether orders of an account need a token: all do, or it has or had one of its own."""
        return self._are_needed or client_id in self._known

    def takes(self, client_id: str, sha256: str, now_ms: int) -> bool:
        """Whether a token with this digest may send orders of an account."""
        for name in (client_id, EVERY):
            ends = self._known.get(name, {}).get(sha256, 0)
            if ends is None or ends > now_ms:
                return True
        return False

    def refresh(self) -> None:
        """Read the file if it is another one than before."""
        if self._file is None:
            return
        try:
            found = self._file.stat()
            seen = (found.st_ino, found.st_mtime_ns, found.st_size)
            if seen == self._seen:
                return
            told = msgspec.json.decode(self._file.read_bytes(), type=dict[str, list[OrderToken]])
        except FileNotFoundError:
            return  # no scheduler has written one yet, or it is being replaced by hand
        except (OSError, msgspec.MsgspecError) as error:
            _log.error("order tokens cannot be read from %s, and those that were known count on: %s", self._file, error)
            return
        self._known = {name: {each.sha256: each.expires_at_ms for each in those} for name, those in told.items()}
        self._seen = seen


def write_order_tokens(file: Path, tokens: Mapping[str, Sequence[OrderToken]]) -> bool:
    """Publish the tokens by client, for this user alone; whether they were others before. Raises `OSError`."""
    content = json.dumps({name: [_wire(each) for each in those] for name, those in sorted(tokens.items())}).encode()
    if file.exists() and file.read_bytes() == content:
        return False
    fresh = file.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as made:
        made.write(content)
        made.flush()
        os.fsync(made.fileno())
    fresh.rename(file)
    return True


def _wire(token: OrderToken) -> dict[str, Any]:
    return {"sha256": token.sha256, "expiresAtMs": token.expires_at_ms}

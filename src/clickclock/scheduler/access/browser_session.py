"""Sessions of browsers that signed in, and the keys that make one: who it is, and until when. Pure.

Never holds a session's secret or its digest. Invariants: a session ends when its browser has asked for nothing in
`IDLE`, and `LONGEST` after it began, however busy it is; one that rests on a token ends with that token, and when the
token is rotated or grants something else.

>>> ends_at(began, last_used=began) == began + IDLE   # doctest: +SKIP
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from clickclock.foundation.permission import Role
from clickclock.foundation.principal import Grant, Principal, Proof, nobody
from clickclock.foundation.record import rfc3339
from clickclock.scheduler.access.access_token import Token

IDLE: Final = timedelta(hours=12)
LONGEST: Final = timedelta(days=7)


class Session(msgspec.Struct, frozen=True):
    """A signed-in browser. `token` is the one that it rests on, if it rests on one and the store still has it."""

    session_id: str
    principal: Principal
    created_at: datetime
    last_used_at: datetime
    token: Token | None = None

    @property
    def expires_at(self) -> datetime:
        """When it ends, if nothing is asked for any more and its token lives so long."""
        end = ends_at(self.created_at, self.last_used_at)
        return end if self.token is None or self.token.expires_at is None else min(end, self.token.expires_at)

    def principal_at(self, now: datetime) -> Principal:
        """Whose it is; `nobody`, with a sentence, if it has ended."""
        if (end := ends_at(self.created_at, self.last_used_at)) <= now:
            return nobody(f"This session ended at {rfc3339(end)}. Sign in again.")
        if self.principal.token_sha256 is not None:
            if self.token is None:
                return nobody("The token of this session was rotated. Sign in again.")
            if (ended := self.token.ended(now)) is not None:
                return nobody(ended)
            if grants_of(self.principal.grants) != grants_of(self.token.principal_grants()):
                return nobody(f"The token {self.token.name} grants something else now. Sign in again.")
        return replace(self.principal, proof=Proof.SESSION)


LINK_LASTS: Final = timedelta(minutes=1)
LOGIN_LASTS: Final = timedelta(minutes=10)
TOKEN_LASTS: Final = timedelta(days=30)
"""Life of a token that a person granted to a command line."""
CODE_CHARS: Final = 8
CODE_ALPHABET: Final = "BCDFGHJKLMNPQRSTVWXZ"
"""Letters that make no words, and that nobody takes for a digit."""


class Waiting(msgspec.Struct, frozen=True):
    """A command line that waits for a person to let it in. `said` is what it says of itself, and may be a lie."""

    code: str
    said: str
    expires_at: datetime


def read_code(given: str) -> str:
    """A code as it is kept, whatever a person makes of it: `bcdf-ghjk`, `BCDF GHJK`."""
    return "".join(letter for letter in given.upper() if letter in CODE_ALPHABET)


def ends_at(began: datetime, last_used: datetime) -> datetime:
    """When a session ends in which nothing is asked for after `last_used`."""
    return min(began + LONGEST, last_used + IDLE)


def grants_of(grants: Iterable[Grant]) -> list[dict[str, Any]]:
    """Grants as they are kept: in one order, so that two are equal if they allow the same."""
    told = [
        {"role": each.role.value, "applications": sorted(each.applications), "clients": sorted(each.clients)}
        for each in grants
    ]
    return sorted(told, key=repr)


def read_grants(kept: Iterable[dict[str, Any]]) -> tuple[Grant, ...]:
    """Grants as they were kept. One of a role that a newer release knows, and this one does not, is left out."""
    return tuple(
        Grant(Role(each["role"]), frozenset(each["applications"]), frozenset(each["clients"]))
        for each in kept
        if each["role"] in set(Role)
    )

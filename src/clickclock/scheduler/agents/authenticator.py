"""Tokens → principals, with what was found a moment ago kept in memory.

Never sees a password, and keeps digests alone. Invariants: what is known of a token is at most `STALE_S` old, and
nothing that was known before `forget` is used after it; a token in use is looked up anew beside its requests, and not
on their path; when a token was used is written at most once in `NOTED_EVERY`.

>>> Authenticator(store, clock)   # doctest: +SKIP
"""

import asyncio
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from clickclock.foundation.bearer import SECRET_BYTES, digest, written
from clickclock.foundation.clock import Clock
from clickclock.foundation.errors import StoreUnreachable
from clickclock.foundation.principal import THE_SERVICE, Kind, Principal, Proof, nobody
from clickclock.foundation.record import rfc3339
from clickclock.scheduler.access.access_token import Token
from clickclock.scheduler.store import Hint, Store

STALE_S: Final = 2.0
FRESH_S: Final = 1.0
"""After this the next request has it looked up, and is itself answered by what is known."""
KNOWN_MAX: Final = 16_384
NOTED_EVERY: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class _Known:
    principal: Principal
    read_at_s: float
    expires_at: datetime | None


class Authenticator:
    """Whose token it is."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._refreshing: dict[str, asyncio.Task[Principal]] = {}
        self._noting: set[asyncio.Task[None]] = set()
        self._generation = 0
        self.own_token = mint()
        """By which the service asks itself; no other process knows it, and it ends with this one."""
        self._own_digest = digest(self.own_token)

    async def principal_of(self, token: str) -> Principal:
        """Whose token it is; `nobody`, with a sentence, if it is not valid. Raises `StoreUnreachable`."""
        key = digest(token)
        if key == self._own_digest:
            return THE_SERVICE
        known, now_s = self._known.get(key), self._clock.monotonic_s()
        if known is None or now_s - known.read_at_s >= STALE_S:
            return await self._read(key)
        if now_s - known.read_at_s >= FRESH_S and key not in self._refreshing:
            self._refreshing[key] = asyncio.create_task(self._read(key))
            self._refreshing[key].add_done_callback(lambda done: self._refreshed(key, done))
        if known.expires_at is not None and known.expires_at <= self._clock.now():
            return _expired(known.principal.name, known.expires_at)
        return known.principal

    def forget(self) -> None:
        """Look each token up anew."""
        self._generation += 1
        self._known.clear()

    def changed(self) -> None:
        """Tokens were changed here: neither we nor other replicas go by what was known of them."""
        self.forget()
        self._store.hints.tell(Hint.TOKENS)

    async def _read(self, key: str) -> Principal:
        generation, read_at_s = self._generation, self._clock.monotonic_s()
        token = await self._store.tokens.by_digest(key)
        if token is None:
            self._known.pop(key, None)
            return nobody("This token is not known here: it was rotated, or is of another installation. Ask an admin.")
        now = self._clock.now()
        principal = _principal(token, now)
        if principal.kind is Kind.NOBODY:
            self._known.pop(key, None)
            return principal
        if generation == self._generation:
            if len(self._known) >= KNOWN_MAX:
                self._known.pop(next(iter(self._known)))
            self._known[key] = _Known(principal, read_at_s, token.expires_at)
        if token.last_used_at is None or now - token.last_used_at >= NOTED_EVERY:
            noting = asyncio.create_task(self._store.tokens.used(token.token_id, now))
            self._noting.add(noting)
            noting.add_done_callback(self._noted)
        return principal

    def _refreshed(self, key: str, done: asyncio.Task[Principal]) -> None:
        self._refreshing.pop(key, None)
        _expect(done)

    def _noted(self, done: asyncio.Task[None]) -> None:
        self._noting.discard(done)
        _expect(done)


def mint() -> str:
    """A new token."""
    return written(secrets.token_bytes(SECRET_BYTES))


def _expect(done: "asyncio.Task[Principal] | asyncio.Task[None]") -> None:
    """A store that is away is reported to the next request, which waits for it."""
    if not done.cancelled() and (error := done.exception()) and not isinstance(error, StoreUnreachable):
        raise error


def _principal(token: Token, now: datetime) -> Principal:
    if token.revoked_at is not None:
        return nobody(f"The token {token.name} was revoked at {rfc3339(token.revoked_at)}; ask an admin for another.")
    if token.expires_at is not None and token.expires_at <= now:
        return _expired(token.name, token.expires_at)
    return Principal(Kind.TOKEN, token.token_id, token.name, Proof.TOKEN, token.principal_grants())


def _expired(name: str, at: datetime) -> Principal:
    return nobody(f"The token {name} expired at {rfc3339(at)}; ask an admin for another.")

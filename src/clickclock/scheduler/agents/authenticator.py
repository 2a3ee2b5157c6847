"""Tokens and sessions → principals, with what was found a moment ago kept in memory.

Never sees a password, and keeps digests alone. Invariants: what is known of a key is at most `STALE_S` old, and nothing
that was known before `forget` is used after it; a key in use is looked up anew beside its requests, and not on their
path; when a key was used is written at most once in `NOTED_EVERY`.

>>> Authenticator(store, clock)   # doctest: +SKIP
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from clickclock.foundation.bearer import PREFIX, SECRET_BYTES, SESSION_PREFIX, digest, written
from clickclock.foundation.clock import Clock
from clickclock.foundation.errors import StoreUnreachable
from clickclock.foundation.principal import THE_SERVICE, Kind, Principal, Proof, nobody
from clickclock.scheduler.store import Hint, Store

STALE_S: Final = 2.0
FRESH_S: Final = 1.0
"""After this the next request has it looked up, and is itself answered by what is known."""
KNOWN_MAX: Final = 16_384
NOTED_EVERY: Final = timedelta(minutes=1)


class _Known(msgspec.Struct, frozen=True):
    principal: Principal
    read_at_s: float
    expires_at: datetime | None


class _Found(msgspec.Struct, frozen=True):
    """What the store has of a key."""

    principal: Principal
    expires_at: datetime | None
    last_used_at: datetime | None
    note_use: Callable[[datetime], Awaitable[None]]


class Authenticator:
    """Whose token or session it is."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._refreshing: dict[str, asyncio.Task[Principal]] = {}
        self._noting: set[asyncio.Future[None]] = set()
        self._generation = 0
        self.own_token = mint()
        """By which the service asks itself; no other process knows it, and it ends with this one."""
        self._own_digest = digest(self.own_token)

    async def principal_of(self, key: str) -> Principal:
        """Whose token or session it is; `nobody`, with a sentence, if it is not valid. Raises `StoreUnreachable`."""
        sha256 = digest(key)
        if sha256 == self._own_digest:
            return THE_SERVICE
        look_up = self._session if key.startswith(SESSION_PREFIX) else self._token
        known, now_s = self._known.get(sha256), self._clock.monotonic_s()
        if known is None or now_s - known.read_at_s >= STALE_S:
            return await self._read(sha256, look_up)
        if known.expires_at is not None and known.expires_at <= self._clock.now():
            return await self._read(sha256, look_up)
        if now_s - known.read_at_s >= FRESH_S and sha256 not in self._refreshing:
            self._refreshing[sha256] = asyncio.create_task(self._read(sha256, look_up))
            self._refreshing[sha256].add_done_callback(lambda done: self._refreshed(sha256, done))
        return known.principal

    async def begin_session(self, principal: Principal) -> str:
        """A session of this principal, with its grants, as its browser keeps it; `browser_session.py` has its end."""
        session = mint(SESSION_PREFIX)
        await self._store.browser_sessions.begin(principal, digest(session), self._clock.now())
        return session

    async def end_session(self, session: str) -> None:
        """It is refused from now on, here; on other replicas within `STALE_S`."""
        await self._store.browser_sessions.end(digest(session))
        self.changed()

    async def end_sessions_of(self, principal: Principal) -> None:
        """As `end_session`, for all of a principal: its grants have changed, or it has none any more."""
        await self._store.browser_sessions.end_of(principal.kind, principal.id)
        self.changed()

    def is_in_use(self, key: str) -> bool:
        """Whether it was valid a moment ago."""
        sha256 = digest(key)
        return sha256 in self._known or sha256 == self._own_digest

    def now_s(self) -> float:
        """Seconds of a clock that nobody sets."""
        return self._clock.monotonic_s()

    def forget(self) -> None:
        """Look each key up anew."""
        self._generation += 1
        self._known.clear()

    def changed(self) -> None:
        """Tokens or sessions were changed here: neither we nor other replicas go by what was known of them."""
        self.forget()
        self._store.hints.tell(Hint.TOKENS)

    async def _read(self, sha256: str, look_up: "Callable[[str, datetime], Awaitable[_Found]]") -> Principal:
        generation, read_at_s = self._generation, self._clock.monotonic_s()
        found = await look_up(sha256, self._clock.now())
        if found.principal.kind is Kind.NOBODY:
            self._known.pop(sha256, None)
            return found.principal
        if generation == self._generation:
            if len(self._known) >= KNOWN_MAX:
                self._known.pop(next(iter(self._known)))
            self._known[sha256] = _Known(found.principal, read_at_s, found.expires_at)
        now = self._clock.now()
        if found.last_used_at is None or now - found.last_used_at >= NOTED_EVERY:
            noting = asyncio.ensure_future(found.note_use(now))
            self._noting.add(noting)
            noting.add_done_callback(self._noted)
        return found.principal

    async def _token(self, sha256: str, now: datetime) -> _Found:
        token = await self._store.tokens.by_digest(sha256)
        if token is None:
            if (attempt := await self._store.attempt_tokens.by_digest(sha256)) is not None:
                return _Found(attempt, None, now, _note_nothing)
            return _nobodys(
                "This token is not known here: it was rotated, is a job's whose attempt has ended, or is of "
                "another installation. Ask an admin."
            )
        if (ended := token.ended(now)) is not None:
            return _nobodys(ended)
        principal = Principal(
            Kind.TOKEN, token.token_id, token.name, Proof.TOKEN, token.principal_grants(), token_sha256=sha256
        )
        note_use = partial(self._store.tokens.used, token.token_id)
        return _Found(principal, token.expires_at, token.last_used_at, note_use)

    async def _session(self, sha256: str, now: datetime) -> _Found:
        session = await self._store.browser_sessions.by_digest(sha256)
        if session is None:
            return _nobodys("This browser's session was ended, or is of another installation. Sign in again.")
        note_use = partial(self._store.browser_sessions.used, session.session_id)
        return _Found(session.principal_at(now), session.expires_at, session.last_used_at, note_use)

    def _refreshed(self, key: str, done: asyncio.Task[Principal]) -> None:
        self._refreshing.pop(key, None)
        _expect(done)

    def _noted(self, done: asyncio.Future[None]) -> None:
        self._noting.discard(done)
        _expect(done)


def mint(prefix: str = PREFIX) -> str:
    """A new token, or what another prefix says."""
    return written(secrets.token_bytes(SECRET_BYTES), prefix)


def _nobodys(sentence: str) -> _Found:
    return _Found(nobody(sentence), None, None, _note_nothing)


async def _note_nothing(_: datetime) -> None:
    """A refused token is not used, and an attempt's own says when it ran."""


def _expect(done: "asyncio.Future[Principal] | asyncio.Future[None]") -> None:
    """A store that is away is reported to the next request, which waits for it."""
    if not done.cancelled() and (error := done.exception()) and not isinstance(error, StoreUnreachable):
        raise error

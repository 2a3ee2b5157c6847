"""Tokens made, listed and revoked on the host, without a service: by who may read the data folder or the database.

Never asks who that is: whoever can read the store is an admin anyway. Invariants: what is given and answered is what
the service's own interface takes and answers; a token is shown once, and only its digest is kept.

>>> Keyring(load(None, {}, {})).create_token("first", [{"role": "admin"}])["secret"]   # doctest: +SKIP
"""

import asyncio
import json
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

from clickclock.app.data_folder import make_data_dir
from clickclock.app.peer import Peers
from clickclock.app.trail import act_on_host, open_on_host
from clickclock.foundation.access import Mode
from clickclock.foundation.bearer import ADMIN_TOKEN, digest
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.permission import Permission, Role
from clickclock.scheduler.access.access_token import NewToken, Token, TokenGrant
from clickclock.scheduler.agents.authenticator import mint
from clickclock.scheduler.api.token import BODY
from clickclock.scheduler.errors import TokenIsRevoked, TokenNotFound
from clickclock.scheduler.store import Store

_log = logging.getLogger(__name__)
LISTED_MAX: Final = 1000
_HOST: Final = "the host"

Payload = dict[str, Any]


class Keyring:
    """The tokens of the store that a configuration names. Every method raises `ClickclockError`."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def create_token(self, name: str, grants: Sequence[Payload], expires_at: str | None = None) -> Payload:
        """A new token; its `secret` is shown this once. The data folder is made if it is not there."""
        if self._config.database_url is None:
            make_data_dir(self._config.data_dir)
        given = {"name": name, "grants": list(grants), "expiresAt": expires_at}
        now = SystemClock().now()
        new: NewToken = BODY.read(json.dumps(given).encode(), lambda new: new.check(now))
        secret = mint()
        made = self._ask("create", lambda store: store.tokens.create(new, digest(secret), _HOST, now))
        return {**made, "secret": secret}

    def rotate_token(self, name: str) -> Payload:
        """Another `secret` for a token; the old one is refused within two seconds."""
        secret = mint()
        rotated = self._ask("rotate", lambda store: store.tokens.rotate(name, digest(secret)))
        return {**rotated, "secret": secret}

    def revoke_token(self, name: str) -> Payload:
        """A token is refused, within two seconds."""
        return self._ask("revoke", lambda store: store.tokens.revoke(name, SystemClock().now()))

    def list_tokens(self, name: str | None = None) -> Payload:
        """All tokens, in the order in which they were made."""
        filters = {} if name is None else {"name": name}

        async def work() -> list[Token]:
            store = await open_on_host(self._config)
            try:
                return await store.tokens.find(filters, None, LISTED_MAX)
            finally:
                await store.close()

        return {"status": "success", "tokens": [each.wire() for each in asyncio.run(work())], "nextCursor": None}

    def _ask(self, command: str, ask: Callable[[Store], Awaitable[Token]]) -> Payload:
        async def work() -> Token:
            store = await open_on_host(self._config)
            try:
                with store.audit.by(act_on_host(f"token {command}", Permission.TOKEN_WRITE)):
                    return await ask(store)
            finally:
                await store.close()

        return {"status": "success", "token": asyncio.run(work()).wire()}


async def keep_admin_token(store: Store, data_dir: Path) -> None:
    """Leave a token for the service's own user, and nobody else, in the data folder; one that is valid stays."""
    file, now = data_dir / ADMIN_TOKEN, SystemClock().now()
    if file.exists():
        known = await store.tokens.by_digest(digest(file.read_text(encoding="ascii").strip()))
        if known is not None and known.revoked_at is None:
            return
    secret, new = mint(), NewToken(name=ADMIN_TOKEN, grants=[TokenGrant(role=Role.ADMIN)])
    try:
        await store.tokens.rotate(ADMIN_TOKEN, digest(secret))
    except (TokenNotFound, TokenIsRevoked):
        await store.tokens.create(new, digest(secret), _HOST, now)
    fresh = file.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as made:
        made.write(f"{secret}\n")
        made.flush()
        os.fsync(made.fileno())
    fresh.rename(file)


async def peers_of(config: Config, store: Store) -> Peers | None:
    """Knows our own user, where that user needs no key; where the kernel cannot, its token is in the data folder."""
    if config.access is not Mode.SAME_USER:
        return None
    peers = Peers.of_this_system()
    if peers is None:
        await keep_admin_token(store, config.data_dir)
        _log.warning("this system does not say whose a connection is; its user's token is in %s", config.data_dir)
    return peers

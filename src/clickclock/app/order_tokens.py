"""Order tokens on their way to the collectors: from the store into a file of the data folder, every few seconds.

Never reads a token, and never touches a click. Invariants: what was made or revoked is in the file within
`EVERY_S`; a store that is away leaves the file as it is, so that orders go on.

>>> by_client([])
{}
"""

import asyncio
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from clickclock.attribution.files.order_tokens import EVERY, OrderToken, write_order_tokens
from clickclock.foundation.errors import StoreUnreachable
from clickclock.foundation.instant import ms_of
from clickclock.foundation.permission import Role
from clickclock.scheduler.access.access_token import Token
from clickclock.scheduler.store import Store

EVERY_S: Final = 3.0
"""A collector looks each second: so a shop's new token works within some four."""
_log = logging.getLogger(__name__)


async def keep_order_tokens(store: Store, file: Path) -> None:
    """Keep the file as the store has the tokens, for ever."""
    while True:
        try:
            tokens = by_client(await store.tokens.of_role(Role.INGEST))
            if await asyncio.to_thread(write_order_tokens, file, tokens):
                _log.info("collectors get the order tokens of %d accounts", len(tokens.keys() - {EVERY}))
        except StoreUnreachable:
            pass  # the service says so elsewhere, and the collectors go by the file
        except OSError as error:
            _log.error("order tokens cannot be written to %s, so collectors learn of none: %s", file, error)
        await asyncio.sleep(EVERY_S)


def by_client(tokens: Iterable[tuple[Token, str]]) -> dict[str, list[OrderToken]]:
    """Tokens and their digests, by the clients of which they may send orders; those that ended leave their client."""
    found: dict[str, list[OrderToken]] = {}
    for token, sha256 in tokens:
        for grant in token.grants:
            for client in grant.clients if grant.role is Role.INGEST else ():
                those = found.setdefault(client, [])
                if token.revoked_at is None:
                    those.append(OrderToken(sha256, None if token.expires_at is None else ms_of(token.expires_at)))
    return found

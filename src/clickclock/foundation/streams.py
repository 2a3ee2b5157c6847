"""Answers without an end: how many a principal may have open, and that each ends when its key does.

Never knows the content. Invariants: what ends a key (revocation, expiry, sign-out, another grant) ends its streams
before they tell anything more, once it is known here and `ASKED_EVERY_S` have passed; who has a place gives it back.

>>> STREAMS_MAX
100
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from clickclock.foundation.access import Access
from clickclock.foundation.errors import ClickclockError
from clickclock.foundation.principal import Kind, Principal
from clickclock.foundation.problem import TooManyStreams

STREAMS_MAX: Final = 100
"""Of one token or person: a wall of screens has fewer, and a program that forgets to close them has more."""
ASKED_EVERY_S: Final = 1.0
_OF_THE_MACHINE: Final = frozenset({Kind.LOCAL, Kind.SERVICE})
"""The service's own user, whom the budget of the port bounds alone."""
_EVENTS: Final = b"text/event-stream"
Owner = tuple[Kind, str]


class Streams:
    """The streams of one port."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._open: Counter[Owner] = Counter()

    def answer(self, scope: Mapping[str, Any], principal: Principal) -> "Stream":
        """An answer to this request, which may become a stream; `close` must follow."""
        return Stream(self._access, self._open, scope, principal)


class Stream:
    """One answer on its way."""

    def __init__(self, access: Access, opened: Counter[Owner], scope: Mapping[str, Any], principal: Principal) -> None:
        self._access = access
        self._opened = opened
        self._scope = scope
        self._principal = principal
        self._owner: Owner = (principal.kind, principal.id)
        self._asked_s: float | None = None
        """When it was last asked whose it is; None of an answer that has an end."""

    def start(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """It begins, with these headers. Raises `TooManyStreams`."""
        if not any(name == b"content-type" and value.startswith(_EVENTS) for name, value in headers):
            return
        if self._principal.kind not in _OF_THE_MACHINE and self._opened[self._owner] >= STREAMS_MAX:
            raise TooManyStreams
        self._opened[self._owner] += 1
        self._asked_s = asyncio.get_running_loop().time()

    async def may_go_on(self) -> bool:
        """Whether more of it may be sent: its principal is what it was."""
        if self._asked_s is None or (now_s := asyncio.get_running_loop().time()) - self._asked_s < ASKED_EVERY_S:
            return True
        self._asked_s = now_s
        try:
            return await self._access.of(self._scope) == self._principal
        except ClickclockError:  # nobody can say: who comes back is answered by what is known then
            return False

    def close(self) -> None:
        """It has ended."""
        if self._asked_s is not None:
            self._opened[self._owner] -= 1
            if not self._opened[self._owner]:
                del self._opened[self._owner]
            self._asked_s = None

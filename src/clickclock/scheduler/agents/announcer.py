"""Changes → those who listen.

Never waits for a listener: what one does not take is kept for it up to `WAITING_BYTES_MAX`, and then it is let go, to
come back and go on where it was. Invariants: one reader and one rendering of each change, however many listen; nobody
listens, nothing is read; a listener gets every change that it wants after the position at which it joined.

>>> listener = announcer.join(Wanted(application="shop"))   # doctest: +SKIP
>>> await listener.next()                                   # doctest: +SKIP
"""

import asyncio
import json
from collections.abc import Callable

from clickclock.foundation.clock import Clock
from clickclock.scheduler.errors import TooManyListeners
from clickclock.scheduler.insight.event import Change, Wanted
from clickclock.scheduler.store import Store, Tail

LISTENERS_MAX = 5000
WAITING_BYTES_MAX = 2**20
"""Some thousand events: more than a reader of a slow line falls behind while it still reads."""
READ_MAX = 500
PAUSE_MIN_S, PAUSE_PER_LISTENER_S, PAUSE_MAX_S = 0.1, 0.001, 1.0
"""Each round is one write to each listener, so with more listeners more is sent at once."""
SETTLE_S = 0.02
KEEP_ALIVE_S = 15.0
"""Proxies close what says nothing for longer, mostly after 60 s; and who filters much need not read all of it again."""


class Listener:
    """A listener. `begins_after` is the position after which it gets changes; None until the announcer knows it."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.begins_after: int | None = None
        self.is_over = False
        self.quiet_since_s = 0.0
        self._waiting: list[bytes] = []
        self._size = 0
        self._news = asyncio.Event()

    async def next(self) -> bytes:
        """What there is to tell, as soon as there is something; empty when it joined, or when it is over."""
        await self._news.wait()
        self._news.clear()
        told, self._waiting, self._size = b"".join(self._waiting), [], 0
        return told

    def tell(self, text: bytes) -> None:
        """Keep this for it, unless too much waits already."""
        if self._size + len(text) > WAITING_BYTES_MAX:
            self.let_go()
            return
        self._waiting.append(text)
        self._size += len(text)
        self._news.set()

    def begin(self, position: int, now_s: float) -> None:
        """From here on it gets changes."""
        self.begins_after, self.quiet_since_s = position, now_s
        self._news.set()

    def let_go(self) -> None:
        """Tell it nothing more."""
        self.is_over = True
        self._news.set()


class Announcer:
    """One step tells every listener what came since the last."""

    def __init__(self, store: Store, clock: Clock, *, joined: Callable[[], None]) -> None:
        self._store = store
        self._clock = clock
        self._joined = joined
        self._listeners: set[Listener] = set()
        self._tail: Tail | None = None
        self._is_settled = False
        self._is_closed = False

    def join(self, wanted: Wanted) -> Listener:
        """A new listener; `leave` must follow. Raises `TooManyListeners`."""
        if len(self._listeners) >= LISTENERS_MAX or self._is_closed:
            raise TooManyListeners
        listener = Listener(wanted)
        self._listeners.add(listener)
        if self._tail is not None and self._is_settled:
            listener.begin(self._tail.position, self._clock.monotonic_s())
        self._joined()
        return listener

    def leave(self, listener: Listener) -> None:
        """It listens no more."""
        self._listeners.discard(listener)

    def close(self) -> None:
        """Let all go, because the service stops: it need not wait for those who listen."""
        self._is_closed = True
        for listener in self._listeners:
            listener.let_go()

    async def step(self) -> float | None:
        """Tell what is new; returns seconds until the next look."""
        if not self._listeners:
            self._tail = None
            return None
        if self._tail is None:
            self._tail, self._is_settled = await self._store.changes.tail(), False
        tail = self._tail
        if not self._is_settled:
            if not await tail.settle():
                return SETTLE_S
            self._is_settled = True
            for listener in self._listeners:
                listener.begin(tail.position, self._clock.monotonic_s())
        changes = await tail.read(READ_MAX)
        self._tell(changes, tail.position)
        if len(changes) == READ_MAX:
            return 0.0
        return min(max(PAUSE_MIN_S, len(self._listeners) * PAUSE_PER_LISTENER_S), PAUSE_MAX_S)

    def _tell(self, changes: list[Change], position: int) -> None:
        now_s = self._clock.monotonic_s()
        rendered = [(change, render(change)) for change in changes]
        texts: dict[Wanted, bytes] = {}
        for listener in list(self._listeners):
            text = texts.get(listener.wanted)
            if text is None:
                texts[listener.wanted] = text = b"".join(
                    each for change, each in rendered if listener.wanted.takes(change)
                )
            if not text and now_s - listener.quiet_since_s >= KEEP_ALIVE_S:
                text = b": still here\nid: %d\n\n" % position
            if text:  # who joined while this was read began where the reading did
                listener.quiet_since_s = now_s
                listener.tell(text)


def render(change: Change) -> bytes:
    """A change as a server-sent event."""
    content = json.dumps(change.cloud_event(), separators=(",", ":"))
    return f"id: {change.position}\ndata: {content}\n\n".encode()

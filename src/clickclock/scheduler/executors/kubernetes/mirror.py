"""What the cluster has of one kind, kept up by list and watch.

Never asks for what it has not missed: a watch that ends is taken up where it ended, and it lists anew only where that
cannot be: too far behind (410 Gone), or ahead of a store that was restored; a server says nothing of that, and waits
until its store has come so far, so it is asked first. Invariants: whoever listens hears of every object's last known
state and of its removal, however often the connection breaks; a bookmark moves on where to take up, and nothing else.

>>> mirror = Mirror(api, "pods", "app=x", hear)   # doctest: +SKIP
>>> await mirror.run()                            # doctest: +SKIP
"""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import aclosing

from clickclock.foundation.errors import ClickclockError
from clickclock.scheduler.executors.kubernetes.api import OPENED, Api, Gone, Object, Refused, Unreachable

PAUSE_S_MIN, PAUSE_S_MAX = 0.05, 5.0
WELL_AFTER_S = 1.0
"""A watch that lasted so long is taken up again at once."""

PASSING = frozenset({401, 403, 408, 429})
"""Answers that say nothing of the version that was asked for."""

Hear = Callable[[Object, bool], None]
"""Called with an object, and whether it was removed."""

_log = logging.getLogger(__name__)


class Mirror:
    """The objects of one kind that a label selects, in one namespace."""

    def __init__(self, api: Api, kind: str, selector: str, hear: Hear, failed: Callable[[], None]) -> None:
        self._api = api
        self._kind = kind
        self._selector = selector
        self._hear = hear
        self._failed = failed
        self._known: dict[str, Object] = {}
        self._version: str | None = None
        self.trouble: str | None = None
        self.listed = asyncio.Event()

    async def run(self) -> None:
        """Keep up until cancelled."""
        loop, pause_s = asyncio.get_running_loop(), PAUSE_S_MIN
        while True:
            before, begun_s = self._version, loop.time()
            try:
                await self._follow()
            except Gone:
                self._version = None
            except (Unreachable, Refused) as error:
                if error.status is not None and error.status not in PASSING:
                    self._version = None
                self._fail(error)
                least_s = getattr(error, "retry_after_s", None) or 0.0
                await asyncio.sleep(max(least_s, pause_s * (0.5 + random.random())))
                pause_s = min(2 * pause_s, PAUSE_S_MAX)
                continue
            # A watch that ends at once and tells nothing, again and again, is one that fails.
            is_well = self._version != before or loop.time() - begun_s > WELL_AFTER_S
            pause_s = PAUSE_S_MIN if is_well else min(2 * pause_s, PAUSE_S_MAX)
            await asyncio.sleep(pause_s)

    def _fail(self, error: ClickclockError) -> None:
        if self.trouble != str(error):
            _log.warning("%s of %s: %s", self._kind, self._api.namespace, error)
        self.trouble = str(error)
        self._failed()

    async def _follow(self) -> None:
        if self._version is None:
            await self._list()
        elif int(await self._api.version(self._kind)) < int(self._version):
            raise Gone("The store was restored.")
        async with aclosing(self._api.watch(self._kind, self._version or "", labelSelector=self._selector)) as events:
            async for event in events:
                self.trouble = None
                if event["type"] == OPENED:
                    continue
                thing = event["object"]
                self._version = thing["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self._apply(thing, removed=event["type"] == "DELETED")

    async def _list(self) -> None:
        found, version = await self._api.find(self._kind, labelSelector=self._selector)
        there = {each["metadata"]["uid"] for each in found}
        for thing in [each for uid, each in self._known.items() if uid not in there]:
            self._apply(thing, removed=True)
        for thing in found:
            self._apply(thing, removed=False)
        self._version = version
        self.listed.set()

    def _apply(self, thing: Object, *, removed: bool) -> None:
        uid = thing["metadata"]["uid"]
        if removed:
            self._known.pop(uid, None)
        else:
            self._known[uid] = thing
        self._hear(thing, removed)

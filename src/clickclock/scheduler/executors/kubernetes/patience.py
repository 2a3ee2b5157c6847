"""How long an attempt that does not begin is waited for, and what the cluster says of it meanwhile.

Never gives anything up itself. Invariants: while all is well nothing is asked; a pod that is being made is asked about
only when that takes long, and only what is known to block it counts: one that came on since, as an image that is pulled
at last, is in no trouble, and a warning that nobody knows is logged and waited for.

>>> patience = Patience(api, "01993f2e-7b1c-7cc0-8000-5f0c6c1d9a11-1", deadline_s=45.0)   # doctest: +SKIP
>>> patience.left_s()   # doctest: +SKIP
45.0
"""

import asyncio
import logging

from clickclock.scheduler.executors.kubernetes.api import Api, Object, Refused
from clickclock.scheduler.executors.kubernetes.events import besides, held_up, last_words
from clickclock.scheduler.executors.kubernetes.manifest import job_name

EVENTS_EVERY_S = 10.0
"""How long making a pod takes before its events are looked at, and how often then."""


_log = logging.getLogger(__name__)


class Patience:
    """That with one attempt."""

    def __init__(self, api: Api, attempt: str, deadline_s: float) -> None:
        self._api = api
        self._attempt = attempt
        self._deadline_s = deadline_s
        self._since_s: float | None = None
        self._asked_at_s: float | None = None
        self._held_up: str | None = None
        self._besides: str | None = None
        self.is_certain = False
        """Whether it was looked once more, before it is given up."""

    def renew(self) -> None:
        """There is no trouble."""
        self._since_s, self.is_certain = None, False

    def left_s(self) -> float:
        """Seconds until it ends; it runs from the first time that this is asked."""
        now_s = asyncio.get_running_loop().time()
        self._since_s = now_s if self._since_s is None else self._since_s
        return self._since_s + self._deadline_s - now_s

    async def what_holds_up(self, pod: Object) -> str | None:
        """Why a pod that is being made is not, in the cluster's words; None as long as there is nothing amiss."""
        now_s = asyncio.get_running_loop().time()
        if self._asked_at_s is None:
            self._asked_at_s = now_s
        every_s = min(EVENTS_EVERY_S, self._deadline_s / 2)
        if now_s - self._asked_at_s >= every_s:
            self._asked_at_s = now_s
            events = await self._events("Pod", pod["metadata"]["name"])
            self._held_up = held_up(events)
            if self._held_up is None and (words := besides(events)) not in (None, self._besides):
                self._besides = words
                _log.warning("attempt %s is waited for, though the cluster warns of its pod: %s", self._attempt, words)
            if self._held_up is not None and self._since_s is None:
                self._since_s = now_s - every_s
        return self._held_up

    async def last_words(self) -> str | None:
        """What the cluster says of a Job without a pod; nothing if we may not know."""
        return last_words(await self._events("Job", job_name(self._attempt)))

    async def _events(self, kind: str, name: str) -> list[Object]:
        selector = f"involvedObject.kind={kind},involvedObject.name={name}"
        try:
            events, _ = await self._api.find("events", fieldSelector=selector)
        except Refused:
            return []
        return events

"""Clicks of clients that repeat themselves: those that came in one turn of the loop are judged, kept and told together.

Never waits longer than for the end of the turn in which they came. Step by step for a group of them, instead of all
steps for each: that a click costs half as much so is the processor's doing, which keeps a short piece of code at hand.
Invariants: what is unusual in any way goes the way of every other request; one connection that fails costs the others
nothing; what a connection has waiting here is settled before anything else happens to it.

>>> ARRIVED.data
b''
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

from clickclock.attribution.account import Profile
from clickclock.attribution.api.answers import Answer
from clickclock.attribution.api.head import Head
from clickclock.attribution.api.request import Later
from clickclock.attribution.api.routes import Routes
from clickclock.attribution.click import Click
from clickclock.attribution.entry import TOGETHER_MAX
from clickclock.attribution.template import Template, Templates, times

ARRIVED: Final = Answer(b"", 0)
"""Stands where the answer will."""
GROUP_MAX: Final = TOGETHER_MAX // 4
"""Taken at once: so few that what was read is still in the processor's caches, and so early that most of what came in a
long turn is with the journal when the next commit begins."""
_SPACE: Final = 0x20
_PRINTABLE: Final = bytes(range(0x21, 0x7F))

_log = logging.getLogger(__name__)


class Repeater(Protocol):
    """A connection whose last request differs from the one before it in its query alone."""

    transport: asyncio.Transport | None
    waiting: list[Answer | Later]
    unfed: bytes
    ending: bool
    head: Head
    query: bytes
    template: Template | None
    """What its last click looked like."""

    def committed(self, error: Exception | None) -> None:
        """The first of the requests that wait for the disk is on it, or never will be."""
        ...

    def read_again(self) -> None:
        """Read the request as if it were the first."""
        ...

    def abort(self) -> None:
        """End it now."""
        ...


class Arrivals:
    """What came in this turn of the loop."""

    def __init__(self, routes: Routes, templates: Templates, count_soon: Callable[[Answer], None]) -> None:
        """`count_soon` is told of an answer that begins to be used."""
        self._routes = routes
        self._templates = templates
        self._count_soon = count_soon
        self._arrived: list[Repeater] = []

    def add(self, repeater: Repeater) -> None:
        """A click came, and its connection waits for nothing else."""
        arrived = self._arrived
        arrived.append(repeater)
        if len(arrived) == 1:
            asyncio.get_running_loop().call_soon(self.settle)
        elif len(arrived) == GROUP_MAX:
            self.settle()

    def settle(self) -> None:
        """Judge what came, and give the journal what is plain."""
        arrived, self._arrived = self._arrived, []
        if not arrived:
            return
        collector = self._routes.collector
        accepted = self._routes.answers.accepted
        received_ms = collector.now_ms()
        when = times(received_ms)
        room = collector.room
        taken: list[tuple[Repeater, Answer]] = []
        clicks: list[tuple[bytes, Profile, bytes]] = []
        for each in arrived[:room]:
            template, query, head = each.template, each.query, each.head
            profile: Profile | None
            if template is not None and template.takes(query, when):
                profile = template.profile
            elif (profile := self._alone(each)) is None:
                continue
            answer = each.waiting[0] = accepted[profile][head.persistence]
            taken.append((each, answer))
            clicks.append((head.origin, profile, query))
        if taken:
            collector.take_plain(clicks, received_ms, partial(self._tell, taken))
        for each in arrived[room:]:
            self._alone(each, is_full=True)

    def _alone(self, each: Repeater, *, is_full: bool = False) -> Profile | None:
        """The profile under which a click is plain; None if it is not, and is taken care of."""
        query, head = each.query, each.head
        try:
            if not is_full and _SPACE not in query:
                judged = self._routes.collector.judge(query)
                if isinstance(judged, Click) and judged.plain:
                    each.template = self._templates.of(judged)
                    return judged.profile
                if not query.translate(None, _PRINTABLE):  # so it has no byte that the parser would refuse
                    each.waiting[0] = self._routes.judged(judged, query, head.origin, head.persistence, each.committed)
                    return None
            each.waiting.clear()
            each.read_again()
        except Exception:  # noqa: BLE001 - one connection that fails must not cost the others theirs
            _log.exception("a request could not be answered")
            each.abort()
        return None

    def _tell(self, taken: Sequence[tuple[Repeater, Answer]], error: Exception | None) -> None:
        """They are on disk, or never will be."""
        for each, answer in taken:
            waiting, transport = each.waiting, each.transport
            try:
                if (
                    error is not None
                    or transport is None
                    or each.ending
                    or each.unfed
                    or len(waiting) > 1
                    or waiting[0] is not answer
                ):
                    each.committed(error)
                    continue
                del waiting[0]
                if not answer.uses:
                    self._count_soon(answer)
                answer.uses += 1
                transport.write(answer.data)
            except RuntimeError:  # uvloop's way to say that it was closed a moment ago
                each.ending = True
            except Exception:  # noqa: BLE001 - one connection that fails must not cost the others theirs
                _log.exception("an answer could not be sent")

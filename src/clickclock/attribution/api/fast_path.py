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

from clickclock.attribution.api.answers import Answer
from clickclock.attribution.api.head import Head
from clickclock.attribution.api.routes import CLICKS, Routes
from clickclock.attribution.clicks.click import Click
from clickclock.attribution.clicks.country import located
from clickclock.attribution.clicks.entry import TOGETHER_MAX, columns_of_plain
from clickclock.attribution.clicks.template import Template, times

QUIET: Final = Answer(b"", 0)
"""Its last click was answered, and nothing else has happened."""
ARRIVED: Final = Answer(b"", 0)
"""Its click is here."""
GET_CLICKS: Final = b"GET %b?" % CLICKS
_QUERY_AT: Final = len(GET_CLICKS)
GROUP_MAX: Final = TOGETHER_MAX // 4
"""Taken at once: so few that what was read is still in the processor's caches, and so early that most of what came in a
long turn is with the journal when the next commit begins."""
_SPACE: Final = 0x20
_PRINTABLE: Final = bytes(range(0x21, 0x7F))

_log = logging.getLogger(__name__)


class Repeater(Protocol):
    """A connection whose last request differs from the one before it in its query alone."""

    transport: asyncio.Transport | None
    ending: bool
    click: Answer | None
    """How it is with its click: `ARRIVED`, the answer that it waits for, `QUIET`; None: ask `waiting`."""
    request: bytes
    """The last click, as it came."""
    rest_bytes: int
    """How much of that stands behind the query."""
    head: Head
    template: Template
    """From the last click that was judged in full, like these: the repeated part of its entry, and its answer."""
    columns: bytes
    accepted: Answer

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

    def __init__(self, routes: Routes, count_soon: Callable[[Answer], None]) -> None:
        """`count_soon` is called with an answer that begins to be used."""
        self.received_bytes = 0
        """Not counted yet."""
        self._routes = routes
        self._templates = routes.collector.templates(GET_CLICKS)
        self._query_end_max = _QUERY_AT + routes.limits.query_bytes_max
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
        collector, end_max = self._routes.collector, self._query_end_max
        received_ms = collector.now_ms()
        first, last = times(received_ms)
        room, received_bytes = collector.room, 0
        taken: list[Repeater] = []
        columns: list[bytes] = []
        queries: list[bytes] = []
        for each in arrived[:room]:
            request = each.request
            size = len(request)
            received_bytes += size
            end = size - each.rest_bytes
            found = each.template(request, 0, end)
            if (found is not None and first <= found[1] <= last and end <= end_max) or self._alone(each):
                each.click = each.accepted
                taken.append(each)
                columns.append(each.columns)
                queries.append(request[_QUERY_AT:end])
        if self._routes.is_locating:
            queries = [located(query, each.head.country) for query, each in zip(queries, taken, strict=True)]
        if taken:
            collector.take_plain(columns, queries, received_ms, partial(self._tell, taken))
        for each in arrived[room:]:
            received_bytes += len(each.request)
            self._alone(each, is_full=True)
        self.received_bytes += received_bytes

    def _alone(self, each: Repeater, *, is_full: bool = False) -> bool:
        """Whether a click is plain that no template takes; if it is not, it is taken care of."""
        request, head = each.request, each.head
        end = len(request) - each.rest_bytes
        query = request[_QUERY_AT:end]
        try:
            if not is_full and end <= self._query_end_max and request.startswith(GET_CLICKS) and _SPACE not in query:
                judged = self._routes.collector.judge(query)
                if isinstance(judged, Click) and judged.plain:
                    each.template = self._templates.of(judged)
                    each.columns = columns_of_plain(head.origin, judged.profile)
                    each.accepted = self._routes.answers.accepted[judged.profile][head.persistence]
                    return True
                if head.country:
                    query = located(query, head.country)
                    judged = self._routes.collector.judge(query)
                # A refused one may not be kept, and then waits for no disk.
                if isinstance(judged, Click) and not query.translate(
                    None, _PRINTABLE
                ):  # so it has no byte that the parser would refuse
                    each.click = self._routes.judged(judged, query, head.origin, head.persistence, each.committed)
                    return False
            each.read_again()
        except Exception:  # noqa: BLE001 - one connection that fails must not cost the others theirs
            _log.exception("a request could not be answered")
            each.abort()
        return False

    def _tell(self, taken: Sequence[Repeater], error: Exception | None) -> None:
        """They are on disk, or never will be."""
        for each in taken:
            answer, transport = each.click, each.transport
            try:
                if error is not None or answer is None or transport is None:
                    each.committed(error)
                    continue
                each.click = QUIET
                if not answer.uses:
                    self._count_soon(answer)
                answer.uses += 1
                transport.write(answer.data)
            except RuntimeError:  # uvloop's way to say that it was closed a moment ago
                each.click, each.ending = None, True
            except Exception:  # noqa: BLE001 - one connection that fails must not cost the others theirs
                _log.exception("an answer could not be sent")

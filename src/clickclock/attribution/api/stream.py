"""`GET /attribution/clicks/stream`: clicks, rejections and orders as they come, as server-sent events.

Parse, call, render. Never judges and never holds the loop: journals are read on a thread, and only while somebody
watches.
Invariants: an event's id is the position after it, so that who comes back with `Last-Event-ID` misses nothing and gets
nothing twice; what was left out is told as `missed`; at most `VIEWERS_MAX` watch at once.

>>> parse_filters(b"clientId=shop-1&kind=rejection&kind=order").kinds == {Seen.REJECTION, Seen.ORDER}
True
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from clickclock.attribution.agents.watcher import Round, Watcher, parse
from clickclock.attribution.api.questions import seen_clients
from clickclock.attribution.clicks.entry import decode
from clickclock.attribution.registering.sighting import Seen, sight
from clickclock.foundation.clock import Clock
from clickclock.foundation.errors import Fault, Malformed, Transient
from clickclock.foundation.permission import Permission
from clickclock.foundation.problem import refuse_changes

POLL_S = 0.1
KEEP_ALIVE_S = 15.0
"""Proxies close what says nothing for longer, mostly after 60 s; and whoever is gone is noticed by this."""
VIEWERS_MAX = 16
"""Each costs up to a twentieth of a core while clicks pour in."""
PERMISSION = Permission.CLICK_READ
FILTERS = {
    "clientId": "A client's clicks, views, orders and rejections alone.",
    "kind": "What to show; may be repeated.",
}
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


class TooManyViewers(Transient):
    """As many watch the clicks as may at once; close another view, or try again in a moment."""

    code = "tooManyViewers"


class Filters(msgspec.Struct, frozen=True):
    """What a viewer wants to see."""

    client_id: str | None
    kinds: frozenset[Seen]
    within: frozenset[str] | None = None
    """The clients that may be seen, None for all. What names no client is of none of them."""


class Stream:
    """The endpoint over the journals in a folder."""

    def __init__(self, journal_dir: Path, clock: Clock, stopping: asyncio.Event) -> None:
        """When `stopping` is set, all streams end: the service need not wait for people who watch."""
        self._journal_dir = journal_dir
        self._clock = clock
        self._stopping = stopping
        self._viewers = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or raise what `problem.py` turns into an answer."""
        request = Request(scope)
        refuse_changes(request.method)
        given = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        seen = seen_clients(PERMISSION, given)
        filters = replace(parse_filters(scope["query_string"]), within=seen)
        position = request.headers.get("last-event-id")
        if position is not None:
            parse(position)
        if self._viewers >= VIEWERS_MAX:
            raise TooManyViewers
        events = self._watch(filters, position) if request.method == "GET" else ()
        await StreamingResponse(events, headers=HEADERS, media_type="text/event-stream")(scope, receive, send)

    async def _watch(self, filters: Filters, position: str | None) -> AsyncIterator[str]:
        self._viewers += 1
        watcher = Watcher(self._journal_dir, position)
        working: asyncio.Future[Any] = asyncio.ensure_future(asyncio.to_thread(watcher.start))
        try:
            await asyncio.shield(working)
            yield _event("watching", {}, watcher.position)
            quiet_s = 0.0
            while not self._stopping.is_set():
                working = asyncio.ensure_future(asyncio.to_thread(_read, watcher, filters, self._clock.epoch_ms))
                text = await asyncio.shield(working)
                quiet_s = 0.0 if text else quiet_s + POLL_S
                if quiet_s >= KEEP_ALIVE_S:
                    quiet_s = 0.0
                    # The position goes with it: who filters much would have to read all of that again.
                    text = f": still here\nid: {watcher.position}\n\n"
                if text:
                    yield text
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_S):
                        await self._stopping.wait()
        finally:
            self._viewers -= 1
            # A viewer who leaves does not stop the thread, and a file that is being read must not be closed.
            working.add_done_callback(lambda _: watcher.close())


def parse_filters(raw: bytes) -> Filters:
    """The filters in a query string. Raises `Malformed` naming every fault."""
    faults: list[Fault] = []
    kinds: set[Seen] = set()
    client_id: str | None = None
    try:
        pairs = parse_qsl(raw.decode(), keep_blank_values=True, errors="strict", max_num_fields=len(Seen) + 1)
    except ValueError as error:
        raise Malformed("The query string cannot be read.", [Fault("", "Give few parameters, in UTF-8.")]) from error
    for name, value in pairs:
        if name == "kind" and value in set(Seen):
            kinds.add(Seen(value))
        elif name == "kind":
            faults.append(Fault(name, f"There is no kind {value[:64]!r}; give one of: {', '.join(Seen)}."))
        elif name != "clientId":
            faults.append(Fault(name, f"There is no such filter; there are: {', '.join(FILTERS)}."))
        elif client_id is not None:
            faults.append(Fault(name, "This is given twice; give it once."))
        else:
            client_id = value
    if faults:
        raise Malformed(faults=faults)
    return Filters(client_id, frozenset(kinds or Seen))


def _read(watcher: Watcher, filters: Filters, now_ms: Callable[[], int]) -> str:
    """The events of a round, on a thread."""
    found = watcher.read_more(now_ms())
    events = [_shown(line, position, filters) for position, line in found.told]
    return "".join([*_left_out(found), *events])


def _shown(line: bytes, position: str, filters: Filters) -> str:
    sighting = sight(decode(line))
    if sighting.seen not in filters.kinds or filters.client_id not in {None, sighting.client_id}:
        return ""
    if filters.within is not None and sighting.client_id not in filters.within:
        return ""
    return _event(sighting.seen, sighting.fields, position)


def _left_out(found: Round) -> Iterator[str]:
    """Without a position: who comes back after this alone begins before it."""
    told: list[tuple[int | None, str]] = [(None, sentence) for sentence in found.gaps]
    if found.missed:
        told.append((found.missed, "Clicks come faster than this view shows them; the lake has them all."))
    return (_event("missed", {"entries": entries, "message": sentence}) for entries, sentence in told)


def _event(name: str, data: object, position: str | None = None) -> str:
    # In ASCII, because what was refused may hold half of a surrogate pair, which UTF-8 cannot say.
    event = f"event: {name}\ndata: {json.dumps(data)}\n\n"
    return event if position is None else f"id: {position}\n{event}"

"""`/schedulerService/events`: every change as it comes, or those that were.

Parse, call, render. Invariants: an event's id is its place in the order of changes, so that who comes back with
`Last-Event-ID` misses nothing and gets nothing twice; changes that are no longer kept appear as `missed`; a client that
does not read is let go after `SEND_MAX_S`.
"""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from typing import Any

from pydantic import Field, field_validator
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from clickclock.foundation.errors import Fault, Malformed
from clickclock.foundation.openapi import EVENT_STREAM
from clickclock.foundation.permission import Permission
from clickclock.scheduler.agents.announcer import READ_MAX, Listener, render
from clickclock.scheduler.api.operation import Call, Operation, Text, success
from clickclock.scheduler.api.paging import key_in, page
from clickclock.scheduler.api.reading import Page, Word
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.errors import TooManyListeners
from clickclock.scheduler.insight.event import PREFIX, TYPES, CloudEvent, Wanted, unknown_types

SEND_MAX_S = 30.0
POSITION_MAX = 2**53
MISSED = "Events after that position are no longer kept; read what they changed anew."
AHEAD = "There is no such position yet: the store is another one, or an older copy. Read what you know anew."
HEADERS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]


class EventFilters(Page):
    """Which events."""

    application: Word | None = Field(None, description="Events of this application.", examples=["shop"])
    job_name: Word | None = Field(None, description="Events of jobs of this name.", examples=["nightly-export"])
    group_name: Word | None = Field(None, description="Events of this group and its jobs.", examples=["exports"])
    type: Word | None = Field(
        None,
        description="Events of these types, separated by commas: `trigger`, `trigger.failed`, `alarm`.",
        examples=["trigger.failed,alarm"],
    )
    follow: bool | None = Field(
        None,
        description="Stream them as they come; with `false` a list of those that were. If not given: a list where "
        "`Accept` prefers JSON, or where `limit` or `cursor` is given, and otherwise a stream.",
        examples=[False],
    )
    after: int | None = Field(
        None, ge=0, le=POSITION_MAX, description="Stream what came after this id, and then what comes.", examples=[4711]
    )

    @field_validator("type")
    @classmethod
    def _refuse_unknown_types(cls, value: str | None) -> str | None:
        if wrong := unknown_types(_types(value)):
            about = ", ".join(TYPES)
            raise ValueError(f"there is no type {', '.join(wrong)}; give one of {about}, with or without its state")
        return value

    def wanted(self, within: frozenset[str] | None) -> Wanted:
        """As the log is asked for them, by somebody who may see these applications, or all."""
        return Wanted(self.application, self.job_name, self.group_name, _types(self.type), within)


def _types(given: str | None) -> frozenset[str]:
    return frozenset(each.strip().removeprefix(PREFIX) for each in (given or "").split(",") if each.strip())


async def read(call: Call[EventFilters]) -> Response:
    """GET: a stream, or a list."""
    asked = call.filters
    last = call.last_event_id
    is_stream = asked.follow
    if is_stream is None:
        comes_back = last is not None or asked.after is not None
        is_list = not asked.model_fields_set.isdisjoint({"limit", "cursor"})
        is_stream = comes_back or not (is_list or prefers_json(call.headers.get("accept", "")))
    if not is_stream:
        return await _list(call)
    most = asked.limit if "limit" in asked.model_fields_set else None
    wanted = asked.wanted(call.seen(Permission.EVENT_READ))
    return _Stream(call.engine, wanted, asked.after if last is None else last, most)


def prefers_json(accepted: str) -> bool:
    """Whether a field `Accept` would rather have JSON than a stream; of two that are alike, a stream.

    >>> prefers_json("application/json"), prefers_json("*/*"), prefers_json("text/event-stream, application/json")
    (True, False, False)
    """
    weights: dict[str, float] = {}
    for part in accepted.lower().split(","):
        kind, *parameters = (each.strip() for each in part.split(";"))
        given = next((each[2:] for each in parameters if each.startswith("q=")), "1")
        weights[kind] = float(given) if _WEIGHT.fullmatch(given) else 0.0
    stream, json_ = (
        next((weights[kind] for kind in (name, f"{name.partition('/')[0]}/*", "*/*") if kind in weights), 0.0)
        for name in ("text/event-stream", "application/json")
    )
    return json_ > stream


async def _list(call: Call[EventFilters]) -> Response:
    asked = call.filters
    filters = {name: value for name, value in asked if value is not None and name not in {"limit", "cursor", "follow"}}
    if asked.after is not None:
        raise Malformed(faults=[Fault("after", "This goes with follow=true; a list goes on with cursor.")])
    before = key_in(asked.cursor, "events", filters)
    place = int(before[0]) if before else None
    found = await call.engine.store.changes.recent(
        place, asked.wanted(call.seen(Permission.EVENT_READ)), asked.limit + 1
    )
    changes, cursor = page("events", filters, found, asked.limit, lambda change: [str(change.position)])
    return success(200, events=[change.cloud_event() for change in changes], nextCursor=cursor)


class _Stream(Response):
    """The answer to one listener; written to the connection itself, as a thousand of them are."""

    def __init__(self, engine: Engine, wanted: Wanted, after: int | None, most: int | None = None) -> None:
        """It ends after `most` events, if that is given."""
        super().__init__(media_type="text/event-stream")
        self._most = most
        self._engine = engine
        self._wanted = wanted
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tell until the listener hangs up, or is let go."""
        if scope["method"] == "HEAD":
            await send({"type": "http.response.start", "status": 200, "headers": list(HEADERS)})
            await send({"type": "http.response.body", "body": b""})
            return
        announcer = self._engine.announcer
        listener = announcer.join(self._wanted)
        leaving = asyncio.create_task(_hang_up(receive, listener))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": list(HEADERS)})
            with contextlib.suppress(TimeoutError):
                left = self._most
                async for text in self._told(listener):
                    if left is not None:
                        text, left = _first(text, left)  # noqa: PLW2901 (the part of it that is asked for)
                    async with asyncio.timeout(SEND_MAX_S):
                        await send({"type": "http.response.body", "body": text, "more_body": True})
                    if left == 0:
                        break
                async with asyncio.timeout(SEND_MAX_S):
                    await send({"type": "http.response.body", "body": b""})
        finally:
            announcer.leave(listener)
            leaving.cancel()

    async def _told(self, listener: Listener) -> AsyncIterator[bytes]:
        yield b": listening\nretry: 1000\n\n"
        while listener.begins_after is None and not listener.is_over:
            await listener.next()
        here = listener.begins_after
        if here is None:
            return
        after = here if self._after is None else self._after
        if after > here:
            yield _missed(AHEAD)
        while after < here:
            # Asked before each page: retention may be faster than a slow reader of the past.
            if after and after + 1 < (oldest := await self._engine.store.changes.oldest()):
                yield _missed(MISSED)
                after = oldest - 1
            changes = await self._engine.store.changes.read(after, here, self._wanted, READ_MAX)
            if changes:
                yield b"".join(map(render, changes))
            after = changes[-1].position if len(changes) == READ_MAX else here
        # So that a client without a fitting change can still come back to here.
        yield b"id: %d\n\n" % here
        while not listener.is_over:
            if text := await listener.next():
                yield text


def _first(text: bytes, most: int) -> tuple[bytes, int]:
    """The first events of a text, `most` at the most, and how many more may follow."""
    told: list[bytes] = []
    for part in text.removesuffix(_END).split(_END):
        if not most:
            break
        told.append(part + _END)
        most -= _EVENT in part
    return b"".join(told), most


_END, _EVENT = b"\n\n", b'\ndata: {"specversion"'
_WEIGHT = re.compile(r"[01](?:\.[0-9]{0,3})?")


def _missed(sentence: str) -> bytes:
    return f"event: missed\ndata: {json.dumps({'message': sentence})}\n\n".encode()


async def _hang_up(receive: Receive, listener: Listener) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    listener.let_go()


_EXAMPLE = (
    'id: 4711\ndata: {"specversion":"1.0","id":"4711","source":"/schedulerService","type":"clickclock.job.created",'
    '"subject":"shop/nightly-export","time":"2026-11-20T10:00:00.000Z"}\n\n'
)
OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "GET",
        "Stream changes as they happen",
        Permission.EVENT_READ,
        read,
        EventFilters,
        {200: {"events": list[CloudEvent], "nextCursor": str | None}},
        description="Server-sent events, each a CloudEvent 1.0 in JSON: what becomes of triggers, attempts that ended "
        "and are tried again, jobs, schedules, groups, calendars and images that were created, changed or deleted, "
        "backfills, alarms. Each event's id is its place in the order of changes: a client that reconnects with "
        "`Last-Event-ID` (or `after`) continues there, and misses nothing that is still kept (a day). If something is "
        "not, an event `missed` says so. With `follow=false`, or `Accept: application/json`: a list of those that "
        "were, newest first. A stream with a `limit` ends after so many events.",
        errors=(TooManyListeners,),
        media={EVENT_STREAM: Text("The events as they come.", _EXAMPLE, [CloudEvent])},
        headers={"Last-Event-ID": ("Continue after this event, instead of `after`.", "4711")},
    ),
)

"""`/schedulerService/jobLog`: what an attempt wrote, as it stands or live.

Parse, call, render. Invariants: any replica answers, by asking the one that keeps the output; secrets are
masked; an event's id is the byte offset after its text, so that who comes
back with `Last-Event-ID` misses nothing and gets nothing twice; a file is looked at no more often than every `POLL_S`;
the stream ends when the attempt has ended and all is sent.
"""

import asyncio
import codecs
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from functools import partial

from msgspec.structs import replace
from pydantic import Field
from starlette.responses import Response, StreamingResponse

from clickclock.foundation.errors import ExecutorUnreachable
from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.openapi import EVENT_STREAM
from clickclock.foundation.permission import Permission
from clickclock.foundation.record import Record
from clickclock.scheduler.api import relay
from clickclock.scheduler.api.operation import BASE, Call, Operation, Text
from clickclock.scheduler.api.reading import Query, Word
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.errors import LogNotFound, OutputElsewhere, TriggerNotFound
from clickclock.scheduler.executors import LogChunk
from clickclock.scheduler.jobs.secret import TOKEN_BYTES, mask, reach, tokens_in, torn
from clickclock.scheduler.jobs.trigger import FINISHED, LIVE, State, Trigger, attempt_name

POLL_S = 0.2
KEEP_ALIVE_S = 15.0
"""Proxies close what says nothing for longer, mostly after 60 s."""
CHUNK_BYTES = 65_536
LEFT_OUT = b"\n[clickclock: %d bytes of output are left out here]\n"


class LogFilters(Query):
    """Which output, and which part of it."""

    trigger_id: Word = Field(description="The trigger.", examples=[EXAMPLE_ID])
    attempt: int | None = Field(
        None, ge=1, le=1_000_000, description="The attempt; the last one if not given.", examples=[1]
    )
    offset: int = Field(0, ge=0, le=2**53, description="The byte to begin with.", examples=[0])
    limit: int = Field(
        1_048_576,
        ge=1,
        le=1_048_576,
        description="At most this many bytes of output, unless it is followed.",
        examples=[65536],
    )
    follow: bool = Field(
        False, description="Stream it as server-sent events until the attempt has ended.", examples=[False]
    )


class LogPiece(Record):
    """The data of an event `log`."""

    text: str = Field(description="What was written.", examples=["42 orders are exported.\n"])
    offset: int = Field(description="The byte after it.", examples=[24])


class LogEnd(Record):
    """The data of the event `end`."""

    trigger_id: str = Field(description="The trigger.", examples=[EXAMPLE_ID])
    state: State = Field(description="What has become of the trigger.")
    attempt: int = Field(description="Whose output it is.")
    attempt_state: State | None = Field(description="What has become of this attempt.")
    exit_code: int | None = Field(description="How it ended; null if not by itself.", examples=[0])
    message: str | None = Field(description="What there is to say about the trigger.")


async def read(call: Call[LogFilters]) -> Response:
    """GET: plain text, or a stream of events."""
    wanted = call.filters
    trigger = await call.engine.store.triggers.get(wanted.trigger_id)
    call.require_of(Permission.LOG_READ, trigger.application, Permission.LOG_READ, TriggerNotFound)
    number = wanted.attempt or trigger.attempt
    if wanted.follow and wanted.attempt is not None and wanted.attempt > max(trigger.attempt, 1):
        raise LogNotFound
    if node := await relay.keeper(call.engine, call.headers, wanted.trigger_id, number):
        return await _ask(call, node, number)
    if wanted.follow:
        last = call.last_event_id
        offset = wanted.offset if last is None else last
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(
            _follow(call, trigger, max(number, 1), offset), headers=headers, media_type="text/event-stream"
        )
    chunk = await read_output(call.engine, trigger, number, wanted.offset, wanted.limit)
    if chunk is None:
        raise LogNotFound
    return Response(
        chunk.data,
        headers={"x-next-offset": str(chunk.next_offset), "x-log-complete": str(chunk.complete).lower()},
        media_type="text/plain",
    )


async def _ask(call: Call[LogFilters], node: str, number: int) -> Response:
    wanted = call.filters
    query = {"triggerId": wanted.trigger_id, "attempt": str(number), "offset": str(wanted.offset)}
    query |= {"follow": "true"} if wanted.follow else {"limit": str(wanted.limit)}
    return await relay.ask(call.engine, node, f"{BASE}/jobLog", query, call.headers)


async def read_output(engine: Engine, trigger: Trigger, attempt: int, offset: int, limit: int) -> LogChunk | None:
    """Up to `limit` bytes of an attempt's output as people may see it; None where this replica has none."""
    executor = engine.executors.get(trigger.cluster or engine.default_cluster)
    if executor is None or attempt < 1:
        return None
    name = attempt_name(trigger.trigger_id, attempt)
    values = await engine.vault.masks(trigger.application)
    return await piece(partial(executor.read_log, name), values, offset, limit)


async def piece(
    read_log: Callable[[int, int], Awaitable[LogChunk | None]], values: Collection[bytes], offset: int, limit: int
) -> LogChunk | None:
    """Up to `limit` bytes of an output as people may see it: a line says what is left out, `values` are masked."""
    around = max(reach(values), TOKEN_BYTES - 1)
    chunk = await read_log(offset, limit + around)
    if chunk is not None:
        before = None
        if offset and not chunk.left_out:
            before = await read_log(max(0, offset - around), min(offset, around))
        # Our own tokens are known by their form, whoever was given them.
        text = chunk.data if before is None or before.next_offset != offset else before.data + chunk.data
        chunk = _masked(chunk, before, offset, limit, {*values, *tokens_in(text)})
    if chunk is not None and chunk.left_out:
        return replace(chunk, data=LEFT_OUT % chunk.left_out + chunk.data)
    return chunk


def _masked(chunk: LogChunk, before: LogChunk | None, offset: int, limit: int, values: Collection[bytes]) -> LogChunk:
    """The piece with its secrets masked, by what stands `before` and within `chunk`.

    None must show because a piece begins or ends within it, or because a part of it was left out.
    """
    begin = chunk.next_offset - len(chunk.data)
    known = before.data if before is not None and before.next_offset == offset else b""
    text, at = known + chunk.data, len(known)
    if chunk.left_out or at < min(offset, reach(values)):
        at = max(at, torn(text, values))
    end = len(text) - (torn(text[::-1], [value[::-1] for value in values]) if chunk.is_torn else 0)
    limit = max(0, limit - (at - len(known)))  # no further than what stands behind it is known
    # Searched as a whole: the last bytes may begin one secret and end another.
    data, stop = mask(text, at, max(0, min(limit, end - at)), values, complete=chunk.complete or chunk.is_torn)
    next_offset = begin + stop - len(known)
    if chunk.is_torn and stop >= end:
        next_offset = chunk.next_offset
    is_complete = chunk.complete and next_offset >= chunk.next_offset
    return LogChunk(data, next_offset, is_complete, chunk.left_out + at - len(known))


async def _follow(call: Call[LogFilters], trigger: Trigger, attempt: int, offset: int) -> AsyncIterator[str | bytes]:
    engine = call.engine
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    quiet_s = 0.0
    complete = is_over = False
    while True:
        chunk = await read_output(engine, trigger, attempt, offset, CHUNK_BYTES)
        if chunk is not None:
            offset, complete = chunk.next_offset, chunk.complete
        if chunk is not None and (chunk.data or complete):
            # A character that is cut in two at the end of a chunk is sent with the next one, and so is its offset.
            text = decoder.decode(chunk.data, final=complete)
            told = offset - len(decoder.getstate()[0])
            if text:
                quiet_s = 0.0
                yield _event("log", LogPiece(text=text, offset=told), told)
        if chunk is None or complete or not chunk.data:
            if is_over and (chunk is None or complete):
                break
            was_over = is_over
            trigger = await engine.store.triggers.get(trigger.trigger_id)
            if chunk is None and (node := await relay.keeper(engine, call.headers, trigger.trigger_id, attempt)):
                # It waited, and another replica has started it.
                elsewhere = await _ask(call, node, attempt)
                if isinstance(elsewhere, StreamingResponse):
                    async for piece in elsewhere.body_iterator:
                        yield bytes(piece, "utf-8") if isinstance(piece, str) else bytes(piece)
                    return
            is_over = _has_ended(trigger, attempt)
            if is_over and not was_over:
                continue  # it may have begun, and written, and ended since the output was looked at
            await asyncio.sleep(POLL_S)
            quiet_s += POLL_S
            if quiet_s >= KEEP_ALIVE_S:
                quiet_s = 0.0
                yield ": still here\n\n"
    last = next((each for each in trigger.attempts or [] if each.attempt == attempt), None)
    end = LogEnd(
        trigger_id=trigger.trigger_id,
        state=trigger.state,
        attempt=attempt,
        attempt_state=last.state if last else None,
        exit_code=last.exit_code if last else trigger.exit_code,
        message=trigger.message,
    )
    yield _event("end", end, offset)


def _has_ended(trigger: Trigger, attempt: int) -> bool:
    """Whether nothing more can come of this attempt, as the store knows it."""
    if trigger.state in FINISHED or trigger.attempt > attempt:
        return True
    return any(
        each.attempt == attempt and each.state not in LIVE and each.state is not State.QUEUED
        for each in trigger.attempts or []
    )


def _event(name: str, data: Record, offset: int) -> str:
    return f"id: {offset}\nevent: {name}\ndata: {json.dumps(data.model_dump(mode='json', by_alias=True))}\n\n"


_EXAMPLE = (
    'id: 24\nevent: log\ndata: {"text": "42 orders are exported.\\n", "offset": 24}\n\n'
    f'id: 24\nevent: end\ndata: {{"triggerId": "{EXAMPLE_ID}", "state": "succeeded", "attempt": 1, '
    '"attemptState": "succeeded", "exitCode": 0, "message": null}\n\n'
)
OPERATIONS = (
    Operation(
        "GET",
        "Read an attempt's output",
        Permission.LOG_READ,
        read,
        LogFilters,
        {200: {}},
        description="Plain text: the bytes as written, from `offset`, with `X-Next-Offset` (where to continue) and "
        "`X-Log-Complete` (whether more can come). With `follow=true` server-sent events: `log` with `text` "
        "and `offset`, and at last `end` with the trigger's `state` and the attempt's `exitCode`. Each event's id is "
        "an offset: a client that reconnects with `Last-Event-ID` continues there. Secrets that the application's jobs "
        "may be given are masked as `***`; offsets count the bytes as they were written. "
        "The middle of an output longer than `attempt_log_bytes_max` is left out, and a line says how many bytes. "
        "Of many replicas any answers, by asking the one that keeps the output.",
        errors=(TriggerNotFound, LogNotFound, OutputElsewhere, ExecutorUnreachable),
        media={
            "text/plain": Text("The output.", "42 orders are exported.\n"),
            EVENT_STREAM: Text("The output as it comes, and its end.", _EXAMPLE, [LogPiece, LogEnd]),
        },
        headers={"Last-Event-ID": ("With `follow=true`: continue after this event, instead of at `offset`.", "4096")},
        answer_headers={
            "X-Next-Offset": ("Where to go on; not with `follow=true`.", "4096"),
            "X-Log-Complete": ("Whether no more can come: `true` or `false`; not with `follow=true`.", "true"),
        },
    ),
)

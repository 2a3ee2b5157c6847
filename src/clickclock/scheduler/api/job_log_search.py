"""`/schedulerService/jobLogSearch`: where a text is in an attempt's output.

Parse, call, render. Invariants: what is searched is what people may see, so nobody learns a secret by guessing it; one
answer reads a bounded part of an output, and says where the next one goes on.
"""

import asyncio
from collections.abc import Iterator
from itertools import islice

from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.errors import ExecutorUnreachable
from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.permission import Permission
from clickclock.foundation.record import Record
from clickclock.scheduler.api import relay
from clickclock.scheduler.api.job_log import read_output
from clickclock.scheduler.api.operation import BASE, Call, Operation, success
from clickclock.scheduler.api.reading import Query, Word
from clickclock.scheduler.errors import LogNotFound, OutputElsewhere, TriggerNotFound
from clickclock.scheduler.jobs.secret import MASK

PIECE_BYTES = 262_144
"""Searched in one go, about 1 ms; then the loop runs whatever else waits."""
MASKED_PIECE_BYTES = 4096
"""Where secrets are masked, what people see has other offsets than what was written: such parts are read in these."""
SCANNED_BYTES_MAX = 8 * 2**20
"""Of one answer, some 50 ms."""
LINE_BYTES_MAX = 400


class LogSearchFilters(Query):
    """Which output, and what is looked for."""

    trigger_id: Word = Field(description="The trigger.", examples=[EXAMPLE_ID])
    attempt: int | None = Field(
        None, ge=1, le=1_000_000, description="The attempt; the last one if not given.", examples=[1]
    )
    text: str = Field(
        min_length=1, max_length=256, description="What is looked for; A to Z in any case.", examples=["error"]
    )
    offset: int = Field(0, ge=0, le=2**53, description="The byte to begin with.", examples=[0])
    limit: int = Field(100, ge=1, le=1000, description="At most this many matches.", examples=[100])


class LogMatch(Record):
    """One place."""

    offset: int = Field(
        description="The byte at which it is; beside a masked secret, one up to 4,096 bytes before it.", examples=[4096]
    )
    line: str = Field(description="Its line, or a part of that.", examples=["ERROR row 7 is no ISO 4217"])


class LogMatches(Record):
    """Where a text is."""

    attempt: int = Field(description="The attempt that was searched.", examples=[1])
    matches: list[LogMatch] = Field(description="The places, in their order.")
    next_offset: int = Field(description="Where to go on.", examples=[8_388_608])
    at_end: bool = Field(
        description="Whether the end of what is written so far was reached; ask again from `nextOffset` if not.",
        examples=[True],
    )


async def search(call: Call[LogSearchFilters]) -> Response:
    """GET: piece by piece."""
    wanted, engine = call.filters, call.engine
    trigger = await engine.store.triggers.get(wanted.trigger_id)
    call.require_of(Permission.LOG_READ, trigger.application, Permission.LOG_READ, TriggerNotFound)
    number = wanted.attempt or trigger.attempt
    if node := await relay.keeper(engine, call.headers, wanted.trigger_id, number):
        query = wanted.model_dump(mode="json", by_alias=True, exclude_none=True) | {"attempt": number}
        said = {name: str(value) for name, value in query.items()}
        return await relay.ask(engine, node, f"{BASE}/jobLogSearch", said, call.headers)
    text = wanted.text.encode().lower()
    matches: list[LogMatch] = []
    offset, at_end = wanted.offset, False
    tail = b""
    while offset < wanted.offset + SCANNED_BYTES_MAX and len(matches) < wanted.limit and not at_end:
        chunk = await read_output(engine, trigger, number, offset, PIECE_BYTES)
        if chunk is not None and MASK in chunk.data:
            chunk = await read_output(engine, trigger, number, offset, MASKED_PIECE_BYTES)
        if chunk is None:
            raise LogNotFound
        is_exact = MASK not in chunk.data
        # A text that is cut in two at the end of a piece is whole with what came before.
        data = tail + chunk.data if is_exact and not chunk.left_out else chunk.data
        for place in islice(_places(data, text), wanted.limit - len(matches)):
            at = chunk.next_offset - len(data) + place if is_exact else offset
            matches.append(LogMatch(offset=at, line=_line(data, place)))
        at_end = chunk.next_offset <= offset
        offset = chunk.next_offset
        tail = data[max(0, len(data) - len(text) + 1) :] if is_exact else b""
        await asyncio.sleep(0)
    following = max(wanted.offset, offset - len(tail))
    if len(matches) == wanted.limit:
        following, at_end = matches[-1].offset + 1, False
    found = LogMatches(attempt=number, matches=matches, next_offset=following, at_end=at_end)
    return success(logMatches=found)


def _places(data: bytes, text: bytes) -> Iterator[int]:
    low = data.lower()
    place = low.find(text)
    while place >= 0:
        yield place
        place = low.find(text, place + 1)


def _line(data: bytes, place: int) -> str:
    begin = max(data.rfind(b"\n", 0, place) + 1, place - LINE_BYTES_MAX // 2)
    end = data.find(b"\n", place)
    return data[begin : min(len(data) if end < 0 else end, begin + LINE_BYTES_MAX)].decode(errors="replace")


OPERATIONS = (
    Operation(
        "GET",
        "Search an attempt's output",
        Permission.LOG_READ,
        search,
        LogSearchFilters,
        {200: {"logMatches": LogMatches}},
        description="Where a text is in what an attempt wrote, as `GET jobLog` shows it: secrets are masked before it "
        "is searched. One answer reads up to 8 MiB; `nextOffset` goes on.",
        errors=(TriggerNotFound, LogNotFound, OutputElsewhere, ExecutorUnreachable),
    ),
)

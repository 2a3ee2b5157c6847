"""An operation: one method of one path; the entry of the table from which both the routes and `/openapi.json` come.

Never knows a resource. Invariants: filters and body are read before anything is done; what an operation answers, and
every error it may answer with, is declared beside it.

>>> async def nothing(call: "Call[Query]") -> Response: ...
>>> Operation("GET", "Do nothing", Permission.WHOAMI, nothing, Query, {200: {}}).versioned
False
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

import msgspec
from pydantic import BaseModel
from pydantic_core import to_json
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from clickclock.foundation.caller import caller
from clickclock.foundation.errors import ClickclockError, Fault, Malformed, NotFound
from clickclock.foundation.permission import Permission
from clickclock.foundation.principal import Kind, Principal
from clickclock.foundation.problem import MethodNotAllowed
from clickclock.scheduler.access.audit import act_of
from clickclock.scheduler.api.reading import CHUNK, Query, read_body, read_filters, read_target
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.errors import StaleVersion

BASE = "/schedulerService"
ANY_VERSION = "*"
_ENTITY_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')
_VERSION_TAG = re.compile(r'"([1-9]\d{0,17})"')
_EVENT_ID = re.compile(r"[0-9]{1,16}")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')

F = TypeVar("F", bound=Query)


class Call(msgspec.Struct, Generic[F], frozen=True):
    """One request, read. `headers` have lower-case names; `body` is empty for a GET."""

    engine: Engine
    principal: Principal
    filters: F
    headers: Mapping[str, str]
    body: bytes
    is_secure: bool = False
    """Whether the caller came over TLS, up to us or up to a proxy that is trusted."""

    def seen(self, reads: Permission) -> frozenset[str] | None:
        """The applications whose things the caller may read; None for all."""
        return self.principal.scope(reads)

    def require_of(self, permission: Permission, application: str, reads: Permission, missing: type[NotFound]) -> None:
        """Raise `Forbidden` unless the caller may do this to a thing of an application that it named by an id.

        Raises `missing` where it may not even read it: that there is one of this id is none of its business.
        """
        if not self.principal.may(reads, application=application):
            raise missing
        self.principal.require(permission, application=application)

    def doer(self, given: str | None) -> str:
        """The name to write beside what is done: the caller's own, or, of whoever is local, the one that it gives."""
        is_nameless = self.principal.kind is Kind.LOCAL
        return given if is_nameless and given is not None else self.principal.name

    @property
    def if_match(self) -> int | str | None:
        """The version that the caller saw; `ANY_VERSION`, or None if it does not say. Raises `Malformed`."""
        given = self.headers.get("if-match")
        if given is None or given.strip() == ANY_VERSION:
            return given and ANY_VERSION
        if match := _VERSION_TAG.fullmatch(given.strip()):
            return int(match[1])
        if not _ENTITY_TAG.fullmatch(given.strip()):
            sentence = 'Give the ETag of an earlier answer in its quotes, for example "3", or *.'
            raise Malformed(faults=[Fault("If-Match", sentence)])
        raise StaleVersion  # a tag that this service never gave

    @property
    def if_version(self) -> int | None:
        """As `if_match`, where it goes without saying that there must be something to change."""
        version = self.if_match
        return version if isinstance(version, int) else None

    @property
    def last_event_id(self) -> int | None:
        """After which event a client that comes back continues; None if it does not say. Raises `Malformed`."""
        given = self.headers.get("last-event-id")
        if given is not None and not _EVENT_ID.fullmatch(given):
            raise Malformed(faults=[Fault("Last-Event-ID", "Give the id of the last event that you got.")])
        return None if given is None else int(given)

    @property
    def idempotency_key(self) -> str | None:
        """The header `Idempotency-Key`, with or without the quotes of a structured field."""
        given = self.headers.get("idempotency-key")
        if given is None:
            return None
        quoted = _QUOTED.fullmatch(given.strip())
        return re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else given.strip()


Run = Callable[[Call[F]], Awaitable[Response]]
Payload = Mapping[str, Any]
"""The fields of an answer beside `status`: name to type."""


class Text(msgspec.Struct, frozen=True):
    """An answer that is not JSON; of server-sent events, what their data are."""

    description: str
    example: str
    events: Sequence[Any] = ()


class Operation(msgspec.Struct, Generic[F], frozen=True):
    """One method of one path. `answers` are by status; `errors` beside those that every call may end with."""

    method: str
    summary: str
    permission: Permission
    """Nobody without it gets in. Where it reaches applications, `run` checks of which it has to hold."""
    run: Run[F]
    filters: type[F]
    answers: Mapping[int, Payload]
    check: Callable[[F, datetime], Sequence[Fault]] | None = None
    """Faults of several filters together, or of the present time; none of them may be required."""
    description: str = ""
    body: type[BaseModel] | None = None
    several: bool = False
    """The body may be an array of records."""
    partial: bool = False
    """The body may leave out every field."""
    target_in_body: bool = False
    """What the filters name may stand in the body as well."""
    bodies: int = 1
    """Its body may be so many times as large as the usual ones."""
    versioned: bool = False
    """It answers with an ETag, and takes If-Match where it changes something."""
    errors: Sequence[type[ClickclockError]] = ()
    keyless: Run[F] | None = None
    """The answer to a caller without a key and without a question."""
    keyless_too: bool = False
    """It answers callers without a key as well: it is how they get one, and it checks itself what it is given."""
    examples: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Bodies that are well-formed, by name."""
    headers: Mapping[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    """Headers that it reads beside If-Match: name to description and example."""
    answer_headers: Mapping[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    media: Mapping[str, Text] = msgspec.field(default_factory=dict)
    """Answers with 200 that are not JSON, by media type."""

    def checked_at(self, now: datetime) -> Callable[[F], Sequence[Fault]] | None:
        """`check`, at a time."""
        check = self.check
        return None if check is None else lambda filters: check(filters, now)


class Resource:
    """The operations of one path, as an ASGI application."""

    def __init__(self, engine: Engine, path: str, operations: Sequence[Operation[Any]], body_bytes_max: int) -> None:
        self._engine = engine
        self._path = path.removeprefix(f"{BASE}/")
        self._operations = {operation.method: operation for operation in operations}
        self._allowed = tuple(sorted({*self._operations, *(["HEAD"] if "GET" in self._operations else [])}))
        self._body_bytes_max = body_bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or raise what `problem.py` turns into an answer."""
        method: str = scope["method"]
        operation = self._operations.get("GET" if method == "HEAD" else method)
        if operation is None:
            raise MethodNotAllowed(self._allowed)
        principal = caller().principal
        if operation.keyless is not None and principal.kind is Kind.NOBODY and not _asks_for_something(scope):
            response = await operation.keyless(Call(self._engine, principal, operation.filters(), {}, b""))
            await response(scope, receive, send)
            return
        if not (operation.keyless_too and principal.kind is Kind.NOBODY):
            principal.scope(operation.permission)  # of something at least
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        query: bytes = scope["query_string"]
        body = b""
        if operation.method != "GET":
            _refuse_if_none_match(headers)
            body = await read_body(receive, headers, self._body_bytes_max * operation.bodies)
        if operation.target_in_body:
            filters = read_target(operation.filters, query, body)
        else:
            filters = read_filters(operation.filters, query, operation.checked_at(self._engine.clock.now()))
        act = act_of(caller(), f"{method} {self._path}", operation.permission, self._engine.clock.now())
        with self._engine.store.audit.by(act):
            is_secure = scope.get("scheme") == "https"
            response = await operation.run(Call(self._engine, principal, filters, headers, body, is_secure))
        if method == "HEAD" and isinstance(response, StreamingResponse):
            # A stream has no end that is worth waiting for.
            response = Response(status_code=response.status_code, headers=response.headers)
            del response.headers["content-length"]
        await response(scope, receive, send)


def _asks_for_something(scope: Scope) -> bool:
    return bool(scope["query_string"]) or any(name == b"authorization" for name, _ in scope["headers"])


def _refuse_if_none_match(headers: Mapping[str, str]) -> None:
    """Passing it over would replace what the caller wanted to be left alone."""
    if "if-none-match" in headers:
        sentence = "This is not taken; POST creates only what is not there yet, and If-Match guards a change."
        raise Malformed(faults=[Fault("If-None-Match", sentence)])


def success(status: int = 200, /, headers: Mapping[str, str] | None = None, **payload: Any) -> Response:
    """`{"status": "success", …}`, with records as they go over the wire."""
    content = to_json({"status": "success", **payload}, by_alias=True)
    return Response(content, status, headers, "application/json")


async def success_with_many(status: int, name: str, records: Sequence[BaseModel]) -> Response:
    """As `success`, with thousands of records, and room for others between them."""
    pieces = []
    for start in range(0, len(records), CHUNK):
        pieces.append(to_json(records[start : start + CHUNK], by_alias=True)[1:-1])
        await asyncio.sleep(0)
    content = b'{"status":"success","%s":[%s]}' % (name.encode(), b",".join(pieces))
    return Response(content, status, media_type="application/json")


def etag(version: int) -> dict[str, str]:
    """The header that names a version."""
    return {"etag": json.dumps(str(version))}

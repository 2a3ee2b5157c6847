"""What people ask of attribution over HTTP: each path with what reads its question; the rest is the same for all.

Never reads the lake: the process that answers does (`query_process.py`). Invariants: a question is refused
with all its faults before anybody is asked; who leaves before the answer is not answered.

>>> sorted(READERS)[:5]
['clicks', 'cohorts', 'diff', 'erasures', 'funnel']
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from clickclock.attribution.api import (
    diff,
    erasures,
    funnel,
    last_clicks,
    order_list,
    order_proof,
    postbacks,
    report,
    uploads,
    versions,
)
from clickclock.attribution.api.query_process import Answer, Asker
from clickclock.foundation.caller import caller
from clickclock.foundation.errors import Fault, Malformed
from clickclock.foundation.permission import REACHES, Permission, Reach
from clickclock.foundation.problem import refuse_changes

PARAMETERS_MAX: Final = 100
_VARY: Final = "Accept, Authorization, Cookie"
"""A browser keeps no answer for the next person who signs in to it."""


class Reading(msgspec.Struct, frozen=True):
    """How a question is read, and the permission without which nobody may ask it."""

    permission: Permission
    read: Callable[[Mapping[str, Sequence[str]]], Any]
    narrowed: Callable[[Any, tuple[str, ...]], Any]
    """The same question, about these clients alone."""


def _narrowed(question: Any, clients: tuple[str, ...]) -> Any:
    return replace(question, within=clients)


def _narrowed_filters(question: Any, clients: tuple[str, ...]) -> Any:
    return replace(question, filters=replace(question.filters, within=clients))


READERS: Final[Mapping[str, Reading]] = {
    "report": Reading(Permission.REPORT_READ, report.read, _narrowed),
    "versions": Reading(Permission.VERSION_READ, versions.read, _narrowed),
    "order": Reading(Permission.PROOF_READ, order_proof.read, lambda asked, _: asked),
    "orders": Reading(Permission.PROOF_READ, order_list.read_orders, _narrowed_filters),
    "paths": Reading(Permission.REPORT_READ, order_list.read_paths, _narrowed_filters),
    "cohorts": Reading(Permission.REPORT_READ, order_list.read_cohorts, _narrowed_filters),
    "diff": Reading(Permission.REPORT_READ, diff.read, _narrowed),
    "clicks": Reading(Permission.CLICK_READ, last_clicks.read, _narrowed),
    "funnel": Reading(Permission.CLICK_READ, funnel.read, _narrowed),
    "uploads": Reading(Permission.PROOF_READ, uploads.read, _narrowed),
    "postbacks": Reading(Permission.PROOF_READ, postbacks.read, _narrowed),
    "erasures": Reading(Permission.REPORT_READ, erasures.read, _narrowed),
}
"""By the last part of the path; `answering.ANSWERS` has the other half."""


def seen_clients(permission: Permission, given: Mapping[str, Sequence[str]]) -> frozenset[str] | None:
    """The clients of which the caller holds a permission; None for all.

    Raises `Forbidden` where it does not hold that of a client that it names.
    """
    principal = caller().principal
    for named in given.get("clientId", ()):
        principal.require(permission, client=named)
    if REACHES[permission] is Reach.CLIENT:
        return principal.scope(permission)
    # Its rows belong to all clients, except those about single clients.
    principal.require(permission)
    return principal.scope(Permission.REPORT_READ) if principal.may(Permission.REPORT_READ) else frozenset()


class Question:
    """The endpoint of one path."""

    def __init__(self, name: str, asker: Asker) -> None:
        self._name = name
        self._asker = asker

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or raise what `problem.py` turns into an answer."""
        request = Request(scope)
        refuse_changes(request.method)
        reading = READERS[self._name]
        given = parameters_of(scope["query_string"])
        seen = seen_clients(reading.permission, given)
        question = reading.read(given)
        if seen is not None:
            question = reading.narrowed(question, tuple(sorted(seen)))
        if request.method == "HEAD":
            await StreamingResponse((), headers={"cache-control": "no-store"})(scope, receive, send)
            return
        asking = asyncio.ensure_future(self._asker.ask(self._name, question))
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait([asking, gone], return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                known = request.headers.get("if-none-match", "")
                await _answered(asking.result(), known)(scope, receive, send)
        finally:
            asking.cancel()
            gone.cancel()


def _answered(answer: Answer, known: str) -> Response:
    """The answer; 304 where the asker has it, by its tag."""
    size = sum(map(len, answer.pieces))
    headers = {"cache-control": "no-store", "content-length": str(size), "vary": _VARY, **answer.outcome.headers}
    if headers.get("etag", "").removeprefix("W/") in {each.strip().removeprefix("W/") for each in known.split(",")}:
        kept = {name: headers[name] for name in ("etag", "cache-control")}
        return Response(status_code=304, headers={**kept, "vary": f"{_VARY}, Accept-Encoding"})
    return StreamingResponse(_each(answer.pieces), headers=headers, media_type=answer.outcome.media_type)


async def _each(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def parameters_of(raw: bytes) -> dict[str, list[str]]:
    """The parameters of a query string, each any number of times. Raises `Malformed`."""
    try:
        return parse_qs(raw.decode(), keep_blank_values=True, errors="strict", max_num_fields=PARAMETERS_MAX)
    except ValueError as error:
        raise Malformed("The query string cannot be read.", [Fault("", "Give few parameters, in UTF-8.")]) from error

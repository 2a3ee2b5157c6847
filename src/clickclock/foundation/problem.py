"""Errors as HTTP answers. The only file that knows status codes of errors.

Never tells what is inside: an error that is not one of ours is 500 with a request id, and the log has the rest.
Invariants: the branch of the error tree decides the status, so that a new error needs no new line here; every body
has the same six fields; a fault of the request is never 5xx.

>>> status_of(Conflict())
409
"""

import json
from collections.abc import Mapping
from math import ceil

import msgspec

from clickclock.foundation.errors import (
    ClickclockError,
    Conflict,
    Forbidden,
    Invalid,
    Malformed,
    NotFound,
    Permanent,
    Transient,
    Unauthenticated,
)

FAULTS_MAX = 100
"""Faults told in one answer: nobody fixes more at once, and a bad array of 10,000 would answer with megabytes."""
RETRY_AFTER_S = 1
INTERNAL = "internal"
INTERNAL_STATUS = 500
INTERNAL_SENTENCE = "Something went wrong here, not in your request; the service's log says more under the requestId."


class BadCursor(Malformed):
    """The cursor is not from this list with these filters; begin again without a cursor."""

    code = "badCursor"


class TooLarge(Malformed):
    """The request body is too large; send it in smaller parts."""

    code = "tooLarge"


class UnsupportedMediaType(Malformed):
    """The body is encoded; send it as plain JSON, without Content-Encoding."""

    code = "unsupportedMediaType"


class TooSlow(Malformed):
    """The request took too long to arrive, and is not waited for any more; send it again, on a quicker connection."""

    code = "tooSlow"


class TooManyConnections(Transient):
    """As many connections are open as may be; close what you do not need, and try again in a moment."""

    code = "tooManyConnections"


class TooManyStreams(Transient):
    """This token or person has 100 streams open, and may have no more; close some, and try again in a moment."""

    code = "tooManyStreams"


class TooManyBodies(Transient):
    """The bodies of all requests that are on their way take as much memory as they may; try again in a moment."""

    code = "tooManyBodies"


class TooManyFailedKeys(Transient):
    """Too many keys from this address were not valid; correct the one that is sent, and wait as Retry-After says."""

    code = "tooManyFailedKeys"

    def __init__(self, wait_s: float = 60.0) -> None:
        super().__init__()
        self.retry_after_s = ceil(wait_s)


class ForeignOrigin(Permanent):
    """A page of another site asked for this change, which is refused; use a page of this service, or no browser."""

    code = "foreignOrigin"


class ForeignHost(ForeignOrigin):
    """The Host header names a host that this service is not; use its own name, or add it to allowed_hosts."""

    code = "foreignHost"


class NoSessionToken(ForeignOrigin):
    """A change by a signed-in browser needs `X-Session-Token`, which GET whoami tells the pages of this service."""

    code = "noSessionToken"


class Unhealthy(Transient):
    """The service is not healthy; see its log, and try again."""

    code = "unhealthy"


class UnknownPath(NotFound):
    """There is nothing at this path; /openapi.json and /docs list every path."""

    code = "unknownPath"


class MethodNotAllowed(Permanent):
    """This path does not take that method; the Allow header lists those that it takes."""

    code = "methodNotAllowed"

    def __init__(self, allowed: tuple[str, ...]) -> None:
        super().__init__()
        self.allowed = allowed


_READING = ("GET", "HEAD")
_STATUS: tuple[tuple[type[ClickclockError], int], ...] = (
    (TooSlow, 408),
    (TooLarge, 413),
    (UnsupportedMediaType, 415),
    (ForeignOrigin, 403),
    (Unauthenticated, 401),
    (Forbidden, 403),
    (MethodNotAllowed, 405),
    (Malformed, 400),
    (Invalid, 422),
    (NotFound, 404),
    (Conflict, 409),
    (TooManyFailedKeys, 429),
    (Transient, 503),
)
"""The first that fits decides; what fits none is `INTERNAL_STATUS`."""


class Problem(msgspec.Struct, frozen=True):
    """An error, ready to be sent: status, JSON body, headers beside the usual ones."""

    status: int
    body: bytes
    headers: Mapping[str, str]


def status_of(error: BaseException | type[BaseException]) -> int:
    """The status of an error, or of a class of errors."""
    kind = error if isinstance(error, type) else type(error)
    return next((status for branch, status in _STATUS if issubclass(kind, branch)), INTERNAL_STATUS)


def refuse_changes(method: str) -> None:
    """Raise `MethodNotAllowed` for any method but those of a path that is only read."""
    if method not in _READING:
        raise MethodNotAllowed(_READING)


def problem(error: BaseException, request_id: str) -> Problem:
    """The problem document of `error`, for the caller."""
    status = status_of(error)
    headers: dict[str, str] = {}
    if isinstance(error, Transient):
        headers["retry-after"] = str(getattr(error, "retry_after_s", RETRY_AFTER_S))
    if isinstance(error, MethodNotAllowed):
        headers["allow"] = ", ".join(error.allowed)
    if isinstance(error, Unauthenticated):
        headers["www-authenticate"] = "Bearer"
    told = error if isinstance(error, ClickclockError) and status != INTERNAL_STATUS else None
    body = {
        "status": "error",
        "code": told.code if told else INTERNAL,
        "message": str(told) if told else INTERNAL_SENTENCE,
        "errors": _faults(told) if told else [],
        "requestId": request_id,
    }
    return Problem(status, json.dumps(body).encode(), headers)


def _faults(error: ClickclockError) -> list[dict[str, str]]:
    told = [{"field": fault.field, "message": fault.message} for fault in error.faults[:FAULTS_MAX]]
    if len(error.faults) > FAULTS_MAX:
        told.append({"field": "", "message": f"And {len(error.faults) - FAULTS_MAX} more; fix these first."})
    return told

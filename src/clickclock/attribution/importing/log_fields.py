"""A request by the names that a log gives to its parts: W3C extended logs (IIS, CloudFront), and logs that are JSON.

Never reads a file, and never decides what is a click. Invariants: names are compared without case and signs, so that
`cs(User-Agent)`, `user_agent` and `userAgent` are one; a request's own names win over those inside of other objects.

>>> of_fields({"request": "GET /aclick?client_id=c HTTP/1.1", "time": "2026-11-20T10:00:00Z", "status": 204})
Logged(target=b'/aclick?client_id=c', method=b'GET', status=204, at='2026-11-20T10:00:00Z', \
agent=b'', referer=b'', peer='', forwarded=b'')
"""

import re
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from clickclock.attribution.importing.historical import bytes_of

ABSENT: Final = b"-"
_REQUEST_LINE: Final = re.compile(rb"([A-Z]{3,16}) (.*?)(?: HTTP/\d(?:\.\d)?)?", re.DOTALL)
_SIGNS: Final = re.compile(r"[^a-z0-9]+")
_VALUES_MAX: Final = 500
"""Values of a JSON object that are looked at. No log has as many; an attacker's line may."""
_SECONDS_MIN: Final = 10**9
"""Since 1970: no log is older than 2001."""
_OF_THE_ANSWER: Final = ("resp", "upstream", "origin")
"""Objects with names that begin so are about something else than the request."""

_LINE: Final = ("request", "requestline", "firstrequestline")
_TARGET: Final = (
    "requesturi", "requesturl", "clientrequesturi", "requestpath", "uri", "url", "path", "csuristem", "uristem",
    "urlpath", "httptarget", "document",
)  # fmt: skip
_QUERY: Final = ("csuriquery", "querystring", "requestquery", "args", "query", "uriquery", "urlquery")
_METHOD: Final = ("requestmethod", "csmethod", "httpmethod", "clientrequestmethod", "method", "verb")
_STATUS: Final = (
    "scstatus", "status", "statuscode", "responsecode", "responsestatus", "downstreamstatus", "edgeresponsestatus",
    "elbstatuscode",
)  # fmt: skip
_AGENT: Final = (
    "csuseragent", "httpuseragent", "useragent", "requestuseragent", "clientrequestuseragent", "agent", "ua",
)  # fmt: skip
_REFERER: Final = (
    "csreferer", "httpreferer", "httpreferrer", "referer", "referrer", "requestreferer", "clientrequestreferer",
)  # fmt: skip
_PEER: Final = (
    "cip", "remoteaddr", "remoteip", "clientip", "clientaddr", "clientaddress", "remoteaddress", "remotehost",
    "clienthost", "ipaddress", "ip", "client", "downstreamremoteaddress",
)  # fmt: skip
_FORWARDED: Final = ("xforwardedfor", "httpxforwardedfor", "csxforwardedfor", "requestxforwardedfor")
_AT: Final = (
    "timeiso8601", "timestamp", "time", "timelocal", "ts", "msec", "startutc", "starttime", "datetime",
    "edgestarttimestamp", "timestampms", "at",
)  # fmt: skip


class Logged(msgspec.Struct, frozen=True):
    """One request, as a log has it."""

    target: bytes
    """The path and the query, or the whole URL."""
    method: bytes = b""
    """Empty if nobody wrote it down."""
    status: int = 0
    at: object = None
    """When it came, as it is written there."""
    agent: bytes = b""
    referer: bytes = b""
    peer: str = ""
    """The address that the server saw."""
    forwarded: bytes = b""
    """The header `X-Forwarded-For`."""


def request_of(line: bytes) -> tuple[bytes, bytes] | None:
    """The method and the target of a request line; None if it is none.

    >>> request_of(b"GET /aclick?a=b HTTP/1.1")
    (b'GET', b'/aclick?a=b')
    """
    found = _REQUEST_LINE.fullmatch(line)
    return None if found is None else (found[1], found[2])


def of_fields(given: Mapping[str, Any]) -> Logged | None:
    """The request of an object with these fields; None if it has none."""
    fields = _flat(given)
    method, target = _first(fields, _METHOD), b""
    for name in _LINE:
        if made := request_of(_text(fields.get(name))):
            method, target = made
            break
    target = target or next((text for name in _TARGET if _is_address(text := _text(fields.get(name)))), b"")
    if not target:
        return None
    query = _first(fields, _QUERY).removeprefix(b"?")
    if b"?" not in target and query:
        target += b"?" + query
    status = _first(fields, _STATUS)
    if not method and not status:
        return None  # somebody else's object, which has an address in it
    at = next((fields[name] for name in _AT if _is_time(fields.get(name))), None)
    if isinstance(at, str) and isinstance(day := fields.get("date"), str) and "T" not in at and " " not in at:
        at = f"{day}T{at}Z"  # W3C: the day and the time, each for itself, in UTC
    return Logged(
        target,
        method.upper(),
        int(status) if status.isdigit() and len(status) == 3 else 0,  # noqa: PLR2004 (digits of a status)
        at,
        _first(fields, _AGENT),
        _first(fields, _REFERER),
        _first(fields, _PEER).decode("latin-1"),
        _first(fields, _FORWARDED),
    )


def of_w3c(names: Sequence[str], values: Sequence[bytes], day: str, *, is_encoded: bool) -> Logged | None:
    """The request of a line of a W3C log. `day` is that of the log, if its lines have none.

    `is_encoded`: as CloudFront writes it, percent-encoded. Else as IIS does, with `+` for a space.
    """
    given = {"date": day} if day else {}
    for name, value in zip(names, values, strict=True):
        if value != ABSENT:
            is_query = _plain(name) == "csuriquery"
            read = (_query_of_cloudfront if is_query else _unquoted) if is_encoded else (_same if is_query else _spaced)
            given[name] = read(value).decode("utf-8", "surrogateescape")
    return of_fields(given)


def _same(value: bytes) -> bytes:
    return value


def _spaced(value: bytes) -> bytes:
    return value.replace(b"+", b" ")


def _unquoted(value: bytes) -> bytes:
    once = _decoded(value)
    return _decoded(once) if b"%20" in once and b" " not in once else once  # older logs have it twice


def _query_of_cloudfront(value: bytes) -> bytes:
    """Encoded once more by the log, if every percent sign in it is; else it stands there as it came."""
    escapes = value.split(b"%")[1:]
    is_twice = escapes and all(each[:2] == b"25" and _HEX.fullmatch(each[2:4]) for each in escapes)
    return _decoded(value) if is_twice else value


def _decoded(value: bytes) -> bytes:
    return _ENCODED.sub(lambda found: bytes.fromhex(found[1].decode()), value)


_HEX: Final = re.compile(rb"[0-9A-Fa-f]{2}")
_ENCODED: Final = re.compile(rb"%([0-9A-Fa-f]{2})")


def _flat(given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of an object and of those in it, by their plain names: the outermost of a name."""
    found: dict[str, Any] = {}
    waiting: deque[Any] = deque([given])
    left = _VALUES_MAX
    while waiting and left > 0:
        each = waiting.popleft()
        if not isinstance(each, Mapping):
            continue
        if isinstance(name := each.get("name"), str) and "value" in each:  # a header, as some list them
            found.setdefault(_plain(name), each["value"])
        for name, value in each.items():
            left -= 1
            plain = _plain(name)
            if isinstance(value, list) and value and isinstance(value[0], Mapping):
                waiting.extend(value[:_VALUES_MAX])
            elif isinstance(value, Mapping):
                if not plain.startswith(_OF_THE_ANSWER):
                    waiting.append(value)
            else:
                found.setdefault(plain, value[0] if isinstance(value, list) and value else value)
    return found


def _plain(name: str) -> str:
    return _SIGNS.sub("", name.lower())


def _is_address(text: bytes) -> bool:
    """Whether it is a path or a URL."""
    return text.startswith(b"/") or b"://" in text.partition(b"?")[0]


def _is_time(value: object) -> bool:
    """Whether it may be one; durations have such names, too."""
    return (
        value >= _SECONDS_MIN if isinstance(value, int | float) else isinstance(value, str) and value not in ("", "-")
    )


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> bytes:
    return next((text for name in names if (text := _text(fields.get(name))) not in (b"", ABSENT)), b"")


def _text(value: object) -> bytes:
    if isinstance(value, str):
        return bytes_of(value)
    return str(value).encode() if isinstance(value, int) and not isinstance(value, bool) else b""

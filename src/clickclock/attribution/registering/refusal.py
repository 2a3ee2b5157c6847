r"""A request that is refused before anybody judged what it says: by its method, its length, its type or its syntax.

Never judges a click. Invariants: whatever there is of a click or an order in it is kept; what was cut off is marked
so, and never becomes a click later, for a value that was cut is another value.

>>> kept_of(b"/aclick", b"client_id=c", b""), kept_of(b"/favicon.ico", b"", b"")
(('click', b'client_id=c'), None)
>>> target_in(b"GET /aclick?client_id=c&atag=a b HTTP/1.1\r\nHost: h\r\n")
(b'/aclick?client_id=c&atag=a b', True)
"""

import re
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from clickclock.attribution.clicks.click import Flag
from clickclock.attribution.clicks.query import Reason
from clickclock.attribution.registering.identification import is_query
from clickclock.attribution.registering.registration import CLICK, ORDER, VIEW

APPSFLYER, IDENTIFICATION = "appsflyer", "identification"
"""What a rejection was to be, beside a click, a view and an order."""
CUT_BYTES_MAX: Final = 64 * 1024
"""So much of a request that is not whole is kept: enough to see what it was."""
_WHAT: Final = {
    b"/aclick": CLICK,
    b"/aview": VIEW,
    b"/orders": ORDER,
    b"/appsflyer": APPSFLYER,
    b"/identify": IDENTIFICATION,
}
WEBHOOKS: Final = b"/webhooks/"
"""How the paths begin to which shops send orders in their own words."""
_OURS: Final = re.compile(rb"(?:^|&)(?:client_id|cli_ubid|device_id|seller_id|asvt|atag|event_time|gclid|uclid)=")
_OUR_JSON: Final = re.compile(rb'"(?:client_id|order_id|cli_ubid)"\s*:')
_LINE: Final = re.compile(rb"[A-Za-z]{1,20} +(.*?)(?: +HTTP/[0-9.]*)?", re.DOTALL)
_CUT_SENTENCE: Final = "Only a part of the request came, or is kept; it cannot be replayed."


class Code(StrEnum):
    """Why a request is refused that nobody judged: the code of the answer, and of the rejection's fault."""

    MALFORMED = "malformed"
    UNKNOWN_PATH = "unknownPath"
    METHOD_NOT_ALLOWED = "methodNotAllowed"
    TOO_LARGE = "tooLarge"
    QUERY_TOO_LONG = "queryTooLong"
    UNSUPPORTED_MEDIA_TYPE = "unsupportedMediaType"
    EXPECTATION_FAILED = "expectationFailed"
    HEADERS_TOO_LARGE = "headersTooLarge"


class Refusal(NamedTuple):
    """A fault of the request itself, whatever it says."""

    status: int
    code: Code
    sentence: str


def is_ours(path: bytes) -> bool:
    """Whether we register what is sent to this path, which is in small letters and has no slash at its end."""
    return path in _WHAT or path.startswith(WEBHOOKS)


def kept_of(path: bytes, query: bytes, body: bytes) -> tuple[str, bytes] | None:
    """What a request to this path was to be, and the bytes to keep; None if nothing of a click or an order is in it.

    A request to another path is kept if it has a name of ours: somebody mistyped the path, or a proxy changed it.
    """
    what = _WHAT.get(path)
    if path.startswith(WEBHOOKS):
        return None  # names and addresses are in it, and the shop sends it again
    if what is None:
        if _OUR_JSON.search(body):
            return ORDER, body
        if not (_OURS.search(query) or _OURS.search(body)):
            return None
    both = query + b"&" + body if query and body else query or body
    is_json = what == ORDER or (what == IDENTIFICATION and not is_query(body))
    raw = body or query if is_json else both
    return (what or CLICK, raw) if raw else None


def detail_of(what: str, refusal: Refusal, *, is_cut: bool, is_prefetch: bool = False) -> bytes:
    """What the entry of such a request says of it, as JSON: what it was, the kind, the fault, and any flag."""
    faults = [{"field": "", "message": refusal.sentence, "code": refusal.code}]
    if is_cut:
        faults.append({"field": "", "message": _CUT_SENTENCE, "code": Reason.CUT})
    flags = {"flags": [Flag.PREFETCH]} if is_prefetch and what in {CLICK, VIEW} else {}
    return msgspec.json.encode({"was": what, "kind": "invalid", "faults": faults} | flags)


def target_in(data: bytes) -> tuple[bytes, bool]:
    """The target of a request that begins with `data` and cannot be parsed, and whether its line is whole.

    Empty if there is none.
    """
    line, end, _ = data.partition(b"\n")
    found = _LINE.fullmatch(line.rstrip(b"\r")[:CUT_BYTES_MAX])
    return (b"", False) if found is None else (found[1].strip(b" "), bool(end))

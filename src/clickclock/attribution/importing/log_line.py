r"""Lines of a server's log, in the format that each is in: combined and its kin, load balancers of AWS, W3C, JSON.

Never judges a click and never reads a file. Only the request itself is looked at: an address that a page, an agent or
another request's query names is none. Invariants: a request to another path is passed over, and so is one that no
click can be; what is neither a log's line nor a query is `Unusable`, and none of it is kept; time and memory are
bounded by the line's length.

>>> click = LogReader().read(b'1.2.3.4 - - [20/Nov/2026:10:00:00 +0000] "GET /aclick?client_id=c HTTP/1.1" 204 0')
>>> click.query, click.received_ms, click.peer, click.is_view
(b'client_id=c', 1795168800000, '1.2.3.4', False)
"""

import re
from collections.abc import Sequence
from datetime import datetime
from ipaddress import ip_address
from itertools import islice
from typing import Any, Final

import msgspec

from clickclock.attribution.importing.historical import QUERY, Historical, Unusable, historical, of_row
from clickclock.attribution.importing.log_fields import ABSENT, Logged, of_fields, of_w3c, request_of
from clickclock.attribution.orders.order_fields import EVENT_TIME_MS_MAX, EVENT_TIME_MS_MIN
from clickclock.foundation.instant import ms_of

CLICK_PATH: Final = b"/aclick"
VIEW_PATH: Final = b"/aview"
METHODS: Final = frozenset({b"", b"GET", b"HEAD", b"POST"})
"""Those that register a click; empty is one that nobody wrote down."""
REFUSED: Final = frozenset({401, 403, 405, 407, 451})
"""Statuses by which a server says that it does not want a request, at any time: a firewall's word is kept."""
_NO_LINE: Final = "it is no line of a log that is known, no URL, and no query with a client_id"
_NO_TIME: Final = "its time cannot be read"

# A time in brackets, a quoted field, or what stands between blanks. None of them looks further than it must.
_TOKEN: Final = re.compile(rb"\[[^\]\s]{0,40}(?: [^\]\s]{0,40})?\]|\"(?:[^\"\\]|\\.)*\"|\S+", re.DOTALL)
_OURS: Final = re.compile(rb"(?:^|[?&])(?:client_id|cli_ubid|device_id|seller_id|asvt|atag|event_time|gclid|uclid)=")
_PAGE: Final = re.compile(rb"(?:[A-Za-z][A-Za-z0-9+.-]*:|/)\S*")
_LOGGED_AT: Final = re.compile(r"\[?(\d{2})/(\w{3})/(\d{4}):(\d{2}:\d{2}:\d{2})(?:\.\d+)?(?: ([+-]\d{4}))?\]?")
_ISO_AT: Final = re.compile(r"\[?(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})(?:[.,](\d+))?(Z|[+-]\d{2}:?\d{2})?\]?")
_NUMBER_AT: Final = re.compile(r"(\d{10,19})(\.\d+)?")
_MONTHS: Final = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_STATUS: Final = re.compile(rb"[1-5]\d\d")
_ESCAPE: Final = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|([\"\\]))")
"""As nginx and Apache have it."""
_DIRECTIVE: Final = re.compile(rb"#[A-Z][A-Za-z-]{1,30}:")
_W3C_BEGINS: Final = re.compile(rb"\d{4}-\d{2}-\d{2}([\t ])\d{2}:\d{2}:\d{2}\1")
_TOKENS_MAX: Final = 1000
"""Ten times those of the longest format: what somebody wrote into a field must not cost more."""
_OF_ENVOY: Final = 5
"""So many fields stand between a request and the next quoted one in Envoy's log; in others, one to three."""
_DIGITS_OF_S: Final = 10

# The fields of logs whose first lines were cut off, as `grep` does.
_CLOUDFRONT: Final = (
    *("date", "time", "x-edge-location", "sc-bytes", "c-ip", "cs-method", "cs(Host)", "cs-uri-stem", "sc-status"),
    *("cs(Referer)", "cs(User-Agent)", "cs-uri-query", "cs(Cookie)"),
)
_IIS: Final = (
    *("date", "time", "s-ip", "cs-method", "cs-uri-stem", "cs-uri-query", "s-port", "cs-username", "c-ip"),
    *("cs(User-Agent)", "cs(Referer)", "sc-status", "sc-substatus", "sc-win32-status", "time-taken"),
)
_IIS_6: Final = tuple(name for name in _IIS if name != "cs(Referer)")
_object: Final = msgspec.json.Decoder(dict[str, Any]).decode
_WRAPPED: Final = ("log", "message", "MESSAGE", "msg", "textPayload")
"""Where container engines and collectors of logs put the line."""


class LogReader:
    """Reads one file from its first line to its last: a W3C log says which fields follow."""

    def __init__(self) -> None:
        self._names: Sequence[str] = ()
        self._day = ""

    def heeds(self, line: bytes) -> bool:
        """Whether a line is none of a request, but says how those that follow are written."""
        if not _DIRECTIVE.match(line):
            return False
        name, _, said = line.strip().partition(b":")
        if name == b"#Fields":
            self._names = said.decode("latin-1").split()
        elif name == b"#Date":
            self._day = said.decode("latin-1").split()[0] if said.strip() else ""
        return True

    def read(self, line: bytes) -> Historical | None:
        """The click of a line; None if it is of another request. Raises `Unusable`, saying why."""
        text = line.strip()
        if text.startswith(b"{"):
            return self._of_json(text)
        if self._names or _W3C_BEGINS.match(text):
            logged = self._of_w3c(text)
            if logged is not None:
                return _click(logged)
        return _of_text(text)

    def _of_w3c(self, text: bytes) -> Logged | None:
        is_tabbed = b"\t" in text
        values = text.split(b"\t" if is_tabbed else None)
        names = self._names
        if not names and is_tabbed and len(values) >= len(_CLOUDFRONT):
            names, values = _CLOUDFRONT, values[: len(_CLOUDFRONT)]
        elif not names and not is_tabbed:
            names = next((each for each in (_IIS, _IIS_6) if len(each) == len(values)), ())
        if len(names) != len(values):
            return None
        return of_w3c(names, values, self._day, is_encoded=is_tabbed)

    def _of_json(self, text: bytes) -> Historical | None:
        try:
            given = _object(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Unusable("it is no JSON object") from error
        wrapped = next((given[name] for name in _WRAPPED if isinstance(given.get(name), str)), None)
        logged = of_fields(given)
        if logged is not None:
            return _click(logged)
        if QUERY in given or "client_id" in given:
            return of_row(given)
        if wrapped is None or not wrapped.strip() or wrapped.lstrip().startswith("{"):
            raise Unusable(_NO_LINE)
        return _of_text(wrapped.strip().encode("utf-8", "surrogatepass"))


def _of_text(text: bytes) -> Historical | None:
    tokens = [found[0] for found in islice(_TOKEN.finditer(text), _TOKENS_MAX)]
    if len(tokens) > 1:
        return _of_tokens(tokens)
    path, mark, query = text.partition(b"?")
    if mark and path and b"=" not in path and b"&" not in path:  # a URL, or its path
        return _click(Logged(path + b"?" + query.partition(b"#")[0]))
    if not _OURS.search(text):
        raise Unusable(_NO_LINE)
    return historical(text.removeprefix(b"?"), None)


def _of_tokens(tokens: Sequence[bytes]) -> Historical | None:
    timed = next((place for place, each in enumerate(tokens) if _time_in(each)), None)
    for place in range(0 if timed is None else timed + 1, len(tokens)):
        field = _quoted(tokens[place])
        if field is None or not field or field == ABSENT or _addresses(field):
            continue
        made = request_of(field)
        if made is None and timed is None:
            break
        return None if made is None else _click(_logged(made, tokens, place, place + 1))
    for place, method in enumerate(tokens[:-1]):  # some write it without quotation marks
        target = tokens[place + 1]
        if method.isalpha() and method.isupper() and (target.startswith(b"/") or b"://" in target.partition(b"?")[0]):
            return _click(_logged((method, target), tokens, place, place + 2))
    if timed is None or not any(map(_quoted, tokens)):
        raise Unusable(_NO_LINE)
    return None  # a request that its server could not read either


def _logged(made: tuple[bytes, bytes], tokens: Sequence[bytes], place: int, end: int) -> Logged:
    """The request with what stands before and behind it: `tokens[place:end]`."""
    before, rest = tokens[:place], tokens[end:]
    gap = next((number for number, each in enumerate(rest) if _quoted(each) is not None), len(rest))
    statuses = [each for each in (*rest[:gap], *before) if _STATUS.fullmatch(each)]
    fields = [_unescaped(field) for each in rest if (field := _quoted(each)) is not None]
    forwarded = next((field for field in fields if gap and _addresses(field)), b"")
    others = [field for field in fields if not _addresses(field)]
    referer, agent = b"", b""
    if not gap:  # a load balancer of AWS
        agent = others[0] if others else b""
    elif gap >= _OF_ENVOY:
        agent = next((field for field in others if field != ABSENT), b"")
    elif len(others) > 1:
        referer, agent = others[0], others[1]
    elif others:
        referer, agent = (others[0], b"") if _PAGE.fullmatch(others[0]) else (b"", others[0])
    times = [each for each in before if _time_in(each)] or [each for each in rest if _time_in(each)]
    return Logged(
        target=_unescaped(made[1]),
        method=made[0],
        status=int(statuses[0]) if statuses else 0,
        at=_best_time(times),
        agent=b"" if agent == ABSENT else agent,
        referer=referer if _PAGE.fullmatch(referer) else b"",
        peer=_peer(before),
        forwarded=forwarded,
    )


def _best_time(times: Sequence[bytes]) -> str | None:
    """That of the server rather than that of who collected the line and put another before it."""
    texts = [each.decode("latin-1") for each in times]
    return next((text for text in texts if _LOGGED_AT.fullmatch(text)), texts[-1] if texts else None)


def _peer(before: Sequence[bytes]) -> str:
    """The client's address: in the combined format three before the time, else the first that there is."""
    timed = next((place for place, each in enumerate(before) if each.startswith(b"[") and _time_in(each)), 0)
    for each in (*before[max(0, timed - 3) : timed], *before):
        if found := _addresses(each.strip(b'"')):
            return found[0]
    return ""


def _click(logged: Logged) -> Historical | None:
    path, _, query = logged.target.partition(b"?")
    if b"://" in path:
        path = b"/" + path.partition(b"://")[2].partition(b"/")[2]
    path = path.lower().removesuffix(b"/")
    is_view = path.endswith(VIEW_PATH)
    if (
        not query
        or not (is_view or path.endswith(CLICK_PATH))
        or logged.method not in METHODS
        or logged.status in REFUSED
    ):
        return None
    peers = _addresses(logged.peer.encode("latin-1", "replace"))
    peer = peers[0] if peers else ""
    found = historical(query, instant_ms(logged.at), logged.agent, logged.referer, peer, logged.forwarded)
    return msgspec.structs.replace(found, is_view=True) if is_view else found


def instant_ms(at: object) -> int | None:
    """What a log says of when it was, in milliseconds since 1970; None if it says nothing, or has no zone.

    Raises `Unusable` if it cannot be read.

    >>> instant_ms("[01/Jan/2026:01:00:00 +0100]"), instant_ms(1767225600.5), instant_ms("01/Jan/2026:01:00:00")
    (1767225600000, 1767225600500, None)
    """
    if at is None or isinstance(at, bool):
        return None
    text = f"{at:f}" if isinstance(at, float) else str(at)
    if number := _NUMBER_AT.fullmatch(text):
        # Seconds, thousandths, millionths or billionths, by their number of digits.
        whole = int(number[1]) * 1000 // 10 ** (len(number[1]) - _DIGITS_OF_S)
        rest = int(float(number[2]) * 1000) if number[2] and len(number[1]) == _DIGITS_OF_S else 0
        return _in_range(whole + rest)
    if logged := _LOGGED_AT.fullmatch(text):
        day, month, year, time, zone = logged.groups()
        number_of_month = _MONTHS.index(month) + 1 if month in _MONTHS else 0
        text, fraction = f"{year}-{number_of_month:02}-{day}T{time}", None
    elif iso := _ISO_AT.fullmatch(text):
        day, time, fraction, zone = iso.groups()
        text = f"{day}T{time}"
    else:
        raise Unusable(_NO_TIME)
    try:
        when = datetime.fromisoformat(f"{text}.{(fraction or '0')[:6]:<06}{zone or 'Z'}")
        ms = ms_of(when)
    except (ValueError, OverflowError) as error:
        raise Unusable(_NO_TIME) from error
    return ms if zone else None


def _in_range(ms: int) -> int:
    if not EVENT_TIME_MS_MIN <= ms <= EVENT_TIME_MS_MAX:
        raise Unusable(_NO_TIME)
    return ms


def _time_in(token: bytes) -> bool:
    text = token.decode("latin-1")
    return bool(_LOGGED_AT.fullmatch(text) or _ISO_AT.fullmatch(text))


def _quoted(token: bytes) -> bytes | None:
    """The bytes between the quotation marks; None if there are none."""
    is_quoted = len(token) > 1 and token.startswith(b'"') and token.endswith(b'"')
    return token[1:-1] if is_quoted else None


def _addresses(field: bytes) -> list[str]:
    """The addresses of a field that has nothing else: of a client, with or without its port, or a list of them."""
    found = []
    for each in field.decode("latin-1").split(","):
        text = each.strip()
        if text.startswith("["):
            text = text[1:].partition("]")[0]
        elif text.count(":") == 1:
            text = text.partition(":")[0]
        try:
            ip_address(text)
        except ValueError:
            return []
        found.append(text)
    return found


def _unescaped(text: bytes) -> bytes:
    if b"\\" not in text:
        return text
    return _ESCAPE.sub(lambda found: bytes.fromhex(found[1].decode()) if found[1] else found[2], text)

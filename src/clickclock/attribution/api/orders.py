"""Orders over HTTP: a body → its orders, each judged; what the journal keeps of them; the reply.

Never does I/O: whoever calls gives every draft to the collector, waits until all are on disk, and then replies.
Invariants: a bad order never takes a good one down; each order has one result, at its place; what is refused is kept,
with its reasons, as it came.

>>> piece = b'{"client_id": "c", "order_id": "7", "device_id": "d", "event_time": 1800000000000, "amount": "9.99"}'
>>> judged = [judge(piece, 1800000000000, doorkeeper({}.get, None)) for piece in pieces(piece)]
>>> results = Results(len(judged))
>>> results.add(judged[0], "0" * 32)
>>> judged[0].draft.kind.value, results.reply().status
('r', 422)
"""

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final, Protocol

import msgspec
from uuid_utils import uuid7

from clickclock.attribution.agents.collector import Draft
from clickclock.attribution.api.answers import JSON, REQUEST_ID
from clickclock.attribution.clicks.account import UNKNOWN_CLIENT
from clickclock.attribution.clicks.click import Flag
from clickclock.attribution.clicks.entry import EntryKind
from clickclock.attribution.orders import amendment, appsflyer
from clickclock.attribution.orders.amendment import Admit, Amendment, Kind, Rejection
from clickclock.attribution.orders.appsflyer import OtherEvent, Sale
from clickclock.attribution.orders.order_fields import Fault, Reason
from clickclock.attribution.registering import identification
from clickclock.attribution.registering.identification import Identification
from clickclock.foundation.errors import ClickclockError, Invalid, Malformed
from clickclock.foundation.problem import FAULTS_MAX, TooLarge, status_of

ORDERS_MAX: Final = 10_000
"""The results of so many still fit into one answer; more only costs one more request."""
BODY_BYTES_MAX: Final = 8 * 1024 * 1024
"""`ORDERS_MAX` orders with several items each, and as much as the scheduler takes."""
LINES_MAX: Final = 2 * ORDERS_MAX
"""With an empty one behind each order. To take millions of lines apart would hold up the clicks."""
FAULTS_TOLD_MAX: Final = 1_000
"""In one answer, of 200 KB then, which clients may leave unread. The rejections have them all."""
ORDER_BYTES_MIN: Final = 64
"""No order is shorter: its fields' names alone take that. A kept rejection is hundreds of bytes longer."""
SHORT_MAX: Final = 100
"""So few are judged and kept one by one, however short they are."""
BYTES_PER_COMMA_MIN: Final = 10
"""No field with its name is shorter. Millions of tiny values would cost ten times the body's size in memory."""
_BYTES_UNCOUNTED_MAX: Final = 64 * 1024


class Account(Protocol):
    """Facts about an account."""

    @property
    def orders_token_sha256(self) -> str | None:
        """The SHA-256 of the token without which no order is taken, in hexadecimal; None if none is needed."""


class Judged(msgspec.Struct, frozen=True):
    """One order or call: what the journal is to keep of it, and what it was judged to be.

    The draft's detail is, of a rejection, JSON of what it was and why; of an order that came by /appsflyer, its query;
    of another event, its name.
    """

    draft: Draft
    verdict: Amendment | Identification | OtherEvent | Rejection


class Reply(msgspec.Struct, frozen=True):
    """The answer once everything is on disk."""

    status: int
    fields: bytes = b""
    """Header lines, each with its end."""
    body: bytes | None = None
    """None: it can have none."""


class Tokens(Protocol):
    """What has to be known of order tokens that are in no account's settings."""

    def needs(self, client_id: str) -> bool:
        """Whether orders of an account need one."""

    def takes(self, client_id: str, sha256: str, now_ms: int) -> bool:
        """Whether a token with this digest may send orders of an account."""


def doorkeeper(
    find: Callable[[str], Account | None], authorization: str | None, tokens: Tokens | None = None, now_ms: int = 0
) -> Admit:
    """The clients that may write orders, given the request's `Authorization` header, its bytes read as Latin-1.

    Each client id is asked about once.
    """
    scheme, _, token = (authorization or "").partition(" ")
    given = hashlib.sha256(token.strip().encode("latin-1", "backslashreplace")).hexdigest().encode()
    has_token = scheme.lower() == "bearer"

    @cache
    def admit(client_id: str) -> Fault | None:
        account = find(client_id)
        if account is None:
            return Fault("client_id", UNKNOWN_CLIENT, Reason.UNKNOWN_CLIENT)
        wanted = account.orders_token_sha256
        if wanted is None and (tokens is None or not tokens.needs(client_id)):
            return None
        if has_token and wanted is not None and hmac.compare_digest(given, wanted.lower().encode()):
            return None
        if has_token and tokens is not None and tokens.takes(client_id, given.decode(), now_ms):
            return None
        return Fault("client_id", _UNAUTHORIZED, Reason.UNAUTHORIZED)

    return admit


_UNAUTHORIZED: Final = "Orders of this account need its token; send the header `Authorization: Bearer <token>`."


def pieces(body: bytes) -> list[bytes]:
    """The orders in a body, as they stand there: one object, an array, or one object a line.

    Raises `Malformed` if nothing in it can be read, `TooLarge`.
    """
    if len(body) > BODY_BYTES_MAX:
        raise TooLarge(f"The body has {len(body):,} bytes; send at most {BODY_BYTES_MAX:,} in one request.")
    text = body.removeprefix(_BYTE_ORDER_MARK).strip(_SPACE)
    if not text:
        raise Malformed("There is no body; send an order, an array of orders, or one order a line.")
    if len(text) > _BYTES_UNCOUNTED_MAX and text.count(b",") * BYTES_PER_COMMA_MIN > len(text):
        raise TooLarge("The body has more values than orders can have; send orders alone, and fewer at a time.")
    found: Sequence[bytes | msgspec.Raw]
    try:
        found = _array(text) if text.startswith(b"[") else [_one(text)]
    except (msgspec.DecodeError, RecursionError) as error:
        if text.count(b"\n") > LINES_MAX:
            raise TooLarge(f"There are more than {LINES_MAX:,} lines; send fewer orders at a time.") from error
        lines = text.split(b"\n")
        if text.startswith(b"[") or not any(map(_is_object, lines)):
            raise Malformed(f"The body cannot be read: {error}.") from error
        found = [line for line in (line.strip(_SPACE) for line in lines) if line]
    if not 0 < len(found) <= ORDERS_MAX:
        kind = TooLarge if found else Malformed
        raise kind(f"There are {len(found):,} orders; send between 1 and {ORDERS_MAX:,} in one request.")
    if len(found) > SHORT_MAX and len(text) < len(found) * ORDER_BYTES_MIN:
        raise TooLarge(f"The body has {len(found):,} pieces, too short to be orders; send whole orders alone.")
    return [bytes(each) for each in found]


def _is_object(line: bytes) -> bool:
    """Whether a line looks like an object of its own. Those inside of another are indented by whoever breaks lines."""
    return line.startswith(b"{") and line.rstrip(_SPACE).endswith(b"}")


_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_SPACE: Final = b" \t\r\n"
_array: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_one: Final = msgspec.json.Decoder(msgspec.Raw).decode


def judge(piece: bytes, received_ms: int, admit: Admit) -> Judged:
    """One of `pieces`, judged."""
    verdict = amendment.judge(piece, received_ms, admit)
    if isinstance(verdict, Rejection):
        return _rejected("order", piece, verdict)
    return Judged(Draft(EntryKind.ORDER, b"", piece), verdict)


def judge_said(said: Mapping[str, object], received_ms: int, as_sent: Callable[[Fault], Fault]) -> Judged:
    """An order in our own fields that somebody else said in theirs; `as_sent` names a fault in theirs."""
    piece = _encode(said)
    verdict = amendment.judge_fields(said, received_ms)
    if isinstance(verdict, Rejection):
        named = tuple(map(as_sent, verdict.faults))
        return _rejected("order", piece, msgspec.structs.replace(verdict, faults=named))
    return Judged(Draft(EntryKind.ORDER, b"", piece), verdict)


def judge_said_identification(
    said: Mapping[str, object], received_ms: int, as_sent: Callable[[Fault], Fault]
) -> Judged:
    """The same of an identification."""
    verdict = identification.judge_fields(said, received_ms)
    if isinstance(verdict, Rejection):
        named = tuple(map(as_sent, verdict.faults))
        return _rejected("identification", _encode(said), msgspec.structs.replace(verdict, faults=named))
    return Judged(Draft(EntryKind.OTHER, identification.NAME.encode(), verdict.query), verdict)


def judge_identification(piece: bytes, received_ms: int, admit: Admit) -> Judged:
    """The same of a body of identifications."""
    verdict = identification.judge(piece, received_ms, admit)
    if isinstance(verdict, Rejection):
        return _rejected("identification", piece, verdict)
    return Judged(Draft(EntryKind.OTHER, identification.NAME.encode(), verdict.query), verdict)


class Asked(msgspec.Struct, frozen=True):
    """What a path takes."""

    one: str
    """What each piece is, in one word."""
    many: str
    judge: Callable[[bytes, int, Admit], Judged]
    find: Callable[[bytes, bytes], list[bytes]]
    """The pieces of a query and a body."""


def _in_body(_query: bytes, body: bytes) -> list[bytes]:
    return pieces(body)


def identifications_in(query: bytes, body: bytes) -> list[bytes]:
    """The pieces of a body; or all parameters, where one is sent so: in an address, as a form or by `sendBeacon`."""
    if body and not identification.is_query(body):
        return pieces(body)
    parameters = b"&".join(filter(None, (query, body)))
    if not parameters:
        raise Malformed("There is nothing; send an identification as JSON, as a form or in the query.")
    return [parameters]


ORDERS: Final = Asked("order", "orders", judge, _in_body)
IDENTIFICATIONS: Final = Asked("identification", "identifications", judge_identification, identifications_in)


def refuse(body: bytes, error: ClickclockError, asked: Asked = ORDERS) -> Judged:
    """A body of which `pieces` could read nothing: kept whole, as one rejection."""
    code = Reason.TOO_LARGE if isinstance(error, TooLarge) else Reason.NOT_JSON
    return _rejected(asked.one, body, Rejection(Kind.INVALID, (Fault("", str(error), code),)))


def reply_refused(error: ClickclockError, entry_id: str = "", more: str = "") -> Reply:
    """The reply to such a body: 400, or 413. Its sentence ends with `more`."""
    return _refusal(status_of(error), error.code, f"{error}{more}", [], entry_id)


def reply_not_kept(status: int, kind: Kind, message: str) -> Reply:
    """The reply to a request of which nothing is kept."""
    return _refusal(status, kind, message, [], "")


class Results:
    """The reply to `POST /orders`, made while its orders are judged and kept. It holds no more than the answer says.

    And to `POST /identify`.
    """

    def __init__(self, count: int, asked: Asked = ORDERS) -> None:
        """`count` is the number of orders, or identifications, in the body."""
        self._count = count
        self._asked = asked
        self._results: list[bytes] = []
        self._errors: list[dict[str, str]] = []
        """The first `FAULTS_MAX` faults, with their places in the body."""
        self._kinds: Counter[Kind] = Counter()
        """How many orders were refused, by kind."""
        self._told = self._accepted = 0
        self._first_id = ""

    def __len__(self) -> int:
        return len(self._results)

    def add(self, judged: Judged, entry_id: str) -> None:
        """The result of the next order, which is kept under this id."""
        verdict = judged.verdict
        assert not isinstance(verdict, OtherEvent)  # those come by /appsflyer alone
        place = len(self._results)
        result: dict[str, object] = {"index": place, "id": entry_id, "client_id": verdict.client_id}
        if isinstance(verdict, Identification):
            self._accepted += 1
            self._results.append(_encode({**result, "customer_id": verdict.customer_id, "result": "accepted"}))
            return
        if self._asked is ORDERS:
            result["order_id"] = verdict.order_id
        if isinstance(verdict, Amendment):
            self._accepted += 1
            flags = [Flag.EVENT_TIME_AHEAD] if verdict.is_ahead else []
            self._results.append(_encode({**result, "result": "accepted", "flags": flags}))
            return
        self._first_id = self._first_id or entry_id
        self._kinds[verdict.kind] += 1
        errors = _told(verdict)
        self._told += len(errors)
        room = FAULTS_MAX - len(self._errors)
        where = "" if self._count == 1 else f"{self._asked.many}[{place}]."
        self._errors += [{**each, "field": f"{where}{each['field']}".rstrip(".")} for each in errors[:room]]
        if self._told > FAULTS_TOLD_MAX:
            errors = [{"field": "", "message": _UNTOLD, "code": verdict.faults[0].code}]
        self._results.append(_encode({**result, "result": verdict.kind, "errors": errors}))

    def reply(self) -> Reply:
        """202 if any order was taken; 422 if none was, or 401 if that is for want of a token."""
        count = self._count
        if self._kinds[Kind.UNAUTHORIZED] == count:
            errors = [{"field": "client_id", "message": _UNAUTHORIZED, "code": Reason.UNAUTHORIZED}]
            return _refusal(_UNAUTHORIZED_STATUS, Kind.UNAUTHORIZED, _UNAUTHORIZED, errors, self._first_id)
        told: dict[str, object] = {"status": "success", "accepted": self._accepted, "rejected": count - self._accepted}
        if self._kinds:
            told |= {
                "status": "partial" if self._accepted else "refused",
                "code": next(iter(self._kinds)) if len(self._kinds) == 1 else Kind.INVALID,
                "message": self._message.format(one=self._asked.one, many=self._asked.many),
                "errors": self._errors,
                "requestId": self._first_id,
            }
        head = _encode(told).removesuffix(b"}") + f',"{self._asked.many}":['.encode()
        status = _ACCEPTED_STATUS if self._accepted else _REFUSED_STATUS
        fields = JSON + REQUEST_ID % self._first_id.encode() if self._kinds else JSON
        return Reply(status, fields, b"".join((head, b",".join(self._results), b"]}\n")))

    @property
    def _message(self) -> str:
        return _PARTIAL if self._accepted else _ONE_REFUSED if self._count == 1 else _ALL_REFUSED


_ONE_REFUSED: Final = "The {one} is refused, and kept under its requestId; fix the named fields and send it again."
_ALL_REFUSED: Final = "All {many} are refused, and kept under their ids; fix the named fields and send them again."
_PARTIAL: Final = "Some {many} are refused, and kept under their ids; fix the named fields and send those again."
_UNTOLD: Final = "This order has faults, too; fix the named ones, and look up the rest in the rejections."


def judge_appsflyer(raw: bytes, received_ms: int, admit: Admit) -> Judged:
    """A call of /appsflyer, from its query or its form."""
    verdict = appsflyer.judge(raw, received_ms, admit)
    match verdict:
        case Rejection():
            return _rejected("appsflyer", raw, verdict)
        case Sale():
            return Judged(Draft(EntryKind.ORDER, raw, verdict.json), verdict.amendment)
        case OtherEvent():
            return Judged(Draft(EntryKind.OTHER, verdict.name.encode(), raw), verdict)


def reply_appsflyer(judged: Judged, entry_id: str = "") -> Reply:
    """The reply to a call of /appsflyer: 204, or what is wrong with it. A sale is an order, and is refused as one."""
    if not isinstance(judged.verdict, Rejection):
        return Reply(_NO_CONTENT_STATUS)
    kind = judged.verdict.kind
    status, message = _REFUSALS[kind]
    if kind is Kind.INVALID and appsflyer.is_sale(judged.draft.raw):
        status, message = _REFUSED_STATUS, _ONE_REFUSED.format(one=ORDERS.one)
    return _refusal(status, kind, message, _told(judged.verdict), entry_id)


_NO_CONTENT_STATUS: Final = 204
_ACCEPTED_STATUS: Final = 202
_REFUSED_STATUS: Final = status_of(Invalid)
_UNAUTHORIZED_STATUS: Final = 401
_REFUSALS: Final = {
    Kind.INVALID: (400, "The call is not valid; fix the named parameters and send it again."),
    Kind.UNKNOWN_CLIENT: (403, UNKNOWN_CLIENT),
    Kind.UNAUTHORIZED: (_UNAUTHORIZED_STATUS, _UNAUTHORIZED),
}
_CHALLENGE: Final = b"WWW-Authenticate: Bearer\r\n"
_encode: Final = msgspec.json.Encoder().encode


def _rejected(was: str, raw: bytes, rejection: Rejection) -> Judged:
    detail = {"was": was, "kind": rejection.kind, "faults": _told(rejection)}
    return Judged(Draft(EntryKind.REJECTION, _encode(detail), raw), rejection)


def _told(rejection: Rejection) -> list[dict[str, str]]:
    return [{"field": each.field, "message": each.message, "code": each.code} for each in rejection.faults]


def _refusal(status: int, code: str, message: str, errors: list[dict[str, str]], entry_id: str) -> Reply:
    """In the form of the service's other errors; what was kept of the request is found by the `requestId`.

    Where nothing was kept, another id is made, by which the answer is known.
    """
    entry_id = entry_id or uuid7().hex
    body = {"status": "error", "code": code, "message": message, "errors": errors, "requestId": entry_id}
    fields = JSON + REQUEST_ID % entry_id.encode()
    if status == _UNAUTHORIZED_STATUS:
        fields += _CHALLENGE
    return Reply(status, fields, _encode(body) + b"\n")

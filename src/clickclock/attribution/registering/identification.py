"""An identification: a client says that a visitor, or a device, is a customer of its own.

Never looks into a `customer_id`: it is opaque, hashed or not. Invariants: a message is an `Identification`, or a
`Rejection` with every fault; of what was said about one customer and one identifier, the latest event time counts,
whatever came first; the query of an entry says what the message said.

>>> said = judge(b'{"client_id": "c", "customer_id": "7", "cli_ubid": "b"}', 1800000000000)
>>> said.query
b'client_id=c&customer_id=7&cli_ubid=b&event_time=1800000000000'
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, TypeAlias

import msgspec

from clickclock.attribution.clicks.identifier import CUSTOMER, folded
from clickclock.attribution.clicks.query import Unreadable, split
from clickclock.attribution.importing.historical import encoded
from clickclock.attribution.orders.amendment import Admit, Kind, Rejection, everyone
from clickclock.attribution.orders.order import Order
from clickclock.attribution.orders.order_fields import Fault, Fields, NotJson, Reason, is_absent, read_json

NAME: Final = "identify"
"""The name of its entries among other events."""
BYTES_MAX: Final = 16 * 1024
"""Five texts of 256 characters, however they are escaped."""
FIELDS: Final = ("client_id", "customer_id", "cli_ubid", "device_id", "event_time", "status")


Pair: TypeAlias = tuple[str, str, str, str]
"""A client, its customer, and the kind and value of an identifier."""


class Status(StrEnum):
    """Whether they belong together, or do not any more; of two that name one time, the later one counts."""

    IDENTIFIED = "identified"
    WITHDRAWN = "withdrawn"


class Identification(msgspec.Struct, frozen=True):
    """What one message says."""

    client_id: str
    customer_id: str
    cli_ubid: str | None
    device_id: str | None
    event_time_ms: int
    """When it was so, in milliseconds since 1970; when it was received, if nobody said or that was earlier."""
    status: Status = Status.IDENTIFIED
    entry_id: str = ""
    """Where it stands in the journal; empty while it is not kept yet."""

    @property
    def query(self) -> bytes:
        """The same as parameters, which the journal keeps."""
        said = {name: getattr(self, name) for name in FIELDS if name != "event_time"}
        if self.status is Status.IDENTIFIED:
            del said["status"]
        told = {name: value for name, value in said.items() if value is not None}
        told["event_time"] = str(self.event_time_ms)
        return b"&".join(b"%b=%b" % (name.encode(), encoded(value)) for name, value in told.items())

    @property
    def links(self) -> list[dict[str, str]]:
        """The pairs of identifiers that it links, by kind: where, and who was there.

        A device has one visitor: the browser, where there is one, and else the customer.
        """
        customer, pairs = {CUSTOMER: self.customer_id}, []
        browser = {} if self.cli_ubid is None else {"cli_ubid": self.cli_ubid}
        if self.device_id is not None:
            pairs.append({"device_id": self.device_id} | (browser or customer))
        return [*pairs, browser | customer] if browser else pairs


def judge(raw: bytes, received_ms: int, admit: Admit = everyone, entry_id: str = "") -> Identification | Rejection:
    """The identification that one JSON object is, or a query, or why it is none."""
    if len(raw) > BYTES_MAX:
        sentence = f"This identification has {len(raw):,} bytes; give at most {BYTES_MAX:,}."
        return Rejection(Kind.INVALID, (Fault("", sentence, Reason.TOO_LARGE),))
    if is_query(raw):
        return of_query(raw, received_ms, admit, entry_id)
    try:
        given = read_json(raw)
    except NotJson as error:
        return Rejection(Kind.INVALID, (Fault("", str(error), Reason.NOT_JSON),))
    if not isinstance(given, dict):
        return Rejection(Kind.INVALID, (Fault("", "Give each identification as one JSON object.", Reason.NOT_JSON),))
    return judge_fields(given, received_ms, admit, entry_id)


def of_query(raw: bytes, received_ms: int, admit: Admit = everyone, entry_id: str = "") -> Identification | Rejection:
    """The identification that a query or a form says, as an entry has it."""
    try:
        return judge_fields(split(raw), received_ms, admit, entry_id)
    except Unreadable as problem:
        faults = tuple(Fault(each.field, each.message, each.code) for each in problem.found)
        return Rejection(Kind.INVALID, faults, problem.parameters.get("client_id"))


is_query: Final = re.compile(rb"&*[A-Za-z_]+=").match
"""Finds something in parameters, and nothing in JSON."""


def judge_fields(
    given: Mapping[str, Any], received_ms: int, admit: Admit = everyone, entry_id: str = ""
) -> Identification | Rejection:
    """The identification that these fields say, or every reason why they say none."""
    fields = Fields(given, FIELDS)
    client_id = fields.id("client_id", required=True)
    refusal = None if client_id is None else admit(client_id)
    if refusal is not None:
        fields.faults.append(refusal)
    customer_id = fields.id("customer_id", required=True)
    cli_ubid, device_id = fields.id("cli_ubid"), fields.id("device_id")
    if cli_ubid is None and device_id is None and fields.faulty.isdisjoint(("cli_ubid", "device_id")):
        fields.fault("cli_ubid", "Neither cli_ubid nor device_id is there; give at least one.", Reason.MISSING)
    said_ms = received_ms if is_absent("event_time", given.get("event_time")) else fields.event_time_ms("event_time")
    status = fields.choice("status", Status, Status.IDENTIFIED, Reason.BAD_STATUS)
    fields.refuse_unknown()
    if fields.faults or client_id is None or customer_id is None or said_ms is None or status is None:
        kind = Kind.INVALID if refusal is None else Kind(refusal.code)
        return Rejection(kind, tuple(fields.faults), client_id)
    event_time_ms = min(said_ms, received_ms)
    return Identification(client_id, customer_id, cli_ubid, device_id, event_time_ms, status, entry_id)


def standing(said: Iterable[Identification]) -> list[Identification]:
    """What still stands of all that was said: a pair that was withdrawn by a later message does not.

    >>> a, b = (Identification("c", "7", "browser", None, ms) for ms in (1, 3))
    >>> gone = Identification("c", "7", "browser", "phone", 2, Status.WITHDRAWN)
    >>> standing([a, gone]), standing([b, gone]) == [b]
    ([], True)
    """
    messages = sorted(said, key=_rank)
    until_ms = withdrawn(messages)
    found = []
    for each in messages:
        if each.status is Status.IDENTIFIED:
            gone = {key[2] for key in _pairs(each) if until_ms.get(key, -1) >= each.event_time_ms}
            left = msgspec.structs.replace(each, **dict.fromkeys(gone))
            if left.cli_ubid is not None or left.device_id is not None:
                found.append(left)
    return found


def withdrawn(said: Iterable[Identification]) -> dict[Pair, int]:
    """The pairs that were withdrawn, and until when nothing that says them counts, in milliseconds since 1970."""
    found: dict[Pair, int] = {}
    for each in said:
        if each.status is Status.WITHDRAWN:
            found |= {key: max(each.event_time_ms, found.get(key, -1)) for key in _pairs(each)}
    return found


def of_order(order: Order, until_ms: Mapping[Pair, int]) -> dict[str, str]:
    """The customer of an order and its browser, or else its device; nothing where a pair was `withdrawn` since."""
    said = Identification(order.client_id, order.customer_id or "", order.cli_ubid, order.device_id, order.placed_ms)
    key = next(iter(_pairs(said)), None)
    if order.customer_id is None or key is None or until_ms.get(key, -1) >= order.placed_ms:
        return {}
    return {key[2]: order.cli_ubid or order.device_id or "", CUSTOMER: order.customer_id}


def _rank(each: Identification) -> tuple[int, bool, str]:
    return each.event_time_ms, each.status is Status.WITHDRAWN, each.entry_id


def _pairs(each: Identification) -> list[Pair]:
    """The customer with each of the identifiers; a device in small letters."""
    named = (("cli_ubid", each.cli_ubid), ("device_id", None if each.device_id is None else folded(each.device_id)))
    return [(each.client_id, each.customer_id, kind, value) for kind, value in named if value is not None]

"""An amendment: what one message says of an order. The first one places it; later ones refund, cancel or correct it.

Never does I/O, never repairs, never uses a float: a message is an `Amendment`, or a `Rejection` with every fault.
Invariants: money is in minor units of its own currency; `0 <= refunded_minor <= amount_minor`; at least one of
`cli_ubid`, `device_id` and `customer_id` is there; the same bytes are judged the same way for ever.

>>> judge(b'{"client_id": "c", "order_id": "7", "device_id": "d", "currency": "EUR", "amount": "9.995"}', 0).lines[-1]
'amount: `9.995` is finer than EUR, which has 2 digits after the point; round it.'
"""

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from clickclock.attribution.clicks import absent
from clickclock.attribution.clicks.account import SENT_AT, Accounts
from clickclock.attribution.clicks.click import AHEAD_MAX_MS, on_our_clock
from clickclock.attribution.clicks.identifier import CUSTOMER
from clickclock.attribution.orders import money
from clickclock.attribution.orders.order_fields import (
    EVENT_TIME_MS_MIN,
    FAULTS_MAX,
    Fault,
    Fields,
    NotJson,
    Reason,
    is_absent,
    read_json,
)

ITEMS_MAX: Final = 1000
"""More than any basket holds; each is a weight to be computed with."""
ORDER_BYTES_MAX: Final = 1024 * 1024
"""`ITEMS_MAX` items with the longest identifiers fit."""


KIND: Final = "kind"
PURCHASE: Final = "purchase"
"""The kind of an order that says none."""


class Status(StrEnum):
    """What became of an order, later stages last: of two that name the same time, the later stage counts."""

    COMPLETED = "completed"
    PARTIALLY_REFUNDED = "partially_refunded"
    REFUNDED = "refunded"
    CANCELLED = "cancelled"


class Kind(StrEnum):
    """What kind of refusal it is: the order has to be fixed, or its account is not known, or its token is wrong."""

    INVALID = "invalid"
    UNKNOWN_CLIENT = "unknownClient"
    UNAUTHORIZED = "unauthorized"


class Rejection(msgspec.Struct, frozen=True):
    """An order that is refused, with every fault (the first `FAULTS_MAX`), and what it could be known by."""

    kind: Kind
    faults: tuple[Fault, ...]
    client_id: str | None = None
    order_id: str | None = None

    @property
    def lines(self) -> list[str]:
        """The faults for people, a line each."""
        return [f"{fault.field}: {fault.message}" if fault.field else fault.message for fault in self.faults]


class Item(msgspec.Struct, frozen=True):
    """A part of an order. A weight, and no money: the sum of all often differs from what was paid."""

    sku_id: str
    seller_id: str | None = None
    price_minor: int | None = None
    """Of one piece, in minor units of the order's currency."""
    quantity: int = 1


class Amendment(msgspec.Struct, frozen=True):
    """The content of one message about the order (`client_id`, `order_id`). Absent fields are None, or no items."""

    client_id: str
    order_id: str
    event_time_ms: int
    """What the caller said, in milliseconds since 1970; on our clock, if it said when it sent it."""
    amount_minor: int
    """What the customer paid, in minor units of `currency`."""
    currency: str
    status: Status
    refunded_minor: int
    """What the customer has back of it: all, when refunded or cancelled."""
    cli_ubid: str | None
    device_id: str | None
    seller_id: str | None
    items: tuple[Item, ...]
    received_ms: int
    entry_id: str = ""
    """Where it stands in the journal; empty while it is not kept yet."""
    customer_id: str | None = None
    """What the client calls its customer."""
    kind: str | None = None
    """What the customer did: a purchase, a lead, a sign-up."""

    @property
    def is_ahead(self) -> bool:
        """Whether the caller's clock was so far ahead of ours that it is worth a flag."""
        return self.event_time_ms - self.received_ms > AHEAD_MAX_MS

    @property
    def effective_ms(self) -> int:
        """The time that counts: the caller's, or that of the receipt if the caller's is later."""
        return min(self.event_time_ms, self.received_ms)


Admit = Callable[[str], Fault | None]
"""What speaks against taking orders of this client id, or None."""


def everyone(_client_id: str) -> None:
    """Orders of every client id are taken, as when the journal is read: whoever wrote it has asked already."""


def known_to(accounts: Accounts) -> Admit:
    """Orders of every account are taken, without its token: they come from files, and who has those is the operator."""

    def admit(client_id: str) -> Fault | None:
        known = accounts.find(client_id) is not None
        return None if known else Fault("client_id", _UNKNOWN_CLIENT, Reason.UNKNOWN_CLIENT)

    return admit


_UNKNOWN_CLIENT: Final = "No account has this client_id; give one of those that are configured."


def judge(
    raw: bytes, received_ms: int, admit: Admit = everyone, entry_id: str = "", *, is_kept: bool = False
) -> Amendment | Rejection:
    """The amendment that one JSON object is, or why it is none.

    `is_kept`: it was acknowledged before. Rules for ids that came later do not refuse it any more.
    """
    if len(raw) > ORDER_BYTES_MAX:
        sentence = f"This order has {len(raw):,} bytes; give at most {ORDER_BYTES_MAX:,}."
        return Rejection(Kind.INVALID, (Fault("", sentence, Reason.TOO_LARGE),))
    try:
        given = read_json(raw)
    except NotJson as error:
        return Rejection(Kind.INVALID, (Fault("", str(error), Reason.NOT_JSON),))
    if not isinstance(given, dict):
        return Rejection(Kind.INVALID, (Fault("", "Give each order as one JSON object.", Reason.NOT_JSON),))
    return judge_fields(given, received_ms, admit, entry_id, is_kept=is_kept)


def judge_fields(
    given: Mapping[str, Any],
    received_ms: int,
    admit: Admit = everyone,
    entry_id: str = "",
    *,
    is_kept: bool = False,
) -> Amendment | Rejection:
    """The amendment that these fields say, or every reason why they say none."""
    fields = Fields(given, FIELDS, is_kept=is_kept)
    client_id = fields.id("client_id", required=True)
    refusal = None if client_id is None else admit(client_id)
    if refusal is not None:
        fields.faults.append(refusal)
    order_id = fields.id("order_id", required=True)
    cli_ubid, device_id, customer_id = (fields.id(name) for name in IDENTIFYING)
    # Earlier releases took some values for identifiers that are nobody's: such an order stays one, of nobody.
    is_nobodys = cli_ubid is None and device_id is None and customer_id is None
    if is_nobodys and not is_kept and fields.faulty.isdisjoint(IDENTIFYING):
        sentence = "None of cli_ubid, device_id and customer_id is there; give at least one."
        fields.fault("cli_ubid", sentence, Reason.MISSING)
    event_time_ms = fields.event_time_ms("event_time")
    sent_at = given.get(SENT_AT)
    if event_time_ms is not None and sent_at is not None:
        event_time_ms = on_our_clock(event_time_ms, str(sent_at), received_ms)
    currency = fields.currency("currency")
    kind = fields.word(KIND, Reason.BAD_KIND)
    is_purchase = kind in {None, PURCHASE} and KIND not in fields.faulty
    amount_minor = fields.minor("amount", currency, required=is_purchase, if_negative=_REFUND)
    if amount_minor is None and not is_purchase and "amount" not in fields.faulty:
        amount_minor = 0
    status = fields.choice("status", Status, Status.COMPLETED, Reason.BAD_STATUS)
    refunded_minor = _refunded(fields, status, amount_minor, currency)
    seller_id = fields.id("seller_id")
    items = _items(fields, currency, is_kept=is_kept)
    fields.refuse_unknown()
    if (
        fields.faults
        # A field that is None here has its fault; the type checker cannot know.
        or (client_id is None or order_id is None or event_time_ms is None or currency is None)
        or (amount_minor is None or status is None or refunded_minor is None)
    ):
        kind = Kind.INVALID if refusal is None else Kind(refusal.code)
        return Rejection(kind, _first(fields.faults), client_id, order_id)
    return Amendment(
        client_id=client_id,
        order_id=order_id,
        event_time_ms=event_time_ms,
        amount_minor=amount_minor,
        currency=currency,
        status=status,
        refunded_minor=refunded_minor,
        cli_ubid=cli_ubid,
        device_id=device_id,
        seller_id=seller_id,
        items=items,
        received_ms=received_ms,
        entry_id=entry_id,
        customer_id=customer_id,
        kind=kind,
    )


IDENTIFYING: Final = ("cli_ubid", "device_id", CUSTOMER)
_PLAIN_FIELDS: Final = frozenset(
    ("client_id", "order_id", *IDENTIFYING, "event_time", "amount", "currency", "status", "items")
)
_PLAIN_STATUS: Final = frozenset((None, "completed", "cancelled"))
_is_plain_id: Final = re.compile(r"#[1-9][0-9]*|[1-9A-MO-TV-Za-mo-tv-z][0-9A-Za-z_-]{0,200}").fullmatch
"""Whole numbers, and what begins with a letter with which no word for nothing begins."""
_is_plain_amount: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,2})?").fullmatch
_CENTS: Final = 2


def is_plain(given: Mapping[str, Any], received_ms: int, admit: Admit) -> bool:
    """Whether `judge_fields` is certain to find nothing wrong with these fields: a tenth of the work, of most orders.

    It says no of whatever it does not know; then the judge has to say.
    """
    try:
        client_id, order_id, event_time = given["client_id"], given["order_id"], given["event_time"]
        is_usual = (
            _PLAIN_FIELDS.issuperset(given)
            and _is_plain_id(client_id) is not None
            and _is_plain_id(order_id) is not None
            and _is_plain_amount(given["amount"]) is not None
            and len(event_time) == len(str(EVENT_TIME_MS_MIN))
            and event_time.isdigit()
            and EVENT_TIME_MS_MIN <= int(event_time) <= received_ms
            and money.DIGITS.get(given["currency"]) == _CENTS
            and given.get("status") in _PLAIN_STATUS
            and _are_plain(given.get("items", ()))
        )
    except (KeyError, TypeError, AttributeError):
        return False
    if not is_usual or admit(client_id) is not None:
        return False
    identifiers = [(name, given[name]) for name in IDENTIFYING if name in given]
    return bool(identifiers) and all(
        value.__class__ is str and _is_plain_id(value) is not None and not absent.is_absent(name, value)
        for name, value in identifiers
    )


def _are_plain(items: Sequence[Mapping[str, str]]) -> bool:
    return len(items) <= ITEMS_MAX and all(
        _PLAIN_OF_ITEM.issuperset(item)
        and _is_plain_id(item["sku_id"]) is not None
        and _is_plain_amount(item.get("price", "0")) is not None
        and _is_plain_quantity(item.get("quantity", "1")) is not None
        for item in items
    )


_PLAIN_OF_ITEM: Final = frozenset(("sku_id", "price", "quantity"))
_is_plain_quantity: Final = re.compile("[1-9][0-9]{0,5}").fullmatch
_REFUND: Final = "An order's refund goes into its refunded_amount."
FIELDS: Final = (
    *("client_id", "order_id", *IDENTIFYING, "event_time", "amount", "currency", "status"),
    *("refunded_amount", "seller_id", "items", KIND, SENT_AT),
)
ITEM_FIELDS: Final = ("sku_id", "seller_id", "price", "quantity")


def _refunded(fields: Fields, status: Status | None, amount_minor: int | None, currency: str | None) -> int | None:
    """What the customer has back, where status, amount and refunded_amount agree."""
    name = "refunded_amount"
    given = fields.minor(name, currency, required=status is Status.PARTIALLY_REFUNDED)
    if status is None or name in fields.faulty:
        return None
    # An unreadable amount cannot be compared; all other faults are reported along with it.
    most = given if amount_minor is None else amount_minor
    sentence = ""
    match status:
        case Status.COMPLETED if given:
            sentence = "A completed order has no refund; give the status partially_refunded or refunded."
        case Status.PARTIALLY_REFUNDED if given is not None and most is not None and not 0 < given <= most:
            sentence = "Give more than zero, and not more than the amount."
        case Status.REFUNDED if given not in (None, most):
            sentence = "This is not the whole amount; give the status partially_refunded, or leave this out."
        case Status.CANCELLED if given not in (None, 0, most):
            sentence = "Of a cancelled order nothing stays paid; leave this out."
    if sentence:
        fields.fault(name, sentence, Reason.BAD_AMOUNT)
        return None
    match status:
        case Status.COMPLETED:
            return 0
        case Status.PARTIALLY_REFUNDED:
            return given
        case Status.REFUNDED | Status.CANCELLED:
            return amount_minor


def _items(fields: Fields, currency: str | None, *, is_kept: bool) -> tuple[Item, ...]:
    given = fields.given.get("items")
    if is_absent("items", given):
        return ()
    if not isinstance(given, list):
        fields.fault("items", "Give an array of objects.", Reason.BAD_ITEMS)
        return ()
    if len(given) > ITEMS_MAX:
        fields.fault("items", f"There are {len(given):,} items; give at most {ITEMS_MAX:,}.", Reason.TOO_LARGE)
        return ()
    items: list[Item] = []
    for place, each in enumerate(given):
        if not isinstance(each, dict):
            fields.fault(f"items[{place}]", "Give an object with a sku_id.", Reason.BAD_ITEMS)
            continue
        item = Fields(each, ITEM_FIELDS, f"items[{place}].", fields.faults, is_kept=is_kept)
        # An article may be called `12.00`.
        sku_id = item.id("sku_id", required=True, is_name=True)
        seller_id = item.id("seller_id")
        price_minor = item.minor("price", currency)
        quantity = item.quantity("quantity")
        item.refuse_unknown()
        if item.is_full:
            break
        if sku_id is not None and quantity is not None:
            items.append(Item(sku_id, seller_id, price_minor, quantity))
    return tuple(items)


def _first(faults: list[Fault]) -> tuple[Fault, ...]:
    if len(faults) <= FAULTS_MAX:
        return tuple(faults)
    return (*faults[:FAULTS_MAX], Fault("", "There are more faults; fix these first.", faults[FAULTS_MAX].code))

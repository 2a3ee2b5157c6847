"""Webhooks of shops: a signed body → its amendments or its identification, judged, or its click; and the reply.

Never does I/O. Invariants: nothing of a body is read before its signature is right; an order that is refused is kept,
and acknowledged: shops stop sending to an address that refuses, and could not mend it by sending it again.

>>> is_ping(b"webhook_id=7"), is_ping(b"{}")
(True, False)
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from clickclock.attribution.api import orders
from clickclock.attribution.api.orders import Asked, Judged, Reply
from clickclock.attribution.clicks.account import UNKNOWN_CLIENT, Account
from clickclock.attribution.clicks.page_event import PageClick
from clickclock.attribution.clicks.query import Unreadable, split
from clickclock.attribution.orders.amendment import Kind, Rejection
from clickclock.attribution.orders.order_fields import NotJson, read_json
from clickclock.attribution.orders.shop_order import Secrets, Shop

_PING: Final = b"webhook_id="
"""WooCommerce asks so whether anybody is there before it saves a webhook, and signs nothing."""


class Told(NamedTuple):
    """What a webhook says, each judged: the amendments of an order, oldest first, or one identification."""

    asked: Asked
    judged: list[Judged]


def is_ping(body: bytes) -> bool:
    """Whether a shop only asks whether anybody is there."""
    return body.startswith(_PING) and body.removeprefix(_PING).isdigit()


def hear(
    shop: Shop,
    query: bytes,
    body: bytes,
    signature: bytes,
    received_ms: int,
    find: Callable[[str], Account | None],
    secrets: Secrets,
) -> Told | PageClick | Reply:
    """What a webhook says, or its click; or the reply to one that is refused, or says nothing."""
    try:
        client_id = split(query).get("client_id", "")
    except Unreadable:
        client_id = ""
    if not client_id:
        return _refused(400, Kind.INVALID, f"Name the account in the address: /webhooks/{shop.name}?client_id=….")
    if find(client_id) is None:
        return _refused(403, Kind.UNKNOWN_CLIENT, UNKNOWN_CLIENT)
    if not secrets.knows(shop, client_id):
        why = f"This account takes no webhooks of {shop.title}: set {shop.name}_webhook_secret_file, and start again."
        return _refused(401, Kind.UNAUTHORIZED, why)
    if not secrets.are_right(shop, client_id, body, signature):
        setting = f"{shop.name}_webhook_secret_file"
        why = f"The signature is not that of this body; compare {setting} with the secret at {shop.title}."
        return _refused(401, Kind.UNAUTHORIZED, why)
    try:
        event = read_json(body)
    except NotJson as error:
        return _refused(400, Kind.INVALID, str(error))
    if (clicked := shop.click(event, client_id)) is not None:
        return clicked
    if (identified := shop.identification(event, client_id)) is not None:
        judge = orders.judge_said_identification
        return Told(orders.IDENTIFICATIONS, [judge(identified, received_ms, shop.as_sent)])
    judged: list[Judged] = []
    for each in shop.read(event, client_id):
        judged.append(orders.judge_said(each, received_ms, shop.as_sent))
        if isinstance(judged[-1].verdict, Rejection):
            break  # what comes after it has the same faults
    return Told(orders.ORDERS, judged) if judged else Reply(204)


def reply(told: Told, entry_ids: Sequence[str]) -> Reply:
    """The reply once everything is on disk: of orders the results, as `POST /orders` gives them, never a refusal."""
    if told.asked is orders.IDENTIFICATIONS:
        return Reply(204)
    results = orders.Results(len(told.judged))
    for each, entry_id in zip(told.judged, entry_ids, strict=True):
        results.add(each, entry_id)
    found = results.reply()
    return Reply(202, found.fields, found.body)


def _refused(status: int, kind: Kind, sentence: str) -> Reply:
    return orders.reply_not_kept(status, kind, f"{sentence} Nothing was kept; the shop sends it again.")

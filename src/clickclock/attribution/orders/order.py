"""An order: what all its amendments together say.

Never adds two currencies and never forgets: every amendment is kept elsewhere, this is how they are read.
Invariants: the order in which amendments arrive and how often each does change nothing; the order was placed at the
earliest time that any of them names, and stands as the latest one says.

>>> from clickclock.attribution.orders.amendment import Status
>>> placed = Amendment("c", "7", 1000, 990, "EUR", Status.COMPLETED, 0, "u", None, "s", (), received_ms=1001)
>>> refund = Amendment("c", "7", 9000, 990, "EUR", Status.REFUNDED, 990, "u", None, None, (), received_ms=9001)
>>> order = fold([refund, placed, refund])
>>> order.placed_ms, order.status.value, order.net_minor, order.seller_id, order.amendments
(1000, 'refunded', 0, 's', 2)
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from clickclock.attribution.orders.amendment import PURCHASE, Amendment, Item, Status


class Order(msgspec.Struct, frozen=True):
    """One order as it stands."""

    client_id: str
    order_id: str
    placed_ms: int
    """When the customer ordered: what a click has to come before."""
    amended_ms: int
    """The time of the amendment that counts."""
    amount_minor: int
    """What the customer paid, in minor units of `currency`."""
    currency: str
    status: Status
    refunded_minor: int
    cli_ubid: str | None
    device_id: str | None
    seller_id: str | None
    items: tuple[Item, ...]
    amendments: int
    """How many different ones there are."""
    customer_id: str | None = None
    kind: str = PURCHASE

    @property
    def net_minor(self) -> int:
        """What stayed paid."""
        return self.amount_minor - self.refunded_minor


_STAGE: Final = {status: stage for stage, status in enumerate(Status)}


def fold(amendments: Iterable[Amendment]) -> Order:
    """The order that its amendments, at least one, make.

    The latest time wins; of one time, the later stage (a refund that repeats the order's own time is still a refund),
    then the larger refund, then what came later. What the winner leaves out, it leaves as it was.
    Raises `ValueError` if they are of several orders, or none.
    """
    by_content: dict[tuple[Any, ...], Amendment] = {}
    for each in amendments:
        content = _content(each)
        known = by_content.get(content)
        # A copy that was sent again is no news: the one that came first tells when this was said.
        if known is None or (each.received_ms, each.entry_id) < (known.received_ms, known.entry_id):
            by_content[content] = each
    oldest_first = [by_content[content] for content in sorted(by_content, key=lambda c: _rank(by_content[c]))]
    if len({(each.client_id, each.order_id) for each in oldest_first}) != 1:
        raise ValueError("fold takes the amendments of one order")
    newest_first = oldest_first[::-1]
    winner = newest_first[0]
    return Order(
        winner.client_id,
        winner.order_id,
        min(each.effective_ms for each in oldest_first),
        winner.effective_ms,
        winner.amount_minor,
        winner.currency,
        winner.status,
        winner.refunded_minor,
        next((each.cli_ubid for each in newest_first if each.cli_ubid is not None), None),
        next((each.device_id for each in newest_first if each.device_id is not None), None),
        next((each.seller_id for each in newest_first if each.seller_id is not None), None),
        next((each.items for each in newest_first if each.items), ()),
        len(oldest_first),
        next((each.customer_id for each in newest_first if each.customer_id is not None), None),
        next((each.kind for each in newest_first if each.kind is not None), PURCHASE),
    )


_WHERE_IT_CAME: Final = ("received_ms", "entry_id")
_CONTENT: Final = tuple(name for name in Amendment.__struct_fields__ if name not in _WHERE_IT_CAME)


def _content(amendment: Amendment) -> tuple[Any, ...]:
    """The content, whenever it came."""
    return tuple(getattr(amendment, name) for name in _CONTENT)


def _rank(amendment: Amendment) -> tuple[Any, ...]:
    """Where it stands among others of its order; no two different ones are equal."""
    return (
        amendment.effective_ms,
        _STAGE[amendment.status],
        amendment.refunded_minor,
        amendment.received_ms,
        amendment.entry_id,
        repr(_content(amendment)),
    )

"""Orders that have a row for each of their line items, put together: one record for the rows of one order.

Never holds more than one order, and never guesses a total. Invariants: the rows of an order stand one below the other;
what they say of the order itself is the same wherever they say it; amounts that add up do so exactly, and what is
negative is a refund.

>>> rows = [(2, {"order_id": "7", "amount": "9.00"}), (3, {"order_id": "7", "amount": "-4.00"})]
>>> list(joined(rows, Lines(amount="sum")))
[(2, {'order_id': '7', 'amount': '9.00', 'refunded_amount': '4.00', 'status': 'partially_refunded'})]
"""

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Final

from clickclock.attribution.importing.file_mapping import Lines
from clickclock.attribution.importing.historical import Unusable
from clickclock.attribution.importing.mapper import Record, settled

_OF_ITEM: Final = ("sku_id", "price", "quantity")
_MAY_DIFFER: Final = frozenset(_OF_ITEM)
Row = tuple[int, Record | Unusable | None]


def joined(rows: Iterable[Row], lines: Lines) -> Iterator[Row]:
    """The orders of these rows, each with the number of its first one; what is left out or unusable stays a row."""
    group: list[tuple[int, Record]] = []
    for number, row in rows:
        if not isinstance(row, dict):
            yield number, row
            continue
        if group and group[0][1].get("order_id") != row.get("order_id"):
            yield _order(group, lines)
            group = []
        group.append((number, row))
    if group:
        yield _order(group, lines)


def _order(group: list[tuple[int, Record]], lines: Lines) -> Row:
    number, order = group[0][0], {}
    items = []
    is_sum = lines.amount == "sum"
    places: dict[str, int] = {}
    for line, row in group:
        sku = row.get("sku_id")
        if sku is not None:
            items.append({name: row[name].lstrip("-") for name in _OF_ITEM if name in row})
        for name, value in row.items():
            if name in _MAY_DIFFER or (is_sum and name == "amount"):
                continue
            if name not in order:
                order[name], places[name] = value, line
            elif order[name] != value and not (is_sum and name == "event_time"):
                both = f"`{order[name]}` in line {places[name]} and `{value}` in line {line}"
                told = f"{name}: the rows of order {order['order_id']} differ: {both}"
                return line, Unusable(f'{told}; if each row has its own amount, say lines.amount = "sum"')
    if is_sum:
        _add_up(order, [row.get("amount", "0") for _, row in group])
    if items:
        order["items"] = items
    return number, settled(order)


def _add_up(order: Record, amounts: list[str]) -> None:
    paid = sum((Decimal(each) for each in amounts if not each.startswith("-")), Decimal(0))
    back = sum((Decimal(each[1:]) for each in amounts if each.startswith("-")), Decimal(0))
    order["amount"] = f"{paid:f}"
    if back:
        order["refunded_amount"] = f"{back:f}"

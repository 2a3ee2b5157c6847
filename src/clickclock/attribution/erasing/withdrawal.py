r"""A file for an ad network or a partner after an erasure: the same bytes without the rows about the person.

Never does I/O, and never writes a row anew. Invariant: rows of others, and heads, stay byte for byte. Only an order
whose own id reads like a further conversion of an erased one (`A-1#2`) goes with it: the file does not tell them apart.

>>> from clickclock.attribution.erasing.erasure import Identifier
>>> sought = Sought("shop", [Identifier(kind="order_id", value="A-1")])
>>> file = b"Parameters:TimeZone=UTC\nOrder ID,Adjustment Type\nA-1,RETRACT\nA-2,RETRACT\n"
>>> without(file, sought, Marks(orders=frozenset({"A-1"})))
Left(content=b'Parameters:TimeZone=UTC\nOrder ID,Adjustment Type\nA-2,RETRACT\n', rows=1, withdrawn=1)
"""

import csv
import re
from collections.abc import Collection
from typing import Any, Final, NamedTuple

import msgspec

from clickclock.attribution.erasing.erasure import Marks, Sought
from clickclock.attribution.uploads.meta_upload import hashed

_ORDER, _CLICK = "Order ID", "Google Click ID"
_LINE: Final = re.compile(r".*\n|.+")
"""As files have them. Python also ends lines at other characters, which an order id may have."""


class Left(NamedTuple):
    """The result: rows that are left, and rows that went."""

    content: bytes
    rows: int
    withdrawn: int


class _Body(msgspec.Struct):
    data: list[msgspec.Raw]


def without(content: bytes, sought: Sought, marks: Marks) -> Left:
    """A file's content without the rows about what is sought, and about what was erased with it."""
    if content.startswith(b"{"):
        return _without_events(content, sought, marks)
    return _without_rows(content, sought, marks)


def _without_events(content: bytes, sought: Sought, marks: Marks) -> Left:
    events = msgspec.json.decode(content, type=_Body).data
    people = frozenset(hashed(each.value) for each in sought.identifiers)
    kept = [event for event in events if not _is_about(bytes(event), people, sought, marks)]
    if len(kept) == len(events):
        return Left(content, len(events), 0)
    return Left(msgspec.json.encode(_Body(kept)), len(kept), len(events) - len(kept))


def _is_about(raw: bytes, people: Collection[str], sought: Sought, marks: Marks) -> bool:
    event: dict[str, Any] = msgspec.json.decode(raw)
    if sought.is_in(raw):
        return True
    if "clickId" in event:  # a postback
        return event["orderId"] in marks.orders or not marks.clicks.isdisjoint(
            (event["clickId"], *event["click"].values())
        )
    return event["custom_data"]["order_id"] in marks.orders or any(
        each in people for each in event["user_data"].get("external_id", ())
    )


def _without_rows(content: bytes, sought: Sought, marks: Marks) -> Left:
    lines = _LINE.findall(content.decode())
    reader = csv.reader(lines)
    kept: list[str] = []
    header: list[str] = []
    begun = rows = withdrawn = 0
    for cells in reader:
        record = "".join(lines[begun : reader.line_num])  # a cell may go on in the next line
        begun = reader.line_num
        if len(header) <= 1:
            header = cells  # the zone's row, and then the columns' names
        elif _says(dict(zip(header, cells, strict=False)), marks) or sought.is_in(record):
            withdrawn += 1
            continue
        else:
            rows += 1
        kept.append(record)
    return Left("".join(kept).encode(), rows, withdrawn)


def _says(row: dict[str, str], marks: Marks) -> bool:
    order = row.get(_ORDER, "")
    # Further conversions of an order have a number behind its id.
    names = {order, order.rpartition("#")[0]} - {""}
    return not names.isdisjoint(marks.orders) or row.get(_CLICK) in marks.clicks

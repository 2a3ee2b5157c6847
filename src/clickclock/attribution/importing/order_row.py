r"""Orders of the past: a row of a table, or a line of NDJSON, as the JSON that `POST /orders` would have got.

Never does I/O, and never repairs: a row is judged as the same order over HTTP would be. Invariants: an amount reaches
the judgement as it was written, and one that was a number is refused, for digits may have been lost; the same row has
the same id in whatever file, order of columns and format it comes, so that what was imported once is known again.

>>> row = of_record({"client_id": "c", "order_id": "7", "amount": "9.90", "cli_ubid": "", "sku_id": "a|b"})
>>> row.raw
b'{"client_id":"c","order_id":"7","amount":"9.90","items":[{"sku_id":"a"},{"sku_id":"b"}]}'
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from clickclock.attribution.importing.historical import RECEIVED_AT, believed, id_of, is_empty, iso_ms, receipt_of
from clickclock.attribution.importing.table_row import as_json, fields
from clickclock.attribution.orders.amendment import Admit, Amendment, Kind, Rejection, everyone, judge_fields
from clickclock.attribution.orders.appsflyer import ITEM_PARAMETERS, items_of
from clickclock.attribution.orders.order_fields import (
    EVENT_TIME_MS_MAX,
    EVENT_TIME_MS_MIN,
    Fault,
    NotJson,
    Reason,
    read_json,
)

ITEMS: Final = "items"
"""A column of JSON, or of lists; else the items may be in the columns of `/appsflyer`, with `|` between them."""
EVENT_TIME: Final = "event_time"
_is_time: Final = re.compile(rf"[0-9]{{1,{len(str(EVENT_TIME_MS_MAX))}}}").fullmatch
_LISTS: Final = tuple(ITEM_PARAMETERS.values())


@dataclass(frozen=True, slots=True)
class OrderRow:
    """What one row says."""

    given: Mapping[str, Any]
    raw: bytes
    """The same as JSON: of NDJSON the line itself, where nothing in it had to be translated."""
    received_ms: int | None
    """None where nobody wrote down when it came."""
    faults: tuple[Fault, ...] = ()
    """Those of what had to be translated."""
    is_canonical: bool = False
    """Whether `raw` is what every row has that says the same."""

    said_ms: int = field(init=False)
    """When it happened, as the row itself says; 0 if it says no time."""

    def __post_init__(self) -> None:
        said = str(self.given.get(EVENT_TIME))
        ms = int(said) if _is_time(said) else 0
        object.__setattr__(self, "said_ms", ms if ms >= EVENT_TIME_MS_MIN else 0)

    @property
    def content(self) -> bytes:
        """Equal for rows that say the same, however they write it."""
        return self.raw if self.is_canonical else as_json(_canonical(self.given))

    @property
    def id(self) -> str:
        """The name of its entry: a UUID of version 8, 32 hex digits, by time."""
        return id_of(self.said_ms, self.content, 0)

    def came_ms(self, now_ms: int) -> int:
        """When it came: as somebody wrote down, or else when it happened; where nobody knows, it comes now.

        Raises `Unusable` for a time that was written down and is in the future.
        """
        if self.received_ms is not None:
            return believed(self.received_ms, now_ms)
        return self.said_ms if 0 < self.said_ms <= now_ms else now_ms

    def judge(self, received_ms: int, admit: Admit = everyone) -> Amendment | Rejection:
        """The amendment that it is, or every reason why it is none."""
        judged = judge_fields(self.given, received_ms, admit)
        if not self.faults:
            return judged
        if isinstance(judged, Rejection):
            return Rejection(judged.kind, (*judged.faults, *self.faults), judged.client_id, judged.order_id)
        return Rejection(Kind.INVALID, self.faults, judged.client_id, judged.order_id)


def of_record(record: Mapping[str, object] | bytes) -> OrderRow:
    """The order of a row of a table, or of a line of NDJSON. Raises `Unusable`, saying why."""
    given = fields(record)
    told = given.pop(RECEIVED_AT, None)
    faults: list[Fault] = []
    is_translated = any((_translate_items(given, faults), _translate_time(given), told is not None))
    raw = record.strip() if isinstance(record, bytes) and not is_translated else as_json(given)
    return OrderRow(given, raw, None if is_empty(told) else receipt_of(told), tuple(faults))


def of_mapped(record: Mapping[str, Any]) -> OrderRow:
    """The order of a record that is clean already: text, and nothing that is empty. Raises `Unusable`."""
    if RECEIVED_AT in record or isinstance(record.get(ITEMS), str):
        return of_record(record)
    return OrderRow(record, as_json(record, is_sorted=True), None, is_canonical=True)


def _translate_items(given: dict[str, Any], faults: list[Fault]) -> bool:
    """Make items of a column of JSON, or of lists with `|` between; False if there is neither."""
    told = given.get(ITEMS)
    if isinstance(told, str) and told:
        try:
            given[ITEMS] = read_json(told.encode("utf-8", "surrogatepass"))
        except NotJson as error:
            del given[ITEMS]
            faults.append(Fault(ITEMS, str(error), Reason.BAD_ITEMS))
        return True
    lists = {name: given[name] for name in _LISTS if isinstance(given.get(name), str)}
    if told or not lists:
        return False
    for name in lists:
        del given[name]
    items = items_of(lists, faults)
    if items:
        given[ITEMS] = items
    return True


def _translate_time(given: dict[str, Any]) -> bool:
    """Make milliseconds of a time in ISO 8601 with a zone; False if it is none, which then is judged as it is."""
    said = given.get(EVENT_TIME)
    ms = None if not isinstance(said, str) or said.isdigit() else iso_ms(said)
    if ms is not None:
        given[EVENT_TIME] = str(ms)
    return ms is not None


def _canonical(value: Any) -> Any:
    """Equal for rows that say the same: without what is absent, and with numbers as text."""
    match value:
        case Mapping():
            return {name: _canonical(value[name]) for name in sorted(value) if not is_empty(value[name])}
        case list():
            return [_canonical(each) for each in value]
        case int() if not isinstance(value, bool):
            return str(value)
    return value

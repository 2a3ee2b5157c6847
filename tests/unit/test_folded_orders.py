"""Orders as columns are what `order.fold` makes of each order's amendments, whatever comes in which order."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from clickclock.attribution.agents.attributor.orders import CODED, READ, SCHEMA, folded
from clickclock.attribution.clicks import identifier
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.lake import ORDERS
from clickclock.attribution.orders.amendment import Amendment, Item, Status
from clickclock.attribution.orders.order import fold

AMENDMENTS = pa.schema(
    [*(ORDERS.schema.field(name) for name in READ), *((name, pa.int64()) for name in CODED.values())]
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOW_MS = 1_800_000_000_000
ITEMS = st.lists(st.sampled_from([Item("k", "s1"), Item("k", "s2"), Item("k")]), max_size=2)
AMENDMENT = st.builds(
    Amendment,
    client_id=st.sampled_from(["a", "b"]),
    order_id=st.sampled_from(["1", "2", "10"]),
    event_time_ms=st.sampled_from([NOW_MS, NOW_MS + 1, NOW_MS + 200_000, NOW_MS + 10**9]),
    amount_minor=st.integers(100, 102),
    currency=st.just("EUR"),
    status=st.sampled_from(list(Status)),
    refunded_minor=st.integers(0, 2),
    cli_ubid=st.sampled_from([None, "u", "Any", "U"]),
    device_id=st.sampled_from([None, "D", "TEST"]),
    seller_id=st.sampled_from([None, "s1", "s3"]),
    items=ITEMS.map(tuple),
    received_ms=st.sampled_from([NOW_MS, NOW_MS + 5]),
    kind=st.sampled_from([None, None, "purchase", "lead"]),
)


def row(each: Amendment, number: int) -> dict[str, Any]:
    """As the compactor writes it."""

    def at(ms: int) -> datetime:
        return EPOCH + timedelta(milliseconds=ms)

    names = ("client_id", "order_id", "cli_ubid", "device_id", "seller_id", "amount_minor", "currency", "kind")
    return {
        **{name: getattr(each, name) for name in names},
        "id": f"{number}",
        "received_at": at(each.received_ms),
        "event_time": at(each.effective_ms),
        "event_time_sent": None if each.event_time_ms == each.effective_ms else at(each.event_time_ms),
        "status": str(each.status),
        "refunded_minor": each.refunded_minor,
        "items": [{name: getattr(item, name) for name in item.__struct_fields__} for item in each.items] or None,
        **{name: code(each.client_id, kind, getattr(each, kind)) for kind, name in CODED.items()},
    }


def code(client_id: str, kind: str, value: str | None) -> int | None:
    if value is None:
        return None
    return identifier.code(client_id, kind, value.lower() if value.lower() in {"any", "test"} else value)


def row_of_before(each: Amendment, number: int) -> dict[str, Any]:
    """As a compactor wrote it that believed clocks up to five minutes ahead."""
    is_believed = not each.is_ahead
    said = {"event_time": EPOCH + timedelta(milliseconds=each.event_time_ms), "event_time_sent": None}
    return row(each, number) | (said if is_believed else {})


AHEAD = Amendment(
    *("a", "1", NOW_MS + 10**9, 100, "EUR", Status.COMPLETED, 0, "u", None, None, ()), received_ms=NOW_MS, entry_id=""
)

LEAD = msgspec.structs.replace(AHEAD, event_time_ms=NOW_MS, kind="lead")


@given(st.lists(AMENDMENT, max_size=12), st.sampled_from([row, row_of_before]))
@example([AHEAD, msgspec.structs.replace(AHEAD, received_ms=NOW_MS + 5)], row)
@example([msgspec.structs.replace(AHEAD, event_time_ms=NOW_MS + 120_000)], row_of_before)
@example([LEAD, msgspec.structs.replace(LEAD, event_time_ms=NOW_MS + 1, received_ms=NOW_MS + 5, kind=None)], row)
def test_orders_are_folded_as_they_are_defined(
    given_amendments: list[Amendment], row: Callable[[Amendment, int], dict[str, Any]]
) -> None:
    told = [
        Amendment(**{name: getattr(each, name) for name in each.__struct_fields__} | {"entry_id": f"{number}"})
        for number, each in enumerate(given_amendments)
    ]
    rows = [row(each, number) for number, each in enumerate(told)]
    found = folded(pa.Table.from_pylist(rows, AMENDMENTS), Policies())
    expected = []
    for key in sorted({(each.client_id, each.order_id) for each in told}):
        order = fold(each for each in told if (each.client_id, each.order_id) == key)
        fields = {name: getattr(order, name) for name in SCHEMA.names if name != "sellers"}
        sellers = [order.seller_id, *(item.seller_id for item in order.items)]
        fields |= {"status": str(order.status), "sellers": [each for each in sellers if each is not None]}
        fields |= {kind: code(order.client_id, kind, getattr(order, kind)) for kind in ("cli_ubid", "device_id")}
        expected.append(fields)
    assert found.table.to_pylist() == expected
    assert found.unjudgeable == 0


def test_what_cannot_be_read_any_more_is_counted_and_no_order() -> None:
    kept = {"id": "1", "received_at": EPOCH, "client_id": "a", "order_id": "1"}
    found = folded(pa.Table.from_pylist([kept], AMENDMENTS), Policies())
    assert (found.table.num_rows, found.unjudgeable) == (0, 1)

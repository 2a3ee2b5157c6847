"""Orders whose credit is known: their clicks in a lake, and a result version that gives each to its click.

Never runs attribution: rows are written as a run would have. Invariant: every order has one click, half an hour before.

>>> order = Order("A-1", 990, days=2)
>>> str(order.clicked_at), str(order.placed_at)
('2026-11-18 12:00:00+00:00', '2026-11-18 12:30:00+00:00')
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa

from clickclock.attribution.agents.compactor import Compactor
from clickclock.attribution.clicks.entry import EntryKind, connection, encode
from clickclock.attribution.lake import Lake, credits_table
from clickclock.attribution.reporting.result import Result
from clickclock.foundation.clock import ManualClock
from tests.kept import keep

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
DAY = timedelta(days=1)
MODELS = ("last", "linear")
"""Of one click, both say the same."""
_TO_ORDER = timedelta(minutes=30)
_ORIGIN = connection("00ff00ff00ff00ff", b"Mozilla/5.0", b"https://shop.example/landing")


@dataclass(frozen=True)
class Order:
    """An order, and the click that has all its credit."""

    order_id: str
    amount_minor: int
    days: float
    """From the click to `NOW`."""
    refunded: int = 0
    """Of the amount."""
    channel: str = "google"
    click: str = ""
    """What the click is called, in 16 bytes at most; empty is as the order."""
    client_id: str = "shop-1"
    cookie: str = ""
    """Meta's own, as the page passed it on; empty is none."""
    google_id: str = "gclid"
    """The parameter with Google's click id."""
    kind: str | None = None
    status: str = "completed"
    consent: str = ""
    """What the click says of it; empty is nothing."""
    by_view: bool = False
    """Whether a view earned it, so that the credit has no click."""
    id_value: str = ""
    """What that says; empty is the click's name."""

    @property
    def click_name(self) -> str:
        return self.click or self.order_id

    @property
    def click_id(self) -> str:
        """The id of the click's entry; ids are in the order of the names."""
        return f"{self.click_name.encode().hex():0<32}"

    @property
    def clicked_at(self) -> datetime:
        return NOW - self.days * DAY

    @property
    def placed_at(self) -> datetime:
        return self.clicked_at + _TO_ORDER


async def add_clicks(folder: Path, lake: Lake, orders: Iterable[Order]) -> None:
    """Bring the orders' clicks into the lake, by a journal in the folder and the compactor."""
    await keep(folder / "journal" / "0", [_entry(order) for order in orders])
    done = await Compactor(folder / "journal", lake, ManualClock(NOW), processes=1).step()
    assert done.is_clean


def publish(lake: Lake, orders: Iterable[Order]) -> None:
    """Publish the next version, which credits these orders and no others."""
    table = credits_table(MODELS)
    ledger = lake.ledger(table)
    version = len(lake.results()) + 1
    parts = ledger.parts(f"credits-{version}", NOW_MS)
    parts.write(pa.Table.from_pylist([_row(order) for order in orders], table.whole))
    made = ledger.commit(parts.close(), NOW_MS, instead_of=None, notes={})
    lake.publish(Result(version=version, created_at=NOW, credits_version=made), NOW_MS)


def _entry(order: Order) -> bytes:
    clicked_ms = int(order.clicked_at.timestamp() * 1000)
    network_id = (
        {"fbclid": "IwAR0x"}
        if order.channel == "meta"
        else {order.google_id: order.id_value or f"g-{order.click_name}"}
    )
    query = {
        "client_id": order.client_id,
        "cli_ubid": f"U-{order.order_id}",
        "seller_id": "s-1",
        "asvt": "v",
        "atag": "t",
        "source": order.channel,
        "event_time": clicked_ms,
        **network_id,
    }
    query |= {name: value for name, value in (("fbc", order.cookie), ("consent", order.consent)) if value}
    return encode(EntryKind.CLICK, order.click_id, clicked_ms, _ORIGIN, b"observed", urlencode(query).encode())


def _row(order: Order) -> dict[str, Any]:
    credit = {"credit": order.amount_minor, "refund": order.refunded, "share": 1.0}
    return {
        "client_id": order.client_id,
        "order_id": order.order_id,
        "placed_at": order.placed_at,
        "order_day": order.placed_at.date(),
        "order_month": f"{order.placed_at:%Y-%m}",
        "currency": "EUR",
        "amount_minor": order.amount_minor,
        "refunded_minor": order.refunded,
        "status": order.status,
        "kind": order.kind,
        "touches": 1,
        "place": 1,
        "click_id": None if order.by_view else order.click_id,
        "click_at": order.clicked_at,
        "channel": order.channel,
        **{f"{model}_{name}": value for model in MODELS for name, value in credit.items()},
    }

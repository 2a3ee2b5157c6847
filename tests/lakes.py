"""A small lake with result versions whose every number can be computed by hand.

Never runs attribution: rows are written as a run would have. Invariant: it is what the tables' schemas say.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from clickclock.app.exporting import conversions_of, exporter_of, folder_of
from clickclock.app.lake import docket_of
from clickclock.app.postbacks import partners_of
from clickclock.attribution.api.query_context import Desk
from clickclock.attribution.crediting.policy import Policies, Policy
from clickclock.attribution.engines.duckdb import DuckDB
from clickclock.attribution.lake import ADS, COSTS, IDENTITIES, TOUCHES, Lake, Table, credits_table
from clickclock.attribution.models import BUILT_IN
from clickclock.attribution.reporting.result import Result
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config

NOW = datetime(2026, 11, 20, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
POLICIES = Policies(Policy(), {"shop": Policy(time_zone="Europe/Berlin")})
ADS_OF = {
    1: {"client_id": "shop", "channel": "google", "seller_id": "s-1", "campaign": "c-1", "ad_set": "a-1", "ad_id": "x"},
    2: {"client_id": "shop", "channel": "meta", "seller_id": "s-2", "campaign": "c-2"},
    3: {"client_id": "tokyo", "channel": "google"},
}
MODELS = ("last", "linear")


class SmallLake:
    """A lake in a folder, to which versions are added."""

    def __init__(self, folder: Path) -> None:
        self.lake = Lake(folder)

    def append(self, table: Table, rows: Iterable[Mapping[str, Any]]) -> int:
        """Add rows; what a row does not name is null."""
        return self.lake.append(table, pa.Table.from_pylist([dict(row) for row in rows], table.whole), NOW_MS)

    def publish(self, rows: Iterable[Mapping[str, Any]], models: Iterable[str] = MODELS, **versions: int) -> int:
        """Publish a version with these credits, beside those that are there; returns its number."""
        told: dict[str, Any] = {f"{name}_version": version for name, version in versions.items()}
        made = self.append(credits_table(list(models)), rows)
        number = len(self.lake.results()) + 1
        settings = json.dumps({"policies": POLICIES.settings, "models": {name: {} for name in models}})
        result = Result(version=number, created_at=NOW, settings=settings, credits_version=made, **told)
        self.lake.publish(result, NOW_MS)
        return number

    def fill(self) -> int:
        """Three clients' worth of clicks, orders and costs, and the version of them."""
        ads = self.append(ADS, [{"ad": ad, **told} for ad, told in ADS_OF.items()] + [{"ad": 1, **ADS_OF[1]}])
        touches = self.append(
            TOUCHES,
            [
                touch("t-1", "2026-11-01T23:30", 1, cli_ubid=100),
                touch("t-2", "2026-11-02T10:00", 1, device_id=200),
                touch("t-3", "2026-11-02T12:00", 2, cli_ubid=900, device_id=300),
                touch("t-4", "2026-11-02T12:01", 2, cli_ubid=900),
                touch("t-5", "2026-11-01T23:30", 3, cli_ubid=500),
            ],
        )
        identities = self.append(
            IDENTITIES,
            [
                {"code": 200, "person": 100, "is_shared": False},
                {"code": 900, "is_shared": True, "links": 60},
            ],
        )
        self.append(COSTS, [cost("google", 900, "EUR", at=NOW - timedelta(days=1), campaign="c-1")])
        self.append(COSTS, [cost("google", 500, "EUR", campaign="c-1"), cost("meta", 300, "USD")])
        orders = [
            credited("A", 1001, "EUR", [(1, 0, 0.0, 500, 0.5), (2, 1001, 1.0, 501, 0.5)]),
            credited("B", 2000, "EUR", [(1, 2000, 1.0, 2000, 1.0)], refunded=500, day=date(2026, 11, 3)),
            credited("C", 700, "EUR", []),
            credited("D", 1250, "JPY", [(3, 1250, 1.0, 1250, 1.0)], client_id="tokyo"),
        ]
        rows = [row for order in orders for row in order]
        return self.publish(rows, touches=touches, ads=ads, identities=identities)


def touch(click_id: str, at: str, ad: int, **codes: int) -> dict[str, Any]:
    """A click in codes, at a moment in UTC."""
    moment = datetime.fromisoformat(at).replace(tzinfo=UTC)
    time_ms = int(moment.timestamp() * 1000)
    return {
        "id": click_id,
        "time_ms": time_ms,
        "received_us": time_ms * 1000,
        "ad": ad,
        "ad_key": ad,
        "parameters": 0,
        "is_bot": False,
        "is_prefetch": False,
        "received_day": moment.date(),
        **codes,
    }


def credited(
    order_id: str,
    amount: int,
    currency: str,
    touchpoints: list[tuple[int, int, float, int, float]],
    *,
    client_id: str = "shop",
    refunded: int = 0,
    day: date = date(2026, 11, 2),
) -> list[dict[str, Any]]:
    """An order's rows; of each touchpoint its ad, and credit and share by `last` and by `linear`."""
    order = {
        "client_id": client_id,
        "order_id": order_id,
        "placed_at": datetime(day.year, day.month, day.day, 12, tzinfo=UTC),
        "order_day": day,
        "order_month": f"{day:%Y-%m}",
        "currency": currency,
        "amount_minor": amount,
        "refunded_minor": refunded,
        "status": "completed",
        "seller_id": "s-2",
        "touches": len(touchpoints),
    }
    if not touchpoints:
        return [{**order, "place": 0, "reason": "no_click"}]
    return [
        {
            **order,
            "place": place,
            "click_id": f"t-{place}",
            **{name: ADS_OF[ad].get(name) for name in ("channel", "campaign", "ad_set")},
            "ad": ADS_OF[ad].get("ad_id"),
            "click_seller_id": ADS_OF[ad].get("seller_id"),
            "last_credit": last,
            "last_refund": refunded * last // amount,
            "last_share": last_share,
            "linear_credit": linear,
            "linear_refund": refunded * linear // amount,
            "linear_share": linear_share,
        }
        for place, (ad, last, last_share, linear, linear_share) in enumerate(touchpoints, 1)
    ]


def cost(
    channel: str, amount: int, currency: str, *, at: datetime = NOW, campaign: str | None = None
) -> dict[str, Any]:
    """What `shop` paid on 2 November."""
    return {
        "client_id": "shop",
        "day": date(2026, 11, 2),
        "channel": channel,
        "campaign": campaign,
        "amount_minor": amount,
        "currency": currency,
        "imported_at": at,
    }


def small_desk(config: Config) -> Desk:
    """What questions about the lake of a configuration are answered from, in this process."""
    lake, engine = Lake(config.lake), DuckDB(memory_mb=256, threads=1, temp_dir=config.data_dir)
    exporter = exporter_of(config, lake)
    return Desk(
        lake,
        engine,
        BUILT_IN,
        docket_of(config),
        config.journal_dir,
        exporter,
        config.upload_model,
        conversions_of(config),
        partners_of(config),
        folder_of(config),
        SystemClock(),
    )

"""A small shop, for whoever wants to see attribution at work: two weeks of its clicks and orders, sent over HTTP.

Never touches the journal, the lake or the store: it is a user like any other, and its own work is one job more.
Invariants: the same days give the same shop; an order that is sent again changes nothing.

>>> shop = small_shop(datetime(2026, 11, 20, tzinfo=UTC))
>>> len(shop.orders), shop.orders[0]["currency"]
(39, 'EUR')
"""

import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import httpx

from clickclock.client import Client, Payload, Refused
from clickclock.client.site import is_of_this_machine
from clickclock.client.trust import trust_of
from clickclock.foundation.advance import tell
from clickclock.foundation.clock import Clock
from clickclock.foundation.errors import Transient
from clickclock.foundation.instant import DAY_MS

CLIENT_ID: Final = "demo-shop"
DAYS: Final = 14
VISITORS: Final = 90
SELLERS: Final = ("trattoria-roma", "sushi-bar", "green-bowl")
WITHIN_S: Final = 180.0
"""A click is in the lake about two minutes after it was acknowledged."""
PAUSE_S: Final = 3.0
_MS: Final = 1000

Parameters = dict[str, str]


class NotThere(Transient):
    """The demonstration's orders did not reach a report in time; look at the jobs of the application attribution."""

    code = "demoNotThere"


@dataclass(frozen=True)
class Shop:
    """What happened in the shop, oldest first."""

    clicks: list[Parameters]
    orders: list[dict[str, Any]]


def small_shop(today: datetime) -> Shop:
    """Two weeks before `today`, the same for the same day."""
    midnight = today.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    chance = random.Random(int(midnight.timestamp()))
    begin_ms = int((midnight - timedelta(days=DAYS)).timestamp()) * _MS
    clicks: list[Parameters] = []
    orders: list[dict[str, Any]] = []
    for number in range(VISITORS):
        visitor, seller = f"visitor-{number}", chance.choice(SELLERS)
        times_ms = sorted(begin_ms + chance.randrange(DAYS * DAY_MS) for _ in range(chance.choice((1, 1, 2, 3, 5))))
        clicks += [
            {
                "client_id": CLIENT_ID,
                "cli_ubid": visitor,
                "seller_id": seller,
                "event_time": str(time_ms),
                **_ad(chance, f"{number}-{place}"),
            }
            for place, time_ms in enumerate(times_ms)
        ]
        if chance.random() < _ORDERS_OF_VISITORS:
            ordered_ms = times_ms[-1] + chance.randrange(5 * 60, 12 * 3600) * _MS
            orders.append(
                {
                    "client_id": CLIENT_ID,
                    "order_id": f"{midnight:%Y%m%d}-{number}",
                    "cli_ubid": visitor,
                    "seller_id": seller,
                    "event_time": min(ordered_ms, begin_ms + DAYS * DAY_MS),
                    "amount": f"{chance.randrange(900, 6000) / 100:.2f}",
                    "currency": "EUR",
                }
            )
    # One with something to see in its proof.
    clicks_of = Counter(click["cli_ubid"] for click in clicks)
    refunded = max(orders, key=lambda order: clicks_of[order["cli_ubid"]])
    orders.append({**refunded, "status": "refunded", "event_time": refunded["event_time"] + 3600 * _MS})
    return Shop(sorted(clicks, key=lambda click: click["event_time"]), orders)


_ORDERS_OF_VISITORS: Final = 0.4


def _ad(chance: random.Random, mark: str) -> Parameters:
    """One ad, as its network writes it into the address of the landing page."""
    google = {"utm_source": "google", "gclid": f"demo-{mark}", "utm_campaign": "brand"}
    meta = {"utm_source": "facebook", "fb_campaign_id": "summer", "fb_ad_id": chance.choice(("video", "photo"))}
    letter = {"utm_source": "newsletter", "utm_campaign": "weekly"}
    return chance.choices((google, meta, letter), (5, 4, 2))[0]


def send(shop: Shop, click_url: str, headers: Mapping[str, str] | None = None, ca_file: Path | None = None) -> None:
    """Send its clicks and orders to the collector at `click_url`, with these headers. Raises `httpx.HTTPError`."""
    trust = trust_of(ca_file, is_here=is_of_this_machine(click_url))
    with httpx.Client(base_url=click_url, headers=headers, timeout=30, trust_env=False, verify=trust) as collector:
        for click in shop.clicks:
            collector.get("/aclick", params=click).raise_for_status()
        collector.post("/orders", json=shop.orders).raise_for_status()


def credited(client: Client, shop: Shop, clock: Clock) -> Payload:
    """A report by channel, once attribution's own jobs have brought the shop into the lake. Raises `NotThere`."""
    placed = len({order["order_id"] for order in shop.orders})
    give_up_at_s = clock.monotonic_s() + WITHIN_S
    while clock.monotonic_s() < give_up_at_s:
        for job in _own_jobs(client, "compaction") + _own_jobs(client, "run"):
            tell(f"Waiting for the job attribution/{job}")
            trigger = client.trigger_job("attribution", job, reason="the demonstration")["trigger"]
            for _ in client.follow_trigger(trigger["triggerId"]):
                pass
        if _orders(client) >= placed:
            return client.report(clientId=CLIENT_ID, by="channel", model="first,last,linear,markov")
        time.sleep(PAUSE_S)
    raise NotThere


def _own_jobs(client: Client, work: str) -> list[str]:
    """The jobs that do one of attribution's works: where replicas share a database, each may have its own."""
    jobs = client.list_jobs(application="attribution")["jobs"]
    return [name for each in jobs if (name := each["jobName"]) == work or name.startswith(f"{work}-")]


def _orders(client: Client) -> int:
    try:
        rows = client.report(clientId=CLIENT_ID, by="", model="last")["report"]["rows"]
    except Refused as refused:
        if refused.code != "noVersion":
            raise
        rows = []
    return sum(row["orders"] for row in rows)

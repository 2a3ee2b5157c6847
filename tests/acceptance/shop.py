"""A shop in a lake, credited twice, for pages that show credit: its people, an order with every fate, costs of ads.

Never starts a service: it writes the lake as the service's own jobs do. Invariants: the same shop each time; version 2
has a late click and a refund that version 1 has not.

>>> EVERY_FATE
'A-2041'
"""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from clickclock.attribution.agents.attributor import Settings
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.lake import COSTS, Lake
from clickclock.demo import small_shop
from tests.credited import DAY_MS, HOUR_MS, click, load, order, run

CLIENT = "shop-1"
EVERY_FATE = "A-2041"
STRANGE = "o/../<b>1</b> שלום"
MODELS = ("first", "last", "last_non_direct", "linear", "markov", "position", "shapley", "shapley_rate", "time_decay")
Said = dict[str, Any]
_GOOGLE: Said = {"source": "", "utm_source": "google", "utm_campaign": "brand"}
_META: Said = {"source": "", "utm_source": "facebook", "fb_campaign_id": "summer", "fb_ad_id": "video"}
_LETTER: Said = {"source": "", "utm_source": "newsletter", "utm_campaign": "weekly"}
_ME: Said = {"client_id": CLIENT, "cli_ubid": "me", "asvt": "", "atag": ""}


def fill(folder: Path, scratch: Path) -> int:
    """Fill the lake in a folder, up to now; returns its latest version."""
    lake, settings = Lake(folder), Settings(Policies(), {model: {} for model in MODELS})
    today = datetime.now(UTC)
    now_ms = int(today.timestamp() * 1000)
    load(lake, *_people(today), *_every_fate(now_ms))
    lake.append(COSTS, _costs(today.date()), now_ms)
    run(lake, scratch, settings)
    placed_ms = now_ms - DAY_MS
    load(
        lake,
        click(900, placed_ms - 50 * HOUR_MS, received_ms=now_ms, **{**_ME, **_META, "fb_ad_id": "late"}),
        order(901, STRANGE, placed_ms - HOUR_MS, client_id=CLIENT, cli_ubid="me", amount="80.00", status="cancelled"),
    )
    run(lake, scratch, settings)
    return lake.results()[-1].version


def _people(today: datetime) -> list[bytes]:
    shop = small_shop(today)
    said: list[Said] = [{**each, "client_id": CLIENT} for each in shop.clicks]
    clicks = [
        click(10_000 + number, int(each.pop("event_time")), network=f"n-{number}", source="", asvt="", atag="", **each)
        for number, each in enumerate(said)
    ]
    orders = [
        order(20_000 + number, each.pop("order_id"), each.pop("event_time"), **each)
        for number, each in enumerate({**each, "client_id": CLIENT} for each in shop.orders)
    ]
    return [*clicks, *orders]


def _every_fate(now_ms: int) -> list[bytes]:
    """A person with two identifiers and nine clicks, of which four count for an order; and one strange order more."""
    at_ms = now_ms - 12 * HOUR_MS
    days = [
        (40, {**_LETTER, "device_id": "d-7"}),
        (13, {**_GOOGLE, "gclid": "g1"}),
        (8, _LETTER),
        (5, _META),
        (4.99, _META),
        (3, {**_META, "fb_ad_id": "photo"}),
        (1, {**_GOOGLE, "gclid": "g2"}),
        (0.9, {**_GOOGLE, "gclid": "g2"}),
        (-0.2, {**_GOOGLE, "gclid": "g3"}),
    ]
    clicks = [click(100 + n, at_ms - int(ago * DAY_MS), **{**_ME, **said}) for n, (ago, said) in enumerate(days)]
    clicks.append(click(120, at_ms - 8 * DAY_MS, received_ms=at_ms - 8 * DAY_MS + 3000, **{**_ME, **_LETTER}))
    mine: Said = {"client_id": CLIENT, "cli_ubid": "me", "device_id": "d-7"}
    return [
        *clicks,
        order(130, EVERY_FATE, at_ms, amount="129.90", **mine),
        order(131, STRANGE, at_ms - 13 * HOUR_MS, amount="80.00", **mine),
        order(132, "A-2042", at_ms, client_id=CLIENT, cli_ubid="somebody-new", amount="12.00"),
    ]


def _costs(today: date) -> pa.Table:
    rows = [
        {
            "client_id": CLIENT,
            "day": today - timedelta(days=ago),
            "channel": channel,
            "campaign": campaign,
            "amount_minor": minor,
            "currency": "EUR",
            "imported_at": datetime(2026, 1, 1, tzinfo=UTC),
        }
        for ago in range(1, 15)
        for channel, campaign, minor in (("google", "brand", 900), ("meta", "summer", 700))
    ]
    return pa.Table.from_pylist(rows, COSTS.whole)

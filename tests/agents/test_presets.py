"""Each preset on a file of its exporter's shape: recognised by itself, and read to the last digit."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from clickclock.app.recognising import Seen, Told, recognised
from clickclock.attribution.files.mapped_archive import MappedArchive
from clickclock.attribution.files.mapping_files import presets
from clickclock.attribution.importing.historical import Unusable
from clickclock.attribution.registering.import_report import Report
from clickclock.foundation.config import load
from tests.exports import EXPORTS, NAMES

SHOP = {"client_id": "shop-1"}
ANNA = sha256(b"anna@example.com").hexdigest()
AT_9_UTC = "1793523600000"
ORDER = {**SHOP, "amount": "24.90", "currency": "EUR", "event_time": AT_9_UTC, "status": "completed"}
COST = {**SHOP, "day": "2026-11-01", "currency": "EUR"}
SAYS: dict[str, dict[str, Any]] = {
    "woocommerce": {"zone": "Europe/Berlin", "currency": "EUR"},
    "woocommerce-export": {"zone": "Europe/Berlin"},
    "magento": {"zone": "Europe/Berlin", "currency": "EUR"},
    "bigcommerce": {"zone": "UTC"},
    "google-ads": {"decimal": ","},
}
"""What nobody can know from the file."""
COLA = [{"sku_id": "P-1", "price": "12.00", "quantity": "1"}, {"sku_id": "C-1", "price": "4.00", "quantity": "2"}]
PIZZA = COLA[:1]
BUYER = {"customer_id": ANNA, "cli_ubid": "v1"}
EXPECTED: dict[str, list[dict[str, Any]]] = {
    "shopify": [
        {**ORDER, **BUYER, "order_id": "#1001", "items": COLA},
        {
            **ORDER,
            **BUYER,
            "order_id": "#1002",
            "items": PIZZA,
            "status": "partially_refunded",
            "refunded_amount": "10.00",
        },
        {**ORDER, **BUYER, "order_id": "#1003", "status": "cancelled", "items": PIZZA},
    ],
    "woocommerce": [
        {
            **ORDER,
            "order_id": "501",
            "customer_id": sha256(b"anna muster").hexdigest(),
            "status": "partially_refunded",
            "refunded_amount": "4.90",
        },
        {**ORDER, "order_id": "502", "amount": "7.00", "customer_id": sha256(b"anna muster").hexdigest()},
    ],
    "woocommerce-export": [
        {**ORDER, **BUYER, "order_id": "501"},
        {**ORDER, **BUYER, "order_id": "502", "status": "refunded", "refunded_amount": "24.90"},
    ],
    "magento": [
        {**ORDER, "order_id": "000000123", "amount": "1234.50", "customer_id": ANNA},
        {
            **ORDER,
            "order_id": "000000124",
            "amount": "1234.50",
            "customer_id": ANNA,
            "status": "refunded",
            "refunded_amount": "1234.50",
        },
    ],
    "shopware": [
        {**ORDER, "order_id": "10001", "amount": "24.9", "customer_id": ANNA},
        {**ORDER, "order_id": "10002", "amount": "24.9", "customer_id": ANNA, "status": "cancelled"},
    ],
    "bigcommerce": [
        {**ORDER, "order_id": "101", "currency": "USD", "event_time": "1795132800000", "customer_id": ANNA},
        {
            **ORDER,
            "order_id": "102",
            "currency": "USD",
            "event_time": "1795132800000",
            "customer_id": ANNA,
            "status": "partially_refunded",
            "refunded_amount": "4.90",
        },
    ],
    "stripe": [
        {**ORDER, "order_id": "A-1", "cli_ubid": "v1", "customer_id": "cus_1"},
        {
            **ORDER,
            "order_id": "A-2",
            "cli_ubid": "v1",
            "customer_id": "cus_1",
            "status": "partially_refunded",
            "refunded_amount": "4.90",
        },
    ],
    "google-ads": [
        {**COST, "channel": "google", "campaign": "Frühling; 50 %", "ad_set": "Marke", "amount": "1234.50"},
        {**COST, "channel": "google", "campaign": "Frühling; 50 %", "ad_set": "Marke", "amount": "0.50"},
        {
            **COST,
            "channel": "google",
            "campaign": "Frühling; 50 %",
            "ad_set": "Marke",
            "day": "2026-11-02",
            "amount": "0",
        },
    ],
    "google-ads-api": [{**COST, "channel": "google", "campaign": "Spring", "amount": "1234.50"}],
    "meta-ads": [
        {**COST, "channel": "meta", "campaign": "Frühling", "ad_set": "Breit", "ad": "Video 1", "amount": amount}
        for amount in ("12.3", "1")
    ],
    "tiktok-ads": [{**COST, "channel": "tiktok", "campaign": "Spring", "ad_set": "Wide", "ad": "1", "amount": "12.30"}],
    "microsoft-ads": [
        {
            **COST,
            "channel": "microsoft",
            "campaign": "Spring",
            "ad_set": "Brand",
            "day": "2026-11-20",
            "amount": "1234.50",
        }
    ],
    "ga4": [
        {
            "query": b"client_id=shop-1&gclid=EAIaIQ_1&utm_source=google&utm_campaign=spring%20sale&cli_ubid=77.88"
            b"&event_time=1793523600123"
        }
    ],
    "snowplow": [
        {
            "query": b"client_id=shop-1&fbclid=IwAR0x&cli_ubid=d-1&event_time=1793523600123&utm_source=facebook",
            "received_at": "1793523601000",
            "user_agent": "Mozilla/5.0",
        }
    ],
    "matomo": [
        {
            "query": b"client_id=shop-1&cli_ubid=c0ffee1234567890&event_time=1793523600000&utm_source=newsletter"
            b"&utm_medium=email&utm_campaign=Spring"
        }
    ],
}


def seen(folder: Path, preset: str, **said: Any) -> Seen:
    path = folder / NAMES[preset]
    path.write_bytes(EXPORTS[preset]())
    told = replace(Told(client_id="shop-1"), **{**SAYS.get(preset, {}), **said})
    (found,) = recognised(load(None, {}, {"data_dir": folder / "data"}), [path], told)
    return found


def sorted_query(record: dict[str, Any]) -> dict[str, Any]:
    return record | ({"query": sorted(record["query"].split(b"&"))} if "query" in record else {})


def test_every_preset_has_a_file_here() -> None:
    assert {preset.name for preset in presets()} == set(EXPORTS) == set(EXPECTED) == set(NAMES)


@pytest.mark.parametrize("preset", sorted(EXPORTS))
def test_an_export_is_recognised_and_every_row_of_it_is_read(preset: str, tmp_path: Path) -> None:
    found = seen(tmp_path, preset)
    assert found.mapping is not None
    assert (found.mapping.name, found.questions, found.unknown) == (preset, {}, [])
    assert isinstance(found.rows, MappedArchive)
    rows = [row for _, row in found.rows.records()]
    assert [row for row in rows if isinstance(row, Unusable)] == []
    told = [sorted_query(row) for row in rows if isinstance(row, dict)]
    assert told == [sorted_query(row) for row in EXPECTED[preset]]


@pytest.mark.parametrize("preset", sorted(SAYS))
def test_what_nobody_can_know_from_an_export_is_asked(preset: str, tmp_path: Path) -> None:
    found = seen(tmp_path, preset, **dict.fromkeys(SAYS[preset]))
    assert found.questions.keys() <= {"zone", "currency", "decimal", "dates"}
    if preset != "google-ads":  # whose amounts have both signs, and so say it themselves
        assert found.questions.keys() >= SAYS[preset].keys() - {"decimal"}


def test_a_report_counts_what_is_left_out(tmp_path: Path) -> None:
    found = seen(tmp_path, "shopify")
    assert isinstance(found.rows, MappedArchive)
    list(found.rows.records())
    assert found.rows.left_out == {("Financial Status", "pending"): 2}
    assert Report().others == 0

"""The retainer: days that are too old go, with a receipt, and nothing else does."""

from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from clickclock.attribution.agents.compactor import Compactor
from clickclock.attribution.agents.retainer import Retainer, Retention
from clickclock.attribution.erasing.receipt import Kind
from clickclock.attribution.lake import RECEIPTS, TABLES, TOUCHES, Lake
from clickclock.foundation.clock import ManualClock
from tests import credited, shop
from tests.credited import attributor
from tests.kept import keep

PEOPLE = 6
THIRD_DAY = shop.epoch(1_800_000_000_000) + timedelta(days=2)
LATE_MS = 1_800_000_000_000 + 2 * 86_400_000


@pytest.fixture
async def lake(tmp_path: Path) -> Lake:
    """Three days of clicks and orders, and what was derived of them."""
    lake = Lake(tmp_path / "lake")
    await keep(
        tmp_path / "journal" / "0",
        [line for person in range(PEOPLE) for line in (*shop.entries(person), shop.view(person))],
    )
    await Compactor(tmp_path / "journal", lake, ManualClock(THIRD_DAY), processes=1).step()
    shop.derive(lake, PEOPLE)
    return lake


def days(lake: Lake) -> dict[str, set[str]]:
    return {
        table.name: {str(day) for batch in lake.scan(table.name) for day in batch["received_day"].to_pylist()}
        for table in (*TABLES, TOUCHES)
    }


def test_without_days_nothing_is_ever_deleted(lake: Lake) -> None:
    before = days(lake)
    assert Retainer(lake, ManualClock(THIRD_DAY + timedelta(days=9999)), Retention()).step() is None
    assert days(lake) == before


def test_clicks_go_and_orders_stay_for_as_long_as_each_is_kept(lake: Lake) -> None:
    made = Retainer(lake, ManualClock(THIRD_DAY), Retention(click_days=1, order_days=2)).step()
    assert made is not None
    assert days(lake) == {
        **{name: {"2027-01-16", "2027-01-17"} for name in ("clicks", "views", "rejections", "events")},
        "orders": {"2027-01-15", "2027-01-16", "2027-01-17"},
        "touches": set(),
    }
    assert made.kind is Kind.RETENTION
    assert made.rows == {"touches": 2 * PEOPLE, "clicks": 6, "views": 2, "rejections": 2, "events": 2}
    assert made.before == dict.fromkeys(made.rows, "2027-01-16")


def test_a_step_that_deletes_nothing_leaves_no_receipt(lake: Lake) -> None:
    retainer = Retainer(lake, ManualClock(THIRD_DAY), Retention(click_days=1))
    assert retainer.step() is not None
    assert retainer.step() is None
    assert sum(batch.num_rows for batch in lake.scan(RECEIPTS.name)) == 1


def test_no_file_of_an_old_day_is_left_and_later_clicks_come_in(lake: Lake, tmp_path: Path) -> None:
    Retainer(lake, ManualClock(THIRD_DAY), Retention(click_days=1, order_days=1)).step()
    assert list((tmp_path / "lake").glob("*/received_day=2027-01-15/*")) == []
    assert [row["order_id"] for batch in lake.scan("orders") for row in batch.to_pylist()]


async def test_an_order_goes_with_its_later_refund_which_alone_would_be_an_order_of_another_day(
    lake: Lake, tmp_path: Path
) -> None:
    told = [("shop-1", shop.order(0)), ("shop-1", shop.order(1)), ("shop-2", shop.order(0))]
    refunds = [
        credited.order(1000 + number, order_id, LATE_MS, client_id=client_id, cli_ubid="u", status="refunded")
        for number, (client_id, order_id) in enumerate(told)
    ]
    credited.load(lake, *refunds)
    of_first_day = {("shop-1", shop.order(0)), ("shop-1", shop.order(3))}
    made = Retainer(lake, ManualClock(THIRD_DAY), Retention(order_days=1)).step()
    assert made is not None
    assert made.rows == {"orders": 5}, "two messages about each of two, and a late refund"
    left = [(row["client_id"], row["order_id"]) for batch in lake.scan("orders") for row in batch.to_pylist()]
    assert len(left) == 2 * 4 + 2
    assert set(told) - of_first_day <= set(left)
    files = [pq.read_table(path, partitioning=None) for path in (tmp_path / "lake" / "orders").rglob("*.parquet")]
    names = [
        name for rows in files for name in zip(rows["client_id"].to_pylist(), rows["order_id"].to_pylist(), strict=True)
    ]
    assert of_first_day.isdisjoint(names), "no old version has them either"


async def test_reports_go_on_without_the_days_that_are_gone(lake: Lake, tmp_path: Path) -> None:
    await attributor(lake, tmp_path).step()
    assert Retainer(lake, ManualClock(THIRD_DAY), Retention(click_days=1, order_days=1)).step() is not None
    last = lake.results()[-1]
    assert last.kind == "erasure"
    for name in ("clicks", "touches", "orders"):
        days_left = {
            str(day) for batch in lake.scan(name, version=last.reads(name)) for day in batch["received_day"].to_pylist()
        }
        assert days_left == {"2027-01-16", "2027-01-17"}, name
    following = (await attributor(lake, tmp_path).step()).result
    assert following is not None
    assert (following.version, following.kind, following.why) == (
        last.version + 1,
        "full",
        "Something was deleted for good.",
    )


async def test_what_was_deleted_does_not_come_back_with_the_next_compaction(lake: Lake, tmp_path: Path) -> None:
    Retainer(lake, ManualClock(THIRD_DAY), Retention(click_days=1)).step()
    left = sum(batch.num_rows for batch in lake.scan("clicks"))
    await keep(tmp_path / "journal" / "0", shop.entries(2))
    await Compactor(tmp_path / "journal", lake, ManualClock(THIRD_DAY), processes=1).step()
    assert sum(batch.num_rows for batch in lake.scan("clicks")) == left + 3

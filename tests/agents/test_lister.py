"""Cohorts of a real run: who came when and by what, and what they ordered later."""

from pathlib import Path
from typing import Any

import pytest

from clickclock.attribution.agents.lister import Lister
from clickclock.attribution.engines.duckdb import DuckDB
from clickclock.attribution.lake import Lake
from clickclock.attribution.reporting.cohorts import read
from clickclock.attribution.reporting.listing import read_orders, read_paths
from tests.credited import HOUR_MS, START_MS, click, load, order, run

MONTH_MS = 30 * 24 * HOUR_MS


@pytest.fixture
def lister(tmp_path: Path) -> Lister:
    lake = Lake(tmp_path / "lake")
    load(lake, click(1, START_MS, cli_ubid="a"), click(2, START_MS, cli_ubid="b", source="meta"))
    first, later = START_MS + HOUR_MS, START_MS + 2 * MONTH_MS
    bought = [
        *(("a-1", first, "a", "EUR"), ("a-2", first + HOUR_MS, "a", "EUR"), ("a-3", later, "a", "EUR")),
        *(("a-4", later, "a", "JPY"), ("b-1", first, "b", "EUR"), ("c-1", later, "c", "EUR")),
    ]
    load(lake, *(order(10 + n, name, at, cli_ubid=who, currency=of) for n, (name, at, who, of) in enumerate(bought)))
    # A lead is no purchase: nobody becomes a customer by it.
    load(lake, order(20, "lead", START_MS + HOUR_MS // 2, cli_ubid="b", kind="lead"))
    run(lake, tmp_path)
    return Lister(lake, DuckDB(memory_mb=256, threads=1, temp_dir=tmp_path))


def lines(lister: Lister, **given: str) -> list[str]:
    found: list[dict[str, Any]] = lister.cohorts(read({name: [value] for name, value in given.items()}))["cohorts"]
    return [" ".join(map(str, row.values())) for row in found]


def test_customers_are_in_the_cohort_of_their_first_order(lister: Lister) -> None:
    assert lines(lister) == [
        "2026-10 google EUR 0 1 2 20.00 0.00",
        "2026-10 google EUR 2 1 1 10.00 0.00",
        "2026-10 google JPY 2 1 1 10 0",
        "2026-10 meta EUR 0 1 1 10.00 0.00",
        "2026-12 None EUR 0 1 1 10.00 0.00",
    ]


def test_orders_and_paths_are_found_by_their_kind(lister: Lister) -> None:
    found = lister.orders(read_orders({"kind": ["lead"]}))["orders"]
    assert [(each["orderId"], each["kind"], each["path"]) for each in found] == [("lead", "lead", ["meta"])]
    assert len(lister.orders(read_orders({"kind": ["purchase"]}))["orders"]) == 6
    assert [each["orders"] for each in lister.paths(read_paths({"kind": ["lead"]}))["paths"]] == [1]


def test_the_first_order_may_be_in_another_currency(lister: Lister) -> None:
    assert lines(lister, currency="JPY") == ["2026-10 google JPY 2 1 1 10 0"]
    assert lines(lister, clientId="nobody") == []

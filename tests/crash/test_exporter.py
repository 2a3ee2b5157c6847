"""An export is killed at every step, and run again: each conversion is in one file, once, and the memory says so."""

import csv
import json
import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from clickclock.attribution.agents.exporter import Exporter
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.files.outbox import Outbox
from clickclock.attribution.lake import UPLOADS, Lake
from clickclock.attribution.uploads.export import Exported, Wanted
from clickclock.foundation.clock import ManualClock
from tests.crash.mortal import Death
from tests.crash.nursery import lived
from tests.published import NOW, Order, add_clicks, publish

_OUTBOX, _LEDGER = "clickclock.attribution.files.outbox:Outbox", "clickclock.attribution.lake.ledger:Ledger"
DEATHS = {
    "before anything is written": Death(f"{_OUTBOX}.write"),
    "between two files": Death(f"{_OUTBOX}.write", "after", 1),
    "before the files' names are durable": Death(f"{_OUTBOX}.sync"),
    "before the memory's rows are written": Death(f"{_LEDGER}.parts"),
    "before the commit": Death(f"{_LEDGER}.commit"),
    "after the commit": Death(f"{_LEDGER}.commit", "after"),
    "between two names": Death("pathlib:Path.rename", "after", 1),
    "before the new names are durable": Death(f"{_OUTBOX}.sync", "before", 2),
    "after everything": Death(f"{_OUTBOX}.publish", "after"),
}
ORDERS = [
    *(Order(f"A-{n}", 990, days=2 + n) for n in range(4)),
    *(Order(f"B-{n}", 990, days=2 + n, client_id="shop-2") for n in range(3)),
    *(Order(f"M-{n}", 500, days=1 + n, channel="meta") for n in range(2)),
]


def export(lake: Path, folder: Path) -> Exported:
    return Exporter(Lake(lake), Policies(), ManualClock(NOW), Outbox(folder)).step(Wanted("last"))


async def killed(lake: Path, folder: Path, death: Death) -> int:
    order = {"lake": str(lake), "folder": str(folder), "death": death.as_json()}
    return await lived("mortal_exporter", order)


def told(folder: Path) -> Counter[str]:
    """The order of every conversion, retraction and event in the files that are seen."""
    found: Counter[str] = Counter()
    for path in folder.glob("[a-z]*"):
        if path.suffix == ".json":
            found.update(event["event_id"] for event in json.loads(path.read_bytes())["data"])
        else:
            rows = list(csv.DictReader(path.read_text().splitlines()[1:]))
            found.update(f"{row.get('Adjustment Type', '')}{row['Order ID']}" for row in rows)
    return found


def remembered(lake: Path) -> Counter[str]:
    rows = [row for batch in Lake(lake).scan(UPLOADS.name) for row in batch.to_pylist()]
    return Counter(("RETRACT" if row["kind"] == "retract" else "") + row["order_id"] for row in rows)


@pytest.mark.parametrize("death", DEATHS.values(), ids=DEATHS)
async def test_whenever_it_dies_the_next_one_loses_and_doubles_no_conversion(death: Death, tmp_path: Path) -> None:
    lake, folder = tmp_path / "lake", tmp_path / "exports"
    await add_clicks(tmp_path, Lake(lake), ORDERS)
    publish(Lake(lake), ORDERS)
    assert await killed(lake, folder, death) == -signal.SIGKILL
    export(lake, folder)
    once = Counter(order.order_id for order in ORDERS)
    assert told(folder) == remembered(lake) == once
    assert list(folder.glob(".*.new")) == []
    assert export(lake, folder).files == []


@pytest.mark.parametrize("death", [DEATHS["before the commit"], DEATHS["after the commit"]], ids=["before", "after"])
async def test_what_changes_after_it_died_is_told_as_an_adjustment_if_it_was_told(death: Death, tmp_path: Path) -> None:
    lake, folder = tmp_path / "lake", tmp_path / "exports"
    order = ORDERS[0]
    await add_clicks(tmp_path, Lake(lake), [order])
    publish(Lake(lake), [order])
    assert await killed(lake, folder, death) == -signal.SIGKILL
    publish(Lake(lake), [replace(order, channel="onsite")])
    export(lake, folder)
    expected = {} if death.moment == "before" else {order.order_id: 1, f"RETRACT{order.order_id}": 1}
    assert told(folder) == remembered(lake) == Counter(expected)


async def test_a_killed_export_into_another_folder_is_completed_there(tmp_path: Path) -> None:
    lake, first, second = tmp_path / "lake", tmp_path / "first", tmp_path / "second"
    await add_clicks(tmp_path, Lake(lake), ORDERS)
    publish(Lake(lake), ORDERS)
    assert await killed(lake, first, DEATHS["after the commit"]) == -signal.SIGKILL
    assert export(lake, second).files == []
    assert (told(first), told(second)) == ({}, {})
    export(lake, first)
    assert told(first) == Counter(order.order_id for order in ORDERS)

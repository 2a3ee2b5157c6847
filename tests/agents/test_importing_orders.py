"""Orders and costs from files, with a real journal and a real lake: nothing twice, nothing half-done, faults told."""

import csv
import gzip
import io
import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clickclock.attribution.agents.compactor import Compactor
from clickclock.attribution.agents.cost_importer import CostImporter, CostsReport, Sum
from clickclock.attribution.agents.importer import Importer, Way
from clickclock.attribution.clicks.account import Account, Accounts
from clickclock.attribution.files.archive import Archive, Format, format_of
from clickclock.attribution.files.import_journal import ImportJournal
from clickclock.attribution.importing.faulty_row import SHOWN_MAX
from clickclock.attribution.lake import COSTS, ORDERS, REJECTIONS, Lake
from clickclock.attribution.orders.amendment import Amendment, judge
from clickclock.attribution.orders.order import fold
from clickclock.attribution.registering.import_report import Report
from clickclock.foundation.clock import ManualClock
from clickclock.foundation.errors import Malformed

NOW = datetime(2026, 11, 20, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
Rows = Sequence[dict[str, Any]]


def order(number: int, **changes: str) -> dict[str, str]:
    row = {"client_id": "c", "order_id": f"A-{number}", "cli_ubid": "u", "amount": "9.90", "currency": "EUR"}
    return row | {"event_time": str(NOW_MS - 86_400_000 + number)} | changes


def columns(rows: Rows) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


class World:
    """One data folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lake = Lake(folder / "lake")
        self.clock = ManualClock(NOW)

    def file(self, name: str, content: bytes) -> Archive:
        path = self.folder / name
        path.write_bytes(content)
        return Archive(path, format_of(path) or Format.NDJSON)

    def csv(self, rows: Rows, name: str = "a.csv") -> Archive:
        text = io.StringIO()
        writer = csv.DictWriter(text, columns(rows), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return self.file(name, text.getvalue().encode())

    def ndjson(self, rows: Rows, name: str = "a.ndjson") -> Archive:
        return self.file(name, b"".join(json.dumps(row).encode() + b"\n" for row in rows))

    def parquet(self, rows: Rows, name: str = "a.parquet") -> Archive:
        table = {name: [row.get(name) for row in rows] for name in columns(rows)}
        pq.write_table(pa.table(table), self.folder / name)
        return Archive(self.folder / name, Format.PARQUET)

    async def load(self, *archives: Archive, accounts: Accounts | None = None, **options: Any) -> Report:
        journal = ImportJournal(self.folder / "journal" / "import", self.lake, self.clock, 2**20)
        importer = Importer(journal, self.lake, accounts or Accounts(), self.clock)
        return await importer.import_orders(archives, Way(**options))

    async def identify(self, *archives: Archive) -> Report:
        journal = ImportJournal(self.folder / "journal" / "import", self.lake, self.clock, 2**20)
        return await Importer(journal, self.lake, Accounts(), self.clock).import_identities(archives)

    def costs(self, *archives: Archive, accounts: Accounts | None = None, **options: Any) -> CostsReport:
        return CostImporter(self.lake, accounts or Accounts(), self.clock).load(archives, **options)

    async def compact(self) -> None:
        done = await Compactor(self.folder / "journal", self.lake, self.clock, processes=1).step()
        assert done.is_clean

    def rows(self, table: str = ORDERS.name) -> list[dict[str, Any]]:
        return sorted(
            (row for batch in self.lake.scan(table) for row in batch.to_pylist()), key=lambda row: str(row.get("id"))
        )


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_an_imported_order_is_the_one_that_http_would_have_brought(world: World) -> None:
    rows = [order(1, sku_id="a|b", product_prices="4.90|5"), order(2, received_at=str(NOW_MS - 5))]
    report = await world.load(world.csv(rows))
    assert (report.rows, report.accepted, dict(report.kept)) == (2, 2, {"orders": 2})
    await world.compact()
    first, second = world.rows()
    assert (first["order_id"], first["amount_minor"], first["status"]) == ("A-1", 990, "completed")
    assert [item["price_minor"] for item in first["items"]] == [490, 500]
    assert first["received_at"] == first["event_time"]
    assert second["received_at"].timestamp() * 1000 == NOW_MS - 5
    assert isinstance(judge(first["raw"], NOW_MS), Amendment)


@pytest.mark.parametrize("compacted", [False, True])
async def test_the_same_orders_twice_in_whatever_files_are_there_once(compacted: bool, world: World) -> None:
    rows = [order(1), order(2), order(2), order(3, status="refunded"), order(4, amount="x")]
    report = await world.load(world.csv(rows))
    assert (dict(report.kept), report.known) == ({"orders": 3, "rejections": 1}, 1)
    if compacted:
        await world.compact()
    world.clock.advance(3600)
    again = await world.load(world.ndjson(rows), world.parquet(rows), world.csv(rows[::-1]))
    assert (dict(again.kept), again.known) == ({}, 15)
    await world.compact()
    assert (len(world.rows()), len(world.rows(REJECTIONS.name))) == (3, 1)


async def test_a_refund_of_a_file_amends_the_order_of_another(world: World) -> None:
    await world.load(world.csv([order(1)]))
    await world.load(world.csv([order(1, status="cancelled", event_time=str(NOW_MS - 1))]))
    await world.compact()
    amended = [judge(row["raw"], NOW_MS) for row in world.rows()]
    assert fold([each for each in amended if isinstance(each, Amendment)]).net_minor == 0


async def test_bad_orders_are_named_with_every_fault_and_kept_and_good_ones_go_in(world: World) -> None:
    rows = [
        order(1, amount="1,234.50"),
        order(2, amount="NaN"),
        order(3, currency="EUX"),
        order(4, cli_ubid=""),
        order(5, event_time="0"),
        order(6),
        order(7, amount="x", cli_ubid="", event_time="1970-01-01"),
    ]
    report = await world.load(world.ndjson(rows))
    assert (report.accepted, report.refused, dict(report.kept)) == (1, 6, {"orders": 1, "rejections": 6})
    path = str(world.folder / "a.ndjson")
    assert [(row.file, row.number) for row in report.refused_rows] == [(path, n) for n in (1, 2, 3, 4, 5, 7)]
    assert report.refused_rows[0].message == (
        "amount: `1,234.50` is no amount; give digits, with at most one point: `123.00`."
    )
    assert [part in report.refused_rows[5].message for part in ("cli_ubid:", "event_time:", "amount:")] == [True] * 3
    await world.compact()
    kept = world.rows(REJECTIONS.name)
    assert {row["what"] for row in kept} == {"order"}
    assert {row["client_id"] for row in kept} == {"c"}
    assert [row["order_id"] for row in world.rows()] == ["A-6"]


async def test_a_clock_of_2099_is_flagged_and_the_order_known_again(world: World) -> None:
    archive = world.csv([order(1, event_time="4070908800000")])
    report = await world.load(archive)
    assert (report.accepted, report.flags) == (1, {"eventTimeAhead": 1})
    await world.compact()
    world.clock.advance(3600)
    assert (await world.load(archive)).known == 1
    assert world.rows()[0]["event_time"] == NOW


async def test_an_order_that_was_refused_comes_in_once_its_account_is_known(world: World) -> None:
    archive = world.csv([order(1)])
    report = await world.load(archive, accounts=Accounts([Account(client_id="other")]))
    assert (dict(report.kept), dict(report.reasons)) == ({"rejections": 1}, {("unknownClient", "client_id"): 1})
    report = await world.load(archive, accounts=Accounts([Account(client_id="c", orders_token_sha256="0" * 64)]))
    assert dict(report.kept) == {"orders": 1}
    assert (await world.load(archive, accounts=Accounts([Account(client_id="other")]))).known == 1


CUT: dict[str, bytes] = {
    "a.ndjson": b'{"client_id":"c","order_id":"7","cli_ubid":"u","amount":"9.90","curr',
    "a.csv": b"client_id,order_id,cli_ubid,event_time,amount,currency\nc,7,u,1790000000000,9.90,EUR\nc,8,u,17900000",
}


@pytest.mark.parametrize("name", CUT)
async def test_a_text_that_was_cut_in_the_middle_brings_nothing_unless_the_rest_is_asked_for(
    name: str, world: World
) -> None:
    good = world.csv([order(1)], "good.csv")
    whole = json.dumps(order(2)).encode() + b"\n" if name.endswith("ndjson") else b""
    archive = world.file(name, whole + CUT[name])
    report = await world.load(good, archive)
    assert (report.is_refused, report.unreadable, dict(report.kept)) == (True, 1, {})
    assert report.unreadable_rows[0].number == len((whole + CUT[name]).splitlines())
    assert not (world.folder / "journal").exists()
    report = await world.load(good, archive, skip_unreadable=True)
    assert (report.is_refused, dict(report.kept)) == (False, {"orders": 2})


@pytest.mark.parametrize("name", ["a.parquet", "a.csv.gz"])
async def test_a_file_that_was_cut_and_has_no_end_brings_nothing(name: str, world: World) -> None:
    rows = [order(number) for number in range(2000)]
    good = world.csv(rows[:1], "good.csv")
    path = world.parquet(rows).path if name == "a.parquet" else world.csv(rows).path
    content = path.read_bytes() if name == "a.parquet" else gzip.compress(path.read_bytes())
    archive = world.file(name, content[: len(content) // 2])
    with pytest.raises(Malformed, match="cannot be read"):
        await world.load(good, archive, skip_unreadable=True)
    assert not (world.folder / "journal").exists()


async def test_a_table_that_ends_in_the_middle_of_a_line_is_said_to_as_its_last_value_may_be_half(world: World) -> None:
    whole = world.csv([order(1)]).path.read_bytes()
    cut, packed = world.file("cut.csv", whole[:-1]), world.file("packed.csv.gz", gzip.compress(whole[:-1]))
    assert (await world.load(world.csv([order(1)]), cut, packed)).open_ended == [str(cut.path)]
    costs = world.csv([cost()]).path.read_bytes()
    assert world.costs(world.file("cut.csv", costs[:-1]), world.ndjson([])).open_ended == [str(cut.path)]
    assert not world.file("empty.csv", b"").is_open_ended()


async def test_a_table_without_orders_is_refused_as_a_whole(world: World) -> None:
    with pytest.raises(Malformed, match="has no column order_id"):
        await world.load(world.file("a.csv", b"c,7,u\n"))


async def test_a_dry_run_of_orders_counts_and_keeps_nothing(world: World) -> None:
    report = await world.load(world.csv([order(1), order(2, amount="x")]), dry_run=True)
    assert (report.accepted, report.refused, dict(report.kept)) == (1, 1, {})
    assert not (world.folder / "journal").exists()


def cost(day: str = "2026-11-19", **changes: str) -> dict[str, str]:
    row = {"client_id": "c", "day": day, "channel": "google", "campaign": "x", "ad_set": "", "ad": ""}
    return row | {"amount": "12.30", "currency": "EUR"} | changes


@pytest.mark.parametrize("kind", ["csv", "ndjson", "parquet"])
def test_costs_come_from_every_kind_of_table(kind: str, world: World) -> None:
    archive = getattr(world, kind)(
        [cost(), cost(ad="7"), cost("2026-11-18", client_id="d", currency="JPY", amount="5")]
    )
    report = world.costs(archive)
    assert (report.rows, report.faulty, report.is_done) == (3, 0, True)
    day, before = date(2026, 11, 19), date(2026, 11, 18)
    assert report.sums == [Sum("c", day, day, 2, "24.60", "EUR"), Sum("d", before, before, 1, "5", "JPY")]
    rows = sorted(world.rows(COSTS.name), key=lambda row: (row["client_id"], row["ad"] or ""))
    assert [(row["ad"], row["amount_minor"], row["day"]) for row in rows] == [
        (None, 1230, day),
        ("7", 1230, day),
        (None, 5, before),
    ]
    assert {row["imported_at"] for row in rows} == {NOW}


def test_of_costs_all_rows_come_in_or_none_and_every_fault_is_named(world: World) -> None:
    good = world.csv([cost()], "good.csv")
    bad = world.csv(
        [cost(ad="1"), cost(amount="1,5", currency="EUR"), cost(ad="1"), cost(channel="", day="x")], "bad.csv"
    )
    report = world.costs(good, bad)
    assert (report.rows, report.faulty, report.is_done) == (5, 3, False)
    assert [(row.number, row.message) for row in report.faulty_rows] == [
        (3, "amount: `1,5` is no amount; give digits, with at most one point: `123.00`."),
        (4, f"Row 2 of {bad.path} has the cost of this day and ad already; add the two up."),
        (5, "day: Give a day such as 2026-11-20. channel: This is required; give it."),
    ]
    assert world.lake.table(COSTS.name) is None


def test_the_faults_of_costs_are_counted_when_there_are_too_many_to_name(world: World) -> None:
    report = world.costs(world.csv([cost(amount="x")] * (SHOWN_MAX + 5)))
    assert (report.faulty, len(report.faulty_rows)) == (SHOWN_MAX + 5, SHOWN_MAX)


def test_costs_of_a_file_that_was_cut_are_refused(world: World) -> None:
    content = world.csv([cost(), cost(ad="2")]).path.read_bytes()
    report = world.costs(world.file("a.csv", content[:-8]))
    assert [(row.number, row.message) for row in report.faulty_rows] == [
        (3, "its values are not as many as the header's names: 7, not 8")
    ]
    content = world.parquet([cost()]).path.read_bytes()
    with pytest.raises(Malformed, match="cannot be read"):
        world.costs(world.file("a.parquet", content[:200]))
    with pytest.raises(Malformed, match="No such file"):
        world.costs(Archive(world.folder / "none.csv", Format.CSV))
    with pytest.raises(Malformed, match="has no column amount"):
        world.costs(world.file("a.csv", b"client_id\nc\n"))
    assert world.lake.table(COSTS.name) is None


def test_an_import_of_costs_is_noted_with_its_time_so_that_the_last_one_counts(world: World) -> None:
    world.costs(world.csv([cost()]))
    world.clock.advance(60)
    world.costs(world.csv([cost(amount="10.00")]))
    rows = sorted(world.rows(COSTS.name), key=lambda row: row["imported_at"])
    assert [row["amount_minor"] for row in rows] == [1230, 1000]


def test_a_dry_run_of_costs_and_costs_of_unknown_accounts_change_nothing(world: World) -> None:
    assert world.costs(world.csv([cost()]), dry_run=True).is_done is False
    report = world.costs(world.csv([cost()]), accounts=Accounts([Account(client_id="other")]))
    assert report.faulty_rows[0].message.startswith("client_id: No account")
    assert world.lake.table(COSTS.name) is None

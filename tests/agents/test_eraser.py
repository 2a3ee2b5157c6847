"""The eraser: what somebody is known by goes from everywhere, and nothing else does."""

import asyncio
import json
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clickclock.attribution.agents.attributor.intake import take_in
from clickclock.attribution.agents.compactor import Compactor
from clickclock.attribution.agents.eraser import Eraser, Waiting
from clickclock.attribution.clicks.identifier import code
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.erasing.erasure import Erasure, Identifier
from clickclock.attribution.erasing.receipt import Receipt
from clickclock.attribution.errors import ErasureUnfinished, JournalDamaged
from clickclock.attribution.files.docket import Docket
from clickclock.attribution.files.export_files import ExportFiles
from clickclock.attribution.journal import Journal, segments
from clickclock.attribution.lake import RECEIPTS, Lake
from clickclock.foundation.clock import ManualClock
from tests import shop
from tests.credited import attributor, click, duckdb
from tests.credited import rows as rows_of
from tests.kept import keep
from tests.traces import traces

PEOPLE = 30
VICTIM = 7
SECRET = b"secret" * 6


class Shop:
    """A data folder, its lake, and an eraser."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.journals = folder / "journal"
        self.lake = Lake(folder / "lake")
        self.docket = Docket(folder / "erasure.json")
        self.clock = ManualClock(shop.epoch(shop.NOW_MS))
        self.compactor = Compactor(self.journals, self.lake, self.clock, processes=1)
        files = ExportFiles(folder / "exports")
        self.eraser = Eraser(
            self.journals, self.lake, files, self.docket, self.clock, self.compactor.step, Policies(), SECRET
        )

    async def keep(self, lines: list[bytes], slot: str = "0") -> None:
        await keep(self.journals / slot, lines)
        await self.compactor.step()

    async def erase(self, kind: str, value: str, *, with_person: bool = False) -> Receipt:
        self.docket.write(shop.asked(Identifier(kind, value), with_person=with_person))
        done = await self.eraser.step()
        assert isinstance(done, Receipt)
        return done

    def rows(self, table: str) -> list[dict[str, Any]]:
        return [row for batch in self.lake.scan(table) for row in batch.to_pylist()]

    def everything(self) -> dict[str, list[str]]:
        """Every row of every table, as text."""
        names = (
            "clicks",
            "orders",
            "rejections",
            "events",
            "touches",
            "identities",
            "unconverted",
            "credits",
            "folded",
            "uploads",
        )
        return {name: sorted(map(repr, self.rows(name))) for name in names}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with everybody in it."""
    folder = tmp_path_factory.mktemp("original")
    asyncio.run(_fill(Shop(folder)))
    shop.export(folder / "exports", PEOPLE)
    return folder


async def _fill(made: Shop) -> None:
    for first in range(0, PEOPLE, 10):  # files of several commits, and old ones that were merged
        await made.keep([line for person in range(first, first + 10) for line in shop.entries(person)])
    shop.derive(made.lake, PEOPLE)


@pytest.fixture
def ours(original: Path, tmp_path: Path) -> Shop:
    """A copy of it."""
    return Shop(shutil.copytree(original, tmp_path, dirs_exist_ok=True))


def says(person: int) -> list[bytes]:
    codes = [code(shop.CLIENT, "cli_ubid", shop.browser(person)), code(shop.CLIENT, "device_id", shop.device(person))]
    plain = [shop.browser(person), shop.device(person), shop.order(person), shop.gclid(person)]
    return (
        [each.encode() for each in plain]
        + [str(each).encode() for each in codes]
        + [each.to_bytes(8, "little", signed=True) for each in codes]
    )


def of(person: int, rows: list[str]) -> list[str]:
    needles = (
        *(each.decode() for each in says(person)[:6]),
        shop.device(person).upper(),
        shop.entry_id(person, 4),
        shop.entry_id(person, 6),
    )
    return [row for row in rows if any(needle in row for needle in needles)]


async def test_a_person_goes_with_all_that_was_derived_and_everybody_else_stays_as_they_were(ours: Shop) -> None:
    before = ours.everything()
    exported = {path.name: path.read_bytes() for path in (ours.folder / "exports").iterdir()}
    assert traces(ours.folder, says(VICTIM)[0])
    receipt = await ours.erase("cli_ubid", shop.browser(VICTIM), with_person=True)
    assert traces(ours.folder, *says(VICTIM)) == []
    after = ours.everything()
    for table, rows in before.items():
        assert after[table] == [row for row in rows if row not in of(VICTIM, rows)], table
        assert receipt.rows[table] == len(rows) - len(after[table]), table
    assert receipt.rows["exports"] == 2
    google = (ours.folder / "exports" / shop.GOOGLE_FILE).read_bytes().splitlines()
    assert google == [
        line for line in exported[shop.GOOGLE_FILE].splitlines() if shop.gclid(VICTIM).encode() not in line
    ]
    events = json.loads((ours.folder / "exports" / shop.META_FILE).read_bytes())["data"]
    assert events == [
        each
        for each in json.loads(exported[shop.META_FILE])["data"]
        if each["custom_data"]["order_id"] != shop.order(VICTIM)
    ]


async def test_the_log_says_nothing_more_of_an_order_that_was_the_least_of_its_file(ours: Shop) -> None:
    assert [path for path in traces(ours.folder, shop.order(0).encode()) if "credits/_delta_log" in str(path)]
    await ours.erase("cli_ubid", shop.browser(0))
    assert traces(ours.folder, shop.order(0).encode()) == []


async def test_one_identifier_goes_and_the_others_of_the_person_stay(ours: Shop) -> None:
    receipt = await ours.erase("cli_ubid", shop.browser(VICTIM))
    assert traces(ours.folder, *says(VICTIM)[:1], *says(VICTIM)[4:5]) == []
    left = [row for row in ours.rows("clicks") if row["device_id"] == shop.device(VICTIM)]
    assert [row["id"] for row in left] == [shop.entry_id(VICTIM, 1)]
    assert (receipt.rows["clicks"], receipt.rows["orders"], len(receipt.identifiers)) == (2, 2, 1)


async def test_a_device_is_the_same_in_either_case_and_whichever_field_brings_it(ours: Shop) -> None:
    receipt = await ours.erase("idfa", shop.device(VICTIM).upper(), with_person=True)
    assert [each.kind for each in receipt.identifiers] == ["idfa", "cli_ubid"]
    assert traces(ours.folder, shop.device(VICTIM).encode()) == []
    assert len(ours.rows("clicks")) == 3 * PEOPLE - 3


async def test_an_order_goes_with_every_message_about_it(ours: Shop) -> None:
    receipt = await ours.erase("order_id", shop.order(VICTIM))
    assert traces(ours.folder, shop.order(VICTIM).encode()) == []
    assert (receipt.rows["orders"], receipt.rows["clicks"], receipt.rows["credits"]) == (2, 0, 2)


async def test_who_has_the_same_identifier_at_another_client_stays(ours: Shop) -> None:
    theirs = [line.replace(shop.CLIENT.encode(), b"other-1") for line in shop.entries(VICTIM)]
    await ours.keep([line.replace(b"\t000", b"\tfff", 1) for line in theirs])
    before = len(ours.rows("clicks"))
    await ours.erase("cli_ubid", shop.browser(VICTIM), with_person=True)
    assert len(ours.rows("clicks")) == before - 3
    assert {row["client_id"] for row in ours.rows("orders") if row["cli_ubid"] == shop.browser(VICTIM)} == {"other-1"}


async def test_the_results_stay_readable_as_a_version_of_their_own(ours: Shop) -> None:
    await ours.erase("cli_ubid", shop.browser(VICTIM), with_person=True)
    first, last = ours.lake.results()
    assert (first.version, last.version, last.changed) == (1, 2, 1)
    assert (last.orders, last.credited, last.touchpoints) == (PEOPLE - 1, PEOPLE - 1, 2 * PEOPLE - 2)
    read = [row for batch in ours.lake.scan("credits", version=last.credits_version) for row in batch.to_pylist()]
    assert len(read) == 2 * PEOPLE - 2


@pytest.mark.parametrize("with_person", [False, True])
async def test_what_is_left_can_be_reported_and_proven_at_once(tmp_path: Path, with_person: bool) -> None:
    ours = Shop(tmp_path)
    await ours.keep([line for person in range(9) for line in shop.entries(person)])
    await attributor(ours.lake, tmp_path).step()
    await ours.erase("cli_ubid", shop.browser(VICTIM), with_person=with_person)
    first, last = ours.lake.results()
    assert (first.kind, last.kind) == ("full", "erasure")
    clicks = sum(row["cli_ubid"] != shop.browser(VICTIM) for row in ours.rows("clicks"))
    for name in ("clicks", "touches"):
        assert sum(batch.num_rows for batch in ours.lake.scan(name, version=last.reads(name))) == clicks, name
    for name in ("orders", "credits", "identities", "unconverted", "ads", "fitted", "folded"):
        assert [*ours.lake.scan(name, version=last.reads(name))], name


async def test_a_version_of_a_run_between_an_interruption_and_its_end_is_followed_by_one_that_can_be_read(
    tmp_path: Path,
) -> None:
    ours = Shop(tmp_path)
    await ours.keep([line for person in range(9) for line in shop.entries(person)])
    asked = shop.asked(Identifier("cli_ubid", shop.browser(VICTIM)))
    ours.docket.write(msgspec.structs.replace(asked, result=0))  # it died when there was no version yet
    await attributor(ours.lake, tmp_path).step()
    assert isinstance(await ours.eraser.step(), Receipt)
    last = ours.lake.results()[-1]
    assert (last.version, last.kind) == (2, "erasure")
    assert [*ours.lake.scan("credits", version=last.reads("credits"))]


class Disturbing(Docket):
    """A docket beside which another machine merges the files of orders, once it is known how many rows go from them."""

    def __init__(self, path: Path, lake: Lake) -> None:
        super().__init__(path)
        self._lake: Lake | None = lake

    def write(self, erasure: Erasure) -> None:
        super().write(erasure)
        if self._lake is not None and erasure.rows.get("orders"):
            orders, self._lake = self._lake.table("orders"), None
            assert orders is not None
            orders.optimize.compact()


async def test_who_is_overtaken_by_another_machine_looks_again_and_counts_every_row_once(
    original: Path, tmp_path: Path
) -> None:
    receipts = []
    for name in ("alone", "disturbed"):
        ours = Shop(shutil.copytree(original, tmp_path / name))
        if name == "disturbed":
            docket = Disturbing(ours.docket.path, ours.lake)
            files = ExportFiles(ours.folder / "exports")
            given = (docket, ours.clock, ours.compactor.step, Policies(), SECRET)
            ours.eraser = Eraser(ours.journals, ours.lake, files, *given)
        receipts.append(await ours.erase("cli_ubid", shop.browser(VICTIM), with_person=True))
    assert receipts[0].rows == receipts[1].rows


class Planting(Docket):
    """A docket beside which another machine brings something back, when all but the last export is done."""

    def __init__(self, path: Path, plant: Callable[[], object]) -> None:
        super().__init__(path)
        self._plant: Callable[[], object] | None = plant

    def write(self, erasure: Erasure) -> None:
        super().write(erasure)
        if self._plant is not None and erasure.rows.get("exports") == 2:
            plant, self._plant = self._plant, None
            plant()


@pytest.mark.parametrize("place", ["lake", "journal", "exports"])
async def test_an_identifier_that_came_back_is_found_before_the_receipt_is_written(
    ours: Shop, tmp_path_factory: pytest.TempPathFactory, place: str
) -> None:
    aside = tmp_path_factory.mktemp("aside")
    clicks, export = ours.folder / "lake" / "clicks", ours.folder / "exports" / shop.GOOGLE_FILE
    shutil.copytree(clicks, aside / "clicks", ignore=shutil.ignore_patterns("_delta_log"))
    shutil.copy(export, aside / "export")
    await keep(aside / "0", shop.entries(VICTIM))
    plants: dict[str, Callable[[], object]] = {
        "lake": lambda: shutil.copytree(aside / "clicks", clicks, dirs_exist_ok=True),
        "journal": lambda: shutil.copytree(aside / "0", ours.journals / "2"),
        "exports": lambda: shutil.copy(aside / "export", export),
    }
    ours.docket = Planting(ours.docket.path, plants[place])
    files = ExportFiles(ours.folder / "exports")
    ours.eraser = Eraser(
        *(ours.journals, ours.lake, files, ours.docket, ours.clock, ours.compactor.step, Policies(), SECRET)
    )
    with pytest.raises(ErasureUnfinished, match="It is still in"):
        await ours.erase("cli_ubid", shop.browser(VICTIM), with_person=True)
    assert ours.rows(RECEIPTS.name) == []
    assert ours.docket.read() is not None
    assert isinstance(await ours.eraser.step(), Receipt)
    assert traces(ours.folder, *says(VICTIM)) == []


async def test_a_click_that_earned_nothing_leaves_the_results_too(tmp_path: Path) -> None:
    ours = Shop(tmp_path)
    await ours.keep([line for person in range(9) for line in shop.entries(person)])
    await ours.keep([shop.entries(90)[0]], slot="1")
    await attributor(ours.lake, tmp_path).step()
    await ours.erase("cli_ubid", shop.browser(90))
    last = ours.lake.results()[-1]
    assert [*ours.lake.scan("touches", version=last.reads("touches"))]


async def test_asked_again_it_finds_nothing_and_says_so(ours: Shop) -> None:
    await ours.erase("cli_ubid", shop.browser(VICTIM))
    versions = {name: ours.lake.table(name).version() for name in ours.everything()}  # type: ignore[union-attr]
    ours.docket.write(shop.asked(Identifier("cli_ubid", shop.browser(VICTIM))))
    again = await ours.eraser.step()
    assert isinstance(again, Receipt)
    assert {name: ours.lake.table(name).version() for name in versions} == versions  # type: ignore[union-attr]
    assert await ours.eraser.step() is None


async def test_the_receipt_is_in_the_lake_once_and_proves_what_it_does_not_say(ours: Shop) -> None:
    receipt = await ours.erase("cli_ubid", shop.browser(VICTIM))
    (kept,) = ours.rows(RECEIPTS.name)
    assert (kept["id"], kept["kind"], kept["client_id"]) == ("e" * 32, "erasure", shop.CLIENT)
    assert msgspec.json.decode(kept["receipt"], type=Receipt) == receipt
    assert receipt.reason == "asked by letter"
    assert receipt.identifiers[0].digest == Identifier("cli_ubid", shop.browser(VICTIM)).digest(shop.CLIENT, SECRET)
    assert receipt.verified_files > 4
    assert not ours.docket.path.exists()


async def test_a_segment_that_is_written_is_waited_for_and_nothing_is_touched_before(ours: Shop) -> None:
    journal = await Journal.open(ours.journals / "1")
    told: list[Exception | None] = []
    journal.append(shop.entries(VICTIM)[0].replace(b"0000000000", b"1111111111", 1), told.append)
    await journal.probe()
    assert told == [None]
    ours.docket.write(shop.asked(Identifier("cli_ubid", shop.browser(VICTIM))))
    before = ours.everything()
    assert await ours.eraser.step() == Waiting((segments(ours.journals / "1")[0].path,))
    assert ours.everything() == before
    await journal.close()
    assert isinstance(await ours.eraser.step(), Receipt)
    assert traces(ours.folder, shop.browser(VICTIM).encode()) == []


async def test_what_comes_after_it_was_asked_is_new_and_is_not_waited_for(ours: Shop) -> None:
    journal = await Journal.open(ours.journals / "1")
    late = shop.entries(VICTIM)[0].split(b"\t")
    late[2] = b"%d" % (shop.NOW_MS + 1)
    journal.append(b"\t".join(late), lambda _: None)
    await journal.probe()
    assert isinstance(await ours.erase("cli_ubid", shop.browser(VICTIM)), Receipt)
    await journal.close()
    await ours.compactor.step()
    assert len([row for row in ours.rows("clicks") if row["cli_ubid"] == shop.browser(VICTIM)]) == 1


async def test_a_damaged_segment_that_holds_it_is_named_and_there_is_no_receipt(ours: Shop) -> None:
    await keep(ours.journals / "1", shop.entries(VICTIM))
    damaged = segments(ours.journals / "1")[0].path
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:4200] + b"\0" + whole[4201:])
    with pytest.raises(JournalDamaged, match=damaged.name):
        await ours.erase("cli_ubid", shop.browser(VICTIM))
    assert ours.rows(RECEIPTS.name) == []
    assert ours.docket.read() is not None


async def test_files_that_were_merged_and_those_that_nobody_committed_are_found_too(ours: Shop) -> None:
    for first in range(10):
        await ours.keep(shop.entries(100 + first), slot="1")
    ours.lake.tidy(history_hours=1000)
    there = next((ours.folder / "lake" / "clicks").rglob("*.parquet"))
    (there.parent / "part-of-a-crash.zstd.parquet").write_bytes(there.read_bytes())
    (there.parent / "part-torn.zstd.parquet").write_bytes(there.read_bytes()[:500])
    await ours.erase("cli_ubid", shop.browser(103), with_person=True)
    assert traces(ours.folder, *says(103)) == []
    assert not (there.parent / "part-torn.zstd.parquet").exists()
    assert len(ours.rows("clicks")) == 3 * (PEOPLE + 10) - 3


async def test_an_identifier_that_could_be_anybodys_number_is_known_by_its_name_alone(ours: Shop) -> None:
    def click(user: str, seller: str, number: int) -> bytes:
        line = shop.entries(200 + number)[0].split(b"\t")
        line[7] = (
            f"client_id={shop.CLIENT}&cli_ubid={user}&seller_id={seller}&asvt=v&atag=t&event_time=1800000000000\n".encode()
        )
        return b"\t".join(line)

    await ours.keep([click("1001", "5", 0), click("5", "1001", 1), click("10012", "1001", 2)], slot="1")
    receipt = await ours.erase("cli_ubid", "1001")
    assert receipt.rows["clicks"] == 1
    assert {row["cli_ubid"] for row in ours.rows("clicks") if row["seller_id"] == "1001"} == {"5", "10012"}


@pytest.mark.parametrize("with_person", [False, True])
async def test_the_next_run_credits_as_if_it_had_never_been_there(tmp_path: Path, with_person: bool) -> None:
    lines = [line for person in range(9) for line in shop.entries(person)]
    ours, theirs = Shop(tmp_path / "ours"), Shop(tmp_path / "theirs")
    await ours.keep(lines)
    await attributor(ours.lake, tmp_path).step()
    await ours.erase("cli_ubid", shop.browser(VICTIM), with_person=with_person)
    gone = {0, 2, 3, 4, 5, 6} | ({1} if with_person else set())
    await theirs.keep(
        [line for nth, line in enumerate(lines) if (nth // 7, nth % 7) not in {(VICTIM, each) for each in gone}]
    )
    versions = [(await attributor(each.lake, tmp_path).step()).result for each in (ours, theirs)]
    assert versions[0] is not None
    assert versions[1] is not None
    assert (versions[0].version, versions[0].kind) == (3, "full"), versions[0].why
    for table in ("credits", "identities", "unconverted", "folded"):
        assert rows_of(ours.lake, versions[0], table).equals(rows_of(theirs.lake, versions[1], table)), table
    assert traces(tmp_path / "ours", *says(VICTIM)[: None if with_person else 1]) == []


async def test_a_run_that_died_after_it_had_taken_clicks_in_keeps_no_later_one_from_their_ads(tmp_path: Path) -> None:
    ours = Shop(tmp_path)
    await ours.keep([line for person in range(9) for line in shop.entries(person)])
    await attributor(ours.lake, tmp_path).step()
    await ours.keep([click(900, shop.NOW_MS, client_id=shop.CLIENT, atag="new", cli_ubid="visitor-of-a-new-ad")])
    with closing(duckdb(tmp_path, ours.lake)) as engine:
        take_in(ours.lake, engine, Policies(), shop.NOW_MS)
    await ours.erase("cli_ubid", shop.browser(VICTIM))
    result = (await attributor(ours.lake, tmp_path).step()).result
    assert result is not None
    assert "new" in {
        row["atag"] for batch in ours.lake.scan("ads", version=result.ads_version) for row in batch.to_pylist()
    }


async def test_views_go_with_whoever_saw_the_ad(tmp_path: Path) -> None:
    ours = Shop(tmp_path / "ours")
    await ours.keep([line for person in range(9) for line in (*shop.entries(person), shop.view(person))])
    await attributor(ours.lake, tmp_path).step()
    assert len(ours.rows("view_touches")) == len(ours.rows("views")) == 9
    receipt = await ours.erase("cli_ubid", shop.browser(VICTIM))
    assert (receipt.rows["views"], receipt.rows["view_touches"]) == (1, 1)
    result = (await attributor(ours.lake, tmp_path).step()).result
    assert result is not None
    assert len(ours.rows("view_touches")) == len(ours.rows("views")) == 8
    assert traces(tmp_path / "ours", *says(VICTIM)[:1]) == []


async def test_a_file_of_another_client_or_of_somebody_else_is_left_alone(ours: Shop) -> None:
    mine = (ours.folder / "exports" / shop.GOOGLE_FILE).read_bytes()
    others = [shop.GOOGLE_FILE.replace("shop-1", "shop-1-x"), shop.GOOGLE_FILE.replace("shop-1", "shop"), "notes.txt"]
    for name in others:
        (ours.folder / "exports" / name).write_bytes(mine)
    (ours.folder / "exports" / f".{shop.GOOGLE_FILE}.new").write_bytes(mine)
    receipt = await ours.erase("order_id", shop.order(VICTIM))
    assert receipt.rows["exports"] == 3, "two of Google, of which one is hidden, and one of Meta"
    assert all((ours.folder / "exports" / name).read_bytes() == mine for name in others)

"""The importer with a real journal and a real lake: nothing twice, nothing lost, nothing half-done."""

import asyncio
import fcntl
import json
import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from clickclock.app.importing import replay_rejections
from clickclock.attribution.agents.compactor import Compactor
from clickclock.attribution.agents.importer import Importer, Way, Which
from clickclock.attribution.clicks.account import Account, Accounts, Profile
from clickclock.attribution.clicks.entry import EntryKind, connection, encode
from clickclock.attribution.errors import JournalDamaged, JournalTaken
from clickclock.attribution.files.archive import Archive, Format, format_of
from clickclock.attribution.files.import_journal import ImportJournal
from clickclock.attribution.files.order_tokens import OrderToken, write_order_tokens
from clickclock.attribution.importing.faulty_row import SHOWN_MAX
from clickclock.attribution.importing.historical import id_of
from clickclock.attribution.journal import Journal, salvage, segments
from clickclock.attribution.lake import CLICKS, EVENTS, ORDERS, REJECTIONS, VIEWS, Lake
from clickclock.attribution.orders.amendment import Amendment
from clickclock.attribution.orders.amendment import judge as judge_order
from clickclock.attribution.registering.import_report import Report
from clickclock.foundation.clock import ManualClock
from clickclock.foundation.config import load
from clickclock.foundation.errors import Malformed

NOW = datetime(2026, 11, 20, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
A_DAY_MS = 86_400_000
HEADER = "client_id,seller_id,asvt,atag,cli_ubid,event_time,received_at"
OBSERVED = Accounts(default_profile=Profile.OBSERVED)
ORDER = b'{"client_id":"c","order_id":"7","cli_ubid":"u","event_time":1790000000000,"amount":"9.99","currency":"EUR"}'
SALE = (
    b"event_name=funnel_salecomplete&client_id=c&item_identifier=8&cli_ubid=u&event_time=1790000000000"
    b"&sales=9.99&currency=EUR"
)


def row(number: int, received: object = None, **changes: str) -> str:
    """A line of CSV; click `number` happened a day before now and `number` seconds."""
    at_ms = NOW_MS - A_DAY_MS + number * 1000
    values = {"client_id": "c", "seller_id": "s", "asvt": "v", "atag": "a", "cli_ubid": f"u-{number}"}
    values |= {"event_time": str(at_ms), "received_at": str(at_ms + 500 if received is None else received)} | changes
    return ",".join(values[name] for name in HEADER.split(","))


class World:
    """One data folder."""

    def __init__(self, folder: Path, clock: ManualClock) -> None:
        self.folder = folder
        self.journals = folder / "journal"
        self.lake = Lake(folder / "lake")
        self.clock = clock

    def importer(self, accounts: Accounts | None = None) -> Importer:
        journal = ImportJournal(self.journals / "import", self.lake, self.clock, 2**20)
        return Importer(journal, self.lake, accounts or Accounts(), self.clock)

    def archive(self, name: str, lines: Iterable[str]) -> Archive:
        path = self.folder / name
        path.write_text("\n".join(lines) + "\n")
        return Archive(path, format_of(path) or Format.LOG)

    def csv(self, name: str, *rows: str) -> Archive:
        return self.archive(name, [HEADER, *rows])

    async def load(self, *archives: Archive, accounts: Accounts | None = None, **options: Any) -> Report:
        return await self.importer(accounts).import_clicks(archives, Way(**options))

    async def replay(self, accounts: Accounts | None = None, which: Which | None = None, **options: bool) -> Report:
        return await self.importer(accounts).replay(which or Which(), **options)

    async def compact(self) -> None:
        done = await Compactor(self.journals, self.lake, self.clock, processes=1).step()
        assert done.is_clean

    async def collected(self, *drafts: tuple[str, bytes, bytes]) -> None:
        """Rejections as a collector writes them, an hour apart, in the lake."""
        journal = await Journal.open(self.journals / "0", clock=self.clock)
        origin = connection("0123456789abcdef", b"agent", b"https://s/")
        for number, (entry_id, detail, raw) in enumerate(drafts):
            received_ms = NOW_MS - A_DAY_MS + number * 3_600_000
            line = encode(EntryKind.REJECTION, entry_id, received_ms, origin, detail, raw)
            journal.append(line, lambda error: None)
        await journal.close()
        await self.compact()

    def rows(self, table: str = CLICKS.name) -> list[dict[str, Any]]:
        found = [each for batch in self.lake.scan(table) for each in batch.to_pylist()]
        return sorted(found, key=lambda each: str(each["id"]))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, ManualClock(NOW))


def detail(was: str, code: str = "missing", kind: str = "invalid", field: str = "") -> bytes:
    return (
        f'{{"was":"{was}","kind":"{kind}","faults":[{{"field":"{field}","message":"No.","code":"{code}"}}]}}'.encode()
    )


async def test_clicks_keep_their_times_and_get_ids_that_do_not_depend_on_the_import(world: World) -> None:
    report = await world.load(world.csv("a.csv", row(1), row(2, received="")))
    assert (report.rows, report.accepted, dict(report.kept), report.known) == (2, 2, {"clicks": 2}, 0)
    await world.compact()
    first, second = world.rows()
    at = NOW - timedelta(days=1, seconds=-1)
    assert (first["received_at"], first["event_time"]) == (at + timedelta(milliseconds=500), at)
    # Nobody wrote down when the second one came, so it came when it happened.
    assert second["received_at"] == second["event_time"] == at + timedelta(seconds=1)
    assert (first["flags"], first["cli_ubid"], first["journal"]) == ([], "u-1", world_journal(world))
    queries = [
        b"client_id=c&seller_id=s&asvt=v&atag=a&cli_ubid=u-%d&event_time=%d" % (n, NOW_MS - A_DAY_MS + n * 1000)
        for n in (1, 2)
    ]
    assert first["id"] == id_of(NOW_MS - A_DAY_MS + 1500, queries[0], 0)
    assert second["id"] == id_of(NOW_MS - A_DAY_MS + 2000, queries[1], 0)


def world_journal(world: World) -> str:
    return (world.journals / "import" / "id").read_text().strip().replace("-", "")


@pytest.mark.parametrize("compacted", [False, True])
async def test_the_same_file_twice_is_the_same_clicks_once(compacted: bool, world: World) -> None:
    archive = world.csv("a.csv", row(1), row(1), row(2, received=""), row(3, atag=""))
    report = await world.load(archive)
    assert (dict(report.kept), report.known) == ({"clicks": 3, "rejections": 1}, 0)
    if compacted:
        await world.compact()
    world.clock.advance(3600)
    again = await world.load(archive)
    assert (dict(again.kept), again.known) == ({}, 4)
    await world.compact()
    assert (len(world.rows()), len(world.rows(REJECTIONS.name))) == (3, 1)


async def test_a_click_that_says_no_time_at_all_is_known_again(world: World) -> None:
    archive = world.csv("a.csv", row(1, received="", event_time=""))
    assert dict((await world.load(archive, accounts=OBSERVED)).kept) == {"clicks": 1}
    await world.compact()
    (click,) = world.rows()
    assert (click["received_at"], click["event_time"], click["flags"]) == (NOW, NOW, ["eventTimeAbsent"])
    world.clock.advance(3600)
    again = await world.load(archive, accounts=OBSERVED)
    await world.compact()
    assert (dict(again.kept), again.known, len(world.rows())) == ({}, 1, 1)


async def test_a_click_of_a_clock_that_is_ahead_is_known_again(world: World) -> None:
    ahead_ms = NOW_MS + 60_000
    archive = world.csv("a.csv", row(1, received="", event_time=f"{ahead_ms}"), row(2, received=ahead_ms))
    assert (await world.load(archive)).kept["clicks"] == 2
    await world.compact()
    assert {each["received_at"] for each in world.rows()} == {NOW, NOW + timedelta(minutes=1)}
    world.clock.advance(3600)
    assert (await world.load(archive)).known == 2


async def test_files_that_overlap_give_each_click_once_in_whatever_commands_they_come(world: World) -> None:
    monday, tuesday = world.csv("1.csv", row(1), row(2), row(2)), world.csv("2.csv", row(2), row(3))
    together = await world.load(monday, tuesday, monday)
    assert (dict(together.kept), together.known) == ({"clicks": 4}, 4)
    assert (await world.load(tuesday)).known == 2


async def test_what_is_half_there_after_a_crash_is_completed(world: World) -> None:
    rows = [row(number) for number in range(30)]
    await world.load(world.csv("some.csv", *rows[:10]))
    await world.compact()
    await world.load(world.csv("more.csv", *rows[:17]))
    report = await world.load(world.csv("all.csv", *rows))
    assert (report.kept["clicks"], report.known) == (13, 17)
    await world.compact()
    assert len({each["id"] for each in world.rows()}) == len(world.rows()) == 30


async def test_a_damaged_journal_is_told_with_what_brings_it_back_and_what_it_lost_is_imported_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clickclock.attribution.files.import_journal.BATCH_ENTRIES_MAX", 4)
    rows = [row(number) for number in range(30)]
    await world.load(world.csv("some.csv", *rows[:10]))
    await world.load(world.csv("more.csv", *rows[:20]))
    first, _ = segments(world.journals / "import")
    damaged = bytearray(first.path.read_bytes())
    damaged[damaged.index(b"u-5")] ^= 1
    first.path.write_bytes(damaged)
    whole = world.csv("all.csv", *rows)
    with pytest.raises(JournalDamaged, match=f"{first.path} is damaged at offset .* clickclock journal salvage"):
        await world.load(whole)
    assert salvage(first) is not None
    report = await world.load(whole)
    assert (report.kept["clicks"], report.known) == (14, 16)
    await world.compact()
    assert len({each["id"] for each in world.rows()}) == len(world.rows()) == 30


async def test_nothing_is_imported_while_a_row_is_unreadable_unless_such_are_left_out(world: World) -> None:
    bad = world.csv("bad.csv", *[row(0) + ",more" for _ in range(SHOWN_MAX + 5)], row(1), row(2, received="soon"))
    good = world.csv("good.csv", row(3))
    report = await world.load(good, bad)
    assert (report.is_refused, report.unreadable, report.accepted, dict(report.kept)) == (True, 26, 2, {})
    assert len(report.unreadable_rows) == SHOWN_MAX
    assert report.unreadable_rows[0] == (str(bad.path), 2, "its values are not as many as the header's names: 8, not 7")
    assert not world.journals.exists()
    skipped = await world.load(good, bad, skip_unreadable=True)
    assert (skipped.is_refused, skipped.kept["clicks"]) == (False, 2)


async def test_a_receipt_in_the_future_is_unreadable(world: World) -> None:
    report = await world.load(world.csv("a.csv", row(1, received=NOW_MS + A_DAY_MS)))
    assert [each.message for each in report.unreadable_rows] == [
        "received_at is in the future; look at its unit and its zone"
    ]


async def test_a_dry_run_counts_and_keeps_nothing(world: World) -> None:
    report = await world.load(world.csv("a.csv", row(1), row(2, atag="", asvt="null")), dry_run=True)
    assert (report.accepted, report.refused) == (1, 1)
    assert report.reasons == {("missing", "atag"): 1, ("missing", "asvt"): 1}
    assert not world.journals.exists()


async def test_a_refused_row_is_told_with_the_names_of_its_parameters(world: World) -> None:
    report = await world.load(world.csv("a.csv", row(1, atag="", asvt="a\0b")))
    (refused,) = report.refused_rows
    assert refused.message == (
        "asvt: There is a NUL character; leave it out. atag is required; send it as it was received."
    )


async def test_what_is_refused_is_kept_with_every_fault_and_becomes_a_click_once_it_is_accepted(world: World) -> None:
    archive = world.csv("a.csv", row(1, atag="", asvt=""))
    report = await world.load(archive)
    assert dict(report.kept) == {"rejections": 1}
    await world.compact()
    (rejection,) = world.rows(REJECTIONS.name)
    assert [fault["field"] for fault in rejection["faults"]] == ["asvt", "atag"]
    assert dict((await world.load(archive, accounts=OBSERVED)).kept) == {"clicks": 1}
    # Both ways: once it is a click, it is no rejection again.
    assert (await world.load(archive)).known == 1
    await world.compact()
    assert [each["id"] for each in world.rows()] == [rejection["id"]]
    assert len(world.rows(REJECTIONS.name)) == 1


async def test_lines_of_a_log_bring_their_browser_along_and_other_requests_are_passed_over(world: World) -> None:
    query = f"client_id=c&seller_id=s&asvt=v&atag=a&cli_ubid=u&event_time={NOW_MS - A_DAY_MS}"
    log = world.archive(
        "access.log",
        [
            f'1.2.3.4 - - [19/Nov/2026:00:00:02 +0000] "GET /aclick?{query} HTTP/1.1" 502 0 "https://s/" "phone"',
            '1.2.3.4 - - [19/Nov/2026:00:00:03 +0000] "GET /healthz HTTP/1.1" 200 2 "-" "probe"',
            f"https://clicks.example/aclick?{query}",
        ],
    )
    report = await world.load(log)
    assert (report.rows, report.others, report.kept["clicks"]) == (3, 1, 2)
    await world.compact()
    by_agent = {each["user_agent"]: each for each in world.rows()}
    assert by_agent["phone"]["referer"] == "https://s/"
    assert by_agent["phone"]["received_at"] == NOW - timedelta(days=1, seconds=-2)
    assert by_agent[None]["received_at"] == NOW - timedelta(days=1)


async def test_views_in_a_log_become_views_and_a_second_import_changes_nothing(world: World) -> None:
    query = f"client_id=c&seller_id=s&asvt=v&atag=a&cli_ubid=u&event_time={NOW_MS - A_DAY_MS}"
    paths = (f"/aclick?{query}", f"/aview?{query}", f"/aview?{query}", "/aview?client_id=c", f"/review?{query}")
    log = world.archive("access.log", [f"https://clicks.example{path}" for path in paths])
    report = await world.load(log)
    assert (report.others, report.kept) == (1, {"clicks": 1, "views": 2, "rejections": 1})
    await world.compact()
    assert len(world.rows()) == 1
    assert len({each["id"] for each in world.rows(VIEWS.name)}) == 2
    assert [each["what"] for each in world.rows(REJECTIONS.name)] == ["view"]
    assert (await world.load(log)).known == 4
    odd = world.archive("odd.log", [f"/aview?{query.replace('&atag=a', '')}"])
    assert (await world.load(odd, accounts=OBSERVED)).kept == {"views": 1}
    await world.compact()
    assert (await world.load(odd)).known == 1


async def test_only_one_import_runs_at_a_time(world: World) -> None:
    folder = world.journals / "import"
    folder.mkdir(parents=True)
    fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        with pytest.raises(JournalTaken, match="Another import"):
            await world.load(world.csv("a.csv", row(1)))
        assert (await world.load(world.csv("a.csv", row(1)), dry_run=True)).accepted == 1
    finally:
        os.close(fd)


async def test_a_file_that_changes_meanwhile_is_refused(world: World) -> None:
    archive = world.csv("a.csv", row(1))
    before = archive.version()

    class Grows(Archive, frozen=True):
        def version(self) -> tuple[int, ...]:
            with self.path.open("a") as file:
                file.write(row(2) + "\n")
            return super().version()

    with pytest.raises(Malformed, match="changed while it was read"):
        await world.load(Grows(archive.path, archive.form))
    assert archive.version() != before


async def test_rejections_that_are_accepted_now_keep_their_id_their_time_and_their_origin(world: World) -> None:
    query = b"client_id=c&seller_id=s&cli_ubid=u&event_time=%d" % (NOW_MS - A_DAY_MS)
    await world.collected(
        ("1" * 32, detail("click"), query),
        ("2" * 32, detail("order", "unknownClient", "unknownClient"), ORDER),
        ("3" * 32, detail("appsflyer", "unknownClient", "unknownClient"), SALE),
        ("4" * 32, detail("appsflyer", "unknownClient", "unknownClient"), b"event_name=viewproduct&client_id=c"),
        ("5" * 32, detail("click"), b"client_id=c"),
        ("6" * 32, detail("order", "unauthorized", "unauthorized"), ORDER),
    )
    dry = await world.replay(OBSERVED, dry_run=True)
    report = await world.replay(OBSERVED)
    assert (report.rows, report.accepted, report.refused, report.left_alone) == (6, 4, 1, 1)
    assert dict(report.kept) == dict(dry.kept) == {"clicks": 1, "orders": 2, "events": 1}
    assert report.reasons == {("missing", "seller_id"): 1, ("missing", "cli_ubid"): 1}
    assert dict((await world.replay(OBSERVED)).kept) == {}
    await world.compact()
    again = await world.replay(OBSERVED)
    assert (dict(again.kept), again.known) == ({}, 4)
    await world.compact()
    (click,) = world.rows()
    assert (click["id"], click["received_at"]) == ("1" * 32, NOW - timedelta(days=1))
    assert (click["address"], click["user_agent"], click["referer"]) == ("0123456789abcdef", "agent", "https://s/")
    assert click["flags"] == ["asvtAbsent", "atagAbsent"]
    order, sale = world.rows(ORDERS.name)
    assert (order["id"], order["order_id"], order["call"]) == ("2" * 32, "7", None)
    assert order["received_at"] == NOW - timedelta(hours=23)
    assert (sale["id"], sale["order_id"], sale["amount_minor"], sale["call"]) == ("3" * 32, "8", 999, SALE)
    assert isinstance(judge_order(sale["raw"], 0), Amendment)
    assert [each["name"] for each in world.rows(EVENTS.name)] == ["viewproduct"]


async def test_an_order_that_was_never_asked_for_its_token_is_left_alone(world: World) -> None:
    guarded = Accounts([Account(client_id="c", orders_token_sha256=sha256(b"token").hexdigest())])
    await world.collected(
        ("1" * 32, detail("order", "unknownClient", "unknownClient"), ORDER),
        ("2" * 32, detail("order", "badAmount"), ORDER),
    )
    report = await world.replay(guarded)
    assert (report.left_alone, report.kept["orders"]) == (1, 1)


@pytest.mark.parametrize(
    ("settings", "tokens", "left_alone"),
    [
        ({}, {}, 0),
        ({}, {"other": []}, 0),
        ({}, {"c": []}, 1),
        ({"click_host": "192.0.2.1", "authentication": "tokens"}, {}, 1),
    ],
)
async def test_a_replay_asks_for_tokens_as_the_collectors_do(
    world: World, settings: dict[str, str], tokens: dict[str, list[OrderToken]], left_alone: int
) -> None:
    await world.collected(("1" * 32, detail("order", "unknownClient", "unknownClient"), ORDER))
    write_order_tokens(world.folder / "order-tokens.json", tokens)
    config = load(None, {}, {"data_dir": str(world.folder), **settings})
    report = await asyncio.to_thread(replay_rejections, config, Which(), dry_run=True)
    assert (report.left_alone, report.rows) == (left_alone, 1)


@pytest.mark.parametrize(
    ("which", "found"),
    [
        (Which(), 4),
        (Which(client_id="b"), 1),
        (Which(since=NOW - timedelta(hours=23)), 3),
        (Which(until=NOW - timedelta(hours=23)), 1),
        (Which("a", NOW - timedelta(hours=23), NOW - timedelta(hours=21)), 1),
    ],
)
async def test_rejections_are_chosen_by_client_and_time(which: Which, found: int, world: World) -> None:
    queries = (b"client_id=a", b"client_id=a", b"client_id=b", b"x=y")
    await world.collected(*((f"{n}" * 32, detail("click"), query) for n, query in enumerate(queries)))
    assert (await world.replay(which=which)).rows == found


async def test_a_prefetch_that_is_replayed_is_one(world: World) -> None:
    query = b"client_id=c&seller_id=s&cli_ubid=u&event_time=%d" % (NOW_MS - A_DAY_MS)
    said = json.loads(detail("click"))
    await world.collected(("1" * 32, json.dumps(said | {"flags": ["prefetch"]}).encode(), query))
    assert dict((await world.replay(OBSERVED)).kept) == {"clicks": 1}
    await world.compact()
    (click,) = world.rows()
    assert click["flags"] == ["asvtAbsent", "atagAbsent", "prefetch"]


async def test_without_a_lake_there_is_nothing_to_replay(world: World) -> None:
    assert (await world.replay()).rows == 0
    assert (await world.replay(dry_run=True)).rows == 0


@pytest.fixture(params=["clicks", "rejections"])
def limits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """Small batches, so that a few rows are many."""
    monkeypatch.setattr("clickclock.attribution.files.import_journal.BATCH_ENTRIES_MAX", 3)
    return lambda: str(request.param)


async def test_rows_of_many_batches_are_each_kept_once(limits: Callable[[], str], world: World) -> None:
    changes = {} if limits() == "clicks" else {"atag": ""}
    archive = world.csv("a.csv", *(row(number // 2, **changes) for number in range(20)))
    assert dict((await world.load(archive)).kept) == {limits(): 20}
    await world.compact()
    assert (await world.load(archive)).known == 20
    assert len({each["id"] for each in world.rows(limits())}) == 20

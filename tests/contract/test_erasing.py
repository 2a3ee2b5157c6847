"""What is erased is gone from a lake in a folder and in an object store, old versions included, and nothing else is."""

import io
import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileSelector, PyFileSystem

from clickclock.attribution.clicks.entry import EntryKind, connection, encode
from clickclock.attribution.crediting.policy import Policy
from clickclock.attribution.erasing.erasure import Identifier, Marks, Sought
from clickclock.attribution.errors import LakeUnreachable
from clickclock.attribution.lake import CLICKS, Erasing, Found, Lake, Overtaken, drop_before, erasings, seen_together
from tests import shop
from tests.kept import RECEIVED_MS

JOURNAL = "a" * 32
VICTIM = 7
SOUGHT = Sought(shop.CLIENT, [Identifier("cli_ubid", shop.browser(VICTIM))])


def load(lake: Lake, segment: int, lines: list[bytes]) -> None:
    load = lake.load()
    writer = lake.writer(f"part-{segment}", RECEIVED_MS)
    writer.add(JOURNAL, segment, [b"".join(lines)], load.lacking(JOURNAL, segment))
    load.commit([writer.close()], {JOURNAL: [segment]}, {})


PEOPLE = 27


def filled(lake: Lake) -> list[dict[str, Any]]:
    """Clicks in many commits, merged, and all that was replaced still there."""
    for first in range(0, PEOPLE, 3):
        load(lake, first + 1, [line for person in range(first, first + 3) for line in shop.entries(person)])
    lake.tidy(history_hours=1000)
    return rows(lake)


def rows(lake: Lake, table: str = CLICKS.name) -> list[dict[str, Any]]:
    return sorted((row for batch in lake.scan(table) for row in batch.to_pylist()), key=lambda row: str(row["id"]))


def clicks(lake: Lake, sought: Sought = SOUGHT) -> Erasing:
    return erasings(lake, sought)[CLICKS.name]


def erase(erasing: Erasing, found: Found) -> None:
    erasing.replace(found, RECEIVED_MS)
    erasing.delete(found, RECEIVED_MS)


def files(lake: Lake) -> Iterator[tuple[str, bytes]]:
    """Every file of the lake, whatever anything says of it."""
    store = PyFileSystem(DeltaStorageHandler(lake.url, lake.storage_options))
    for each in store.get_file_info(FileSelector("", recursive=True)):
        # A store may go on for a moment to list a folder of which the last file is gone.
        with suppress(FileNotFoundError):
            if each.is_file:
                with store.open_input_file(each.path) as file:
                    yield each.path, file.read()


def saying(lake: Lake, needle: bytes) -> list[str]:
    found = []
    for path, raw in files(lake):
        text = raw
        if path.endswith(".parquet"):
            plain = pa.BufferOutputStream()
            pq.write_table(pq.read_table(io.BytesIO(raw)), plain, compression="none", use_dictionary=False)
            text += bytes(plain.getvalue())
        if needle in text:
            found.append(path)
    return found


def test_it_is_gone_from_every_file_and_every_other_row_is_what_it_was(lake: Lake) -> None:
    before = filled(lake)
    assert saying(lake, shop.browser(VICTIM).encode())
    erasing = clicks(lake)
    found = erasing.look(Marks())
    assert found.rows == 2
    assert len(found.files) == 2, "the file that was merged is there, and the one that replaced it"
    erase(erasing, found)
    assert erasing.silence(found.marks) == []
    assert not [path for path in saying(lake, shop.browser(VICTIM).encode()) if "clicks" in path]
    gone = {shop.entry_id(VICTIM, 0), shop.entry_id(VICTIM, 6)}
    assert rows(lake) == [row for row in before if row["id"] not in gone]
    assert clicks(lake).look(found.marks).files == {}


def test_the_log_is_silent_about_files_that_are_gone_and_its_versions_still_count_on(lake: Lake) -> None:
    filled(lake)
    delta = lake.table(CLICKS.name)
    assert delta is not None
    version = delta.version()
    delta.create_checkpoint()
    erasing = clicks(lake)
    found = erasing.look(Marks())
    erase(erasing, found)
    assert erasing.silence(found.marks) == []
    assert [path for path in saying(lake, shop.entry_id(VICTIM, 0).encode()) if "clicks/_delta_log" in path] == []
    load(lake, 100, shop.entries(100))
    after = lake.table(CLICKS.name)
    assert after is not None
    assert after.version() == version + 2
    load(lake, 4, shop.entries(4))
    assert len(rows(lake)) == 3 * (PEOPLE + 1) - 2, "what was loaded stays noted"


def test_who_is_overtaken_changes_nothing_and_finds_it_again(lake: Lake) -> None:
    filled(lake)
    first, second = clicks(lake), clicks(lake)
    found = first.look(Marks())
    late = second.look(Marks())
    erase(first, found)
    after = rows(lake)
    with pytest.raises((Overtaken, LakeUnreachable)):
        second.replace(late, RECEIVED_MS)
    assert rows(lake) == after
    assert second.look(Marks()).files == {}


def test_who_finds_that_files_were_merged_meanwhile_changes_nothing_and_looks_again(lake: Lake) -> None:
    for first in range(0, PEOPLE, 3):
        load(lake, first + 1, [line for person in range(first, first + 3) for line in shop.entries(person)])
    before = rows(lake)
    erasing = clicks(lake)
    found = erasing.look(Marks())
    lake.tidy(history_hours=1000)
    with pytest.raises(Overtaken, match="clicks were merged"):
        erasing.replace(found, RECEIVED_MS)
    assert rows(lake) == before
    erase(erasing, erasing.look(Marks()))
    gone = {shop.entry_id(VICTIM, 0), shop.entry_id(VICTIM, 6)}
    assert rows(lake) == [row for row in before if row["id"] not in gone]


def test_what_comes_in_meanwhile_overtakes_nobody(lake: Lake) -> None:
    load(lake, 1, [line for person in (3, VICTIM) for line in shop.entries(person)])
    erasing = clicks(lake)
    found = erasing.look(Marks())
    load(lake, 2, shop.entries(9))
    erase(erasing, found)
    gone = {shop.entry_id(VICTIM, 0), shop.entry_id(VICTIM, 6)}
    assert len(rows(lake)) == 7
    assert gone.isdisjoint(row["id"] for row in rows(lake))


def test_a_table_whose_rows_all_go_is_empty_and_can_be_loaded_again(lake: Lake) -> None:
    load(lake, 1, shop.entries(VICTIM)[:1])
    erasing = clicks(lake)
    erase(erasing, erasing.look(Marks()))
    assert rows(lake) == []
    load(lake, 2, shop.entries(3))
    assert len(rows(lake)) == 3


def test_the_order_of_rows_and_the_way_they_are_written_stay(lake: Lake) -> None:
    load(lake, 1, [line for person in range(0, 30, 3) for line in shop.entries(person)])
    before = [row["id"] for batch in lake.scan(CLICKS.name) for row in batch.to_pylist()]
    sought = Sought(shop.CLIENT, [Identifier("device_id", shop.device(12))])
    erasing = clicks(lake, sought)
    erase(erasing, erasing.look(Marks()))
    gone = {shop.entry_id(12, 0), shop.entry_id(12, 1)}
    after = [row["id"] for batch in lake.scan(CLICKS.name) for row in batch.to_pylist()]
    assert after == [each for each in before if each not in gone]
    (path, raw), *others = [each for each in files(lake) if each[0].startswith("clicks/rec") and each[0].endswith("t")]
    assert others == [], path
    column = pq.read_metadata(io.BytesIO(raw)).row_group(0).column(0)
    assert (column.compression, "DELTA_BYTE_ARRAY" in column.encodings) == ("ZSTD", True)


def test_old_days_go_with_the_versions_that_had_them(lake: Lake) -> None:
    before = filled(lake)
    first = date(2027, 1, 16)
    old = [row for row in before if row["received_day"] < first]
    assert drop_before(lake, CLICKS, first, RECEIVED_MS) == len(old)
    assert rows(lake) == [row for row in before if row["received_day"] >= first]
    assert [path for path, _ in files(lake) if path.startswith("clicks/received_day=2027-01-15")] == []
    assert drop_before(lake, CLICKS, first, RECEIVED_MS) == 0


def test_identifiers_that_were_seen_together_are_one_persons_and_shared_ones_are_nobodys(lake: Lake) -> None:
    def click(browser: str, device: str, number: int) -> bytes:
        line = shop.entries(number)[0].split(b"\t")
        line[7] = (
            f"client_id=shop-1&cli_ubid={browser}&device_id={device}&seller_id=s&asvt=v&atag=t&event_time=1800000000000\n".encode()
        )
        return b"\t".join(line)

    seen = [("b1", "d1"), ("b2", "D1"), ("b2", "any"), ("b3", "any"), ("b4", "kiosk"), ("b1", "kiosk")]
    seen += [(f"visitor-{number}", "kiosk") for number in range(60)]
    load(lake, 1, [click(browser, device, number) for number, (browser, device) in enumerate(seen)])
    found = seen_together(lake, shop.CLIENT, Identifier("cli_ubid", "b1"), Policy())
    assert [(each.kind, each.value) for each in found] == [("cli_ubid", "b1"), ("cli_ubid", "b2"), ("device_id", "d1")]
    found = seen_together(lake, shop.CLIENT, Identifier("cli_ubid", "b1"), Policy(visitors_per_device_max=1))
    assert [(each.kind, each.value) for each in found] == [("cli_ubid", "b1")]
    found = seen_together(lake, shop.CLIENT, Identifier("device_id", "D1"), Policy(visitors_per_device_max=1))
    assert [(each.kind, each.value) for each in found] == [("device_id", "d1")]


def test_visitors_of_one_customer_are_one_persons_until_that_is_withdrawn(lake: Lake) -> None:
    def said(browser: str, number: int, *, more: str = "") -> bytes:
        query = f"client_id={shop.CLIENT}&customer_id=c-7&cli_ubid={browser}&event_time={RECEIVED_MS + number}{more}"
        origin = connection("", b"", b"")
        return encode(EntryKind.OTHER, f"{number:032x}", RECEIVED_MS + number, origin, b"identify", query.encode())

    load(lake, 1, [said("phone", 1), said("laptop", 2), said("tablet", 3), said("tablet", 4, more="&status=withdrawn")])
    person = [("cli_ubid", "laptop"), ("cli_ubid", "phone"), ("customer_id", "c-7")]
    for asked in (Identifier("cli_ubid", "phone"), Identifier("customer_id", "c-7")):
        found = seen_together(lake, shop.CLIENT, asked, Policy())
        assert [(each.kind, each.value) for each in found] == person
    found = seen_together(lake, shop.CLIENT, Identifier("cli_ubid", "tablet"), Policy())
    assert [(each.kind, each.value) for each in found] == [("cli_ubid", "tablet")]
    taken = erasings(lake, Sought(shop.CLIENT, [Identifier("customer_id", "c-7")]))["events"].look(Marks())
    assert taken.rows == 4


def test_an_order_ties_its_customer_to_the_browser_and_goes_with_either(lake: Lake) -> None:
    def bought(name: str, number: int, **who: str) -> bytes:
        said = {"client_id": shop.CLIENT, "order_id": name, "event_time": RECEIVED_MS, "amount": "1", "currency": "EUR"}
        raw = json.dumps({**said, "customer_id": "c-7", **who}).encode()
        return encode(EntryKind.ORDER, f"{number:032x}", RECEIVED_MS, connection("", b"", b""), b"", raw)

    load(lake, 1, [bought("1", 1, cli_ubid="laptop", device_id="D"), bought("2", 2), bought("3", 3, device_id="e")])
    person = [("cli_ubid", "laptop"), ("customer_id", "c-7"), ("device_id", "d"), ("device_id", "e")]
    for asked in (Identifier("device_id", "d"), Identifier("customer_id", "c-7"), Identifier("order_id", "2")):
        found = seen_together(lake, shop.CLIENT, asked, Policy())
        assert [(each.kind, each.value) for each in found] == person
    taken = erasings(lake, Sought(shop.CLIENT, [Identifier("customer_id", "c-7")]))["orders"].look(Marks())
    assert taken.rows == 3
    query = f"client_id={shop.CLIENT}&customer_id=c-7&cli_ubid=laptop&event_time={RECEIVED_MS + 1}&status=withdrawn"
    withdrawal = encode(
        EntryKind.OTHER, f"{9:032x}", RECEIVED_MS + 2, connection("", b"", b""), b"identify", query.encode()
    )
    load(lake, 2, [withdrawal])
    found = seen_together(lake, shop.CLIENT, Identifier("customer_id", "c-7"), Policy())
    assert [(each.kind, each.value) for each in found] == [("customer_id", "c-7"), ("device_id", "e")]

"""Compaction is killed at every step, and run again: each acknowledged entry is in the lake exactly once."""

import asyncio
import errno
import os
import shutil
import signal
from pathlib import Path
from resource import RLIMIT_NOFILE, getrlimit, setrlimit
from typing import Any

import pytest

from clickclock.attribution.agents.compactor import Compactor
from clickclock.attribution.clicks.account import Profile
from clickclock.attribution.clicks.entry import connection, encode_plain
from clickclock.attribution.errors import CompactionKilled, LakeUnreachable
from clickclock.attribution.journal import State, segments
from clickclock.attribution.lake import Lake
from clickclock.attribution.lake.files import DAYS_OPEN_MAX
from clickclock.foundation.clock import SystemClock
from tests.acceptance.clicking import children
from tests.crash.ground import until
from tests.crash.mortal import Death
from tests.crash.nursery import lived
from tests.kept import DAY_MS, RECEIVED_MS, ids, ids_in, keep, lines
from tests.object_store import BUCKET
from tests.throttling import throttled

ENTRIES = 300
_COMPACTOR, _LAKE = "clickclock.attribution.agents.compactor", "clickclock.attribution.lake"
DEATHS = {
    "before anything is written": Death(f"{_COMPACTOR}:Compactor._write"),
    "while files are written": Death(f"{_LAKE}.files:DayFiles._write", "after", 2),
    "when files are written and not durable": Death(f"{_LAKE}.files:Storage.sync"),
    "before the first table's commit": Death(f"{_LAKE}.load:_Target.commit"),
    "before a table's log entry is durable": Death(f"{_LAKE}.files:Storage.sync", "before", 5),
    "between the first table and the second": Death(f"{_LAKE}.load:_Target.commit", "after", 1),
    "between the second table and the third": Death(f"{_LAKE}.load:_Target.commit", "after", 2),
    "after all commits": Death(f"{_LAKE}.load:_Target.commit", "after", 4),
    "before a segment goes": Death(f"{_COMPACTOR}:delete"),
    "between two segments": Death(f"{_COMPACTOR}:delete", "after", 1),
    "after all segments": Death(f"{_LAKE}:Lake.tidy"),
}


@pytest.fixture(params=["folder", "object store"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """An empty lake."""
    if request.param == "folder":
        return Lake(tmp_path / "lake")
    return Lake(f"s3://{BUCKET}/{tmp_path.name}", request.getfixturevalue("object_store_options"))


async def _step(journals: Path, lake: Lake, death: Death | None = None) -> int:
    """One step in a process of its own; its exit code."""
    order = {
        "journals": str(journals),
        "lake": lake.url,
        "options": lake.storage_options,
        "death": death and death.as_json(),
    }
    return await lived("mortal_compactor", order)


async def _compact(journals: Path, lake: Lake) -> Any:
    return await Compactor(journals, lake, SystemClock(), processes=1).step()


# What is durable, and when, is an object store's own affair; what is left is where it differs from a folder.
@pytest.mark.parametrize(
    ("lake", "death"),
    [
        *(pytest.param("folder", death, id=f"folder, {when}") for when, death in DEATHS.items()),
        *(
            pytest.param("object store", death, id=f"object store, {when}")
            for when, death in list(DEATHS.items())[1::2]
        ),
    ],
    indirect=["lake"],
)
async def test_whenever_it_dies_the_next_step_completes_it_and_doubles_nothing(
    death: Death, lake: Lake, tmp_path: Path
) -> None:
    journals = tmp_path / "journal"
    await keep(journals / "0", lines(ENTRIES))
    await keep(journals / "1", lines(ENTRIES, ENTRIES))
    assert await _step(journals, lake, death) == -signal.SIGKILL
    done = await _compact(journals, lake)
    assert done.is_clean
    assert ids_in(lake) == ids(2 * ENTRIES)
    assert all(each.state is State.LIVE for folder in ("0", "1") for each in segments(journals / folder))
    assert (await _compact(journals, lake)).rows == 0
    assert ids_in(lake) == ids(2 * ENTRIES)


async def test_several_at_once_on_the_same_journals_double_nothing(lake: Lake, tmp_path: Path) -> None:
    journals = tmp_path / "journal"
    for slot in range(4):
        await keep(journals / str(slot), lines(ENTRIES, slot * ENTRIES))
    assert await asyncio.gather(*(_step(journals, lake) for _ in range(3))) == [0, 0, 0]
    await _compact(journals, lake)
    assert ids_in(lake) == ids(4 * ENTRIES)


async def test_several_on_machines_without_a_common_lock_double_nothing(lake: Lake, tmp_path: Path) -> None:
    """The journals are copied, so that no lock is seen by both: only the lake keeps them apart."""
    await keep(tmp_path / "a" / "0", lines(ENTRIES))
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert await asyncio.gather(*(_step(tmp_path / name, lake) for name in ("a", "b"))) == [0, 0]
    for name in ("a", "b"):
        await _compact(tmp_path / name, lake)
    assert ids_in(lake) == ids(ENTRIES)


async def test_a_store_that_refuses_and_loses_answers_gets_each_entry_once(
    object_store_options: dict[str, str], tmp_path: Path
) -> None:
    """Two hosts, each with a journal of its own and one that both have, on one busy store."""
    await keep(tmp_path / "shared" / "0", lines(ENTRIES))
    hosts = [tmp_path / name for name in "ab"]
    for number, host in enumerate(hosts, 1):
        shutil.copytree(tmp_path / "shared" / "0", host / "0")
        await keep(host / "1", lines(ENTRIES, number * ENTRIES))
    url = f"s3://{BUCKET}/{tmp_path.name}"
    with throttled(object_store_options, refuse_each=5, lose_each=17) as way:
        lake = Lake(url, way.options)
        assert set(await asyncio.gather(*(_step(host, lake) for host in hosts))) <= {0, 1}
        counts = way.counts()
    assert min(counts.values()) > 10, counts
    for host in hosts:
        await _compact(host, Lake(url, object_store_options))
    assert ids_in(Lake(url, object_store_options)) == ids(3 * ENTRIES)
    assert all(each.state is State.LIVE for host in hosts for slot in "01" for each in segments(host / slot))


async def test_segments_wait_for_a_store_that_refuses_everything(
    object_store_options: dict[str, str], tmp_path: Path
) -> None:
    await keep(tmp_path / "0", lines(ENTRIES))
    before = segments(tmp_path / "0")
    url = f"s3://{BUCKET}/{tmp_path.name}"
    with throttled(object_store_options, refuse_each=1) as way:
        with pytest.raises(LakeUnreachable, match="SlowDown"):
            await _compact(tmp_path, Lake(url, {**way.options, "max_retries": "3"}))
        assert segments(tmp_path / "0") == before
    await _compact(tmp_path, Lake(url, object_store_options))
    assert ids_in(Lake(url, object_store_options)) == ids(ENTRIES)


async def test_a_collector_that_is_gone_has_its_live_segment_compacted_too(tmp_path: Path) -> None:
    journals, lake = tmp_path / "journal", Lake(tmp_path / "lake")
    await keep(journals / "0", lines(ENTRIES))
    last = segments(journals / "0")[-1]
    last.path.rename(last.path.with_suffix(".live"))  # as if it had died
    await _compact(journals, lake)
    assert ids_in(lake) == ids(ENTRIES)


async def test_a_damaged_segment_is_left_the_others_go_on_and_once_mended_it_comes_in(tmp_path: Path) -> None:
    journals, lake = tmp_path / "journal", Lake(tmp_path / "lake")
    await keep(journals / "0", lines(ENTRIES))
    damaged = segments(journals / "0")[1]
    whole = damaged.path.read_bytes()
    damaged.path.write_bytes(whole[:5000] + b"\0" + whole[5001:])
    done = await _compact(journals, lake)
    assert not done.is_clean
    assert str(damaged.path) in done.damages[0]
    assert [each.number for each in segments(journals / "0") if each.state is State.SEALED] == [damaged.number]
    missing = ids(ENTRIES) - ids_in(lake)
    assert 0 < missing.total() < ENTRIES
    damaged.path.write_bytes(whole)
    await keep(journals / "0", lines(ENTRIES, ENTRIES))
    assert (await _compact(journals, lake)).is_clean
    assert ids_in(lake) == ids(2 * ENTRIES)
    damaged.path.write_bytes(whole)  # restored once more, by mistake
    assert (await _compact(journals, lake)).rows == 0
    assert ids_in(lake) == ids(2 * ENTRIES)


async def test_a_process_that_writes_with_others_is_killed_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journals, lake = tmp_path / "journal", Lake(tmp_path / "lake")
    for slot in range(3):
        await keep(journals / str(slot), lines(ENTRIES, slot * ENTRIES))
    monkeypatch.setattr(f"{_COMPACTOR}.ALONE_BYTES_MAX", 0)
    working = asyncio.create_task(Compactor(journals, lake, SystemClock(), processes=2).step())

    def others() -> list[int]:
        return [pid for pid in children(os.getpid()) if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]

    async def is_there() -> bool:
        return bool(others())

    await until(is_there, "another process")
    for other in others():
        os.kill(other, signal.SIGKILL)
    with pytest.raises(CompactionKilled):
        await working
    assert ids_in(lake).total() == 0
    assert (await _compact(journals, lake)).rows == 3 * ENTRIES
    assert ids_in(lake) == ids(3 * ENTRIES)


async def test_a_long_journal_is_not_listed_for_each_of_its_segments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journals, lake = tmp_path / "journal", Lake(tmp_path / "lake")
    await keep(journals / "0", lines(ENTRIES), at_a_time=5, segment_bytes=2**14)
    count = len(segments(journals / "0"))
    listed: list[object] = []
    look = os.listdir

    def counted(path: Any) -> list[str]:
        listed.append(path)
        return look(path)

    monkeypatch.setattr(os, "listdir", counted)
    assert (await _compact(journals, lake)).segments == count
    assert len(listed) < count


async def test_clicks_of_more_days_than_files_may_be_open_come_in(tmp_path: Path) -> None:
    journals, lake = tmp_path / "journal", Lake(tmp_path / "lake")
    days = 300
    at = [RECEIVED_MS - number * DAY_MS for number in range(days)]
    query = b"client_id=c&cli_ubid=u&seller_id=s&asvt=v&atag=t&event_time=%d"
    entries = [
        encode_plain(f"{number:032x}", ms, connection("", b"", b""), Profile.STRICT, query % ms)
        for number, ms in enumerate(at)
    ]
    await keep(journals / "0", [*entries, *lines(20, days)])
    soft, hard = getrlimit(RLIMIT_NOFILE)
    setrlimit(RLIMIT_NOFILE, (2 * DAYS_OPEN_MAX, hard))
    try:
        assert (await _compact(journals, lake)).is_clean
    finally:
        setrlimit(RLIMIT_NOFILE, (soft, hard))
    assert ids_in(lake) == ids(days + 20)


@pytest.mark.parametrize("lost", ["empty", "gone", "no file"])
async def test_what_cannot_be_read_is_told_and_left_and_the_others_go_on(tmp_path: Path, lost: str) -> None:
    journals, lake = tmp_path / "journal", Lake(tmp_path / "lake")
    for slot in "012":
        await keep(journals / slot, lines(ENTRIES, int(slot) * ENTRIES))
    unreadable = segments(journals / "0")[1].path
    whole = unreadable.rename(tmp_path / "whole")
    unreadable.mkdir()
    (journals / "0/000000000999.live").symlink_to("nowhere")
    name = (journals / "1/id").read_bytes()
    (journals / "1/id").unlink()
    if lost == "empty":
        (journals / "1/id").touch()
    elif lost == "no file":
        (journals / "1/id").mkdir()
    done = await _compact(journals, lake)
    assert sorted(sentence.split(" ")[0] for sentence in done.damages) == [str(unreadable), f"{journals}/1/id"]
    found = ids_in(lake)
    assert ids(ENTRIES, 2 * ENTRIES) - found == ids(0)
    assert ENTRIES < found.total() < 2 * ENTRIES  # and what else the first journal holds
    unreadable.rmdir()
    whole.rename(unreadable)
    if lost == "no file":
        (journals / "1/id").rmdir()
    (journals / "1/id").write_bytes(name)
    assert (await _compact(journals, lake)).is_clean
    assert ids_in(lake) == ids(3 * ENTRIES)


async def test_a_segment_that_cannot_be_deleted_is_told_and_is_not_loaded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journals, lake = tmp_path / "journal", Lake(tmp_path / "lake")
    await keep(journals / "0", lines(ENTRIES))
    sealed = [str(each.path) for each in segments(journals / "0") if each.state is State.SEALED]

    def refuse(path: Path) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refuse)
        for _ in range(2):
            done = await _compact(journals, lake)
            assert [sentence.split(" ")[0] for sentence in done.damages] == sealed
            assert "is in the lake and cannot be deleted: Read-only file system" in done.damages[0]
    assert (await _compact(journals, lake)).is_clean
    assert ids_in(lake) == ids(ENTRIES)


async def test_what_comes_after_everything_was_compacted_is_not_taken_for_known(tmp_path: Path) -> None:
    """A journal that is empty but for its name must not begin to number its segments anew."""
    journals, lake = tmp_path / "journal", Lake(tmp_path / "lake")
    await keep(journals / "0", lines(ENTRIES))
    await _compact(journals, lake)
    for _ in range(2):
        await keep(journals / "0", [])
    await keep(journals / "0", lines(ENTRIES, ENTRIES))
    await _compact(journals, lake)
    assert ids_in(lake) == ids(2 * ENTRIES)


async def test_a_segment_is_kept_while_the_lake_cannot_be_written(tmp_path: Path) -> None:
    journals = tmp_path / "journal"
    await keep(journals / "0", lines(ENTRIES))
    before = segments(journals / "0")
    (tmp_path / "file").write_text("no folder", encoding="utf-8")

    with pytest.raises(LakeUnreachable):
        await _compact(journals, Lake(tmp_path / "file" / "lake"))
    assert segments(journals / "0") == before
    await _compact(journals, Lake(tmp_path / "lake"))
    assert ids_in(Lake(tmp_path / "lake")) == ids(ENTRIES)


async def test_what_two_copies_of_a_data_folder_wrote_is_kept_until_one_has_a_name_of_its_own(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    original, copy = tmp_path / "original", tmp_path / "copy"
    await keep(original / "0", lines(ENTRIES))
    shutil.copytree(original, copy)
    await keep(original / "0", lines(ENTRIES, ENTRIES))
    await keep(copy / "0", lines(ENTRIES, 2 * ENTRIES))
    assert (await _compact(original, lake)).is_clean
    refused = await _compact(copy, lake)
    assert len(refused.damages) == len([each for each in segments(copy / "0") if each.state is State.SEALED]) > 0
    assert "copies" in refused.damages[0]
    assert ids_in(lake) == ids(2 * ENTRIES)
    (copy / "0" / "id").unlink()
    await keep(copy / "0", [])
    assert (await _compact(copy, lake)).is_clean
    assert ids_in(lake) == ids(3 * ENTRIES)

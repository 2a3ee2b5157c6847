"""Compaction is killed at every step, and run again: each acknowledged entry is in the lake exactly once."""

import asyncio
import json
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from clickclock.attribution.compactor import Compactor
from clickclock.attribution.errors import LakeUnreachable
from clickclock.attribution.journal import State, segments
from clickclock.attribution.lake import Lake
from clickclock.foundation.clock import SystemClock
from tests.crash.mortal import Death
from tests.kept import ids, ids_in, keep, lines

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = 300
_COMPACTOR, _LAKE = "clickclock.attribution.compactor", "clickclock.attribution.lake"
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


async def _step(journals: Path, lake: Path, death: Death | None = None) -> int:
    """One step in a process of its own; its exit code."""
    order = {"journals": str(journals), "lake": str(lake), "death": death and death.as_json(), "processes": 1}
    command = [sys.executable, "-m", "tests.crash.mortal_compactor", json.dumps(order)]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.DEVNULL)
    return await process.wait()


async def _compact(journals: Path, lake: Path) -> Any:
    return await Compactor(journals, Lake(lake), SystemClock(), processes=1).step()


@pytest.mark.parametrize("death", DEATHS.values(), ids=DEATHS)
async def test_whenever_it_dies_the_next_step_completes_it_and_doubles_nothing(death: Death, tmp_path: Path) -> None:
    journals, lake = tmp_path / "journal", tmp_path / "lake"
    await keep(journals / "0", lines(ENTRIES))
    await keep(journals / "1", lines(ENTRIES, ENTRIES))
    assert await _step(journals, lake, death) == -signal.SIGKILL
    done = await _compact(journals, lake)
    assert done.is_clean
    assert ids_in(Lake(lake)) == ids(2 * ENTRIES)
    assert all(each.state is State.LIVE for folder in ("0", "1") for each in segments(journals / folder))
    assert (await _compact(journals, lake)).rows == 0
    assert ids_in(Lake(lake)) == ids(2 * ENTRIES)


async def test_several_at_once_on_the_same_journals_double_nothing(tmp_path: Path) -> None:
    journals, lake = tmp_path / "journal", tmp_path / "lake"
    for slot in range(4):
        await keep(journals / str(slot), lines(ENTRIES, slot * ENTRIES))
    assert await asyncio.gather(*(_step(journals, lake) for _ in range(3))) == [0, 0, 0]
    await _compact(journals, lake)
    assert ids_in(Lake(lake)) == ids(4 * ENTRIES)


async def test_several_on_machines_without_a_common_lock_double_nothing(tmp_path: Path) -> None:
    """The journals are copied, so that no lock is seen by both: only the lake keeps them apart."""
    lake = tmp_path / "lake"
    await keep(tmp_path / "a" / "0", lines(ENTRIES))
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert await asyncio.gather(*(_step(tmp_path / name, lake) for name in ("a", "b"))) == [0, 0]
    for name in ("a", "b"):
        await _compact(tmp_path / name, lake)
    assert ids_in(Lake(lake)) == ids(ENTRIES)


async def test_a_collector_that_is_gone_has_its_live_segment_compacted_too(tmp_path: Path) -> None:
    journals, lake = tmp_path / "journal", tmp_path / "lake"
    await keep(journals / "0", lines(ENTRIES))
    last = segments(journals / "0")[-1]
    last.path.rename(last.path.with_suffix(".live"))  # as if it had died
    await _compact(journals, lake)
    assert ids_in(Lake(lake)) == ids(ENTRIES)


async def test_a_damaged_segment_is_left_the_others_go_on_and_once_mended_it_comes_in(tmp_path: Path) -> None:
    journals, lake = tmp_path / "journal", tmp_path / "lake"
    await keep(journals / "0", lines(ENTRIES))
    damaged = segments(journals / "0")[1]
    whole = damaged.path.read_bytes()
    damaged.path.write_bytes(whole[:5000] + b"\0" + whole[5001:])
    done = await _compact(journals, lake)
    assert not done.is_clean
    assert str(damaged.path) in done.damages[0]
    assert [each.number for each in segments(journals / "0") if each.state is State.SEALED] == [damaged.number]
    missing = ids(ENTRIES) - ids_in(Lake(lake))
    assert 0 < missing.total() < ENTRIES
    damaged.path.write_bytes(whole)
    await keep(journals / "0", lines(ENTRIES, ENTRIES))
    assert (await _compact(journals, lake)).is_clean
    assert ids_in(Lake(lake)) == ids(2 * ENTRIES)
    damaged.path.write_bytes(whole)  # restored once more, by mistake
    assert (await _compact(journals, lake)).rows == 0
    assert ids_in(Lake(lake)) == ids(2 * ENTRIES)


async def test_what_comes_after_everything_was_compacted_is_not_taken_for_known(tmp_path: Path) -> None:
    """A journal that is empty but for its name must not begin to number its segments anew."""
    journals, lake = tmp_path / "journal", tmp_path / "lake"
    await keep(journals / "0", lines(ENTRIES))
    await _compact(journals, lake)
    for _ in range(2):
        await keep(journals / "0", [])
    await keep(journals / "0", lines(ENTRIES, ENTRIES))
    await _compact(journals, lake)
    assert ids_in(Lake(lake)) == ids(2 * ENTRIES)


async def test_a_segment_is_kept_while_the_lake_cannot_be_written(tmp_path: Path) -> None:
    journals = tmp_path / "journal"
    await keep(journals / "0", lines(ENTRIES))
    before = segments(journals / "0")
    (tmp_path / "file").write_text("no folder", encoding="utf-8")

    with pytest.raises(LakeUnreachable):
        await _compact(journals, tmp_path / "file" / "lake")
    assert segments(journals / "0") == before
    await _compact(journals, tmp_path / "lake")
    assert ids_in(Lake(tmp_path / "lake")) == ids(ENTRIES)

"""What a watcher tells of real journals: everything, once, in order, or how much it left out."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from clickclock.attribution.agents.watcher import (
    CATCH_UP_ENTRIES_MAX,
    ENTRIES_PER_ROUND,
    LAG_MAX_MS,
    Watcher,
    parse,
)
from clickclock.attribution.journal import Journal, State, delete, segments
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.errors import Malformed

Append = Callable[..., "asyncio.Future[None]"]


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    opened = await Journal.open(tmp_path / "0", segment_bytes=2**20, segment_age_s=3600)
    yield opened
    await opened.close()


async def _append(journal: Journal, *lines: str) -> None:
    """Until they are on disk."""
    waiting = [asyncio.get_running_loop().create_future() for _ in lines]
    for line, done in zip(lines, waiting, strict=True):

        def told(error: Exception | None, done: asyncio.Future[None] = done) -> None:
            done.set_exception(error) if error else done.set_result(None)

        journal.append(f"{line}\n".encode(), told)
    await asyncio.gather(*waiting)


def _now_ms() -> int:
    return int(SystemClock().now().timestamp() * 1000)


def _started(folder: Path, position: str | None = None) -> Watcher:
    watcher = Watcher(folder, position)
    watcher.start()
    return watcher


def _all(watcher: Watcher, now_ms: int = 0) -> list[str]:
    lines: list[str] = []
    while told := watcher.read_more(now_ms).told:
        lines += [line.decode().strip() for _, line in told]
    return lines


async def test_a_viewer_sees_what_comes_after_it_started(journal: Journal, tmp_path: Path) -> None:
    await _append(journal, "before")
    watcher = _started(tmp_path)
    assert _all(watcher) == []
    await _append(journal, "one", "two")
    assert _all(watcher) == ["one", "two"]
    assert _all(watcher) == []
    watcher.close()


async def test_every_position_leads_to_exactly_the_rest(journal: Journal, tmp_path: Path) -> None:
    first = _started(tmp_path)
    lines = [f"line {number}" for number in range(7)]
    await _append(journal, *lines[:3])
    await _append(journal, *lines[3:])
    told = first.read_more(0).told
    assert [line.decode().strip() for _, line in told] == lines
    first.close()
    for place, (position, _) in enumerate(told, 1):
        again = _started(tmp_path, position)
        assert _all(again) == lines[place:]
        again.close()


async def test_two_journals_are_followed_and_a_third_that_appears(journal: Journal, tmp_path: Path) -> None:
    other = await Journal.open(tmp_path / "1")
    watcher = _started(tmp_path)
    await _append(journal, "a")
    await _append(other, "b")
    assert sorted(_all(watcher)) == ["a", "b"]
    third = await Journal.open(tmp_path / "2")
    await _append(third, "c")
    assert _all(watcher) == ["c"]
    assert set(parse(watcher.position)) == {"0", "1", "2"}
    await other.close()
    await third.close()
    watcher.close()


async def test_a_round_is_bounded_and_the_next_goes_on_within_a_frame(journal: Journal, tmp_path: Path) -> None:
    watcher = _started(tmp_path)
    lines = [str(number) for number in range(2 * ENTRIES_PER_ROUND + 1)]
    await _append(journal, *lines)
    rounds = [watcher.read_more(0).told for _ in range(3)]
    assert list(map(len, rounds)) == [ENTRIES_PER_ROUND, ENTRIES_PER_ROUND, 1]
    assert [line.decode().strip() for told in rounds for _, line in told] == lines
    watcher.close()


async def test_what_is_too_old_to_be_live_is_counted_and_not_told(journal: Journal, tmp_path: Path) -> None:
    watcher = _started(tmp_path)
    lines = [str(number) for number in range(ENTRIES_PER_ROUND + 50)]
    await _append(journal, *lines)
    assert len(watcher.read_more(_now_ms()).told) == ENTRIES_PER_ROUND
    later = watcher.read_more(_now_ms() + LAG_MAX_MS + 60_000)
    assert (later.told, later.missed) == ([], 50)
    await _append(journal, "now")
    assert _all(watcher, _now_ms()) == ["now"]
    watcher.close()


async def test_who_comes_back_is_told_what_is_old_too_but_not_without_end(journal: Journal, tmp_path: Path) -> None:
    first = _started(tmp_path)
    lines = [str(number) for number in range(CATCH_UP_ENTRIES_MAX + 30)]
    await _append(journal, *lines)
    later_ms = _now_ms() + LAG_MAX_MS + 60_000
    again = _started(tmp_path, first.position)
    told: list[bytes] = []
    missed = 0
    while (found := again.read_more(later_ms)).told or found.missed:
        told += [line for _, line in found.told]
        missed += found.missed
    assert (len(told), missed) == (CATCH_UP_ENTRIES_MAX, 30)
    first.close()
    again.close()


async def test_a_position_in_a_segment_that_was_compacted_says_that_something_may_be_missing(tmp_path: Path) -> None:
    opened = await Journal.open(tmp_path / "0", segment_bytes=2**20, segment_age_s=3600)
    first = _started(tmp_path)
    await _append(opened, "old")
    assert _all(first) == ["old"]
    position = first.position
    first.close()
    await opened.close()
    for segment in segments(tmp_path / "0"):
        if segment.state is State.SEALED:
            delete(segment)
    opened = await Journal.open(tmp_path / "0")
    await _append(opened, "new")
    again = _started(tmp_path, position)
    found = again.read_more(0)
    assert len(found.gaps) == 1
    assert [line for _, line in found.told] == [b"new\n"]
    again.close()
    await opened.close()


async def test_a_position_of_another_life_of_the_journal_begins_now(journal: Journal, tmp_path: Path) -> None:
    await _append(journal, "before")
    watcher = _started(tmp_path, "0:900:4096:3")
    assert len(watcher.read_more(0).gaps) == 1
    await _append(journal, "after")
    assert _all(watcher) == ["after"]
    watcher.close()


def test_where_there_is_no_journal_yet_its_first_line_will_be_told(tmp_path: Path) -> None:
    watcher = _started(tmp_path / "none")
    assert (watcher.read_more(0).told, watcher.position) == ([], "-")
    assert parse(watcher.position) == {}
    watcher.close()


@pytest.mark.parametrize("position", ["", "x", "0:1:2", "0:1:2:3,", "../x:1:1:1", "0:1:-1:1", "0:1:1:1," * 5000])
def test_what_is_no_position_is_refused(position: str) -> None:
    with pytest.raises(Malformed):
        Watcher(Path("journal"), position)

"""Damaged segments: what is whole of them comes back, whatever happened to the rest, and the damaged file is kept."""

import asyncio
import errno
import json
import os
import random
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from clickclock.attribution.agents.compactor import Compactor
from clickclock.attribution.errors import JournalFailing
from clickclock.attribution.journal import Frame, Journal, Segment, holding, inspect, read, salvage, segments, verify
from clickclock.attribution.lake import Lake
from clickclock.cli.journal import journal as command
from clickclock.foundation.clock import SystemClock
from tests.kept import ids_in, keep, lines

BLOCK_BYTES, HEADER_BYTES = 4096, 40
FRAMES = 24


async def kept(folder: Path) -> Segment:
    """A sealed segment with frames of one to four blocks."""
    journal = await Journal.open(folder, segment_bytes=2**20)
    loop, luck = asyncio.get_running_loop(), random.Random(7)
    for number in range(FRAMES):
        told = loop.create_future()
        line = b"%d %s\n" % (number, luck.randbytes(luck.randrange(7000)).hex().encode())
        journal.append(line, told.set_result)
        assert await told is None
    await journal.close()
    (segment,) = segments(folder)
    return segment


def damage(raw: bytes, luck: random.Random) -> bytes:
    """A few things that happen to files."""
    damaged = bytearray(raw)
    for _ in range(luck.randint(1, 4)):
        at = luck.randrange(len(damaged))
        match luck.choice(("flip", "zeros", "garbage", "cut", "longer")):
            case "flip":
                damaged[at] ^= 1 << luck.randrange(8)
            case "zeros":
                end = min(len(damaged), at + luck.choice((1, 512, BLOCK_BYTES, 5 * BLOCK_BYTES)))
                damaged[at:end] = bytes(end - at)
            case "garbage":
                end = min(len(damaged), at + BLOCK_BYTES)
                damaged[at:end] = luck.randbytes(end - at)
            case "cut" if at > BLOCK_BYTES:
                del damaged[at:]
            case "longer":
                damaged += luck.randbytes(luck.randrange(2 * BLOCK_BYTES))
    return bytes(damaged)


def untouched(frames: list[Frame], before: bytes, after: bytes) -> list[Frame]:
    """Those of which every byte that counts is where it was."""
    spans = [(each, each.offset, each.offset + HEADER_BYTES + len(each.payload)) for each in frames]
    return [each for each, start, end in spans if before[start:end] == after[start:end]]


def names(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def told(frames: list[Frame]) -> list[tuple[int, int, int, bytes]]:
    return [(each.segment, each.count, each.written_ms, each.payload) for each in frames]


@pytest.mark.parametrize("seed", range(60))
async def test_every_frame_that_nothing_has_touched_is_won_in_its_order(tmp_path: Path, seed: int) -> None:
    segment = await kept(tmp_path)
    whole, frames = segment.path.read_bytes(), list(read(segment))
    damaged = damage(whole, random.Random(seed))
    segment.path.write_bytes(damaged)
    expected = untouched(frames, whole, damaged)
    is_damaged, there = bool(verify(segment)), names(tmp_path)
    looked = salvage(segment, only_look=True)
    assert (looked is not None, names(tmp_path)) == (is_damaged, there)
    if looked is None:
        assert told(list(read(segment))) == told(frames)
        return
    assert (looked.frames, looked.lines) == (len(expected), len(expected))
    assert looked.lost_lines in {None, FRAMES - len(expected)}
    done = salvage(segment)
    assert done is not None
    assert (done.aside is not None) == bool(expected)
    if expected:
        assert done.aside is not None
        assert (done.aside.read_bytes(), verify(segment)) == (damaged, [])
        assert told(list(read(segment))) == told(expected)
        assert salvage(segment) is None
        summary = inspect(segment)
        assert (summary.state, summary.frames, summary.lines) == ("sealed", len(expected), len(expected))
        assert (summary.first_ms, summary.last_ms) == (expected[0].written_ms, expected[-1].written_ms)
    else:
        assert segment.path.read_bytes() == damaged


async def test_what_the_disk_does_not_give_costs_only_the_frame_that_it_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = await kept(tmp_path)
    frames, give = list(read(segment)), os.pread
    bad = frames[5].offset

    def fail(fd: int, count: int, offset: int) -> bytes:
        if offset <= bad < offset + count:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return give(fd, count, offset)

    monkeypatch.setattr(os, "pread", fail)
    done = salvage(segment)
    monkeypatch.undo()
    assert done is not None
    assert (done.frames, done.lost_lines) == (FRAMES - 1, 1)
    assert told(list(read(segment))) == told(frames[:5] + frames[6:])


async def test_a_segment_that_was_salvaged_can_be_damaged_and_salvaged_again(tmp_path: Path) -> None:
    segment = await kept(tmp_path)
    for number in (1, 2):
        raw = bytearray(segment.path.read_bytes())
        raw[BLOCK_BYTES] ^= 1
        segment.path.write_bytes(raw)
        done = salvage(segment)
        assert done is not None
        assert done.aside == tmp_path / f"{segment.path.stem}.damaged-{number}"
        assert (done.aside.read_bytes(), done.frames) == (bytes(raw), FRAMES - number)


async def test_a_disk_that_has_no_room_leaves_the_segment_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = await kept(tmp_path)
    raw = segment.path.read_bytes()[: -3 * BLOCK_BYTES]
    segment.path.write_bytes(raw)

    def refuse(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(JournalFailing, match="No space left on device; salvage it again"):
        salvage(segment)
    assert segment.path.read_bytes() == raw
    monkeypatch.undo()
    assert salvage(segment) is not None


async def test_what_was_set_aside_is_looked_at_by_who_erases(tmp_path: Path) -> None:
    segment = await kept(tmp_path)
    first = next(read(segment)).payload
    raw = bytearray(segment.path.read_bytes())
    raw[BLOCK_BYTES] ^= 1
    segment.path.write_bytes(raw)
    done = salvage(segment)
    assert done is not None
    found = holding(tmp_path, lambda line: first in line)
    assert [(each.path, each.is_damaged) for each in found] == [(done.aside, True)]


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Awaitable[Any]]:
    """`clickclock journal salvage` on a data folder."""

    async def call(*arguments: str) -> Any:
        everything = ["salvage", *arguments, "--data-dir", str(tmp_path)]
        return await asyncio.to_thread(CliRunner().invoke, command, everything)

    return call


async def test_a_compaction_names_the_command_and_loads_what_it_won_once(
    tmp_path: Path, run: Callable[..., Awaitable[Any]]
) -> None:
    folder, lake = tmp_path / "journal/0", Lake(tmp_path / "lake")
    compactor = Compactor(folder.parent, lake, SystemClock(), processes=1)
    await keep(folder, lines(300), at_a_time=1, segment_bytes=2**19)
    first, second, *_ = segments(folder)
    lost = first.path.read_bytes()
    first.path.write_bytes(lost[: 3 * BLOCK_BYTES + 60] + b"\xff" + lost[3 * BLOCK_BYTES + 61 :])
    second.path.write_bytes(b"")
    there = sum(len(frame.lines) for segment in segments(folder)[2:] for frame in read(segment))
    done = await compactor.step()
    assert [bool(re.search("loaded after: clickclock journal salvage.$", each)) for each in done.damages] == [True] * 2
    assert ids_in(lake).total() == there

    looked = await run("--dry-run", "--json")
    assert looked.exit_code == 1, "of the second nothing is whole"
    one, two = json.loads(looked.stdout)["segments"]
    assert (one["lostLines"], one["lostBytes"], one["aside"]) == (1, BLOCK_BYTES, None)
    assert (two["frames"], two["lostLines"]) == (0, None)
    stranger = await run(str(tmp_path / "other"))
    assert stranger.stderr.endswith(f"not a sealed segment of a journal in {folder.parent}.\n")
    salvaged = await run(str(first.path))
    assert salvaged.exit_code == 0
    assert "4.1 kB are lost, with 1 entry. What is whole is loaded by the next compaction; " in salvaged.output
    assert "restore it from a copy, or delete it" in (await run()).output
    for _ in range(2):
        assert len((await compactor.step()).damages) == 1
        found = ids_in(lake)
        assert (found.total(), set(found.values())) == (there + one["lines"], {1})
    second.path.unlink()
    assert (await run()).output == "Nothing is damaged.\n"


async def test_a_file_that_cannot_be_opened_is_told(tmp_path: Path, run: Callable[..., Awaitable[Any]]) -> None:
    segment = await kept(tmp_path / "journal/0")
    segment.path.unlink()
    segment.path.symlink_to(segment.path)
    told = await run()
    assert (told.exit_code, "cannot be read (Too many levels of symbolic links)" in told.stderr) == (1, True)

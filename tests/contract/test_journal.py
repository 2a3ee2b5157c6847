"""The journal's promises, on real files: what is told, what is read, what is cut, what is damage."""

import asyncio
import contextlib
import errno
import itertools
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
from click.testing import CliRunner

from clickclock.attribution.errors import JournalDamaged, JournalFailing, JournalTaken
from clickclock.attribution.journal import (
    Damage,
    Frame,
    Journal,
    Segment,
    State,
    Tail,
    delete,
    forget,
    frame,
    holding,
    identity,
    inspect,
    read,
    salvage,
    segments,
    verify,
)
from clickclock.attribution.journal.batch import FRAME_BYTES_MAX
from clickclock.attribution.journal.frame import BLOCK_BYTES, HEADER_BYTES
from clickclock.attribution.journal.keeper import Keeper
from clickclock.attribution.journal.recovery import recover
from clickclock.cli.journal import journal as command
from clickclock.foundation.clock import ManualClock

SMALL = 16 * BLOCK_BYTES
DEADLINE_S = 60.0


async def keep(journal: Journal, *lines: bytes) -> None:
    """Append lines and wait until all are on disk; raises what the first refused one was told."""
    left = len(lines)
    told: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def done(error: Exception | None) -> None:
        nonlocal left
        left -= 1
        if error is not None and not told.done():
            told.set_exception(error)
        elif not left and not told.done():
            told.set_result(None)

    for line in lines:
        journal.append(line, done)
    async with asyncio.timeout(DEADLINE_S):
        await told


def lines_of(folder: Path) -> list[bytes]:
    return [line for segment in segments(folder) for frame in read(segment) for line in frame.lines]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def open_files() -> int:
    """How many this process has."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def crashed(folder: Path, *frames: bytes) -> Path:
    """A folder as a crash leaves it, each frame of one line; the path of the live segment."""
    journal = await Journal.open(folder, segment_bytes=SMALL)
    for line in frames:
        await keep(journal, line)
    segment = next(each for each in segments(folder) if inspect(each).lines)
    left = segment.path.read_bytes()
    await journal.close()
    for each in segments(folder):
        each.path.unlink()
    segment.path.write_bytes(left)
    return segment.path


async def test_what_was_acknowledged_is_read_in_order(tmp_path: Path) -> None:
    lines = [b"line %d\n" % number for number in range(3000)]
    journal = await Journal.open(tmp_path / "1")
    await keep(journal, *lines)
    assert lines_of(tmp_path / "1") == lines
    assert journal.waiting == 0
    await journal.close()
    assert lines_of(tmp_path / "1") == lines
    (sealed,) = segments(tmp_path / "1")
    assert sealed.state is State.SEALED
    assert inspect(sealed).bytes < 2 * len(b"".join(lines))  # cut: it was made with a megabyte


async def test_what_waits_is_written_together(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path)
    await keep(journal, *[b"x\n"] * 500)
    assert journal.figures.commits == 1
    assert (journal.figures.lines, journal.figures.bytes) == (500, 1000)
    assert sum(journal.figures.sync_counts) == 1
    await journal.close()


async def test_who_was_just_told_and_comes_again_goes_with_those_who_came_meanwhile(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path)
    loop = asyncio.get_running_loop()
    last: asyncio.Future[Exception | None] = loop.create_future()

    def come_again(_: Exception | None) -> None:
        journal.append(b"meanwhile\n", lambda _: None)
        loop.call_soon(journal.append, b"again\n", last.set_result)  # as a client's next request, once it is read

    journal.append(b"first\n", come_again)
    async with asyncio.timeout(DEADLINE_S):
        assert await last is None
    frames = [each.lines for segment in segments(tmp_path) for each in read(segment)]
    assert frames == [[b"first\n"], [b"meanwhile\n", b"again\n"]]
    await journal.close()


async def test_how_many_wait_can_be_seen(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path)
    kept = asyncio.ensure_future(keep(journal, b"1\n", b"2\n"))
    while not journal.waiting:
        await asyncio.wait([kept], timeout=0)
    assert journal.waiting == 2
    await kept
    assert journal.waiting == 0
    await journal.close()


async def test_one_answer_that_fails_does_not_cost_the_others_theirs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = await Journal.open(tmp_path)

    def broken(_: Exception | None) -> None:
        raise ConnectionError("this client has gone")

    journal.append(b"first\n", broken)
    await keep(journal, b"second\n")
    await journal.close()
    assert lines_of(tmp_path) == [b"first\n", b"second\n"]
    assert "an answer could not be sent" in caplog.text


async def test_closing_commits_what_waits_and_then_refuses(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path)
    kept = asyncio.gather(*(keep(journal, b"%d\n" % number) for number in range(10)))
    while not journal.waiting:
        await asyncio.wait([kept], timeout=0)
    await journal.close()
    await kept
    assert len(lines_of(tmp_path)) == 10
    with pytest.raises(JournalFailing, match="closed"):
        await keep(journal, b"late\n")
    with pytest.raises(JournalFailing, match="closed"):
        await journal.probe()
    await journal.close()


async def test_a_journal_has_one_writer(tmp_path: Path) -> None:
    first = await Journal.open(tmp_path)
    with pytest.raises(JournalTaken):
        await Journal.open(tmp_path)
    second = asyncio.ensure_future(Journal.open(tmp_path, taken_wait_s=DEADLINE_S))
    await keep(first, b"one that drains\n")
    await first.close()
    journal = await second
    assert journal.id == first.id
    await journal.close()


async def test_a_probe_syncs_and_leaves_nothing(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path, segment_bytes=SMALL)
    for _ in range(40):
        await journal.probe()
    await keep(journal, b"1\n")
    await journal.probe()
    await keep(journal, b"2\n")
    await journal.probe()
    assert lines_of(tmp_path) == [b"1\n", b"2\n"]
    await journal.close()
    assert lines_of(tmp_path) == [b"1\n", b"2\n"]
    assert journal.figures.lines == 2


async def test_a_full_segment_is_sealed_and_the_next_one_begun(tmp_path: Path) -> None:
    sealed: list[Segment] = []
    journal = await Journal.open(tmp_path, segment_bytes=SMALL, on_sealed=sealed.append)
    lines = [b"%d\n" % number for number in range(100)]
    for line in lines:
        await keep(journal, line)
    await journal.close()
    assert lines_of(tmp_path) == lines
    assert [each.number for each in sealed] == [each.number for each in segments(tmp_path)]
    assert len(sealed) == -(-100 // 14)
    assert journal.figures.sealed == len(sealed)
    assert [verify(segment) for segment in segments(tmp_path)] == [[]] * len(sealed)


async def test_a_frame_longer_than_a_segment_gets_one_of_its_size(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path, segment_bytes=SMALL)
    await keep(journal, b"short\n")
    await keep(journal, b"x" * 200_000 + b"\n")
    await keep(journal, b"short again\n")
    await journal.close()
    assert [len(line) for line in lines_of(tmp_path)] == [6, 200_001, 12]


async def test_a_frame_is_bounded_in_bytes_and_a_longer_line_goes_alone(tmp_path: Path) -> None:
    half, longer = b"h" * (FRAME_BYTES_MAX // 2 - 1) + b"\n", b"l" * FRAME_BYTES_MAX + b"\n"
    journal = await Journal.open(tmp_path)
    await keep(journal, half, half, b"third\n", longer, b"last\n")
    await journal.close()
    assert [read_frame.lines for segment in segments(tmp_path) for read_frame in read(segment)] == [
        [half, half], [b"third\n"], [longer], [b"last\n"],
    ]  # fmt: skip


async def test_lines_that_come_together_stay_together_and_are_told_once(tmp_path: Path) -> None:
    pieces = [(b"".join(b"%d.%d\n" % (piece, line) for line in range(1500)), 1500) for piece in range(4)]
    journal = await Journal.open(tmp_path)
    loop = asyncio.get_running_loop()
    told: list[asyncio.Future[Exception | None]] = [loop.create_future() for _ in pieces]
    for (lines, count), done in zip(pieces, told, strict=True):
        journal.append(lines, done.set_result, count)
    assert journal.waiting == 6000
    assert await asyncio.wait_for(asyncio.gather(*told), DEADLINE_S) == [None] * 4
    assert (journal.waiting, journal.figures.lines) == (0, 6000)
    await journal.close()
    frames = [frame for segment in segments(tmp_path) for frame in read(segment)]
    assert [frame.count for frame in frames] == [3000, 3000]
    assert b"".join(frame.payload for frame in frames) == b"".join(lines for lines, _ in pieces)


async def test_an_old_segment_is_sealed_although_nothing_comes(tmp_path: Path) -> None:
    sealed: asyncio.Queue[Segment] = asyncio.Queue()
    journal = await Journal.open(tmp_path, segment_age_s=0.05, on_sealed=sealed.put_nowait)
    await keep(journal, b"1\n")
    segment = await asyncio.wait_for(sealed.get(), DEADLINE_S)
    assert [frame.lines for frame in read(segment)] == [[b"1\n"]]
    await keep(journal, b"2\n")
    assert (await asyncio.wait_for(sealed.get(), DEADLINE_S)).number > segment.number
    await journal.close()
    assert sealed.empty()


async def test_an_old_segment_is_sealed_while_more_comes(tmp_path: Path) -> None:
    clock = ManualClock(datetime(2026, 11, 20, tzinfo=UTC))
    sealed: asyncio.Queue[Segment] = asyncio.Queue()
    journal = await Journal.open(tmp_path, segment_age_s=60, clock=clock, on_sealed=sealed.put_nowait)
    clock.advance(1000)
    await keep(journal, b"1\n")
    clock.advance(61)
    await keep(journal, b"2\n")
    first = await asyncio.wait_for(sealed.get(), DEADLINE_S)
    assert next(read(first)).lines == [b"1\n"]  # the second is in it or in the next, as the clock was looked at
    await journal.close()
    assert lines_of(tmp_path) == [b"1\n", b"2\n"]


async def test_an_empty_segment_is_never_sealed(tmp_path: Path) -> None:
    clock = ManualClock(datetime(2026, 11, 20, tzinfo=UTC))
    journal = await Journal.open(tmp_path, segment_age_s=60, clock=clock)
    clock.advance(3600)
    await journal.probe()
    await journal.close()
    assert [each.path.stat().st_size for each in segments(tmp_path)] == [0]  # it only keeps its number
    assert journal.figures.sealed == 0


async def test_a_number_is_never_used_twice(tmp_path: Path) -> None:
    numbers: list[int] = []
    for _ in range(3):
        journal = await Journal.open(tmp_path)
        await keep(journal, b"x\n")
        await journal.close()
        for segment in segments(tmp_path):
            if segment.state is State.SEALED:
                numbers.append(segment.number)
                delete(segment)
                delete(segment)
        await (await Journal.open(tmp_path)).close()  # nothing came, and nothing is left but the number
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 3
    assert lines_of(tmp_path) == []


async def test_a_journal_keeps_its_id(tmp_path: Path) -> None:
    first = await Journal.open(tmp_path)
    await first.close()
    again = await Journal.open(tmp_path)
    await again.close()
    assert first.id == again.id
    assert len(first.id) == 32


async def test_an_id_that_cannot_be_read_is_damage(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path)
    await journal.close()
    (tmp_path / "id").write_bytes(b"\xff\n")
    with pytest.raises(JournalDamaged, match="holds no id"):
        await Journal.open(tmp_path)


async def test_a_tail_follows_over_segments_and_lives(tmp_path: Path) -> None:
    tail = Tail(tmp_path)
    seen: list[bytes] = []

    def look() -> None:
        while frames := tail.read_more():
            seen.extend(line for frame in frames for line in frame.lines)

    look()
    lines = [b"%d\n" % number for number in range(60)]
    for half in (lines[:30], lines[30:]):
        journal = await Journal.open(tmp_path, segment_bytes=SMALL)
        look()
        for line in half:
            await keep(journal, line)
            look()
            assert seen[-1] == line
            await journal.probe()
            look()
        await journal.close()
        look()
    assert seen == lines
    tail.close()


async def test_a_tail_from_the_end_sees_only_what_comes(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path, segment_bytes=SMALL)
    for number in range(30):
        await keep(journal, b"%d\n" % number)
    tail = Tail(tmp_path, from_end=True)
    assert tail.read_more() == []
    await keep(journal, b"new\n")
    assert [frame.lines for frame in tail.read_more()] == [[b"new\n"]]
    await journal.close()
    tail.close()


async def test_a_tail_that_read_what_the_disk_then_refused_goes_on_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The frame can be seen until it is cut off; that it goes is no damage."""
    journal = await Journal.open(tmp_path, segment_bytes=SMALL)
    tail = Tail(tmp_path)
    seen: list[bytes] = []

    def look() -> None:
        seen.extend(line for frame in tail.read_more() for line in frame.lines)

    sync = os.fdatasync

    def refuse(fd: int) -> None:
        if refused in os.pread(fd, SMALL, 0):
            look()
            raise OSError(errno.EIO, "the disk fails, says the test")
        sync(fd)

    monkeypatch.setattr(os, "fdatasync", refuse)
    for before in (b"1\n", b""):  # the second time it is the first frame of its segment
        refused = b"refused after %r\n" % before
        if before:
            await keep(journal, before)
        with pytest.raises(JournalFailing):
            await keep(journal, refused)
        look()
        assert seen[-1] == refused
    await journal.close()
    journal = await Journal.open(tmp_path, segment_bytes=SMALL)
    await keep(journal, b"2\n")
    look()
    await journal.close()
    look()
    assert [line for line in seen if b"refused" not in line] == [b"1\n", b"2\n"]
    assert lines_of(tmp_path) == [b"1\n", b"2\n"]
    tail.close()


async def test_a_number_that_was_seen_is_not_used_again_by_a_life_after_one_without_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = await Journal.open(tmp_path, segment_bytes=SMALL)
    await keep(journal, b"1\n")
    await journal.close()
    tail = Tail(tmp_path)
    assert [frame.payload for frame in tail.read_more()] == [b"1\n"]
    journal = await Journal.open(tmp_path, segment_bytes=SMALL)
    sync = os.fdatasync
    with monkeypatch.context() as patch:

        def refuse(fd: int) -> None:
            if b"refused\n" not in os.pread(fd, SMALL, 0):
                sync(fd)  # zeros of the next segment, on another thread
                return
            seen.extend(frame.payload for frame in tail.read_more())
            raise OSError(errno.EIO, "the disk fails, says the test")

        seen: list[bytes] = []
        patch.setattr(os, "fdatasync", refuse)
        with pytest.raises(JournalFailing):
            await keep(journal, b"refused\n")
    assert seen == [b"refused\n"]
    await journal.close()
    await (await Journal.open(tmp_path, segment_bytes=SMALL)).close()
    journal = await Journal.open(tmp_path, segment_bytes=SMALL)
    await keep(journal, b"2\n")
    await journal.close()
    assert [frame.payload for frame in tail.read_more()] == [b"2\n"]
    assert [path for path in names(tmp_path) if path.endswith(".live")] == []
    tail.close()


async def test_what_the_disk_refused_before_somebody_asked_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A segment was being made when the disk was broken; the disk is whole when a line comes that waits for it."""
    sync, tried = os.fdatasync, 0

    def refuse(fd: int) -> None:
        nonlocal tried
        if threading.current_thread().name != "journal-keeper":
            sync(fd)
            return
        tried += 1
        if tried == 1:
            while not waits_in(Keeper.take):
                assert time.monotonic() < deadline_s
            raise OSError(errno.EIO, "the disk was broken, says the test")
        sync(fd)

    deadline_s = time.monotonic() + DEADLINE_S
    monkeypatch.setattr(os, "fdatasync", refuse)
    journal = await Journal.open(tmp_path, segment_bytes=SMALL)
    await keep(journal, b"1\n")
    await journal.close()
    assert (lines_of(tmp_path), caplog.messages) == ([b"1\n"], [])
    assert tried > 1


def waits_in(function: Callable[..., object]) -> bool:
    """Whether a thread waits for a condition, called by this function."""
    assert isinstance(function, FunctionType)
    wanted = {threading.Condition.wait.__code__, function.__code__}
    return any(wanted <= set(calls(innermost)) for innermost in sys._current_frames().values())


def calls(innermost: FrameType | None) -> Iterator[CodeType]:
    """What a thread is in, from the innermost call."""
    while innermost is not None:
        yield innermost.f_code
        innermost = innermost.f_back


async def test_a_segment_is_found_while_it_is_renamed_in_a_long_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of some hundred files is not read at once: what is renamed meanwhile may be in none of its pieces."""
    for number in (1, 2, 3):
        (tmp_path / f"{number:012}.live").touch()
    listed = os.listdir

    def in_pieces(folder: Path) -> list[str]:
        first = set(listed(folder))
        if (left := next((path for path in tmp_path.glob("*2.live")), None)) is not None:
            left.rename(left.with_suffix(".sealed"))
        return sorted(first & set(listed(folder)))

    monkeypatch.setattr(os, "listdir", in_pieces)
    assert [(each.number, each.state) for each in segments(tmp_path)] == [
        (1, State.LIVE), (2, State.SEALED), (3, State.LIVE),
    ]  # fmt: skip


async def test_readers_and_a_writer_do_not_disturb_each_other(tmp_path: Path) -> None:
    """A tail, and whole segments looked at and deleted, while a writer seals one after the other."""
    count = 2000
    tail = Tail(tmp_path)
    until_s = time.monotonic() + DEADLINE_S
    damages: list[Damage] = []

    def follow() -> list[bytes]:
        seen: list[bytes] = []
        while len(seen) < count and time.monotonic() < until_s:
            seen += [line for frame in tail.read_more() for line in frame.lines]
        return seen

    def check() -> None:
        for segment in segments(tmp_path):
            with contextlib.suppress(FileNotFoundError):
                damages.extend(verify(segment))
                inspect(segment)

    journal = await Journal.open(tmp_path, segment_bytes=SMALL, segment_age_s=0.01)
    following = asyncio.create_task(asyncio.to_thread(follow))
    lines = [b"%d %s\n" % (number, b"x" * (number % 3000)) for number in range(count)]
    for start in range(0, count, 20):
        await keep(journal, *lines[start : start + 20])
        if start % 200 == 0:
            await asyncio.to_thread(check)
    assert await following == lines
    await journal.close()
    assert damages == []
    assert lines_of(tmp_path) == lines
    tail.close()


async def test_a_torn_tail_is_cut_at_every_byte(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = await crashed(tmp_path / "was", b"first\n", b"second\n", b"the last frame of all\n")
    whole, begins = path.read_bytes(), 3 * BLOCK_BYTES
    ends = begins + HEADER_BYTES + len(b"the last frame of all\n")
    folder = tmp_path / "torn"
    folder.mkdir()
    (folder / "id").write_bytes((tmp_path / "was/id").read_bytes())
    for end in range(begins, ends + 1):
        path = folder / path.name
        path.write_bytes(whole[:end].ljust(len(whole), b"\0"))
        found = recover(folder, 0)
        is_torn = end < ends
        assert (found.frames, found.lines) == ((2, 2) if is_torn else (3, 3))
        assert found.torn_bytes == (len(whole[begins:end].rstrip(b"\0")) if is_torn else 0)
        assert found.torn_frames == (begins < end < ends)
        assert found.damages == []
        (sealed,) = segments(folder)
        assert sealed.state is State.SEALED
        assert len(lines_of(folder)) == found.lines
        assert verify(sealed) == []
        sealed.path.unlink()
    assert "never acknowledged" in caplog.text


async def test_a_torn_frame_counts_whichever_of_its_blocks_reached_the_disk(tmp_path: Path) -> None:
    long = b"x" * (3 * BLOCK_BYTES) + b"\n"
    path = await crashed(tmp_path / "was", b"first\n", long)
    whole, begins = path.read_bytes(), 2 * BLOCK_BYTES
    folder = tmp_path / "torn"
    folder.mkdir()
    (folder / "id").write_bytes((tmp_path / "was/id").read_bytes())
    for reached in itertools.product((False, True), repeat=4):
        torn = bytearray(whole)
        for number, there in enumerate(reached):
            if not there:
                start = begins + number * BLOCK_BYTES
                torn[start : start + BLOCK_BYTES] = bytes(BLOCK_BYTES)
        (folder / path.name).write_bytes(torn)
        found = recover(folder, 0)
        assert found.damages == []
        assert lines_of(folder) == ([b"first\n", long] if all(reached) else [b"first\n"])
        segments(folder)[0].path.unlink()


async def test_a_crash_while_sealing_is_finished_at_the_next_start(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path)
    await keep(journal, b"1\n")
    await journal.close()
    (sealed,) = segments(tmp_path)
    sealed.path.rename(sealed.path.with_suffix(".live"))
    (tmp_path / "000000000009.new").write_bytes(bytes(100))
    journal = await Journal.open(tmp_path)
    assert (journal.recovery.lines, journal.recovery.torn_bytes) == (1, 0)
    await journal.close()
    assert lines_of(tmp_path) == [b"1\n"]
    assert names(tmp_path) == ["000000000001.sealed", "id", "lock"]


async def test_what_a_later_segment_says_was_refused_is_not_read(tmp_path: Path) -> None:
    """The disk refused a frame and to cut it, and the process died; the frame is there all the same."""
    path = await crashed(tmp_path, b"acknowledged\n", b"refused\n")
    journal_id = bytes.fromhex(identity(tmp_path))
    number = int(path.stem) + 1
    blocks: list[bytes] = []
    for kind, offset, payload in (
        (frame.Kind.HEAD, 0, frame.head(journal_id)),
        (frame.Kind.CUTS, BLOCK_BYTES, frame.cuts([(int(path.stem), 2 * BLOCK_BYTES)])),
        (frame.Kind.FRAME, 2 * BLOCK_BYTES, b"later\n"),
    ):
        seed = frame.seed_of(journal_id) if offset else 0
        blocks += frame.build(kind, frame.Place(seed, number, offset), 0, 1, payload)[0]
    path.with_name(f"{number:012}.live").write_bytes(b"".join(blocks).ljust(SMALL, b"\0"))
    journal = await Journal.open(tmp_path)
    assert (journal.recovery.lines, journal.recovery.torn_frames) == (2, 1)
    await journal.close()
    assert lines_of(tmp_path) == [b"acknowledged\n", b"later\n"]


@pytest.fixture
async def damaged(tmp_path: Path) -> Path:
    """A sealed segment whose second frame of three was changed by something."""
    journal = await Journal.open(tmp_path)
    for line in (b"1\n", b"2\n", b"3\n"):
        await keep(journal, line)
    await journal.close()
    (sealed,) = segments(tmp_path)
    changed = bytearray(sealed.path.read_bytes())
    changed[2 * BLOCK_BYTES + HEADER_BYTES] ^= 1
    sealed.path.write_bytes(changed)
    return sealed.path


def test_damage_is_named_and_never_skipped(damaged: Path) -> None:
    (segment,) = segments(damaged.parent)
    (damage,) = verify(segment)
    assert (damage.path, damage.offset) == (damaged, 2 * BLOCK_BYTES)
    read_before: list[Frame] = []
    with pytest.raises(JournalDamaged, match=f"{damaged.name} is damaged at offset 8192"):
        read_before.extend(read(segment))
    assert [frame.lines for frame in read_before] == [[b"1\n"]]


def test_a_tail_tells_of_damage_once_and_goes_on_behind(damaged: Path) -> None:
    tail = Tail(damaged.parent)
    assert [frame.payload for frame in tail.read_more()] == [b"1\n"]
    with pytest.raises(JournalDamaged, match="8192"):
        tail.read_more()
    assert [frame.payload for frame in tail.read_more()] == [b"3\n"]
    assert tail.read_more() == []
    tail.close()


@pytest.mark.parametrize("blocks", [0, 0.5, 1, 2, 3])
def test_a_sealed_segment_that_lost_its_end_is_damaged(damaged: Path, blocks: float) -> None:
    damaged.write_bytes(damaged.read_bytes()[: int(blocks * BLOCK_BYTES)])
    (segment,) = segments(damaged.parent)
    assert len(verify(segment)) == 1
    assert inspect(segment).state == "damaged"
    with pytest.raises(JournalDamaged):
        list(read(segment))
    tail = Tail(damaged.parent)
    if blocks > 1:
        assert [frame.payload for frame in tail.read_more()] == [b"1\n"]
    with pytest.raises(JournalDamaged):
        tail.read_more()
    assert tail.read_more() == []


def test_a_disk_that_fails_behind_a_damage_is_told_once(damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give, tail = os.pread, Tail(damaged.parent)

    def fail(fd: int, count: int, offset: int) -> bytes:
        if offset == 3 * BLOCK_BYTES:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return give(fd, count, offset)

    monkeypatch.setattr(os, "pread", fail)
    assert [frame.payload for frame in tail.read_more()] == [b"1\n"]
    with pytest.raises(JournalDamaged, match="damaged at offset 12288: it cannot be read"):
        tail.read_more()
    assert tail.read_more() == []


@pytest.mark.parametrize("offset", [0, BLOCK_BYTES])
async def test_damage_in_what_a_crash_left_costs_only_the_damaged(
    tmp_path: Path, offset: int, caplog: pytest.LogCaptureFixture
) -> None:
    path = await crashed(tmp_path, b"1\n", b"2\n", b"3\n")
    changed = bytearray(path.read_bytes())
    changed[offset + HEADER_BYTES] ^= 1
    path.write_bytes(changed)
    with caplog.at_level(logging.ERROR):
        journal = await Journal.open(tmp_path)
    assert [damage.offset for damage in journal.recovery.damages] == [offset]
    assert f"damaged at offset {offset}" in caplog.text
    await keep(journal, b"4\n")
    await journal.close()
    left, new = segments(tmp_path)
    assert [damage.offset for damage in verify(left)] == [offset]
    assert inspect(left).lines == journal.recovery.lines == (3 if offset == 0 else 2)
    assert [frame.payload for frame in read(new)] == [b"4\n"]


async def test_what_is_forgotten_is_still_there_and_what_has_gone_can_be_forgotten(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path, segment_bytes=SMALL)
    await keep(journal, b"1\n")
    await journal.close()
    (sealed,) = [each for each in segments(tmp_path) if each.state is State.SEALED]
    forget(sealed)
    assert lines_of(tmp_path) == [b"1\n"]
    delete(sealed)
    forget(sealed)
    assert lines_of(tmp_path) == []


async def test_a_segment_that_is_deleted_while_it_is_listed_is_no_damage(tmp_path: Path) -> None:
    journal = await Journal.open(tmp_path)
    await keep(journal, b"1\n")
    await journal.close()
    (segment,) = segments(tmp_path)
    delete(segment)
    with pytest.raises(FileNotFoundError):
        list(read(segment))
    assert Tail(tmp_path).read_more() == []


async def test_a_segment_that_the_disk_does_not_give_costs_only_what_is_in_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = await crashed(tmp_path, b"lost\n")
    path.unlink()
    path.mkdir()  # what is no file cannot be read, whoever asks
    tail = Tail(tmp_path)
    journal = await Journal.open(tmp_path)
    assert [str(damage.path) for damage in journal.recovery.damages] == [str(path)]
    assert "it cannot be read (Is a directory)" in caplog.text
    await keep(journal, b"kept\n")
    await journal.close()
    left, new = segments(tmp_path)
    assert [(each.path, each.offset) for each in verify(left)] == [(left.path, 0)]
    assert inspect(left).state == "damaged"
    with pytest.raises(JournalDamaged, match=f"{left.path.name} is damaged at offset 0"):
        list(read(left))
    with pytest.raises(JournalDamaged, match=f"{left.path.name} is damaged at offset 0"):
        tail.read_more()
    assert [frame.payload for frame in tail.read_more()] == [b"kept\n"]
    assert tail.read_more() == []
    assert [(each.path, each.is_damaged) for each in holding(tmp_path, lambda line: line == b"kept\n")] == [
        (left.path, True),  # nobody can know
        (new.path, False),
    ]
    left.path.rmdir()
    tail.close()


async def test_a_segment_that_a_crash_left_and_that_cannot_be_written_keeps_nobody_from_writing_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await crashed(tmp_path, b"1\n", b"2\n")
    give = os.open

    def refuse(name: str, flags: int, *mode: int) -> int:
        if str(name) == str(path) and flags & os.O_RDWR:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        return give(name, flags, *mode)

    monkeypatch.setattr(os, "open", refuse)
    journal = await Journal.open(tmp_path)
    assert [damage.sentence for damage in journal.recovery.damages] == ["it cannot be sealed (Permission denied)"]
    await keep(journal, b"3\n")
    await journal.close()
    monkeypatch.undo()
    left, new = segments(tmp_path)
    with pytest.raises(JournalDamaged, match="has no end mark"):
        list(read(left))
    assert salvage(left) is not None
    assert [frame.payload for each in (left, new) for frame in read(each)] == [b"1\n", b"2\n", b"3\n"]


async def test_a_disk_that_fails_in_the_middle_of_a_segment_is_told_behind_what_it_gave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = await Journal.open(tmp_path)
    for line in (b"1\n", b"2\n", b"3\n"):
        await keep(journal, line)
    await journal.close()
    journal = await Journal.open(tmp_path)
    await keep(journal, b"4\n")
    await journal.close()
    give, tail = os.pread, Tail(tmp_path)

    def fail(fd: int, count: int, offset: int) -> bytes:
        if offset == 2 * BLOCK_BYTES:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return give(fd, count, offset)

    monkeypatch.setattr(os, "pread", fail)
    before = open_files()
    assert [frame.payload for frame in tail.read_more()] == [b"1\n"]
    with pytest.raises(JournalDamaged, match="damaged at offset 8192: it cannot be read"):
        tail.read_more()
    assert [damage.offset for damage in verify(segments(tmp_path)[0])] == [2 * BLOCK_BYTES]
    assert open_files() == before
    monkeypatch.undo()
    assert [frame.payload for frame in tail.read_more()] == [b"4\n"]
    tail.close()


# What people see.

LINE = b"c\t%032x\t1795176000000\tabcdef0123456789\tcurl/8\t\tstrict\tclient_id=a&n=%d\n"


@pytest.fixture
async def run(tmp_path: Path) -> Callable[..., Awaitable[Any]]:
    """`clickclock journal …` on a data folder with two journals, one of them still written."""

    async def call(*arguments: str) -> Any:
        everything = [*arguments, "--data-dir", str(tmp_path)]
        return await asyncio.to_thread(CliRunner().invoke, command, everything)

    return call


async def test_journals_can_be_looked_at_while_they_are_written(
    tmp_path: Path, run: Callable[..., Awaitable[Any]]
) -> None:
    assert "There is no journal." in (await run("inspect")).output
    first = await Journal.open(tmp_path / "journal/1")
    await keep(first, LINE % (1, 1), LINE % (2, 2))
    await first.close()
    second = await Journal.open(tmp_path / "journal/2")
    await keep(second, LINE % (3, 3))
    told = json.loads((await run("inspect", "--json")).output)
    assert [(each["slot"], each["lines"], each["taken"]) for each in told["journals"]] == [
        ("1", 2, False),
        ("2", 1, True),
    ]
    states = [(each["slot"], each["state"], each["lines"]) for each in told["segments"] if each["lines"]]
    assert states == [("1", "sealed", 2), ("2", "live", 1)]
    assert all(each["firstAt"].endswith("Z") for each in told["segments"] if each["lines"])
    text = await run("inspect")
    assert text.exit_code == 0
    assert first.id in text.output.replace("-", "")
    assert (await run("verify")).output == "Nothing is damaged.\n"
    seen = await run("tail", "--no-follow", "--json")
    assert [json.loads(line)["raw"] for line in seen.output.splitlines()] == [
        "client_id=a&n=1",
        "client_id=a&n=2",
        "client_id=a&n=3",
    ]
    assert "plain click  strict  client_id=a&n=3" in (await run("tail", "--no-follow")).output
    await second.close()


async def test_verify_names_the_file_and_the_offset_and_ends_with_1(
    tmp_path: Path, run: Callable[..., Awaitable[Any]]
) -> None:
    path = await crashed(tmp_path / "journal/1", b"1\n", b"2\n")
    seen = await run("tail", "--no-follow")
    assert "Not an entry" in seen.output
    changed = bytearray(path.read_bytes())
    changed[BLOCK_BYTES] ^= 1
    path.write_bytes(changed)
    told = await run("verify")
    assert told.exit_code == 1
    assert str(path) in told.output
    assert str(BLOCK_BYTES) in told.output
    as_json = await run("verify", "--json")
    assert as_json.exit_code == 1
    assert json.loads(as_json.output)["damages"][0]["offset"] == BLOCK_BYTES


async def test_the_names_of_new_folders_are_durable_before_there_is_a_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data" / "journal" / "0"
    synced: dict[int, bool] = {}
    sync = os.fsync

    def note(fd: int) -> None:
        sync(fd)
        synced.setdefault(os.fstat(fd).st_ino, (folder / "id").exists())

    monkeypatch.setattr(os, "fsync", note)
    await (await Journal.open(folder)).close()
    assert [synced.get(above.stat().st_ino) for above in folder.parents[:3]] == [False, False, False]

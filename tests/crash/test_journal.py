"""What was acknowledged is in the journal exactly once: after kill -9, a cut power, a disk that fails or is full."""

import asyncio
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from clickclock.attribution.errors import JournalFailing
from clickclock.attribution.journal import Journal, Segment, inspect, read, segments, verify
from clickclock.attribution.journal.frame import BLOCK_BYTES
from clickclock.attribution.journal.recovery import recover
from tests.crash.disk import Disk, by_luck, every, told
from tests.crash.journal_writer import SEGMENT_BYTES

ROOT = Path(__file__).parents[2]
DEADLINE_S = 60.0
LIVES = 12
SPAWNED = {"PYTHONPATH": os.pathsep.join(["src", *filter(None, sys.path)])}


def start(folder: Path, life: int, appenders: int = 8) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.crash.journal_writer", str(folder), str(life), str(appenders)],
        cwd=ROOT,
        env={**os.environ, **SPAWNED},
        stdout=subprocess.PIPE,
    )


def read_answers(writer: subprocess.Popen[bytes], count: int, sign: bytes = b"+") -> list[bytes]:
    """Answers of the writer, until there are `count` of this sign."""
    assert writer.stdout is not None
    answers: list[bytes] = []
    while sum(answer.startswith(sign) for answer in answers) < count:
        answers.append(writer.stdout.readline())
        assert answers[-1], "the writer ended by itself"
    return answers


def kill(writer: subprocess.Popen[bytes]) -> list[bytes]:
    """Kill it, and what it had still said."""
    writer.send_signal(signal.SIGKILL)
    rest, _ = writer.communicate(timeout=DEADLINE_S)
    return rest.splitlines(keepends=True)


def of_sign(answers: list[bytes], sign: bytes) -> set[bytes]:
    """The lines that were answered so. What was cut off by the kill was never said."""
    return {answer[2:-1] for answer in answers if answer.startswith(sign) and answer.endswith(b"\n")}


def journaled(folder: Path) -> Counter[bytes]:
    """How often each line is there, by what stands before its first space."""
    return Counter(
        line.split(b" ")[0].rstrip() for segment in segments(folder) for frame in read(segment) for line in frame.lines
    )


def test_whatever_is_killed_what_was_acknowledged_is_there_once(tmp_path: Path) -> None:
    luck = random.Random(1)
    answers: list[bytes] = []
    for life in range(LIVES):
        writer = start(tmp_path, life, appenders=luck.choice((1, 8, 100)))
        answers += read_answers(writer, luck.randrange(0, 600))
        answers += kill(writer)
    recover(tmp_path, 0)
    found = journaled(tmp_path)
    acknowledged = of_sign(answers, b"+")
    assert len(acknowledged) > 500
    assert acknowledged - found.keys() == set()
    assert [line for line, count in found.items() if count > 1] == []
    assert [verify(segment) for segment in segments(tmp_path)] == [[]] * len(segments(tmp_path))


def test_a_full_disk_is_told_and_passes_by_itself(tmp_path: Path) -> None:
    writer = start(tmp_path, 1)
    answers = read_answers(writer, 200)
    _, hard = resource.prlimit(writer.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(writer.pid, resource.RLIMIT_FSIZE, (512, hard))
    answers += read_answers(writer, 100, b"-")
    resource.prlimit(writer.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, hard))
    answers += read_answers(writer, 200)
    answers += kill(writer)
    recover(tmp_path, 0)
    found = journaled(tmp_path)
    assert of_sign(answers, b"+") - found.keys() == set()
    assert of_sign(answers, b"-") & found.keys() == set()
    assert max(found.values()) == 1


def lines_of(folder: Path) -> Counter[bytes]:
    """How often each line is there."""
    return Counter(line for segment in segments(folder) for frame in read(segment) for line in frame.lines)


async def write_on(folder: Path, disk: Disk, count: int) -> None:
    """Append `count` lines from a few callers, each of which sends a refused line again until it is taken."""
    journal = await Journal.open(folder, segment_bytes=SEGMENT_BYTES)
    left = iter(range(count))

    async def caller() -> None:
        for number in left:
            attempt = 0
            while True:
                line = b"%d-%d\n" % (number, attempt)
                answered = asyncio.Event()
                journal.append(line, told(disk, line, answered.set))
                await answered.wait()
                if line in disk.acknowledged:
                    break
                attempt += 1

    async with asyncio.timeout(DEADLINE_S):
        await asyncio.gather(*(caller() for _ in range(5)))
    await journal.close()


@pytest.mark.parametrize("seed", range(6))
async def test_a_cut_power_leaves_what_was_acknowledged(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At any system call; what was not synced is there or not, block by block."""
    disk = Disk(tmp_path / "disk", random.Random(seed))
    disk.image_every = 3
    with disk.under(monkeypatch):
        await write_on(disk.folder, disk, 200)
    assert len(disk.acknowledged) == 200
    assert len(disk.images) > 20
    for number, image in enumerate(disk.images):
        left = image.left_in(tmp_path / f"image-{number}")
        assert recover(left, 0).damages == []
        lines = lines_of(left)
        assert image.acknowledged - lines.keys() == set()
        assert max(lines.values(), default=1) == 1


FAILING = {
    "every 11th call": every(11),
    "every 13th call": every(13),
    "every 30th call": every(30),
    "3 %": by_luck(0.03, 1),
    "10 %": by_luck(0.1, 2),
    "15 %": by_luck(0.15, 3),
}
CUTS_AT_ONCE = {"every 11th call", "every 13th call", "every 30th call"}
"""Here the calls after a failed one do not fail, so the disk does let the journal cut what was refused."""


@pytest.mark.parametrize("failing", FAILING)
async def test_a_disk_that_fails_now_and_then_loses_and_doubles_nothing(
    tmp_path: Path, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(tmp_path / "disk", random.Random(failing))
    disk.image_every = 5
    with disk.under(monkeypatch):
        fails = FAILING[failing]
        disk.fails = lambda call: call > 20 and fails(call)
        await write_on(disk.folder, disk, 400)
        disk.fails = lambda _: False
        after = await Journal.open(disk.folder)
        await after.close()
    assert len(disk.acknowledged) == 400
    assert disk.refused
    lines = lines_of(disk.folder)
    assert disk.acknowledged - lines.keys() == set()
    assert disk.refused & lines.keys() == set()
    assert max(lines.values()) == 1
    for number, image in enumerate(disk.images):
        left = image.left_in(tmp_path / f"image-{number}")
        assert recover(left, 0).damages == []
        lines = lines_of(left)
        assert image.acknowledged - lines.keys() == set()
        assert failing not in CUTS_AT_ONCE or image.refused & lines.keys() == set()
        assert max(lines.values(), default=1) == 1


async def keep(journal: Journal, disk: Disk, line: bytes) -> None:
    answered = asyncio.Event()
    journal.append(line, told(disk, line, answered.set))
    await asyncio.wait_for(answered.wait(), DEADLINE_S)


async def refused_and_not_cut(disk: Disk) -> tuple[Journal, Segment]:
    """A journal whose disk has kept one line and refused the next, and to cut it; and the segment that has both."""
    journal = await Journal.open(disk.folder, segment_bytes=SEGMENT_BYTES)
    await keep(journal, disk, b"before\n")
    live = next(segment for segment in segments(disk.folder) if inspect(segment).lines)
    disk.breaks(live.path)
    await keep(journal, disk, b"refused\n")
    return journal, live


async def test_a_refused_line_that_could_not_be_cut_is_not_read_by_the_next_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write went through, the sync failed, cutting failed: the frame is there, whole, when the process dies."""
    disk = Disk(tmp_path / "disk", random.Random(0))
    with disk.under(monkeypatch):
        journal, live = await refused_and_not_cut(disk)
        await keep(journal, disk, b"after\n")
        # The next segment is being made meanwhile, and has nothing in it yet.
        left = shutil.copytree(disk.folder, tmp_path / "left", ignore=shutil.ignore_patterns("*.new"))
        disk.broken.clear()
        await journal.close()
    assert (disk.acknowledged, disk.refused) == ({b"before\n", b"after\n"}, {b"refused\n"})
    assert b"refused" in (left / live.path.name).read_bytes()
    assert recover(left, 0).torn_frames == 1
    assert lines_of(left) == lines_of(disk.folder) == {b"before\n": 1, b"after\n": 1}


async def test_a_refused_line_that_could_not_be_cut_is_not_read_when_no_line_came_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What says where to cut is in a segment without a line, and that stays until the other one is cut."""
    disk = Disk(tmp_path / "disk", random.Random(0))
    with disk.under(monkeypatch):
        journal, live = await refused_and_not_cut(disk)
        await journal.probe()
        await journal.close()
        disk.broken.clear()
        assert b"refused" in live.path.read_bytes()
        journal = await Journal.open(disk.folder)
        await keep(journal, disk, b"after\n")
        await journal.close()
    assert (disk.acknowledged, disk.refused) == ({b"before\n", b"after\n"}, {b"refused\n"})
    assert lines_of(disk.folder) == {b"before\n": 1, b"after\n": 1}
    assert [each.path.suffix for each in segments(disk.folder)] == [".sealed", ".sealed"]


async def test_a_disk_that_takes_nothing_is_told_at_once_and_to_probes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(tmp_path / "disk", random.Random(0))
    with disk.under(monkeypatch):
        journal = await Journal.open(disk.folder, segment_bytes=4 * BLOCK_BYTES)
        await journal.probe()
        disk.fails = lambda _: True
        for _ in range(3):
            with pytest.raises(JournalFailing, match="refuses to write"):
                await asyncio.wait_for(journal.probe(), DEADLINE_S)
        disk.fails = lambda _: False
        await asyncio.wait_for(journal.probe(), DEADLINE_S)
        disk.fails = lambda _: True
        await asyncio.wait_for(journal.close(), DEADLINE_S)
        journal = await asyncio.wait_for(Journal.open(disk.folder), DEADLINE_S)
        await keep(journal, disk, b"refused\n")
        with pytest.raises(JournalFailing, match="refuses to write"):
            await asyncio.wait_for(journal.probe(), DEADLINE_S)
        disk.fails = lambda _: False
        await keep(journal, disk, b"kept\n")
        await asyncio.wait_for(journal.close(), DEADLINE_S)
    assert (disk.acknowledged, disk.refused) == ({b"kept\n"}, {b"refused\n"})
    assert lines_of(disk.folder) == {b"kept\n": 1}

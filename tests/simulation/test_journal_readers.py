"""Whoever reads a journal while it is written, whatever becomes of its disk and its writer, sees what is true.

A real writer is recorded, over several lives, with a disk that fails now and then and a compactor that deletes; readers
are then put between its calls, in another order for each seed.
"""

import asyncio
import contextlib
import os
import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from clickclock.attribution.agents.watcher import Watcher
from clickclock.attribution.journal import Journal, State, Tail, delete, read, segments, verify
from clickclock.attribution.journal.frame import BLOCK_BYTES
from tests.simulation.journal_tape import REAL, Played, Recorder, Tape, between_calls

DEADLINE_S = 60.0
SEGMENT_BYTES = 8 * BLOCK_BYTES
LIVES = 3
LINES = 60
ORDERS = 12
"""Of one recording."""


async def live(recorder: Recorder, life: int, luck: random.Random, share: float, deleted: float) -> None:
    """Write some lines of all lengths; after a refused one comes the next. So large a `share` of the calls fails."""
    journal = await Journal.open(recorder.folder, segment_bytes=SEGMENT_BYTES)
    recorder.fails = lambda _: luck.random() < share
    loop = asyncio.get_running_loop()

    async def append(line: bytes) -> None:
        told: asyncio.Future[None] = loop.create_future()

        def done(error: Exception | None) -> None:
            recorder.note("refused" if error else "acknowledged", line)
            told.set_result(None)

        journal.append(line, done)
        await told

    async with asyncio.timeout(DEADLINE_S):
        for number in range(LINES):
            lines = [b"%d-%d-%d %s\n" % (life, number, each, b"x" * luck.randrange(0, 9000)) for each in range(2)]
            await asyncio.gather(*map(append, lines))
            if luck.random() < 0.1:
                with contextlib.suppress(Exception):
                    await journal.probe()
            if luck.random() < deleted:
                for segment in segments(recorder.folder):
                    if segment.state is State.SEALED and luck.random() < 0.5:
                        delete(segment)
    await journal.close()


async def record(
    folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch, *, share: float, lives: int = LIVES, deleted: float = 0.1
) -> Tape:
    """Several lives, each but the last killed at some call. So large a `share` of the calls fails."""
    luck = random.Random(seed)
    tape = Tape(journal_id=b"%032x\n" % luck.getrandbits(128))
    for life in range(lives):
        left = Played(folder / f"life-{life}", tape)
        left.play(len(tape.calls))
        left.close()
        recorder = Recorder(tape, left.folder, luck)
        begun = len(tape.calls)
        with recorder.recording(monkeypatch, left.files):
            await live(recorder, life, luck, share, deleted)
        if life < lives - 1:
            del tape.calls[luck.randrange(begun + 20, len(tape.calls)) :]
        shutil.rmtree(left.folder)
    return tape


class Follower:
    """Follows, and knows what it saw."""

    def __init__(self, folder: Path) -> None:
        self.seen: list[bytes] = []
        self._tail = Tail(folder)

    def look(self) -> bool:
        with contextlib.suppress(FileNotFoundError):  # compacted while it was opened
            found = [line for frame in self._tail.read_more() for line in frame.lines]
            self.seen += found
            return bool(found)
        return True

    def close(self) -> None:
        self._tail.close()


class Viewer:
    """Watches, is cut off now and then, and comes back where it was."""

    def __init__(self, folder: Path, luck: random.Random) -> None:
        self.seen: list[bytes] = []
        self.gaps: list[str] = []
        self._folder = folder
        self._luck = luck
        self._position = "-"
        self._watcher: Watcher | None = None

    def look(self) -> bool:
        if self._watcher is None:
            self._watcher = Watcher(self._folder, self._position)
            self._watcher.start()
        found = self._watcher.read_more(0)
        self.seen += [line for _, line in found.told]
        self.gaps += [gap for gap in found.gaps if "damaged" in gap]
        self._position = self._watcher.position
        if self._luck.random() < 0.05:
            self.close()
        return bool(found.told)

    def close(self) -> None:
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None


def look_at_all(folder: Path) -> None:
    for segment in segments(folder):
        with contextlib.suppress(FileNotFoundError):
            assert verify(segment) == []
            for frame in read(segment):
                assert frame.count == len(frame.lines)


def of(lines: list[bytes]) -> list[bytes]:
    return [line.split(b" ")[0] for line in lines]


@pytest.mark.parametrize("share", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("seed", range(4))
async def test_readers_see_what_is_true_whatever_they_look_between(
    tmp_path: Path, seed: int, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = await record(tmp_path, seed, monkeypatch, share=share)
    acknowledged = of(tape.lines("acknowledged"))
    assert acknowledged
    assert bool(tape.failures) is bool(share)
    assert share or not tape.lines("refused")
    for order in range(ORDERS):
        luck = random.Random(f"{seed} {share} {order}")
        journals = tmp_path / f"order-{order}"
        journals.mkdir()
        played = Played(journals / "0", tape)
        follower, viewer = Follower(played.folder), Viewer(journals, luck)
        looks: list[Callable[[], object]] = [follower.look, viewer.look, partial(look_at_all, played.folder)]
        with between_calls(played, luck, monkeypatch):
            while not played.is_over:
                luck.choice(looks)()
        played.close()
        left = of([line for each in segments(played.folder) for frame in read(each) for line in frame.lines])
        for reader in (follower, viewer):
            while reader.look():
                pass
            reader.close()
            seen = of(reader.seen)
            assert len(seen) == len(set(seen))
            assert set(left) - set(seen) == set()
            are_told, are_seen = set(acknowledged), set(seen)
            assert [line for line in seen if line in are_told] == [line for line in acknowledged if line in are_seen]
        assert viewer.gaps == []
        shutil.rmtree(journals)


async def test_a_segment_that_is_filled_while_the_next_one_is_looked_at_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = await record(tmp_path, 0, monkeypatch, share=0.0, lives=1, deleted=0.0)
    played = Played(tmp_path / "0", tape)
    while len(segments(played.folder)) < 2:  # made, and nothing is in them
        played.play(1)
    second = segments(played.folder)[1]
    follower = Follower(played.folder)

    def opened(path: Path, *others: int) -> int:
        if path == second.path:
            played.play(len(tape.calls))
        return int(REAL["open"](path, *others))

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", opened)
        while follower.look():
            pass
    played.close()
    follower.close()
    assert follower.seen == tape.lines("acknowledged")

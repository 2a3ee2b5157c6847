"""Sealed segments of the journals → the lake, each entry once; only then does a segment go.

Never touches a segment that is being written, or a journal that another compactor of this machine works on. What keeps
compactors on several machines apart is the lake: of two that load one segment, the second is refused.
Invariants: a segment is deleted only when every table has its rows for good; a damaged one is reported and left, and
the others go on; whenever we die, the next step does what was left, and nothing twice.

>>> Compacted(segments=2, rows=7).is_clean
True
"""

import asyncio
import atexit
import logging
import multiprocessing
import os
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from clickclock.attribution.errors import CompactionKilled, JournalDamaged, JournalFailing, JournalTaken
from clickclock.attribution.journal import (
    SALVAGE,
    Journal,
    Segment,
    State,
    delete,
    forget,
    identity,
    is_taken,
    read,
    sealed_held,
    segments,
    slots,
)
from clickclock.attribution.lake import Lake, Load, Overtaken, Tidied, Written
from clickclock.foundation import memory
from clickclock.foundation.advance import tell
from clickclock.foundation.clock import Clock

BATCH_BYTES_MAX: Final = 4 * 2**30
"""Bytes of one commit at most: more would only have to be done again after a crash."""
ALONE_BYTES_MAX: Final = 128 * 2**20
"""What one process writes alone: in half of that time another would only have started."""
TURNS_MAX: Final = 1000
"""As many places fit into any pipe; of more segments each place is a run."""
LOADING: Final = "Loading segments into the lake"
_PLACE_BYTES: Final = 4

_log = logging.getLogger(__name__)
_turns: Connection
"""Where it says which run is next, if this process was started by a compactor."""


@dataclass(frozen=True)
class Compacted:
    """What one step did."""

    segments: int = 0
    rows: int = 0
    damages: tuple[str, ...] = ()
    """A sentence for each segment that was left because it is damaged."""
    busy: tuple[Path, ...] = ()
    """Journals that another compactor works on."""
    tidied: Tidied = field(default_factory=Tidied)

    @property
    def is_clean(self) -> bool:
        """Whether nothing was left that cannot be loaded."""
        return not self.damages


@dataclass(frozen=True)
class Source:
    """A segment to be loaded, and the tables that lack it."""

    journal: str
    segment: Segment
    bytes: int
    lacking: frozenset[str]


@dataclass(frozen=True)
class Share:
    """What one process wrote: the files, the sources that are in them, and what is wrong with the others."""

    written: Written
    sources: tuple[Source, ...]
    damages: tuple[str, ...]


class Compactor:
    """Loads all journals under one folder into a lake."""

    def __init__(
        self, journals: Path, lake: Lake, clock: Clock, *, processes: int = 2, history_days: float = 7.0
    ) -> None:
        self._journals = journals
        self._lake = lake
        self._clock = clock
        self._processes = processes
        self._history_hours = round(history_days * 24)

    async def step(self) -> Compacted:
        """Load every sealed segment, and those that a collector which is gone has left.

        Raises `LakeUnreachable`, `CompactionKilled`.
        """
        folders = slots(self._journals)
        wrong = [sentence for folder in folders if (sentence := await _seal_what_was_left(folder))]
        return await asyncio.to_thread(self._load_all, folders, wrong)

    def _load_all(self, folders: Sequence[Path], damages: list[str]) -> Compacted:
        done = Compacted()
        with ExitStack() as locks:
            free: list[Path] = []
            busy: list[Path] = []
            for folder in folders:
                try:
                    (free if locks.enter_context(sealed_held(folder)) else busy).append(folder)
                except OSError as error:
                    damages.append(f"{folder} cannot be written, so nothing of it was loaded: {error.strerror}.")
            for batch in _batches(_named(free, damages)):
                loaded, rows, wrong = self._load(batch)
                damages += wrong
                done = Compacted(done.segments + loaded, done.rows + rows)
        tell("Merging small files of the lake")
        self._lake.renew(self._clock.epoch_ms())
        tidied = self._lake.tidy(history_hours=self._history_hours)
        return Compacted(done.segments, done.rows, tuple(damages), tuple(busy), tidied)

    def _load(self, batch: list[tuple[Path, str, Segment]]) -> tuple[int, int, tuple[str, ...]]:
        load = self._lake.load()
        sources = [
            Source(journal, segment, _bytes(segment), load.lacking(journal, segment.number))
            for _, journal, segment in batch
        ]
        shares = self._write([source for source in sources if source.lacking])
        damages = tuple(sentence for share in shares for sentence in share.damages)
        try:
            self._commit(load, batch, shares)
        except Overtaken as told:
            _log.warning("another compactor was faster (%s); what it left is done in the next step", told)
            return 0, 0, damages
        noted = [source for source in sources if not source.lacking]
        strange = self._strange(noted)
        damages += tuple(strange.values())
        gone = [source for share in shares for source in share.sources]
        gone += [source for source in noted if source not in strange]
        damages += tuple(filter(None, map(_delete, gone)))
        return len(gone), sum(share.written.rows for share in shares), damages

    def _strange(self, noted: Sequence[Source]) -> dict[Source, str]:
        """Of segments that all tables have noted, those that hold something else, each with a sentence.

        Two folders with one journal's id number their segments alike: of two with one number the lake takes the first.
        """
        found: dict[Source, str] = {}
        last: dict[Source, bytes] = {}
        for source in noted:
            try:
                for frame in read(source.segment):
                    if frame.payload:  # nothing is left of one that was erased
                        last[source] = frame.payload[frame.payload.rfind(b"\n", 0, -1) + 1 :]
            except JournalDamaged as damage:
                found[source] = f"{damage} {SALVAGE}"
            except FileNotFoundError:
                pass  # as it was to be
        absent = self._lake.absent(list(last.values()))
        for source, line in last.items():
            if line in absent:
                folder = source.segment.path.parent
                found[source] = (
                    f"{source.segment.path} is not in the lake, which has another segment of that journal and number: "
                    f"this data folder and another are copies. Stop what writes {folder}, and delete the file id in it."
                )
        return found

    def _commit(self, load: Load, batch: list[tuple[Path, str, Segment]], shares: list[Share]) -> None:
        loaded: dict[str, list[int]] = defaultdict(list)
        for share in shares:
            for source in share.sources:
                loaded[source.journal].append(source.segment.number)
        folders = {journal: folder for folder, journal, _ in batch}
        left_out = {
            journal: {each.number for each in segments(folder)}.difference(loaded[journal])
            for journal, folder in folders.items()
        }
        load.commit([share.written for share in shares], loaded, left_out)

    def _write(self, sources: list[Source]) -> list[Share]:
        """Have the files written, by as many processes as are worth it, of which this is one."""
        now_ms = self._clock.epoch_ms()
        length = len(sources) // TURNS_MAX + 1
        # The largest first: the smaller what is left for the end, the less one process waits for another there.
        falling = sorted(sources, key=lambda source: source.bytes, reverse=True)
        runs = [falling[start : start + length] for start in range(0, len(sources), length)]
        others = min(self._processes, len(runs)) - 1
        if sum(source.bytes for source in sources) <= ALONE_BYTES_MAX or not others:
            return [_write_share(self._lake, _told(sources), now_ms)]
        spawn = multiprocessing.get_context("spawn")
        turns, ahead = spawn.Pipe(duplex=False)
        with turns, ahead:
            # Each other process has a run of its own, or it might start for nothing.
            os.write(ahead.fileno(), b"".join(place.to_bytes(_PLACE_BYTES) for place in range(others, len(runs))))
            ahead.close()
            pool = ProcessPoolExecutor(others, spawn, initializer=_begin, initargs=(turns,))
            try:
                theirs = [pool.submit(_write_theirs, self._lake, runs, number, now_ms) for number in range(others)]
                ours = _write_share(self._lake, _in_turn(runs, turns), now_ms)
                return [ours, *(share.result() for share in theirs)]
            except BrokenProcessPool as error:
                raise CompactionKilled from error
            finally:
                pool.shutdown(wait=False)  # no commit need wait for their ends


def _begin(turns: Connection) -> None:
    global _turns  # noqa: PLW0603 (it can be handed over at the start of a process, and not later)
    _turns = turns
    memory.keep()
    # To take apart all that was loaded would take a quarter of a second, and nobody has use for it.
    atexit.register(os._exit, 0)


def _delete(source: Source) -> str | None:
    """Delete what is in the lake. If we die here, the next step finds the note, and only deletes."""
    try:
        delete(source.segment)
    except OSError as error:
        return f"{source.segment.path} is in the lake and cannot be deleted: {error.strerror}."
    return None


def _write_theirs(lake: Lake, runs: Sequence[Sequence[Source]], number: int, now_ms: int) -> Share:
    """The share of a process that we started, in that process."""
    return _write_share(lake, chain(runs[number], _in_turn(runs, _turns)), now_ms)


def _told(sources: Sequence[Source]) -> Iterator[Source]:
    """What one process takes alone."""
    for count, source in enumerate(sources):
        tell(LOADING, count, len(sources))
        yield source


def _in_turn(runs: Sequence[Sequence[Source]], turns: Connection) -> Iterator[Source]:
    """What this process takes: the next run whenever it has time for one, so that all end together.

    Whose turn it is needs no lock, which one who is killed could hold: a pipe gives each place away once.
    Places are given away in their order, so that a place also says how far all processes have come.
    """
    while place := os.read(turns.fileno(), _PLACE_BYTES):
        number = int.from_bytes(place)
        tell(LOADING, number * len(runs[0]), sum(map(len, runs)))
        yield from runs[number]


def _write_share(lake: Lake, sources: Iterable[Source], now_ms: int) -> Share:
    """Write what these segments hold."""
    writer = lake.writer(f"part-{uuid.uuid4().hex}", now_ms)
    good: list[Source] = []
    damages: list[str] = []
    for source in sources:
        number = source.segment.number
        try:
            writer.add(source.journal, number, (frame.payload for frame in read(source.segment)), source.lacking)
        except JournalDamaged as damage:
            damages.append(f"{damage} {SALVAGE}")
        except FileNotFoundError:
            pass  # a compactor of another machine was faster, or somebody took it away to mend it
        except ValueError as error:
            damages.append(f"{source.segment.path} has a line that is no entry: {error}.")
        else:
            good.append(source)
            forget(source.segment)  # here, and not while all wait for deletions
    return Share(writer.close(), tuple(good), tuple(damages))


def _named(folders: Sequence[Path], damages: list[str]) -> Iterator[tuple[Path, str]]:
    """Each journal with its id; those that lost theirs are reported."""
    for folder in folders:
        try:
            yield folder, identity(folder)
        except JournalDamaged as damage:
            if str(damage) not in damages:
                damages.append(str(damage))


def _bytes(segment: Segment) -> int:
    """None of one that has gone: it was sealed or compacted just now, or it leads nowhere."""
    try:
        return segment.path.stat().st_size
    except FileNotFoundError:
        return 0


def _batches(folders: Iterable[tuple[Path, str]]) -> Iterator[list[tuple[Path, str, Segment]]]:
    """One load: sealed segments of all journals, each journal's in their order."""
    batch: list[tuple[Path, str, Segment]] = []
    size = 0
    for folder, journal in folders:
        for segment in segments(folder):
            if segment.state is not State.SEALED:
                continue
            batch.append((folder, journal, segment))
            size += _bytes(segment)
            if size >= BATCH_BYTES_MAX:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


async def _seal_what_was_left(folder: Path) -> str | None:
    """Seal the live segment of a collector that is gone. Returns what is wrong with the journal."""
    left = [each for each in segments(folder) if each.state is State.LIVE and _bytes(each)]
    if not left or is_taken(folder):
        return None
    try:
        journal = await Journal.open(folder)
    except JournalTaken:
        return None  # it has just come back
    except (JournalDamaged, JournalFailing) as error:
        return str(error)
    await journal.close()
    return None

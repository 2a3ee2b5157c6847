"""The journal of imports: a line that somebody brings is kept there, unless it was kept before.

Never writes into the lake: the next compaction takes the journal's lines there, as it does the collectors'. Invariants:
of lines with one id one is kept, whether the first is in this journal or already in the lake, so that whatever was
interrupted is simply done again; one process writes at a time.

>>> journal = ImportJournal(folder, lake, SystemClock())   # doctest: +SKIP
>>> async with journal.open():   # doctest: +SKIP
...     kept = await journal.keep(items)
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow.compute as pc

from clickclock.attribution.clicks.entry import EntryKind
from clickclock.attribution.errors import JournalDamaged, JournalTaken
from clickclock.attribution.files.spool import Spool
from clickclock.attribution.importing.id_set import IdSet
from clickclock.attribution.journal import SALVAGE, Journal, is_taken, read, segments
from clickclock.attribution.lake import CLICKS, DAY, EVENTS, ORDERS, REJECTIONS, VIEWS, Lake
from clickclock.foundation.clock import Clock
from clickclock.foundation.instant import instant_of

SEGMENT_BYTES: Final = 64 * 2**20
BATCH_ENTRIES_MAX: Final = 2**16
BATCH_BYTES_MAX: Final = 64 * 2**20
"""Ids that are looked up in the lake at once: more saves reading, and costs memory."""
TAKEN_WAIT_S: Final = 2.0
"""A compactor that looks after the journal is done by then; another import is not."""
TABLE_OF: Final = {
    EntryKind.PLAIN_CLICK: CLICKS.name,
    EntryKind.CLICK: CLICKS.name,
    EntryKind.VIEW: VIEWS.name,
    EntryKind.REJECTION: REJECTIONS.name,
    EntryKind.ORDER: ORDERS.name,
    EntryKind.OTHER: EVENTS.name,
}
"""The table that an entry becomes a row of."""
_TAKEN: Final = (
    "Another import or replay runs with this data folder; wait until it has ended, then start this one again."
)


class Item(NamedTuple):
    """A line to be kept, unless one of its tables has the id: the first is its own."""

    id: str
    tables: tuple[str, ...]
    received_ms: int | None
    """None where nobody wrote it down: another import may have kept it under another one, its own time."""
    line: bytes


@dataclass(slots=True)
class Kept:
    """What became of lines."""

    new: Counter[str] = field(default_factory=Counter)
    """By the table of the lake that they belong to."""
    known: int = 0
    """Those that had been kept before."""


class ImportJournal:
    """The journal that all imports of a data folder share, in `folder`, and what `lake` has of it."""

    def __init__(self, folder: Path, lake: Lake, clock: Clock, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._folder = folder
        self._lake = lake
        self._clock = clock
        self._segment_bytes = segment_bytes
        self._journal: Journal | None = None
        self._written: dict[str, IdSet] = defaultdict(IdSet)
        """What the journal has and the lake may not have yet, by table."""

    def refuse_if_taken(self) -> None:
        """Raises `JournalTaken` if another process writes here, before any work is done."""
        if is_taken(self._folder):
            raise JournalTaken(_TAKEN)

    def spool(self) -> Spool:
        """A place for what may be kept, on the disk of the journal. Raises `JournalFailing`."""
        return Spool(next(each for each in (self._folder, *self._folder.parents) if each.exists()))

    @asynccontextmanager
    async def open(self, *, only_look: bool = False) -> AsyncIterator[None]:
        """Be ready to keep, or with `only_look` to say what would be kept.

        Raises `JournalTaken`, `JournalFailing`, `JournalDamaged`.
        """
        if only_look:
            self._read()
            yield
            return
        try:
            self._journal = await Journal.open(
                self._folder, segment_bytes=self._segment_bytes, clock=self._clock, taken_wait_s=TAKEN_WAIT_S
            )
        except JournalTaken as taken:
            raise JournalTaken(_TAKEN) from taken
        try:
            self._read()
            yield
        finally:
            await self._journal.close()
            self._journal = None

    def _read(self) -> None:
        """Before the lake is asked: what a compaction takes away meanwhile is found there."""
        for segment in segments(self._folder) if self._folder.exists() else ():
            ids: dict[str, list[str]] = defaultdict(list)
            try:
                for frame in read(segment):
                    for line in frame.lines:
                        kind, entry_id, _ = line.split(b"\t", 2)
                        ids[TABLE_OF[EntryKind(kind.decode())]].append(entry_id.decode())
            except FileNotFoundError:
                continue  # just compacted
            except JournalDamaged as damage:
                raise JournalDamaged(f"{damage} {SALVAGE}") from damage
            for table, found in ids.items():
                self._written[table].add(found)

    async def keep(self, items: Iterable[Item]) -> Kept:
        """Append what is new. Raises `JournalFailing`, `LakeUnreachable`."""
        kept = Kept()
        for batch, repeated in _batches(items):
            known = self._known(batch)
            fresh = [item for item in batch if known.isdisjoint((table, item.id) for table in item.tables)]
            kept.known += repeated + len(batch) - len(fresh)
            if self._journal is not None and fresh:
                await _append(self._journal, [item.line for item in fresh])
            for table, ids in _by_table(fresh, lambda item: item.tables[:1]).items():
                self._written[table].add(ids)
                kept.new[table] += len(ids)
        return kept

    def _known(self, batch: Sequence[Item]) -> set[tuple[str, str]]:
        """Which ids of the batch are there, each with the table."""
        dated = [item for item in batch if item.received_ms is not None]
        known: set[tuple[str, str]] = set()
        for items in (dated, [item for item in batch if item.received_ms is None]):
            for table, ids in _by_table(items, lambda item: item.tables).items():
                known |= {(table, entry_id) for entry_id in self._written[table].among(ids)}
                where = _around(items, ids) & pc.field("id").isin(ids)
                for found in self._lake.scan(table, where, ["id"]):
                    known |= {(table, entry_id) for entry_id in found["id"].to_pylist()}
        return known


def _around(items: Sequence[Item], ids: Sequence[str]) -> pc.Expression:
    """Where these can be at all: what each file's statistics tell, so that most files need not be read."""
    entry_id = pc.field("id")
    where = (entry_id >= min(ids)) & (entry_id <= max(ids))
    times = [item.received_ms for item in items if item.received_ms is not None]
    if times:
        first, last = (instant_of(ms) for ms in (min(times), max(times)))
        at, day = pc.field("received_at"), pc.field(DAY)
        where = where & (day >= first.date()) & (day <= last.date()) & (at >= first) & (at <= last)
    return where


def _batches(items: Iterable[Item]) -> Iterator[tuple[list[Item], int]]:
    """Items with different ids, some thousand at a time, and how many more there were with one of these."""
    batch: dict[str, Item] = {}
    size = count = 0
    for item in items:
        batch.setdefault(item.id, item)
        size += len(item.line)
        count += 1
        if len(batch) >= BATCH_ENTRIES_MAX or size >= BATCH_BYTES_MAX:
            yield list(batch.values()), count - len(batch)
            batch, size, count = {}, 0, 0
    if batch:
        yield list(batch.values()), count - len(batch)


def _by_table(items: Iterable[Item], tables: Callable[[Item], tuple[str, ...]]) -> dict[str, list[str]]:
    ids: dict[str, list[str]] = defaultdict(list)
    for item in items:
        for table in tables(item):
            ids[table].append(item.id)
    return ids


async def _append(journal: Journal, lines: Sequence[bytes]) -> None:
    """Return when all are on disk; raise what the journal said of the first that is not."""
    told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    left = len(lines)
    failure: Exception | None = None

    def done(error: Exception | None) -> None:
        nonlocal left, failure
        left -= 1
        failure = failure or error
        if not left and not told.done():
            told.set_result(None)

    for line in lines:
        journal.append(line, done)
    await told
    if failure is not None:
        raise failure

"""Brings requests of the past into the journal: clicks from archives, and rejections of the lake that are judged again.

Never writes into the lake: what it keeps is an entry of a journal of its own, and the next compaction takes it from
there. Invariants: nothing is kept before everything was looked at, unless what is unreadable may be left out; what was
kept once, in the lake or still in that journal, is not kept again, so that whatever was interrupted is simply done
again; a replayed rejection keeps its id, its time and where it came from.

>>> importer = Importer(folder, lake, accounts, SystemClock())   # doctest: +SKIP
>>> report = await importer.import_archives([Archive(Path("clicks.csv"), Format.CSV)])   # doctest: +SKIP
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow.compute as pc

from clickclock.attribution import click, retrial
from clickclock.attribution.account import Accounts
from clickclock.attribution.amendment import Kind
from clickclock.attribution.amendment import Rejection as OrderRejection
from clickclock.attribution.archive import Archive
from clickclock.attribution.entry import EntryKind, connection, encode
from clickclock.attribution.errors import JournalTaken
from clickclock.attribution.historical import Historical, Unusable, id_of, time_of
from clickclock.attribution.id_set import IdSet, Repeats
from clickclock.attribution.journal import Journal, is_taken, read, segments
from clickclock.attribution.lake import CLICKS, DAY, EVENTS, ORDERS, REJECTIONS, Lake
from clickclock.attribution.registration import line_of
from clickclock.foundation.clock import Clock
from clickclock.foundation.errors import Malformed

SHOWN_MAX: Final = 20
SEGMENT_BYTES: Final = 64 * 2**20
REASONS_MAX: Final = 100
"""Fields may be of anybody's making; a hundred different ones are enough to see what is wrong."""
BATCH_ENTRIES_MAX: Final = 2**16
BATCH_BYTES_MAX: Final = 64 * 2**20
"""What is looked up in the lake at once: more of it saves reading, and costs memory."""
TAKEN_WAIT_S: Final = 2.0
"""A compactor that looks after the journal is done by then; another import is not."""
_TABLE_OF: Final = {
    EntryKind.PLAIN_CLICK: CLICKS.name,
    EntryKind.CLICK: CLICKS.name,
    EntryKind.REJECTION: REJECTIONS.name,
    EntryKind.ORDER: ORDERS.name,
    EntryKind.OTHER: EVENTS.name,
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TAKEN: Final = (
    "Another import or replay runs with this data folder; wait until it has ended, then start this one again."
)
_NOWHERE: Final = connection("", b"", b"")


class UnreadableRow(NamedTuple):
    """A row that cannot be read, and why."""

    file: str
    number: int
    message: str


@dataclass(slots=True)
class Report:
    """What was looked at, what it was judged to be, and what became of it."""

    rows: int = 0
    """Looked at."""
    others: int = 0
    """Lines of a log that are of other requests."""
    unreadable: int = 0
    unreadable_rows: list[UnreadableRow] = field(default_factory=list)
    """The first `SHOWN_MAX`."""
    accepted: int = 0
    refused: int = 0
    left_alone: int = 0
    """Rejections that are never replayed, because the token was wrong or nobody asked for it."""
    flags: Counter[str] = field(default_factory=Counter)
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Of what was refused, by code and field; a row with two faults counts twice."""
    kept: Counter[str] = field(default_factory=Counter)
    """Entries that are new, by the table of the lake that they belong to."""
    known: int = 0
    """What had been kept before."""
    is_refused: bool = False
    """Whether nothing was kept because of what is unreadable."""

    def note_unreadable(self, archive: Archive, number: int, problem: Unusable) -> None:
        self.unreadable += 1
        if len(self.unreadable_rows) < SHOWN_MAX:
            self.unreadable_rows.append(UnreadableRow(str(archive.path), number, str(problem)))

    def note(self, judged: retrial.Accepted | click.Click | click.Rejection | OrderRejection) -> None:
        if isinstance(judged, retrial.Accepted | click.Click):
            self.accepted += 1
            self.flags.update(judged.flags)
            return
        self.refused += 1
        for fault in judged.faults:
            reason = (str(fault.code), fault.field)
            is_one_too_many = len(self.reasons) >= REASONS_MAX and reason not in self.reasons
            self.reasons[(reason[0], "…") if is_one_too_many else reason] += 1


@dataclass(frozen=True, slots=True)
class Which:
    """Rejections of the lake: of one client, received in `since <= … < until`."""

    client_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


class Item(NamedTuple):
    """A line to be kept, unless one of its tables has the id: the first is its own."""

    id: str
    tables: tuple[str, ...]
    received_ms: int | None
    """None where nobody wrote it down: another import may have kept it under another one, its own time."""
    line: bytes


class Importer:
    """What one command does. `folder` is the journal that all imports of a data folder share."""

    def __init__(
        self, folder: Path, lake: Lake, accounts: Accounts, clock: Clock, segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        self._folder = folder
        self._lake = lake
        self._accounts = accounts
        self._clock = clock
        self._segment_bytes = segment_bytes
        self._now_ms = clock.epoch_ms()
        """One for all rows, so that what is looked at twice is judged alike."""
        self._written: dict[str, IdSet] = defaultdict(IdSet)
        """What the journal has and the lake may not have yet, by table."""

    async def import_archives(
        self, archives: Sequence[Archive], *, skip_unreadable: bool = False, dry_run: bool = False
    ) -> Report:
        """Look at every row, then keep every click and rejection that is new.

        `dry_run` ends after the looking, and so does a row that is unreadable, unless such are to be left out. Raises
        `Malformed` for a file that cannot be read at all or changes meanwhile, `JournalTaken`, `JournalFailing`,
        `JournalDamaged`, `LakeUnreachable`; then the same call later does what is left.
        """
        if not dry_run and is_taken(self._folder):
            raise JournalTaken(_TAKEN)
        report = Report()
        versions = [archive.version() for archive in archives]
        repeats = [self._look_at(archive, report) for archive in archives]
        report.is_refused = bool(report.unreadable) and not skip_unreadable
        if dry_run or report.is_refused:
            return report
        async with self._journal() as journal:
            for archive, version, counts in zip(archives, versions, repeats, strict=True):
                _refuse_change(archive, version)
                await self._keep(self._items(archive, counts), journal, report)
                _refuse_change(archive, version)
        return report

    async def replay(self, which: Which, *, dry_run: bool = False) -> Report:
        """Judge rejections again, and keep what is accepted now. Raises as `import_archives` does."""
        report = Report()
        if dry_run:
            self._read_journal()
            await self._keep(self._retrials(which, report), None, report)
        else:
            async with self._journal() as journal:
                await self._keep(self._retrials(which, report), journal, report)
        return report

    def _look_at(self, archive: Archive, report: Report) -> Repeats:
        repeats = Repeats()
        for number, found in archive.rows():
            report.rows += 1
            if found is None:
                report.others += 1
                continue
            try:
                if isinstance(found, Unusable):
                    raise found
                time_ms = time_of(found, self._now_ms)
            except Unusable as problem:
                report.note_unreadable(archive, number, problem)
                continue
            repeats.note(_key(time_ms, found.query))
            report.note(self._judge(found, time_ms))
        repeats.close()
        return repeats

    def _items(self, archive: Archive, repeats: Repeats) -> Iterator[Item]:
        for _, found in archive.rows():
            try:
                if found is None or isinstance(found, Unusable):
                    continue
                time_ms = time_of(found, self._now_ms)
            except Unusable:
                continue
            nth = repeats.nth(_key(time_ms, found.query))
            judged = self._judge(found, time_ms)
            received_ms = self._received_ms(found, time_ms)
            entry_id = id_of(time_ms, found.query, nth)
            origin = connection("", found.agent, found.referer) if found.agent or found.referer else _NOWHERE
            # Refused once and accepted now, it becomes a click; never the other way round.
            tables = (CLICKS.name,) if isinstance(judged, click.Click) else (REJECTIONS.name, CLICKS.name)
            yield Item(entry_id, tables, found.received_ms, line_of(judged, entry_id, received_ms, origin, found.query))

    def _judge(self, found: Historical, time_ms: int) -> click.Click | click.Rejection:
        return click.judge(found.query, self._received_ms(found, time_ms), self._accounts)

    def _received_ms(self, found: Historical, time_ms: int) -> int:
        """When it came: as somebody wrote down, or else when it happened; where nobody knows, it comes now."""
        if found.received_ms is not None:
            return found.received_ms
        return time_ms if 0 < time_ms <= self._now_ms else self._now_ms

    def _retrials(self, which: Which, report: Report) -> Iterator[Item]:
        for batch in self._lake.scan(REJECTIONS.name, _condition(which)):
            for row in batch.to_pylist():
                report.rows += 1
                rejected = _rejected(row)
                if rejected.kind == Kind.UNAUTHORIZED:
                    report.left_alone += 1
                    continue
                judged = retrial.judge(rejected, self._accounts)
                if isinstance(judged, OrderRejection) and judged.kind is Kind.UNAUTHORIZED:
                    report.left_alone += 1
                    continue
                report.note(judged)
                if isinstance(judged, retrial.Accepted):
                    origin = connection(row["address"] or "", _bytes(row["user_agent"]), _bytes(row["referer"]))
                    received_ms = rejected.received_ms
                    line = encode(judged.kind, row["id"], received_ms, origin, judged.detail, judged.raw)
                    yield Item(row["id"], (_TABLE_OF[judged.kind],), received_ms, line)

    @asynccontextmanager
    async def _journal(self) -> AsyncIterator[Journal]:
        """The journal of imports, and what it holds already."""
        try:
            journal = await Journal.open(
                self._folder, segment_bytes=self._segment_bytes, clock=self._clock, taken_wait_s=TAKEN_WAIT_S
            )
        except JournalTaken as taken:
            raise JournalTaken(_TAKEN) from taken
        try:
            self._read_journal()
            yield journal
        finally:
            await journal.close()

    def _read_journal(self) -> None:
        """Before the lake is asked: what a compaction takes away meanwhile is found there."""
        for segment in segments(self._folder) if self._folder.exists() else ():
            ids: dict[str, list[str]] = defaultdict(list)
            try:
                for frame in read(segment):
                    for line in frame.lines:
                        kind, entry_id, _ = line.split(b"\t", 2)
                        ids[_TABLE_OF[EntryKind(kind.decode())]].append(entry_id.decode())
            except FileNotFoundError:
                continue  # just compacted
            for table, found in ids.items():
                self._written[table].add(found)

    async def _keep(self, items: Iterable[Item], journal: Journal | None, report: Report) -> None:
        """Append what is new; without a journal only count it."""
        for batch in _batches(items):
            known = self._known(batch)
            fresh = [item for item in batch if known.isdisjoint((table, item.id) for table in item.tables)]
            report.known += len(batch) - len(fresh)
            if journal is not None and fresh:
                await _append(journal, [item.line for item in fresh])
            for table, ids in _by_table(fresh, lambda item: item.tables[:1]).items():
                self._written[table].add(ids)
                report.kept[table] += len(ids)

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
        first, last = _instant(min(times)), _instant(max(times))
        at, day = pc.field("received_at"), pc.field(DAY)
        where = where & (day >= first.date()) & (day <= last.date()) & (at >= first) & (at <= last)
    return where


def _key(time_ms: int, query: bytes) -> int:
    return int.from_bytes(blake2b(b"%d " % time_ms + query, digest_size=8).digest())


def _refuse_change(archive: Archive, version: tuple[int, ...]) -> None:
    if archive.version() != version:
        raise Malformed(f"{archive.path} changed while it was read; import it again, nothing is doubled by that.")


def _batches(items: Iterable[Item]) -> Iterator[list[Item]]:
    batch: dict[str, Item] = {}
    size = 0
    for item in items:
        batch.setdefault(item.id, item)
        size += len(item.line)
        if len(batch) >= BATCH_ENTRIES_MAX or size >= BATCH_BYTES_MAX:
            yield list(batch.values())
            batch, size = {}, 0
    if batch:
        yield list(batch.values())


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


def _condition(which: Which) -> pc.Expression | None:
    at, day = pc.field("received_at"), pc.field(DAY)
    conditions = []
    if which.client_id is not None:
        conditions.append(pc.field("client_id") == which.client_id)
    if which.since is not None:
        conditions.append((day >= which.since.astimezone(UTC).date()) & (at >= which.since))
    if which.until is not None:
        conditions.append((day <= which.until.astimezone(UTC).date()) & (at < which.until))
    both: pc.Expression | None = None
    for condition in conditions:
        both = condition if both is None else both & condition
    return both


def _rejected(row: dict[str, Any]) -> retrial.Rejected:
    return retrial.Rejected(
        row["what"] or "click",
        row["kind"],
        row["client_id"],
        frozenset(fault["code"] for fault in row["faults"] or ()),
        (row["received_at"] - _EPOCH) // timedelta(milliseconds=1),
        row["raw"],
    )


def _instant(ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=ms)


def _bytes(text: str | None) -> bytes:
    return (text or "").encode()

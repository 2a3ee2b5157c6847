"""Brings requests of the past into the journal: clicks and orders of archives, and rejections that are judged again.

Never writes into the lake: what it keeps is an entry of a journal of its own, and the next compaction takes it from
there. Invariants: nothing is kept before everything was looked at, unless what is unreadable may be left out; what was
kept once, in the lake or still in that journal, is not kept again, so that whatever was interrupted is simply done
again; a replayed rejection keeps its id, its time and where it came from.

>>> importer = Importer(ImportJournal(folder, lake, clock), lake, accounts, clock)   # doctest: +SKIP
>>> report = await importer.import_clicks([Archive(Path("clicks.csv"), Format.CSV)])   # doctest: +SKIP
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import pyarrow.compute as pc

from clickclock.attribution.clicks import click
from clickclock.attribution.clicks.account import Accounts
from clickclock.attribution.clicks.entry import EntryKind, connection, encode
from clickclock.attribution.clicks.identifier import CUSTOMER
from clickclock.attribution.files.archive import SHOWN_MAX, Archive, FaultyRow
from clickclock.attribution.files.import_journal import TABLE_OF, ImportJournal, Item, Kept
from clickclock.attribution.importing.historical import Historical, Unusable, id_of, time_of
from clickclock.attribution.importing.id_set import Repeats
from clickclock.attribution.importing.order_row import OrderRow, of_record
from clickclock.attribution.lake import CLICKS, DAY, EVENTS, ORDERS, REJECTIONS, Lake
from clickclock.attribution.orders import amendment
from clickclock.attribution.registering import retrial
from clickclock.attribution.registering.identification import NAME, Identification, judge_fields
from clickclock.attribution.registering.registration import detail_of, line_of
from clickclock.foundation.clock import Clock
from clickclock.foundation.errors import Malformed
from clickclock.foundation.instant import ms_of

REASONS_MAX: Final = 100
"""Fields may be of anybody's making; a hundred different ones are enough to see what is wrong."""
_NOWHERE: Final = connection("", b"", b"")
OriginOf = Callable[[str, bytes, bytes, bytes], bytes]
"""The columns of an entry that say whence it came: from an address, `X-Forwarded-For`, the agent and the referer."""


def without_address(_peer: str, _forwarded: bytes, agent: bytes, referer: bytes) -> bytes:
    """The columns where nobody knows the salt: nothing of an address is kept."""
    return connection("", agent, referer) if agent or referer else _NOWHERE


Judged = click.Click | click.Rejection | amendment.Amendment | Identification | amendment.Rejection


@dataclass(slots=True)
class Report:
    """What was looked at, what it was judged to be, and what became of it."""

    rows: int = 0
    """Looked at."""
    others: int = 0
    """Lines of a log that are of other requests."""
    unreadable: int = 0
    unreadable_rows: list[FaultyRow] = field(default_factory=list)
    """The first `SHOWN_MAX`."""
    accepted: int = 0
    refused: int = 0
    refused_rows: list[FaultyRow] = field(default_factory=list)
    """Of files, the first `SHOWN_MAX`, each with every fault."""
    left_alone: int = 0
    """Rejections that are never replayed, because the token was wrong or nobody asked for it."""
    flags: Counter[str] = field(default_factory=Counter)
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Of what was refused, by code and field; a row with two faults counts twice."""
    kept: Counter[str] = field(default_factory=Counter)
    """Entries that are new, by the table of the lake that they belong to."""
    known: int = 0
    """What had been kept before."""
    open_ended: list[str] = field(default_factory=list)
    """Files whose last row may have been cut."""
    empty: list[str] = field(default_factory=list)
    """Files without any row: with a header at most."""
    is_refused: bool = False
    """Whether nothing was kept because of what is unreadable."""

    def note_unreadable(self, archive: Archive, number: int, problem: Unusable) -> None:
        self.unreadable += 1
        if len(self.unreadable_rows) < SHOWN_MAX:
            self.unreadable_rows.append(FaultyRow(str(archive.path), number, str(problem)))

    def note(self, judged: Judged | retrial.Accepted) -> None:
        if not isinstance(judged, click.Rejection | amendment.Rejection):
            self.accepted += 1
            if isinstance(judged, click.Click | retrial.Accepted):
                self.flags.update(judged.flags)
            elif isinstance(judged, amendment.Amendment) and judged.is_ahead:
                self.flags[click.Flag.EVENT_TIME_AHEAD] += 1
            return
        self.refused += 1
        for fault in judged.faults:
            reason = (str(fault.code), fault.field)
            is_one_too_many = len(self.reasons) >= REASONS_MAX and reason not in self.reasons
            self.reasons[(reason[0], "…") if is_one_too_many else reason] += 1

    def note_row(self, archive: Archive, number: int, judged: Judged) -> None:
        self.note(judged)
        if isinstance(judged, click.Rejection | amendment.Rejection) and len(self.refused_rows) < SHOWN_MAX:
            # A click's faults name their field themselves, unless it cannot be read.
            by_message = [
                fault.message if fault.message.startswith(fault.field) else f"{fault.field}: {fault.message}"
                for fault in judged.faults
            ]
            lines = judged.lines if isinstance(judged, amendment.Rejection) else by_message
            self.refused_rows.append(FaultyRow(str(archive.path), number, " ".join(lines)))

    def note_kept(self, kept: Kept) -> None:
        self.kept.update(kept.new)
        self.known += kept.known


@dataclass(frozen=True, slots=True)
class Which:
    """Rejections of the lake: of one client, received in `since <= … < until`."""

    client_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


class _Click(NamedTuple):
    """A click of a file, judged."""

    found: Historical
    time_ms: int
    received_ms: int
    judged: click.Click | click.Rejection
    origin: bytes

    @property
    def key(self) -> int | None:
        """Equal for those that are the same but for their number: the same click twice in a file is two clicks."""
        return int.from_bytes(blake2b(b"%d " % self.time_ms + self.found.query, digest_size=8).digest())

    def item(self, nth: int) -> Item:
        found = self.found
        entry_id = id_of(self.time_ms, found.query, nth)
        # Refused once and accepted now, it becomes a click; never the other way round.
        tables = (CLICKS.name,) if isinstance(self.judged, click.Click) else (REJECTIONS.name, CLICKS.name)
        line = line_of(self.judged, entry_id, self.received_ms, self.origin, found.query)
        return Item(entry_id, tables, found.received_ms, line)


class _Order(NamedTuple):
    """An order of a file, judged."""

    row: OrderRow
    received_ms: int
    judged: amendment.Amendment | amendment.Rejection

    @property
    def key(self) -> int | None:
        """None: the same said twice of an order is said once."""
        return None

    def item(self, _nth: int) -> Item:
        entry_id = self.row.id
        tables: tuple[str, ...]
        if isinstance(self.judged, amendment.Rejection):
            kind, detail, tables = EntryKind.REJECTION, detail_of(self.judged), (REJECTIONS.name, ORDERS.name)
        else:
            kind, detail, tables = EntryKind.ORDER, b"", (ORDERS.name,)
        line = encode(kind, entry_id, self.received_ms, _NOWHERE, detail, self.row.raw)
        return Item(entry_id, tables, self.row.received_ms, line)


class _Identified(NamedTuple):
    """An identification of a file, judged."""

    row: OrderRow
    received_ms: int
    judged: Identification | amendment.Rejection

    @property
    def key(self) -> int | None:
        """None: the same said twice is said once."""
        return None

    def item(self, _nth: int) -> Item:
        if isinstance(self.judged, Identification):
            kind, detail, raw, tables = EntryKind.OTHER, NAME.encode(), self.judged.query, (EVENTS.name,)
            line = encode(kind, self.row.id, self.received_ms, _NOWHERE, detail, raw)
            return Item(self.row.id, tables, self.row.received_ms, line)
        detail = detail_of(self.judged, "identification")
        line = encode(EntryKind.REJECTION, self.row.id, self.received_ms, _NOWHERE, detail, self.row.raw)
        return Item(self.row.id, (REJECTIONS.name, EVENTS.name), self.row.received_ms, line)


Brought = tuple[int, _Click | _Order | _Identified | Unusable | None]
"""A row's number in its file, and what it is; None is a log's line of another request."""


class Importer:
    """What one command does. `journal` is the one that all imports of a data folder share."""

    def __init__(
        self,
        journal: ImportJournal,
        lake: Lake,
        accounts: Accounts,
        clock: Clock,
        origin_of: OriginOf = without_address,
    ) -> None:
        self._origin_of = origin_of
        self._journal = journal
        self._lake = lake
        self._accounts = accounts
        self._now_ms = clock.epoch_ms()
        """One for all rows, so that what is looked at twice is judged alike."""

    async def import_clicks(
        self, archives: Sequence[Archive], *, skip_unreadable: bool = False, dry_run: bool = False
    ) -> Report:
        """Look at every row, then keep every click and rejection that is new.

        `dry_run` ends after the looking, and so does a row that is unreadable, unless such are to be left out. Raises
        `Malformed` for a file that cannot be read at all or changes meanwhile, `JournalTaken`, `JournalFailing`,
        `JournalDamaged`, `LakeUnreachable`; then the same call later does what is left.
        """
        return await self._import(archives, self._clicks, skip_unreadable=skip_unreadable, dry_run=dry_run)

    async def import_orders(
        self, archives: Sequence[Archive], *, skip_unreadable: bool = False, dry_run: bool = False
    ) -> Report:
        """The same for orders and their amendments."""
        return await self._import(archives, self._orders, skip_unreadable=skip_unreadable, dry_run=dry_run)

    async def import_identities(
        self, archives: Sequence[Archive], *, skip_unreadable: bool = False, dry_run: bool = False
    ) -> Report:
        """The same for identifications."""
        return await self._import(archives, self._identities, skip_unreadable=skip_unreadable, dry_run=dry_run)

    async def _import(
        self,
        archives: Sequence[Archive],
        bring: Callable[[Archive], Iterator[Brought]],
        *,
        skip_unreadable: bool,
        dry_run: bool,
    ) -> Report:
        if not dry_run:
            self._journal.refuse_if_taken()
        report = Report()
        versions = [archive.version() for archive in archives]
        repeats = [_look_at(archive, bring, report) for archive in archives]
        report.open_ended = [str(archive.path) for archive in archives if archive.is_open_ended()]
        report.is_refused = bool(report.unreadable) and not skip_unreadable
        if dry_run or report.is_refused:
            return report
        async with self._journal.open():
            for archive, version, counts in zip(archives, versions, repeats, strict=True):
                _refuse_change(archive, version)
                report.note_kept(await self._journal.keep(_items(bring(archive), counts)))
                _refuse_change(archive, version)
        return report

    async def replay(self, which: Which, *, dry_run: bool = False) -> Report:
        """Judge rejections again, and keep what is accepted now. Raises as `import_clicks` does."""
        report = Report()
        async with self._journal.open(only_look=dry_run):
            report.note_kept(await self._journal.keep(self._retrials(which, report)))
        return report

    def _clicks(self, archive: Archive) -> Iterator[Brought]:
        for number, found in archive.clicks():
            if not isinstance(found, Historical):
                yield number, found
                continue
            try:
                yield number, self._click(found)
            except Unusable as problem:
                yield number, problem

    def _click(self, found: Historical) -> _Click:
        time_ms = time_of(found, self._now_ms)
        received_ms = found.received_ms
        if received_ms is None:  # it came when it happened; where nobody knows, it comes now
            received_ms = time_ms if 0 < time_ms <= self._now_ms else self._now_ms
        judged = click.judge(found.query, received_ms, self._accounts)
        origin = self._origin_of(found.peer, found.forwarded, found.agent, found.referer)
        return _Click(found, time_ms, received_ms, judged, origin)

    def _orders(self, archive: Archive) -> Iterator[Brought]:
        admit = amendment.known_to(self._accounts)
        for number, row, received_ms in self._rows(archive, "order_id"):
            yield number, row if isinstance(row, Unusable) else _Order(row, received_ms, row.judge(received_ms, admit))

    def _identities(self, archive: Archive) -> Iterator[Brought]:
        admit = amendment.known_to(self._accounts)
        for number, row, received_ms in self._rows(archive, CUSTOMER):
            if isinstance(row, Unusable):
                yield number, row
            else:
                yield number, _Identified(row, received_ms, judge_fields(row.given, received_ms, admit))

    def _rows(self, archive: Archive, column: str) -> Iterator[tuple[int, OrderRow | Unusable, int]]:
        """Each row, and when it came; `column` must be there."""
        for number, found in archive.records(column):
            try:
                row = found if isinstance(found, Unusable) else of_record(found)
                yield number, row, 0 if isinstance(row, Unusable) else row.came_ms(self._now_ms)
            except Unusable as problem:
                yield number, problem, 0

    def _retrials(self, which: Which, report: Report) -> Iterator[Item]:
        for batch in self._lake.scan(REJECTIONS.name, _condition(which)):
            for row in batch.to_pylist():
                report.rows += 1
                rejected = _rejected(row)
                if rejected.kind == amendment.Kind.UNAUTHORIZED:
                    report.left_alone += 1
                    continue
                judged = retrial.judge(rejected, self._accounts)
                if isinstance(judged, amendment.Rejection) and judged.kind is amendment.Kind.UNAUTHORIZED:
                    report.left_alone += 1
                    continue
                report.note(judged)
                if isinstance(judged, retrial.Accepted):
                    origin = connection(row["address"] or "", _bytes(row["user_agent"]), _bytes(row["referer"]))
                    received_ms = rejected.received_ms
                    line = encode(judged.kind, row["id"], received_ms, origin, judged.detail, judged.raw)
                    yield Item(row["id"], (TABLE_OF[judged.kind],), received_ms, line)


def _look_at(archive: Archive, bring: Callable[[Archive], Iterator[Brought]], report: Report) -> Repeats:
    repeats = Repeats()
    rows_before = report.rows
    for number, found in bring(archive):
        report.rows += 1
        if found is None:
            report.others += 1
        elif isinstance(found, Unusable):
            report.note_unreadable(archive, number, found)
        else:
            if found.key is not None:
                repeats.note(found.key)
            report.note_row(archive, number, found.judged)
    repeats.close()
    if report.rows == rows_before:
        report.empty.append(str(archive.path))
    return repeats


def _items(rows: Iterator[Brought], repeats: Repeats) -> Iterator[Item]:
    for _, found in rows:
        if isinstance(found, _Click | _Order | _Identified):
            yield found.item(0 if found.key is None else repeats.nth(found.key))


def _refuse_change(archive: Archive, version: tuple[int, ...]) -> None:
    if archive.version() != version:
        raise Malformed(f"{archive.path} changed while it was read; import it again, nothing is doubled by that.")


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
        ms_of(row["received_at"]),
        row["raw"],
        frozenset(row["flags"] or ()),
    )


def _bytes(text: str | None) -> bytes:
    return (text or "").encode()

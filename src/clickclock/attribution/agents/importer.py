"""Brings requests of the past into the journal: clicks and orders of archives, and rejections that are judged again.

Never writes into the lake: what it keeps is an entry of a journal of its own, and the next compaction takes it from
there. Invariants: nothing is kept before everything was looked at, unless what is unreadable may be left out; what was
kept once, in the lake or still in that journal, is not kept again, so that whatever was interrupted is simply done
again; a replayed rejection keeps its id, its time and where it came from.

>>> importer = Importer(ImportJournal(folder, lake, clock), lake, accounts, clock)   # doctest: +SKIP
>>> report = await importer.import_clicks([Archive(Path("clicks.csv"), Format.CSV)])   # doctest: +SKIP
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from types import TracebackType
from typing import Any, Final, Self

import pyarrow.compute as pc

from clickclock.attribution.clicks import click
from clickclock.attribution.clicks.account import Accounts
from clickclock.attribution.clicks.consent import without_visitor
from clickclock.attribution.clicks.entry import EntryKind, connection, encode, unescape
from clickclock.attribution.clicks.identifier import CUSTOMER
from clickclock.attribution.files.archive import ROWS_AT_A_TIME, Rows
from clickclock.attribution.files.import_journal import TABLE_OF, ImportJournal, Item
from clickclock.attribution.files.spool import Spool, Spooled
from clickclock.attribution.importing.historical import Historical, Unusable, id_of, time_of
from clickclock.attribution.importing.id_set import Repeats
from clickclock.attribution.importing.order_row import OrderRow, of_mapped, of_record
from clickclock.attribution.lake import CLICKS, DAY, EVENTS, ORDERS, REJECTIONS, VIEWS, Lake
from clickclock.attribution.orders import amendment
from clickclock.attribution.registering import retrial
from clickclock.attribution.registering.identification import judge_fields
from clickclock.attribution.registering.import_report import Report
from clickclock.attribution.registering.judged_row import Brought, ClickRow, IdentificationRow, OrderEntry
from clickclock.foundation.clock import Clock
from clickclock.foundation.errors import Malformed
from clickclock.foundation.instant import ms_of

_NOWHERE: Final = connection("", b"", b"")
_TIME_DIGITS: Final = 12
"""Of an id, those that say its time in milliseconds."""
OriginOf = Callable[[str, bytes, bytes, bytes], bytes]
"""The columns of an entry that say whence it came: from an address, `X-Forwarded-For`, the agent and the referer."""


def without_address(_peer: str, _forwarded: bytes, agent: bytes, referer: bytes) -> bytes:
    """The columns where nobody knows the salt: nothing of an address is kept."""
    return connection("", agent, referer) if agent or referer else _NOWHERE


@dataclass(frozen=True, slots=True)
class Which:
    """Rejections of the lake: of one client, received in `since <= … < until`."""

    client_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Way:
    """How an import is done."""

    skip_unreadable: bool = False
    """Whether rows that cannot be read are left out; otherwise one of them stops it all."""
    dry_run: bool = False
    """Whether it ends after the looking."""
    heard: Callable[[int], None] = lambda _rows: None
    """Told of more rows that were looked at."""


@dataclass(slots=True)
class LookedAt:
    """What was looked at, and put aside. A context: when it ends, what was put aside is gone."""

    report: Report
    spool: Spool | None
    """None of a dry run."""
    table: str
    repeats: list[Repeats] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of what was put aside."""
        if self.spool is not None:
            self.spool.close()


class Importer:
    """What one command does. `journal` is the one that all imports of a data folder share."""

    def __init__(
        self,
        journal: ImportJournal,
        lake: Lake,
        accounts: Accounts,
        clock: Clock,
        origin_of: OriginOf = without_address,
        needs_token: retrial.NeedsToken = retrial.no_client,
    ) -> None:
        """`needs_token` says which orders that were refused are not taken without one."""
        self._needs_token = needs_token
        self._origin_of = origin_of
        self._journal = journal
        self._lake = lake
        self._accounts = accounts
        self._now_ms = clock.epoch_ms()
        """One for all rows, so that all are judged alike."""

    async def import_clicks(self, archives: Sequence[Rows], way: Way = Way()) -> Report:
        """Look at every row, then keep every click and rejection that is new.

        A row that is unreadable ends it after the looking, unless such are to be left out. Raises `Malformed` for a
        file that cannot be read at all or changes meanwhile, `JournalTaken`, `JournalFailing`, `JournalDamaged`,
        `LakeUnreachable`; then the same call later does what is left.
        """
        return await self._import(archives, CLICKS.name, way)

    async def import_orders(self, archives: Sequence[Rows], way: Way = Way()) -> Report:
        """The same for orders and their amendments."""
        return await self._import(archives, ORDERS.name, way)

    async def import_identities(self, archives: Sequence[Rows], way: Way = Way()) -> Report:
        """The same for identifications."""
        return await self._import(archives, EVENTS.name, way)

    async def _import(self, archives: Sequence[Rows], table: str, way: Way) -> Report:
        with self.looked_at(archives, table, way) as looked:
            if not way.dry_run:
                await self.keep(looked)
            return looked.report

    def looked_at(self, archives: Sequence[Rows], table: str, way: Way) -> "LookedAt":
        """Look at every row, as rows of this table of the lake, and put aside what `keep` would keep; close it then.

        Raises as `import_clicks` does.
        """
        if not way.dry_run:
            self._journal.refuse_if_taken()
        bring = {CLICKS.name: self._clicks, ORDERS.name: self._orders, EVENTS.name: self._identities}[table]
        report = Report()
        versions = [archive.version() for archive in archives]
        looked = LookedAt(report, None if way.dry_run else self._journal.spool(), table)
        try:
            for archive, version in zip(archives, versions, strict=True):
                looked.repeats.append(_look_at(archive, bring(archive, report), looked, way.heard))
                if archive.version() != version:
                    sentence = "changed while it was read; import it again, nothing is doubled by that."
                    raise Malformed(f"{archive.path} {sentence}")
            report.open_ended = [str(archive.path) for archive in archives if archive.is_open_ended()]
        except BaseException:
            looked.close()
            raise
        report.survey.tell(report)
        report.is_refused = bool(report.conflicts) or (bool(report.unreadable) and not way.skip_unreadable)
        return looked

    async def keep(self, looked: "LookedAt") -> None:
        """Keep what is new of what was looked at, unless that was refused. Raises as `import_clicks` does."""
        report, spool = looked.report, looked.spool
        if spool is None or report.is_refused:
            return
        async with self._journal.open():
            numbers = chain.from_iterable(each.numbers() for each in looked.repeats)
            kept = await self._journal.keep(_items(spool.lines(), numbers, looked.table))
        report.kept.update(kept.new)
        report.known += kept.known
        report.is_done = True

    async def replay(self, which: Which, *, dry_run: bool = False) -> Report:
        """Judge rejections again, and keep what is accepted now. Raises as `import_clicks` does."""
        report = Report()
        async with self._journal.open(only_look=dry_run):
            kept = await self._journal.keep(self._retrials(which, report))
        report.kept.update(kept.new)
        report.known += kept.known
        report.is_done = not dry_run
        return report

    def _clicks(self, archive: Rows, _report: Report) -> Iterator[Brought]:
        for number, found in archive.clicks():
            if not isinstance(found, Historical):
                yield number, found
                continue
            try:
                yield number, self._click(found)
            except Unusable as problem:
                yield number, problem

    def _click(self, found: Historical) -> ClickRow:
        time_ms = time_of(found, self._now_ms)
        received_ms = found.received_ms
        if received_ms is None:  # it came when it happened; where nobody knows, it comes now
            received_ms = time_ms if 0 < time_ms <= self._now_ms else self._now_ms
        judged = click.judge(found.query, received_ms, self._accounts)
        origin = self._origin_of(found.peer, found.forwarded, found.agent, found.referer)
        return ClickRow(found, time_ms, received_ms, judged, origin)

    def _orders(self, archive: Rows, report: Report) -> Iterator[Brought]:
        admit = amendment.known_to(self._accounts)
        seen = report.survey.of(str(archive.path), amends=archive.amends)
        for number, row, received_ms in self._rows(archive, "order_id"):
            if not isinstance(row, OrderRow):
                yield number, row
                continue
            seen(number, row)
            is_plain = not row.faults and amendment.is_plain(row.given, received_ms, admit)
            yield number, OrderEntry(row, received_ms, None if is_plain else row.judge(received_ms, admit))

    def _identities(self, archive: Rows, _report: Report) -> Iterator[Brought]:
        admit = amendment.known_to(self._accounts)
        for number, row, received_ms in self._rows(archive, CUSTOMER):
            if isinstance(row, OrderRow):
                yield number, IdentificationRow(row, received_ms, judge_fields(row.given, received_ms, admit))
            else:
                yield number, row

    def _rows(self, archive: Rows, column: str) -> Iterator[tuple[int, OrderRow | Unusable | None, int]]:
        """Each row, and when it came; `column` must be there. None is a row that is left out."""
        read: Callable[[Any], OrderRow] = of_mapped if archive.is_mapped else of_record
        for number, found in archive.records(column):
            if found is None or isinstance(found, Unusable):
                yield number, found, 0
                continue
            try:
                row = read(found)
                yield number, row, row.came_ms(self._now_ms)
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
                judged = retrial.judge(rejected, self._accounts, self._needs_token)
                if isinstance(judged, amendment.Rejection) and judged.kind is amendment.Kind.UNAUTHORIZED:
                    report.left_alone += 1
                    continue
                report.note(judged)
                if isinstance(judged, retrial.Accepted):
                    origin = connection(row["address"] or "", _bytes(row["user_agent"]), _bytes(row["referer"]))
                    if click.Flag.NO_CONSENT in judged.flags:
                        origin = without_visitor(origin)
                    received_ms = rejected.received_ms
                    line = encode(judged.kind, row["id"], received_ms, origin, judged.detail, judged.raw)
                    yield Item(row["id"], (TABLE_OF[judged.kind],), received_ms, line)


def _look_at(archive: Rows, rows: Iterator[Brought], looked: LookedAt, heard: Callable[[int], None]) -> Repeats:
    repeats, report, spool = Repeats(), looked.report, looked.spool
    rows_before = report.rows
    file = str(archive.path)
    for number, found in rows:
        report.rows += 1
        if not report.rows % ROWS_AT_A_TIME:
            heard(ROWS_AT_A_TIME)
        if found is None:
            report.others += 1
        elif isinstance(found, Unusable):
            report.note_unreadable(file, number, found)
        else:
            report.note_row(file, number, found.judged)
            if spool is not None:
                repeats.note(found.key)
                spool.add(found.line(), is_dated=found.is_dated)
    repeats.close()
    if report.rows == rows_before:
        report.empty.append(file)
    return repeats


def _items(lines: Iterator[Spooled], numbers: Iterator[int], table: str) -> Iterator[Item]:
    """What was put aside, to be kept unless `table` has it, or the rejections have what is one.

    Refused once and accepted now, a row comes in; never the other way round.
    """
    others = (table, VIEWS.name) if table == CLICKS.name else (table,)
    tables = {name: (name,) if name != REJECTIONS.name else (name, *others) for name in TABLE_OF.values()}
    for (is_dated, line), nth in zip(lines, numbers, strict=True):
        kind, entry_id, received_ms, rest = line.split(b"\t", 3)
        if nth:
            raw = unescape(rest.rpartition(b"\t")[2].removesuffix(b"\n"))
            entry_id = id_of(int(entry_id[:_TIME_DIGITS], 16), raw, nth).encode()
            line = b"\t".join((kind, entry_id, received_ms, rest))  # noqa: PLW2901 (the same click)
        found = TABLE_OF[EntryKind(kind.decode())]
        yield Item(entry_id.decode(), tables[found], int(received_ms) if is_dated else None, line)


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

"""Brings costs of ads from tables into the lake.

Never takes a part: of several files all rows come in, by one commit, or none does and every fault is named. Invariants:
what is imported last for a day and an ad counts, so an import that was cut off, or done twice, is simply done again;
amounts of two currencies are never added.

>>> importer = CostImporter(lake, accounts, SystemClock())   # doctest: +SKIP
>>> importer.load([Archive(Path("costs.csv"), Format.CSV)]).is_done   # doctest: +SKIP
True
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from clickclock.attribution.clicks.account import Accounts
from clickclock.attribution.crediting.policy import channel_of_cost
from clickclock.attribution.files.archive import SHOWN_MAX, Archive, FaultyRow
from clickclock.attribution.importing.cost import Cost, judge
from clickclock.attribution.importing.historical import Unusable
from clickclock.attribution.importing.table_row import fields
from clickclock.attribution.lake import COSTS, Lake
from clickclock.attribution.orders import money
from clickclock.attribution.orders.amendment import known_to
from clickclock.foundation.clock import Clock


class Sum(NamedTuple):
    """The costs of one client in one currency."""

    client_id: str
    first: date
    last: date
    rows: int
    amount: str
    currency: str


@dataclass(slots=True)
class CostsReport:
    """What was looked at, and what became of it."""

    rows: int = 0
    faulty: int = 0
    faulty_rows: list[FaultyRow] = field(default_factory=list)
    """The first `SHOWN_MAX`."""
    sums: list[Sum] = field(default_factory=list)
    open_ended: list[str] = field(default_factory=list)
    """Files whose last row may have been cut."""
    empty: list[str] = field(default_factory=list)
    """Files without any row: with a header at most."""
    is_done: bool = False
    """Whether the costs are in the lake."""

    def note_fault(self, archive: Archive, number: int, message: str) -> None:
        self.faulty += 1
        if len(self.faulty_rows) < SHOWN_MAX:
            self.faulty_rows.append(FaultyRow(str(archive.path), number, message))


class CostImporter:
    """What one command does."""

    def __init__(self, lake: Lake, accounts: Accounts, clock: Clock) -> None:
        self._lake = lake
        self._accounts = accounts
        self._admit = known_to(accounts)
        self._clock = clock

    def load(self, archives: Sequence[Archive], *, dry_run: bool = False) -> CostsReport:
        """Take every row of all files into the lake, or none.

        Raises `Malformed` for a file that cannot be read, `LakeUnreachable`.
        """
        now = self._clock.now()
        report = CostsReport()
        costs: dict[tuple[Any, ...], Cost] = {}
        places: dict[tuple[Any, ...], str] = {}
        for archive in archives:
            archive.version()  # which says why a file is not there
            rows_before = report.rows
            for number, found in self._costs(archive, now.date()):
                report.rows += 1
                if not isinstance(found, Cost):
                    report.note_fault(archive, number, found)
                elif found.key in costs:
                    sentence = f"{places[found.key]} has the cost of this day and ad already; add the two up."
                    report.note_fault(archive, number, sentence)
                else:
                    costs[found.key] = found
                    places[found.key] = f"Row {number} of {archive.path}"
            if report.rows == rows_before:
                report.empty.append(str(archive.path))
        report.open_ended = [str(archive.path) for archive in archives if archive.is_open_ended()]
        report.sums = _sums(costs.values())
        report.is_done = bool(costs) and not report.faulty and not dry_run
        if report.is_done:
            rows = [{**msgspec.structs.asdict(cost), "imported_at": now} for cost in costs.values()]
            self._lake.append(COSTS, pa.Table.from_pylist(rows, COSTS.whole), self._clock.epoch_ms())
        return report

    def _costs(self, archive: Archive, today: date) -> Iterator[tuple[int, Cost | str]]:
        """Every row's number, and its cost or what is wrong with it."""
        for number, found in archive.records("amount"):
            try:
                if isinstance(found, Unusable):
                    raise found
                judged = judge(fields(found), today, self._admit)
            except Unusable as problem:
                yield number, str(problem)
                continue
            if isinstance(judged, Cost):
                yield number, msgspec.structs.replace(judged, channel=self._channel(judged))
            else:
                yield number, " ".join(f"{fault.field}: {fault.message}" for fault in judged)

    def _channel(self, cost: Cost) -> str:
        """As the clicks of the account have it: one of its rules, or a network's."""
        account = self._accounts.find(cost.client_id) or self._accounts.default
        return channel_of_cost(cost.channel, account.channel_rules)


def _sums(costs: Iterable[Cost]) -> list[Sum]:
    by_account: dict[tuple[str, str], list[Cost]] = defaultdict(list)
    for cost in costs:
        by_account[cost.client_id, cost.currency].append(cost)
    return [
        Sum(
            client_id,
            min(cost.day for cost in found),
            max(cost.day for cost in found),
            len(found),
            money.to_text(sum(cost.amount_minor for cost in found), currency),
            currency,
        )
        for (client_id, currency), found in sorted(by_account.items())
    ]

"""Brings costs of ads from tables into the lake.

Never takes a part: of several files all rows come in, by one commit, or none does and every fault is named. Invariants:
what is imported last for a day and an ad counts, so an import that was cut off, or done twice, is simply done again;
amounts of two currencies are never added.

>>> importer = CostImporter(lake, accounts, SystemClock())   # doctest: +SKIP
>>> importer.load([Archive(Path("costs.csv"), Format.CSV)]).is_done   # doctest: +SKIP
True
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from clickclock.attribution.clicks.account import Accounts
from clickclock.attribution.crediting.policy import channel_of_cost
from clickclock.attribution.files.archive import Rows
from clickclock.attribution.importing.cost import Cost, judge
from clickclock.attribution.importing.faulty_row import SHOWN_MAX, FaultyRow
from clickclock.attribution.importing.historical import Unusable
from clickclock.attribution.importing.rates import NoRate
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
    """The counts of one import: rows read, taken and refused."""

    rows: int = 0
    others: int = 0
    """Rows that are left out: totals, remarks."""
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

    def note_fault(self, archive: Rows, number: int, message: str) -> None:
        self.faulty += 1
        if len(self.faulty_rows) < SHOWN_MAX:
            self.faulty_rows.append(FaultyRow(str(archive.path), number, message))


Convert = Callable[[Cost], Cost]


def as_it_is(cost: Cost) -> Cost:
    """The cost in its own currency."""
    return cost


class CostImporter:
    """What one command does."""

    def __init__(self, lake: Lake, accounts: Accounts, clock: Clock) -> None:
        self._lake = lake
        self._accounts = accounts
        self._admit = known_to(accounts)
        self._clock = clock

    def load(self, archives: Sequence[Rows], *, dry_run: bool = False, convert: Convert = as_it_is) -> CostsReport:
        """Take every row of all files into the lake, or none; `convert` puts a cost into another currency.

        Raises `Malformed` for a file that cannot be read, `LakeUnreachable`.
        """
        now = self._clock.now()
        report = CostsReport()
        costs: dict[tuple[Any, ...], Cost] = {}
        places: dict[tuple[Any, ...], str] = {}
        for archive in archives:
            archive.version()  # which says why a file is not there
            rows_before, before = report.rows, set(costs)
            for number, found in self._costs(archive, now.date(), convert):
                report.rows += 1
                if found is None:
                    report.others += 1
                elif not isinstance(found, Cost):
                    report.note_fault(archive, number, found)
                elif found.key in costs and archive.adds_up and found.key not in before:
                    if costs[found.key].currency != found.currency:
                        sentence = (
                            f"{places[found.key]} has the cost in {costs[found.key].currency}; import them apart."
                        )
                        report.note_fault(archive, number, sentence)
                    costs[found.key] = _sum(costs[found.key], found)
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

    def _costs(self, archive: Rows, today: date, convert: Convert) -> Iterator[tuple[int, Cost | str | None]]:
        """Every row's number, and its cost or what is wrong with it; None is a row that is left out."""
        for number, found in archive.records("amount"):
            if found is None:
                yield number, None
                continue
            try:
                if isinstance(found, Unusable):
                    raise found
                judged = judge(fields(found), today, self._admit)
            except Unusable as problem:
                yield number, str(problem)
                continue
            if isinstance(judged, Cost):
                try:
                    yield number, convert(replace(judged, channel=self._channel(judged)))
                except NoRate as none:
                    yield number, str(none)
            else:
                yield number, " ".join(f"{fault.field}: {fault.message}" for fault in judged)

    def _channel(self, cost: Cost) -> str:
        """As the clicks of the account have it: one of its rules, or a network's."""
        account = self._accounts.find(cost.client_id) or self._accounts.default
        return channel_of_cost(cost.channel, account.channel_rules)


def _sum(one: Cost, other: Cost) -> Cost:
    return replace(one, amount_minor=one.amount_minor + other.amount_minor)


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

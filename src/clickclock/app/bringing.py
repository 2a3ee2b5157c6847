"""What was recognised, looked at from the first row to the last, and then kept: clicks, orders and costs together.

Never keeps anything before everything was looked at. Invariants: costs in another currency than the orders are refused,
unless a table of rates says what they are; what was interrupted is simply done again.

>>> bring(config, seen, Choices(), agree=lambda brought: True).is_kept   # doctest: +SKIP
True
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pyarrow.compute as pc
from msgspec.structs import replace

from clickclock.app.accounts import accounts_of
from clickclock.app.data_folder import make_data_dir
from clickclock.app.importing import importer_of, origins_of
from clickclock.app.lake import lake_of
from clickclock.app.lake_lock import among_others
from clickclock.app.recognising import LOG, MAPPINGS, Seen
from clickclock.attribution.agents.cost_importer import Convert, CostImporter, CostsReport, as_it_is
from clickclock.attribution.agents.importer import Way, without_address
from clickclock.attribution.files.archive import Archive, format_of
from clickclock.attribution.files.mapped_archive import MappedArchive
from clickclock.attribution.files.mapping_files import keep
from clickclock.attribution.importing.cost import Cost
from clickclock.attribution.importing.file_mapping import Kind
from clickclock.attribution.importing.historical import Unusable
from clickclock.attribution.importing.rates import Rates
from clickclock.attribution.importing.table_row import fields
from clickclock.attribution.lake import CLICKS, ORDERS, Lake
from clickclock.attribution.registering.import_report import Report
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.errors import Malformed


class Choices(msgspec.Struct, frozen=True):
    """How files are brought in."""

    skip_unreadable: bool = False
    dry_run: bool = False
    rates: Path | None = None
    heard: Callable[[int], None] = lambda _rows: None
    """Told of more rows that were looked at."""


@dataclass(slots=True)
class Brought:
    """What was looked at, and what became of it."""

    reports: dict[str, Report] = field(default_factory=dict)
    """By `clicks` and `orders`, where there are such files."""
    costs: CostsReport | None = None
    left_out: dict[str, dict[str, int]] = field(default_factory=dict)
    """For each file, how many rows were left out, by what they say."""
    currency_conflict: str = ""
    """Why the costs cannot be compared with the orders; empty if they can."""
    mappings: list[Path] = field(default_factory=list)
    """Where mappings were kept."""
    is_kept: bool = False

    @property
    def is_refused(self) -> bool:
        """Whether nothing can be kept because of what is unreadable, contradicts itself, or has no rate."""
        is_bad = self.costs is not None and bool(self.costs.faulty)
        return is_bad or bool(self.currency_conflict) or any(each.is_refused for each in self.reports.values())


def bring(config: Config, seen: Sequence[Seen], choices: Choices, agree: Callable[[Brought], bool]) -> Brought:
    """Look at every row of all files, ask, and keep what is new.

    Raises `Malformed` for a file that cannot be read or changes meanwhile, `JournalTaken`, `JournalFailing`,
    `JournalDamaged`, `LakeUnreachable`; then the same call later does what is left.
    """
    if not choices.dry_run:
        make_data_dir(config.data_dir)
    return asyncio.run(_bring(config, seen, choices, agree))


async def _bring(config: Config, seen: Sequence[Seen], choices: Choices, agree: Callable[[Brought], bool]) -> Brought:
    brought = Brought()
    rates = None if choices.rates is None else _rates(choices.rates)
    way = Way(skip_unreadable=choices.skip_unreadable, dry_run=choices.dry_run, heard=choices.heard)
    importer = importer_of(config, without_address if choices.dry_run else origins_of(config))
    costs = CostImporter(lake_of(config), accounts_of(config), SystemClock())
    rows = {
        CLICKS.name: [each.rows for each in seen if each.kind in (Kind.CLICKS, LOG)],
        ORDERS.name: [each.rows for each in seen if each.kind == Kind.ORDERS],
    }
    of_costs = [each.rows for each in seen if each.kind == Kind.COSTS]
    with ExitStack() as stack:
        looked = [stack.enter_context(importer.looked_at(each, name, way)) for name, each in rows.items() if each]
        brought.reports = {each.table: each.report for each in looked}
        convert: Convert = as_it_is
        if of_costs:
            brought.costs = costs.load(of_costs, dry_run=True)
            orders = brought.reports.get(ORDERS.name)
            wanted = _order_currencies(config, brought.costs, {} if orders is None else orders.survey.currencies)
            brought.currency_conflict = _conflict(brought.costs, wanted)
            if brought.currency_conflict and rates is not None:
                convert = _converter(rates, wanted)
                brought.costs = costs.load(of_costs, dry_run=True, convert=convert)
                brought.currency_conflict = ""
        brought.left_out = {
            str(each.path): {f"{name}: {value}" if name else value: rows for (name, value), rows in found.items()}
            for each in seen
            if isinstance(each.rows, MappedArchive) and (found := each.rows.left_out)
        }
        if choices.dry_run or brought.is_refused or not agree(brought):
            return brought
        for each in looked:
            await importer.keep(each)
        if of_costs:
            with among_others(config):
                brought.costs = costs.load(of_costs, convert=convert)
    brought.is_kept = True
    for file in seen:
        if isinstance(file.rows, MappedArchive) and file.grid is not None and file.mapping is not None:
            brought.mappings.append(keep(config.data_dir / MAPPINGS, file.grid.header, file.mapping))
    return brought


def _rates(path: Path) -> Rates:
    """The table of rates in a file. Raises `Malformed`, `Invalid`."""
    form = format_of(path)
    if form is None:
        raise Malformed(f"{path}: its ending does not say what it is; name it .csv, .ndjson or .parquet.")
    found = []
    for number, record in Archive(path, form).records("rate"):
        if record is None or isinstance(record, Unusable):
            raise Malformed(f"{path}, line {number:,} cannot be read: {record}.")
        found.append(fields(record))
    return Rates(found)


def _order_currencies(config: Config, costs: CostsReport, here: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The currencies of the orders of each client that has costs: those of this import, and those of the lake."""
    found: dict[str, set[str]] = defaultdict(set)
    lake = lake_of(config)
    for client_id in {each.client_id for each in costs.sums}:
        found[client_id] = set(here.get(client_id, ())) or _in_lake(lake, client_id)
    return found


def _in_lake(lake: Lake, client_id: str) -> set[str]:
    currencies: set[str] = set()
    for batch in lake.scan(ORDERS.name, pc.field("client_id") == client_id, ["currency"]):
        currencies |= set(pc.unique(batch["currency"]).to_pylist())
    return currencies - {None}


def _conflict(costs: CostsReport, wanted: Mapping[str, set[str]]) -> str:
    for each in costs.sums:
        orders = wanted[each.client_id]
        if orders and each.currency not in orders:
            both = f"The costs of {each.client_id} are in {each.currency} and its orders in {', '.join(sorted(orders))}"
            return f"{both}, so no return can be computed. Give a table of rates (from, to, rate, day): --rates FILE."
    return ""


def _converter(rates: Rates, wanted: Mapping[str, set[str]]) -> Convert:
    def convert(cost: Cost) -> Cost:
        orders = wanted[cost.client_id]
        if not orders or cost.currency in orders:
            return cost
        to = min(orders)
        minor = rates.converted(cost.amount_minor, cost.currency, to, cost.day)
        return replace(cost, amount_minor=minor, currency=to)

    return convert

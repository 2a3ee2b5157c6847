"""A result version, and what was paid for ads → a report.

Never changes the lake. Invariants: one report is of one version, all its tables as that version stands for them; the
same question about the same version has the same answer, until other costs are imported.

>>> Reporter(lake, engine).report(Asked(version=3)).rows   # doctest: +SKIP
"""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain
from operator import and_
from typing import IO, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clickclock.attribution.clicks.account import small_letters
from clickclock.attribution.crediting.policy import Policies, Policy, channel_of_cost
from clickclock.attribution.engines import Engine, Source
from clickclock.attribution.errors import EngineFailing
from clickclock.attribution.importing.csv_cell import as_cell
from clickclock.attribution.lake import (
    ADS,
    CLICKS,
    COSTS,
    CREDITS,
    IDENTITIES,
    TOUCHES,
    VIEW_ADS,
    VIEW_TOUCHES,
    VIEWS,
    Lake,
    Table,
    credits_table,
    of_clients,
)
from clickclock.attribution.orders.amendment import KIND, PURCHASE
from clickclock.attribution.report_query import (
    calendar,
    counted,
    credits_of,
    first_orders,
    learnt_schema,
    of_credits,
    of_touchpoints,
    span,
)
from clickclock.attribution.reporting.comparison import before, compared
from clickclock.attribution.reporting.every_day import with_every_day
from clickclock.attribution.reporting.figures import (
    MONEY,
    OF_HOLDOUT,
    WITHOUT_VIEWS,
    Against,
    Customer,
    Dimension,
    Figure,
    Form,
)
from clickclock.attribution.reporting.holdout import held_out, questions
from clickclock.attribution.reporting.model_comparison import of_every_model, side_by_side
from clickclock.attribution.reporting.report import (
    COUNTS,
    ROWS_MAX,
    Asked,
    Counted,
    Key,
    Report,
    TooManyRows,
    arrange,
    as_text,
    find,
)
from clickclock.attribution.reporting.result import Result

_AMOUNT: Final = pa.decimal128(38, 4)
"""No currency has more digits."""


class Reporter:
    """Reports over one lake."""

    def __init__(self, lake: Lake, engine: Engine) -> None:
        """The engine is the caller's to close."""
        self._lake = lake
        self._engine = engine

    def report(self, asked: Asked) -> Report:
        """Answer. Raises `NoVersion`, `VersionGone`, `Malformed` if the version lacks a model, `TooManyRows`."""
        if asked.compare is Against.MODELS:
            return side_by_side(self._report(of_every_model(asked)), asked)
        if asked.holdout:
            during, earlier = questions(asked)
            now = self._report(during)
            return held_out(now, self._report(msgspec.structs.replace(earlier, version=now.version)), asked)
        now = self._report(asked)
        if asked.compare is None:
            return with_every_day(now) if asked.every_day else now
        earlier = msgspec.structs.replace(before(asked), version=now.version)
        return compared(now, self._report(earlier))

    def _report(self, asked: Asked) -> Report:
        result = find(self._lake.results(), asked.version)
        if asked.figures == tuple(Figure) and result.view_touches_version is None:
            asked = msgspec.structs.replace(asked, figures=WITHOUT_VIEWS)
        models = asked.choose(sorted(chain(*self._lake.models(result))))
        try:
            rows, notes = arrange(asked, models, self._counted(asked, models, result))
        except EngineFailing:
            self._check(result)  # most often its files have been deleted meanwhile
            raise
        return Report(
            asked=asked,
            version=result.version,
            created_at=result.created_at,
            models=models,
            rows=rows,
            notes=notes,
        )

    def _check(self, result: Result) -> None:
        """See whether all files of a version are still there. Raises `VersionGone`."""
        for table in (CREDITS, *(each.name for each in (TOUCHES, ADS, IDENTITIES, VIEW_TOUCHES, VIEW_ADS))):
            if result.reads(table) is not None:
                for _ in self._lake.scan(table, columns=[], version=result.reads(table)):
                    pass

    def _counted(
        self, asked: Asked, models: tuple[str, ...], result: Result
    ) -> Iterator[tuple[Key, str | None, Counted]]:
        stored, _ = self._lake.models(result)
        own, learnt = ([model for model in models if (model in stored) is is_stored] for is_stored in (True, False))
        tables = self._tables(asked, own, result)
        if learnt:
            tables["learnt"] = self._learnt(asked, learnt, result)
        count = 0
        wanted = counted(asked, own, learnt, there=self._lake.columns_of_credits(result))
        for batch in self._engine.query(wanted, tables):
            count += batch.num_rows
            if count > ROWS_MAX:
                sentence = f"The report has more than {ROWS_MAX:,} rows; ask for fewer dimensions, days or one client."
                raise TooManyRows(sentence)
            for row in batch.to_pylist():
                yield tuple(row[each] for each in asked.groups), row["currency"], _read(row, models)

    def _learnt(self, asked: Asked, models: list[str], result: Result) -> pa.Table:
        """What models that learn give, summed by what is asked for: they say it anew for every row."""
        schema = learnt_schema(asked, models)
        names = {str(each): of_credits(each) for each in asked.groups} | {"currency": "currency"}
        made = schema.names[len(names) :]
        firsts = self._first_orders(result) if Dimension.CUSTOMER in asked.groups else None
        found = self._of_touchpoints(asked, result) if asked.of_clicks else None
        joined = {Dimension.CUSTOMER, *asked.of_clicks}
        others = (*(() if firsts is None else _OF_A_CUSTOMER), *(() if found is None else ("click_id",)))
        read = sorted({*names.values(), "channel", *others} - joined)
        channel = pc.field("channel") == asked.channel if asked.channel is not None else pc.scalar(value=True)
        sums = [schema.empty_table()]
        for rows in self._lake.credits(result, _of_orders(asked), read, models):
            mine = rows.filter(channel)
            if firsts is not None:
                mine = _with_customer(mine, firsts)
            if found is not None:
                mine = mine.join(found, "click_id", "click", join_type="left outer")
            # A sum of nothing is 0, and not nothing: there are orders.
            columns = [mine[each] for each in names.values()] + [pc.fill_null(mine[each], 0) for each in made]
            summed = pa.table(columns, schema=schema).group_by(list(names)).aggregate([(each, "sum") for each in made])
            sums.append(summed.rename_columns(schema.names))
        return pa.concat_tables(sums)

    def _first_orders(self, result: Result) -> pa.Table:
        """When each person of a version ordered for the first time."""
        rows = credits_of((), self._lake.columns_of_credits(result))
        tables = {CREDITS: self._source(credits_table(()), result.credits_version)}
        return pa.Table.from_batches(self._engine.query(first_orders(rows), tables))

    def _of_touchpoints(self, asked: Asked, result: Result) -> pa.Table:
        """The clicks of a version that are touchpoints, with the dimensions of clicks that are asked for."""
        wanted = of_touchpoints(asked, self._lake.columns_of_credits(result))
        tables = {CREDITS: self._source(credits_table(()), result.credits_version), CLICKS.name: self._clicks(result)}
        batches = self._engine.query(wanted, tables)
        return pa.Table.from_batches(batches, pa.schema([(name, pa.string()) for name in wanted.columns]))

    def _clicks(self, result: Result) -> Source:
        """Clicks, and views if they earn credit."""
        # As they are now: a click never changes, and files of earlier versions have been merged.
        views = self._lake.uris(VIEWS.name) if policies_of(result).credits_views else []
        return [*self._lake.uris(CLICKS.name), *views] or CLICKS.stored.empty_table()

    def _tables(self, asked: Asked, models: Sequence[str], result: Result) -> dict[str, Source]:
        tables = {CREDITS: self._source(credits_table(models), result.credits_version)}
        if asked.of_clicks:
            tables[CLICKS.name] = self._clicks(result)
            if asked.has_views:
                tables[VIEWS.name] = self._source(VIEWS, None)
        if asked.has_costs:
            tables[COSTS.name] = self._costs(asked, policies_of(result))
        clicked = (TOUCHES, ADS, IDENTITIES) if asked.has_clicks else ()
        viewed = (VIEW_TOUCHES, VIEW_ADS) if asked.has_views else ()
        for table in (*clicked, *viewed):
            tables[table.name] = self._source(table, result.reads(table.name))
        if (clicked or viewed) and asked.has_days:
            wanted = span([*clicked[:1], *viewed[:1]])
            (row,) = [row for batch in self._engine.query(wanted, tables) for row in batch.to_pylist()]
            tables |= calendar(policies_of(result), row["from_ms"] or 0, row["to_ms"] or 0)
        return tables

    def _costs(self, asked: Asked, policies: Policies) -> pa.Table:
        """The costs of the clients that are asked about, by the names that their channels have for clicks."""
        conditions = _of_clients(asked)
        where = reduce(and_, conditions) if conditions else None
        costs = pa.Table.from_batches(self._lake.scan(COSTS.name, where, COSTS.whole.names), COSTS.whole)
        words = {word: small_letters(word) for word in pc.unique(costs["channel"]).to_pylist()}
        costs = _replaced(costs, "channel", [words[word] for word in costs["channel"].to_pylist()])
        # The last import of a word counts. Several words of one channel are several costs of it.
        latest = costs.sort_by(
            [("imported_at", "descending"), ("currency", "ascending"), ("amount_minor", "ascending")]
        )
        firsts = [(name, "first") for name in ("currency", "amount_minor", "imported_at")]
        costs = latest.group_by(_COST_KEY, use_threads=False).aggregate(firsts)
        costs = costs.rename_columns([name.removesuffix("_first") for name in costs.column_names])
        pairs = zip(costs["client_id"].to_pylist(), costs["channel"].to_pylist(), strict=True)
        names = [channel_of_cost(word, policies.find(client_id).channel_rules) for client_id, word in pairs]
        costs = _replaced(costs, "channel", names)
        if policies.has_campaign_names:
            named = policies.named(*(costs[name].to_pylist() for name in ("client_id", "channel", "campaign")))
            costs = _replaced(costs, "campaign", named)
        costs = costs.group_by([*_COST_KEY, "currency"]).aggregate([("amount_minor", "sum"), ("imported_at", "max")])
        return costs.rename_columns([*_COST_KEY, "currency", "amount_minor", "imported_at"]).select(COSTS.whole.names)

    def _source(self, table: Table, version: int | None) -> Source:
        return self._lake.uris(table.name, version) or table.stored.empty_table()


_OF_A_CUSTOMER: Final = ("client_id", "person", "placed_at")


def _with_customer(rows: pa.Table, firsts: pa.Table) -> pa.Table:
    """Credits with what their order's customer was."""
    joined = rows.join(firsts, ["client_id", "person"], join_type="left outer")
    is_returning = pc.fill_null(pc.greater(joined["placed_at"], joined["first_at"]), fill_value=False)
    named = pc.if_else(is_returning, pa.scalar(Customer.RETURNING.value), pa.scalar(Customer.NEW.value))
    named = pc.if_else(pc.is_valid(joined["person"]), named, pa.scalar(None, pa.string()))
    return joined.append_column(Dimension.CUSTOMER.value, named)


_COST_KEY: Final = ["client_id", "day", "channel", "campaign", "ad_set", "ad"]


def _replaced(table: pa.Table, name: str, values: Sequence[str | None]) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, pa.array(values, pa.string()))


def _of_orders(asked: Asked) -> pc.Expression | None:
    """Which orders are asked for, by what is the same on all rows of one."""
    said = {"seller_id": asked.seller_id, "currency": asked.currency}
    where = [*_of_clients(asked), *(pc.field(name) == value for name, value in said.items() if value is not None)]
    if asked.kind is not None:
        where.append(pc.coalesce(pc.field(KIND), pc.scalar(PURCHASE)) == asked.kind)
    if asked.since is not None:
        where.append(pc.field("order_day") >= asked.since)
    if asked.until is not None:
        where.append(pc.field("order_day") <= asked.until)
    return reduce(and_, where) if where else None


def _of_clients(asked: Asked) -> list[pc.Expression]:
    named = [] if asked.client_id is None else [pc.field("client_id") == asked.client_id]
    return named if asked.within is None else [*named, of_clients(asked.within)]


def policies_of(result: Result) -> Policies:
    """The policies that a version was made by."""
    told = msgspec.json.decode(result.settings).get("policies", {})
    by_client = {name: Policy.model_validate(policy, by_name=True) for name, policy in told.get("clients", {}).items()}
    return Policies(Policy.model_validate(told.get("default", {}), by_name=True), by_client)


def write(report: Report, sink: IO[bytes]) -> None:
    """Write a report in the form that was asked for; amounts are decimals with all digits of their currency."""
    _WRITERS[report.asked.form](report, sink)


def _read(row: Mapping[str, Any], models: tuple[str, ...]) -> Counted:
    # Sums come as decimals from an engine whose own sums are wider than 64 bits.
    counts = {name: None if row[name] is None else int(row[name]) for name in COUNTS}
    is_ordered = any(row[f"{model}_share"] is not None for model in models)
    return Counted(**counts, of_models=tuple(_of_model(row, model) for model in models) if is_ordered else ())


def _of_model(row: Mapping[str, Any], model: str) -> tuple[int, int, float]:
    return int(row[f"{model}_credit"]), int(row[f"{model}_refund"]), row[f"{model}_share"]


def _write_json(report: Report, sink: IO[bytes]) -> None:
    sink.write(msgspec.json.encode(report.wire()))


def _write_csv(report: Report, sink: IO[bytes]) -> None:
    text = io.TextIOWrapper(sink, encoding="utf-8", newline="")
    writer = csv.writer(text)
    writer.writerow(report.columns)
    as_name = str if report.asked.raw else as_cell
    writer.writerows(
        [as_name(value) if isinstance(value, str) else as_text(value) for value in row.values()] for row in report.rows
    )
    text.flush()
    text.detach()


def _write_parquet(report: Report, sink: IO[bytes]) -> None:
    schema = pa.schema([(name, _kind_of(name)) for name in report.columns])
    pq.write_table(pa.Table.from_pylist(report.rows, schema), sink, compression="zstd")


def _kind_of(column: str) -> pa.DataType:
    return (
        _AMOUNT
        if column in OF_HOLDOUT[2:] or column.endswith("_change")
        else _KINDS.get(column.removesuffix("_before"), pa.string())
    )


_KINDS: Final[Mapping[str, pa.DataType]] = {
    Dimension.DAY: pa.date32(),
    **dict.fromkeys((Figure.CLICKS, Figure.VIEWS, Figure.PEOPLE, Figure.ORDERS), pa.int64()),
    Figure.CONVERSIONS: pa.float64(),
    **dict.fromkeys((*MONEY, Figure.ROAS), _AMOUNT),
    **dict.fromkeys(("least", "greatest", "spread", "share", "roas_least", "roas_greatest"), _AMOUNT),
}
_WRITERS: Final[Mapping[Form, Callable[[Report, IO[bytes]], None]]] = {
    Form.JSON: _write_json,
    Form.CSV: _write_csv,
    Form.PARQUET: _write_parquet,
}

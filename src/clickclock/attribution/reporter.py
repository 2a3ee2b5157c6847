"""A result version, and what was paid for ads → a report.

Never changes the lake. Invariants: one report is of one version, all its tables as that version stands for them; the
same question about the same version has the same answer, until other costs are imported.

>>> Reporter(lake, engine).report(Asked(version=3)).rows   # doctest: +SKIP
"""

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from clickclock.attribution.engines import Engine, Source, calendar, counted, span
from clickclock.attribution.errors import EngineFailing
from clickclock.attribution.lake import ADS, COSTS, CREDITS, IDENTITIES, TOUCHES, Lake, Table, credits_table
from clickclock.attribution.policy import Policies, Policy
from clickclock.attribution.report import (
    MONEY,
    ROWS_MAX,
    Asked,
    Counted,
    Dimension,
    Figure,
    Form,
    Key,
    Report,
    TooManyRows,
    arrange,
    as_text,
    find,
)
from clickclock.attribution.result import Result

_CREDIT: Final = "_credit"
_AMOUNT: Final = pa.decimal128(38, 4)
"""No currency has more digits."""
_COUNTS: Final = ("clicks", "people", "orders", "revenue", "cost")


class Reporter:
    """Reports over one lake."""

    def __init__(self, lake: Lake, engine: Engine) -> None:
        """The engine is the caller's to close."""
        self._lake = lake
        self._engine = engine

    def report(self, asked: Asked) -> Report:
        """Answer. Raises `NoVersion`, `VersionGone`, `Malformed` if the version lacks a model, `TooManyRows`."""
        result = find(self._lake.results(), asked.version)
        models = asked.choose(self._models(result))
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

    def _models(self, result: Result) -> list[str]:
        """The models of a version, as its credits have them."""
        delta = self._lake.table(CREDITS, result.credits_version)
        names = [] if delta is None else [field.name for field in delta.schema().fields]
        return [name.removesuffix(_CREDIT) for name in names if name.endswith(_CREDIT)]

    def _check(self, result: Result) -> None:
        """See whether all files of a version are still there. Raises `VersionGone`."""
        for table in (CREDITS, TOUCHES.name, ADS.name, IDENTITIES.name):
            if result.reads(table) is not None:
                for _ in self._lake.scan(table, columns=[], version=result.reads(table)):
                    pass

    def _counted(
        self, asked: Asked, models: tuple[str, ...], result: Result
    ) -> Iterator[tuple[Key, str | None, Counted]]:
        tables = self._tables(asked, models, result)
        count = 0
        for batch in self._engine.query(counted(asked, models), tables):
            count += batch.num_rows
            if count > ROWS_MAX:
                sentence = f"The report has more than {ROWS_MAX:,} rows; ask for fewer dimensions, days or one client."
                raise TooManyRows(sentence)
            for row in batch.to_pylist():
                yield tuple(row[each] for each in asked.groups), row["currency"], _read(row, models)

    def _tables(self, asked: Asked, models: tuple[str, ...], result: Result) -> dict[str, Source]:
        tables = {CREDITS: self._source(credits_table(models), result.credits_version)}
        if asked.has_costs:
            tables[COSTS.name] = self._source(COSTS, None)
        if asked.has_clicks:
            for table in (TOUCHES, ADS, IDENTITIES):
                tables[table.name] = self._source(table, result.reads(table.name))
        if asked.has_clicks and asked.has_days:
            (row,) = [row for batch in self._engine.query(span(), tables) for row in batch.to_pylist()]
            tables |= calendar(policies_of(result), row["from_ms"] or 0, row["to_ms"] or 0)
        return tables

    def _source(self, table: Table, version: int | None) -> Source:
        return self._lake.uris(table.name, version) or table.whole.empty_table()


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
    counts = {name: None if row[name] is None else int(row[name]) for name in _COUNTS}
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
    writer.writerows([as_text(value) for value in row.values()] for row in report.rows)
    text.flush()
    text.detach()


def _write_parquet(report: Report, sink: IO[bytes]) -> None:
    schema = pa.schema([(name, _KINDS.get(name, pa.string())) for name in report.columns])
    pq.write_table(pa.Table.from_pylist(report.rows, schema), sink, compression="zstd")


_KINDS: Final[Mapping[str, pa.DataType]] = {
    Dimension.DAY: pa.date32(),
    **dict.fromkeys((Figure.CLICKS, Figure.PEOPLE, Figure.ORDERS), pa.int64()),
    Figure.CONVERSIONS: pa.float64(),
    **dict.fromkeys((*MONEY, Figure.ROAS), _AMOUNT),
}
_WRITERS: Final[Mapping[Form, Callable[[Report, IO[bytes]], None]]] = {
    Form.JSON: _write_json,
    Form.CSV: _write_csv,
    Form.PARQUET: _write_parquet,
}

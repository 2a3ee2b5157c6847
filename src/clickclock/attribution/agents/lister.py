"""A result version → its orders, page by page, the paths that led to them, and what customers ordered later.

Never computes a credit: it reads what the version says. Invariants: a page is of one version, latest order first, by
client and order where they were placed at one moment; the engine looks at rows, and no more than a page leaves it.

>>> Lister(lake, engine).orders(read_orders({}))["orders"]   # doctest: +SKIP
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Final

import ibis
import pyarrow as pa
from ibis import _

from clickclock.attribution.engines import Engine
from clickclock.attribution.lake import CREDITS, ORDER_MONTH, Lake, credits_table
from clickclock.attribution.orders.amendment import KIND, PURCHASE
from clickclock.attribution.report_query import credits_of
from clickclock.attribution.reporting import cohorts
from clickclock.attribution.reporting.cohorts import Cohorts
from clickclock.attribution.reporting.listing import (
    LAGS_HOURS,
    STEPS_MAX,
    After,
    Filters,
    Orders,
    Paths,
    counted,
    order_wire,
    paths_wire,
)
from clickclock.attribution.reporting.report import ROWS_MAX, TooManyRows, chosen, find
from clickclock.attribution.reporting.result import Result

_KEY: Final = ("client_id", "order_id", ORDER_MONTH)
_KEYS: Final = pa.schema([(name, pa.string()) for name in _KEY])
_WANTED: Final = ibis.table(dict.fromkeys(_KEY, "string"), "wanted")
_PLACE: Final = (*_KEY, "placed_at")
ROWS_OF_AN_ORDER: Final = 20
"""If a page's orders have at most so many fitting rows each, on average, one question finds them."""
DAY: Final = timedelta(days=1)
_FACTS: Final = [
    *("client_id", "order_id", "placed_at", "order_day", "currency", "amount_minor", "refunded_minor", "status"),
    *("seller_id", "reason", "place", "channel", KIND),
]

Row = dict[str, Any]


class Lister:
    """Orders and paths of one lake."""

    def __init__(self, lake: Lake, engine: Engine) -> None:
        """The engine is the caller's to close."""
        self._lake = lake
        self._engine = engine

    def orders(self, asked: Orders) -> Row:
        """A page, as JSON. Raises `NoVersion`, `VersionGone`, `Malformed` if the version lacks a model."""
        result = find(self._lake.results(), asked.version)
        models = chosen(asked.models, sorted(chain(*self._lake.models(result))))
        keys = self._keys(result, asked)
        more, keys = len(keys) > asked.limit, keys[: asked.limit]
        return {
            "version": result.version,
            "models": list(models),
            "orders": [order_wire(rows, models) for rows in self._credits(result, keys, models)],
            "nextCursor": asked.cursor(result.version, keys[-1]) if more else None,
        }

    def paths(self, asked: Paths) -> Row:
        """The commonest paths, and how many steps and hours lie before an order, as JSON."""
        result = find(self._lake.results(), asked.version)
        rows = self._rows(result)
        fitting = _fitting(rows, asked.filters).select(*_KEY).distinct()
        orders = _with_path(rows.semi_join(fitting, _KEY))
        common = orders.group_by(["path", "currency"]).aggregate(
            orders=_.count(), revenue=_.amount_minor.sum(), hours=_.hours.mean()
        )
        common = common.order_by([ibis.desc("orders"), "path", "currency"]).limit(asked.limit)
        return {
            "version": result.version,
            "paths": paths_wire(self._asked(result, common)),
            "steps": counted(self._asked(result, _bucketed(orders, "steps", _STEPS)), _STEPS),
            "hours": counted(self._asked(result, _bucketed(orders, "hours", LAGS_HOURS)), LAGS_HOURS),
        }

    def cohorts(self, asked: Cohorts) -> Row:
        """What customers ordered in each month since their first order, as JSON. Raises `NoVersion`, `TooManyRows`."""
        result = find(self._lake.results(), asked.version)
        wanted = _cohorts(_fitting(self._rows(result), asked.filters))
        if asked.currency is not None:
            wanted = wanted.filter(_.currency == asked.currency)
        found = self._asked(result, wanted.limit(ROWS_MAX + 1))
        if len(found) > ROWS_MAX:
            raise TooManyRows(f"There are more than {ROWS_MAX:,} rows; ask for one client, or one currency.")
        return {"version": result.version, "cohorts": cohorts.wire(found)}

    def _rows(self, result: Result, models: Sequence[str] = ()) -> ibis.Table:
        return credits_of(models, self._lake.columns_of_credits(result))

    def _asked(self, result: Result, wanted: ibis.Table) -> list[Row]:
        return [row for batch in self._batches(result, wanted) for row in batch.to_pylist()]

    def _batches(self, result: Result, expression: ibis.Table, **tables: pa.Table) -> Iterator[pa.RecordBatch]:
        files = self._lake.uris(CREDITS, result.credits_version)
        return self._engine.query(expression, {CREDITS: files or credits_table(()).stored.empty_table(), **tables})

    def _keys(self, result: Result, asked: Orders) -> list[Row]:
        """The orders of a page, and the one behind it if there is one."""
        rows = _behind(self._rows(result), asked.filters, asked.after)
        if month := _latest_month(self._lake.uris(CREDITS, result.credits_version), asked):
            keys = self._keys_of(result, rows.filter(rows[ORDER_MONTH] == month), asked)
            # Months are those of accounts' own zones, so an order of the month before may be half a day later.
            if len(keys) > asked.limit and keys[-1]["placed_at"] >= _begin(month) + DAY:
                return keys
        return self._keys_of(result, rows, asked)

    def _keys_of(self, result: Result, rows: ibis.Table, asked: Orders) -> list[Row]:
        most = asked.limit + 1
        if not asked.filters.of_touchpoint:
            return self._asked(result, _latest(rows.filter(_.place <= 1), most).select(*_PLACE))
        # Several rows of an order may fit. To look for the orders of all rows would take three times as long.
        some = _latest(rows, most * ROWS_OF_AN_ORDER).group_by(_PLACE).aggregate(fitting=_.count())
        keys = self._asked(result, _latest(some, most))
        if len(keys) == most or sum(key["fitting"] for key in keys) < most * ROWS_OF_AN_ORDER:
            return keys
        return self._asked(result, _latest(rows.select(*_PLACE).distinct(), most))

    def _credits(self, result: Result, keys: list[Row], models: tuple[str, ...]) -> Iterator[list[Row]]:
        """The rows of credits of these orders, in this order."""
        if not keys:
            return

        def read(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
            # By the engine, which reads the other columns only where these are found: half the time of a scan.
            rows = self._rows(result, [model for model in models if f"{model}_credit" in columns])
            months = sorted({key[ORDER_MONTH] for key in keys})
            mine = rows.filter(rows[ORDER_MONTH].isin(months)).semi_join(_WANTED, _KEY)
            wanted = pa.Table.from_pylist([{name: key[name] for name in _KEY} for key in keys], _KEYS)
            return self._batches(result, mine.order_by([*_KEY, "place"]).select(columns), wanted=wanted)

        rows = [row for table in self._lake.credits(result, read, _FACTS, models) for row in table.to_pylist()]
        key_of = itemgetter("client_id", "order_id")
        rows.sort(key=itemgetter("client_id", "order_id", "place"))
        found = {key: list(those) for key, those in groupby(rows, key_of)}
        yield from (found[key_of(key)] for key in keys)


_STEPS: Final = tuple(range(1, STEPS_MAX + 1))


def _behind(rows: ibis.Table, filters: Filters, after: After | None) -> ibis.Table:
    """The rows of orders that fit, behind the last order of the page before."""
    rows = _fitting(rows, filters)
    if after is None:
        return rows
    placed_at = ibis.literal(after.placed_at, type=rows.placed_at.type())
    is_later = (rows.client_id > after.client_id) | (
        (rows.client_id == after.client_id) & (rows.order_id > after.order_id)
    )
    return rows.filter((rows.placed_at < placed_at) | ((rows.placed_at == placed_at) & is_later))


def _latest_month(files: Sequence[str], asked: Orders) -> str | None:
    """The latest month of these files of which orders may be on the page."""
    months = {file.partition(f"{ORDER_MONTH}=")[2].partition("/")[0] for file in files}
    if asked.after is not None:
        months = {month for month in months if month <= f"{asked.after.placed_at + DAY:%Y-%m}"}
    if asked.filters.until is not None:
        months = {month for month in months if month <= f"{asked.filters.until:%Y-%m}"}
    return max(months, default=None)


def _begin(month: str) -> datetime:
    return datetime.fromisoformat(f"{month}-01").replace(tzinfo=UTC)


def _latest(rows: ibis.Table, most: int) -> ibis.Table:
    return rows.order_by([ibis.desc("placed_at"), "client_id", "order_id"]).limit(most)


def _fitting(rows: ibis.Table, filters: Filters) -> ibis.Table:
    """The rows of orders that fit; where a touchpoint has to fit, these touchpoints alone."""
    conditions = [rows[name] == value for name, value in filters.of_order.items()]
    if filters.within is not None:
        conditions.append(rows.client_id.isin(filters.within))
    conditions += [
        rows[name] == value if value else rows[name].isnull() for name, value in filters.of_touchpoint.items()
    ]
    if filters.since is not None:
        conditions.append(rows.order_day >= filters.since)
    if filters.until is not None:
        conditions.append(rows.order_day <= filters.until)
    if filters.is_credited is not None:
        conditions.append((rows.place > 0) == filters.is_credited)
    return rows.filter(conditions) if conditions else rows


def _with_path(rows: ibis.Table) -> ibis.Table:
    """An order each, with its path, its steps, and the hours since its first touchpoint."""
    touched = rows.filter(rows.place > 0)
    orders = touched.group_by([*_KEY, "currency", "amount_minor"]).aggregate(
        path=_.channel.collect(order_by=_.place),
        steps=_.count(),
        placed_at=_.placed_at.max(),
        first_at=_.click_at.min(),
    )
    hours = (orders.placed_at.epoch_seconds() - orders.first_at.epoch_seconds()) / 3600
    return orders.mutate(hours=hours)


def _cohorts(rows: ibis.Table) -> ibis.Table:
    """Customers, orders and amounts by first month, first channel, currency and month since."""
    orders = rows.filter((rows.place <= 1) & rows.person.notnull() & (rows[KIND] == PURCHASE))
    first = ibis.window(group_by=["client_id", "person"], order_by=["placed_at", "order_id"])
    orders = orders.mutate(first_month=_[ORDER_MONTH].first().over(first), first_channel=_.channel.first().over(first))
    orders = orders.mutate(month=_months(orders[ORDER_MONTH]) - _months(orders.first_month))
    return orders.group_by(["first_month", "first_channel", "currency", "month"]).aggregate(
        customers=_.person.nunique(),
        orders=_.count(),
        revenue=_.amount_minor.sum(),
        refunds=_.refunded_minor.sum(),
    )


def _months(month: ibis.Value) -> ibis.Value:
    """Months of `YYYY-MM` since the year 0."""
    return month.substr(0, 4).cast("int64") * cohorts.MONTHS_OF_YEAR + month.substr(5, 2).cast("int64")


def _bucketed(orders: ibis.Table, name: str, bounds: Sequence[int]) -> ibis.Table:
    """How many orders have a value up to each bound, and above the one before."""
    cases = [(orders[name] <= bound, place) for place, bound in enumerate(bounds)]
    buckets = orders.mutate(bucket=ibis.cases(*cases, else_=len(cases)))
    return buckets.group_by("bucket").aggregate(orders=_.count())

"""A result version → its orders, page by page, the paths that led to them, and what customers ordered later.

Never computes a credit: it reads what the version says. Invariants: a page is of one version, latest order first, by
client and order where they were placed at one moment; the engine looks at rows, and no more than a page leaves it.

>>> Lister(lake, engine).orders(read_orders({}))["orders"]   # doctest: +SKIP
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import chain, groupby
from operator import and_, itemgetter
from typing import Any, Final

import ibis
import pyarrow as pa
import pyarrow.compute as pc
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
        page = _page(self._rows(result), asked.filters, asked.after).limit(asked.limit + 1)
        keys = self._asked(result, page)
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

    def _rows(self, result: Result) -> ibis.Table:
        return credits_of((), self._lake.columns_of_credits(result))

    def _asked(self, result: Result, wanted: ibis.Table) -> list[Row]:
        files = self._lake.uris(CREDITS, result.credits_version)
        tables = {CREDITS: files or credits_table(()).stored.empty_table()}
        return [row for batch in self._engine.query(wanted, tables) for row in batch.to_pylist()]

    def _credits(self, result: Result, keys: list[Row], models: tuple[str, ...]) -> Iterator[list[Row]]:
        """The rows of credits of these orders, in this order."""
        if not keys:
            return
        is_one = [pc.field(name).isin(pa.array(sorted({key[name] for key in keys}))) for name in _KEY]
        rows = [
            row
            for table in self._lake.credits(result, reduce(and_, is_one), _FACTS, models)
            for row in table.to_pylist()
        ]
        key_of = itemgetter("client_id", "order_id")
        rows.sort(key=itemgetter("client_id", "order_id", "place"))
        found = {key: list(those) for key, those in groupby(rows, key_of)}
        yield from (found[key_of(key)] for key in keys)


_STEPS: Final = tuple(range(1, STEPS_MAX + 1))


def _page(rows: ibis.Table, filters: Filters, after: After | None) -> ibis.Table:
    """The keys of orders, latest first, behind the last one of the page before."""
    rows = _fitting(rows, filters).mutate(placed_us=_.placed_at.epoch_seconds() * 1_000_000 + _.placed_at.microsecond())
    orders = rows.select(*_KEY, "placed_us").distinct()
    if after is not None:
        is_same = orders.placed_us == after.placed_us
        is_later = (orders.client_id > after.client_id) | (
            (orders.client_id == after.client_id) & (orders.order_id > after.order_id)
        )
        orders = orders.filter((orders.placed_us < after.placed_us) | (is_same & is_later))
    return orders.order_by([ibis.desc("placed_us"), "client_id", "order_id"])


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

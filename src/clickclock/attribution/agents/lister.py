"""A result version → its orders, page by page, the paths that led to them, and what customers ordered later.

Never computes a credit: it reads what the version says. Invariants: a page is of one version, latest order first, by
client and order where they were placed at one moment; the engine looks at rows, and no more than a page leaves it.

>>> Lister(lake, engine).orders(read_orders({}))["orders"]   # doctest: +SKIP
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Final

import ibis
import pyarrow as pa
from ibis import _

from clickclock.attribution.engines import INSTANT, Engine
from clickclock.attribution.lake import CREDITS, ORDER_MONTH, Lake, credits_table
from clickclock.attribution.orders.amendment import KIND, PURCHASE
from clickclock.attribution.report_query import credits_of, stored_credits
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
from clickclock.foundation.instant import ms_of

_KEY: Final = ("client_id", "order_id", ORDER_MONTH)
_PLACE: Final = (*_KEY, "placed_at")
ROWS_OF_AN_ORDER: Final = 20
"""If a page's orders have at most so many fitting rows each, on average, one question finds them."""
ALL_ROWS: Final = 2**62
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
        credits_ = self._credits_of(result)
        found = self._orders(credits_, asked, models)
        more, found = len(found) > asked.limit, found[: asked.limit]
        return {
            "version": result.version,
            "models": list(models),
            "orders": [order_wire(rows, models) for rows in found],
            "nextCursor": asked.cursor(result.version, found[-1][0]) if more else None,
        }

    def paths(self, asked: Paths) -> Row:
        """The commonest paths, and how many steps and hours lie before an order, as JSON."""
        result = find(self._lake.results(), asked.version)
        credits_ = self._credits_of(result)
        rows = credits_.rows()
        fitting = _fitting(rows, asked.filters).select(*_KEY).distinct()
        orders = _with_path(rows.semi_join(fitting, _KEY))
        common = orders.group_by(["path", "currency"]).aggregate(
            orders=_.count(), revenue=_.amount_minor.sum(), hours=_.hours.mean()
        )
        common = common.order_by([ibis.desc("orders"), "path", "currency"]).limit(asked.limit)
        return {
            "version": result.version,
            "paths": paths_wire(self._asked(credits_, common)),
            "steps": counted(self._asked(credits_, _bucketed(orders, "steps", _STEPS)), _STEPS),
            "hours": counted(self._asked(credits_, _bucketed(orders, "hours", LAGS_HOURS)), LAGS_HOURS),
        }

    def cohorts(self, asked: Cohorts) -> Row:
        """What customers ordered in each month since their first order, as JSON. Raises `NoVersion`, `TooManyRows`."""
        result = find(self._lake.results(), asked.version)
        credits_ = self._credits_of(result)
        wanted = _cohorts(_fitting(credits_.rows(), asked.filters))
        if asked.currency is not None:
            wanted = wanted.filter(_.currency == asked.currency)
        found = self._asked(credits_, wanted.limit(ROWS_MAX + 1))
        if len(found) > ROWS_MAX:
            raise TooManyRows(f"There are more than {ROWS_MAX:,} rows; ask for one client, or one currency.")
        return {"version": result.version, "cohorts": cohorts.wire(found)}

    def _credits_of(self, result: Result) -> "_Credits":
        return _Credits(result, self._lake.uris(CREDITS, result.credits_version), self._lake.columns_of_credits(result))

    def _asked(self, credits_: "_Credits", wanted: ibis.Table) -> list[Row]:
        return [row for batch in self._batches(credits_, wanted) for row in batch.to_pylist()]

    def _batches(
        self, credits_: "_Credits", expression: ibis.Table, instant: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        rows = credits_.files or credits_table(()).stored.empty_table()
        return self._engine.query(expression, {CREDITS: rows}, instant)

    def _orders(self, credits_: "_Credits", asked: Orders, models: tuple[str, ...]) -> list[list[Row]]:
        """The rows of each order of a page, and of the one behind it if there is one."""
        since = self._since(credits_, asked)
        found = self._orders_since(credits_, asked, models, since)
        if since is not None and len(found) <= asked.limit:  # more rows than expected are of one order, or retracted
            return self._orders_since(credits_, asked, models, None)
        return found

    def _since(self, credits_: "_Credits", asked: Orders) -> datetime | None:
        """A time since which there are, most likely, as many fitting orders as a page has; None if there are fewer.

        The engine reads times for this, and what is filtered by. It then reads the other columns of few rows. Together
        that takes half the time of looking for a page's orders at once.
        """
        rows = _behind(credits_.stored(), asked.filters, asked.after)
        most = asked.limit + 1
        if asked.filters.of_touchpoint:
            most *= ROWS_OF_AN_ORDER
        else:
            rows = rows.filter(rows.place <= 1)
        month = max(_months_of(credits_.files, asked), default=None)
        # What there is of the latest month is mostly enough.
        since = None if month is None else self._nth(credits_, rows.filter(rows[ORDER_MONTH] == month), most)
        return since or self._nth(credits_, rows, most)

    def _nth(self, credits_: "_Credits", rows: ibis.Table, most: int) -> datetime | None:
        latest = rows.order_by(ibis.desc("placed_at")).limit(most)
        (found,) = self._asked(credits_, latest.aggregate(since=latest.placed_at.min(), rows=latest.count()))
        since: datetime | None = found["since"]
        return since if found["rows"] == most else None

    def _orders_since(
        self, credits_: "_Credits", asked: Orders, models: tuple[str, ...], since: datetime | None
    ) -> list[list[Row]]:
        """The rows of each of the latest fitting orders; those that were placed before `since` are left out."""
        months = _months_of(credits_.files, asked)
        if since is not None:  # months are those of accounts' own zones, which may be behind
            months = {month for month in months if month >= f"{since - DAY:%Y-%m}"}
        since_ms = 0 if since is None else ms_of(since)

        def read(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
            rows = credits_.rows([model for model in models if f"{model}_credit" in columns])
            start = ibis.literal(INSTANT).as_timestamp("ms").cast(rows.placed_at.type())
            # The limit makes a part of its own of these rows, which the engine reads once for both of its uses.
            rows = rows.filter(rows[ORDER_MONTH].isin(sorted(months)), rows.placed_at >= start).limit(ALL_ROWS)
            fitting = _behind(rows, asked.filters, asked.after)
            if not asked.filters.of_touchpoint:
                fitting = fitting.filter(fitting.place <= 1)
            page = _latest(fitting.select(*_PLACE).distinct(), asked.limit + 1)
            mine = rows.semi_join(page, _KEY).order_by([*_KEY, "place"])
            return self._batches(credits_, mine.select(columns), since_ms)

        if not months:
            return []
        tables = self._lake.credits(credits_.result, read, _FACTS, models)
        found = [row for table in tables for row in table.to_pylist()]
        found.sort(key=itemgetter("client_id", "order_id", "place"))
        orders = [list(rows) for _, rows in groupby(found, itemgetter("client_id", "order_id"))]
        return sorted(orders, key=lambda rows: rows[0]["placed_at"], reverse=True)


@dataclass(frozen=True)
class _Credits:
    """The table of credits of a version, looked up once for all that is asked of it."""

    result: Result
    files: Sequence[str]
    columns: frozenset[str]

    def rows(self, models: Sequence[str] = ()) -> ibis.Table:
        """The rows that count, with the columns of these models."""
        return credits_of(models, self.columns)

    def stored(self) -> ibis.Table:
        """The same, and those that a later run retracted."""
        return stored_credits(self.columns)


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


def _months_of(files: Sequence[str], asked: Orders) -> set[str]:
    """The months of these files of which orders may be on the page."""
    months = {file.partition(f"{ORDER_MONTH}=")[2].partition("/")[0] for file in files}
    if asked.after is not None:
        months = {month for month in months if month <= f"{asked.after.placed_at + DAY:%Y-%m}"}
    if asked.filters.until is not None:
        months = {month for month in months if month <= f"{asked.filters.until:%Y-%m}"}
    return months


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

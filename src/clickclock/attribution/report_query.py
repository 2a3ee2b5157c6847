"""What a report counts, as one expression over a result version's tables, for any engine.

Never reads a file. Invariants: each click, order and cost is counted in the groups that it is of, once; amounts of two
currencies are in different rows.

>>> list(counted(Asked(by=(Dimension.CLIENT,)), ["last"]).schema())[:5]
['client', 'currency', 'clicks', 'views', 'people']
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import lru_cache, reduce
from typing import Any, Final
from zoneinfo import ZoneInfo

import ibis
import numpy as np
import pyarrow as pa
from ibis import _

from clickclock.attribution.click_dimensions import READ, SAID
from clickclock.attribution.clicks.identifier import NAMESPACES
from clickclock.attribution.crediting.columns.months import days, pieces
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.lake import (
    ADS,
    CLICKS,
    COLUMNS_OF_MODEL,
    COSTS,
    IDENTITIES,
    RETRACTION,
    RUN,
    TOUCHES,
    VIEW_ADS,
    VIEW_TOUCHES,
    VIEWS,
    Table,
    credits_table,
)
from clickclock.attribution.orders.amendment import KIND, PURCHASE
from clickclock.attribution.reporting.figures import OF_AN_ORDER, Customer, Dimension, Figure
from clickclock.attribution.reporting.report import COUNTS, ROWS_MAX, Asked
from clickclock.foundation.instant import DAY_MS

_CREDITS_OF_TODAY: Final = frozenset(credits_table(()).stored.names)
_EPOCH: Final = date(1970, 1, 1)
_ZONES_MS: Final = 3 * DAY_MS
"""A day of any zone is over so long after its midnight in UTC, and begins less long before it."""
_OF_CREDITS: Final = {
    Dimension.CLIENT: "client_id",
    Dimension.SELLER: "seller_id",
    Dimension.DAY: "order_day",
}
_OF_ADS: Final = {Dimension.CLIENT: "client_id", Dimension.SELLER: "seller_id", Dimension.AD: "ad_id"}
_OF_COSTS: Final = {Dimension.CLIENT: "client_id"}

_KINDS: Final[Mapping[pa.DataType, str]] = {
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.int32(): "int32",
    pa.int64(): "int64",
    pa.float64(): "float64",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp('UTC', 6)",
    pa.map_(pa.string(), pa.string()): "map<string, string>",
}
_ZONES: Final = pa.schema([("client_id", pa.string()), ("zone", pa.int32())])
"""The zones of clients whose zone is not number 0."""
_DAYS: Final = pa.schema(
    [("zone", pa.int32()), *((name, pa.int64()) for name in ("utc_day", "from_ms", "until_ms")), ("day", pa.date32())]
)
"""Which day it is in a zone: a row for each piece of time in which neither it nor UTC's changes."""


def span(tables: Sequence[Table]) -> ibis.Table:
    """The first and the last instant of these tables of touches, in one row; null if there is none."""
    touches = reduce(lambda one, other: one.union(other), (rows_of(each).select("time_ms") for each in tables))
    return touches.aggregate(from_ms=touches.time_ms.min(), to_ms=touches.time_ms.max())


def counted(
    asked: Asked, models: Sequence[str], learnt: Sequence[str] = (), *, there: Collection[str] = _CREDITS_OF_TODAY
) -> ibis.Table:
    """Rows of key, currency, counts, and each model's credit, refunds and shares; null is what there is nothing of.

    Over the tables `credits`, `learnt`, `clicks`, `touches`, `ads`, `identities`, `costs`, `zones` and `days`, and
    those of views, as far as they are needed. `models` have columns in `credits`, those that are `learnt` in a table of
    that name. `there` are the columns of the credits. One row more than a report may have says that there are too many.
    """
    models, stored = [*models, *learnt], models
    keys = [str(each) for each in asked.groups]
    made = [f"{model}_{part}" for model in models for part in COLUMNS_OF_MODEL]
    kinds = {name: "float64" if name.endswith("_share") else "int64" for name in (*COUNTS, *made)}

    def widened(part: ibis.Table) -> ibis.Table:
        rest = {name: ibis.null(kind) for name, kind in kinds.items() if name not in part.columns}
        return part.mutate(**rest).select(*keys, "currency", *kinds)

    every = list(_parts(asked, stored, keys, there))
    if learnt:
        every.append(_table("learnt", learnt_schema(asked, learnt)))
    parts = reduce(lambda one, other: one.union(other), map(widened, every))
    sums = {name: parts[name].sum() for name in kinds}
    return parts.group_by([*keys, "currency"]).aggregate(**sums).limit(ROWS_MAX + 1)


def learnt_schema(asked: Asked, models: Sequence[str]) -> pa.Schema:
    """The table `learnt`: what models that learn give, already summed by key and currency."""
    keys = [(str(each), pa.date32() if each is Dimension.DAY else pa.string()) for each in asked.groups]
    made = [(f"{model}_{part}", kind) for model in models for part, kind in COLUMNS_OF_MODEL.items()]
    return pa.schema([*keys, ("currency", pa.string()), *made])


def of_credits(dimension: Dimension) -> str:
    """What a dimension is called in the table of credits."""
    return _OF_CREDITS.get(dimension, str(dimension))


def calendar(policies: Policies, from_ms: int, to_ms: int) -> dict[str, pa.Table]:
    """The tables `zones` and `days`, for clicks from `from_ms` to `to_ms`."""
    default = policies.default.time_zone
    names = sorted({policy.time_zone for policy in policies.by_client.values()} - {default})
    others = [
        {"client_id": client_id, "zone": 1 + names.index(policy.time_zone)}
        for client_id, policy in policies.by_client.items()
        if policy.time_zone != default
    ]
    tables = [_days_of(number, ZoneInfo(name), from_ms, to_ms) for number, name in enumerate([default, *names])]
    return {"zones": pa.Table.from_pylist(others, _ZONES), "days": pa.concat_tables(tables)}


def _days_of(number: int, zone: ZoneInfo, from_ms: int, to_ms: int) -> pa.Table:
    # Cut at every midnight of UTC and of each offset of the zone, and where the offset changes: nowhere else does a day
    # begin, so that no piece has two.
    midnights = np.arange(from_ms // DAY_MS - 1, to_ms // DAY_MS + 2, dtype=np.int64) * DAY_MS
    changes_ms, offsets_ms = pieces(int(midnights[0]), int(midnights[-1]), zone)
    cuts = np.unique(np.concatenate([midnights, changes_ms, *(midnights - each for each in np.unique(offsets_ms))]))
    cuts = cuts[(cuts >= midnights[0]) & (cuts <= midnights[-1])]
    starts, ends = cuts[:-1], cuts[1:]
    day = days(starts, zone).astype("datetime64[D]")
    return pa.table([np.full(len(day), number, np.int32), starts // DAY_MS, starts, ends, day], schema=_DAYS)


def rows_of(table: Table) -> ibis.Table:
    """A table of the lake, all rows of which count."""
    return _table(table.name, table.whole)


def _table(name: str, schema: pa.Schema) -> ibis.Table:
    return ibis.table({field.name: _KINDS[field.type] for field in schema}, name)


def _midnight_ms(day: date) -> int:
    """In UTC."""
    return (day - _EPOCH).days * DAY_MS


def standing(table: Table) -> ibis.Table:
    """The rows of a table that no later run has retracted."""
    rows = _table(table.name, table.stored)
    names = {f"retracted_{name}": name for name in (*table.partition_by, *table.key, RUN)}
    retracted = rows.view().filter(_[RETRACTION]).select(**names)
    rows = _written(table)
    same = [rows[name] == retracted[other] for other, name in names.items() if name != RUN]
    return rows.anti_join(retracted, [*same, rows[RUN] < retracted[f"retracted_{RUN}"]])


def _written(table: Table) -> ibis.Table:
    rows = _table(table.name, table.stored)
    return rows.filter(~rows[RETRACTION])


def credits_of(models: Sequence[str], there: Collection[str]) -> ibis.Table:
    """The credits of these models that count, from a table with the columns `there`; every order has a kind."""
    return _credits_of(tuple(models), frozenset(there))


def stored_credits(there: Collection[str]) -> ibis.Table:
    """The same without models, and with rows that a later run retracted."""
    return _credits_of((), frozenset(there), with_retracted=True)


@lru_cache(maxsize=64)
def _credits_of(models: tuple[str, ...], there: frozenset[str], *, with_retracted: bool = False) -> ibis.Table:
    # Kept: a join is another expression each time it is made, and what asks it would be written anew.
    table = credits_table(models)
    if KIND not in there:  # a release before this one made it
        table = replace(table, rows=pa.schema([field for field in table.rows if field.name != KIND]))
    where_revised = _written if with_retracted else standing
    rows = where_revised(table) if RUN in there else rows_of(table)
    kind = rows[KIND].fill_null(PURCHASE) if KIND in there else ibis.literal(PURCHASE)
    return rows.mutate(**{KIND: kind})


def _parts(asked: Asked, models: Sequence[str], keys: list[str], there: Collection[str]) -> Iterator[ibis.Table]:
    """Each kind of thing, counted by itself."""
    rows = credits_of(models, there)
    if Dimension.CUSTOMER in asked.groups:
        rows = _with_customer(rows)
    if asked.kind is not None:
        rows = rows.filter(rows[KIND] == asked.kind)
    rows = _with_clicks(_fitting(rows, asked, "seller_id", "order_day"), asked, "click_id")
    rows = _named(rows, asked, _OF_CREDITS)
    of_models = {
        f"{model}_{part}": rows[f"{model}_{part}"].sum().fill_null(0) for model in models for part in COLUMNS_OF_MODEL
    }
    if of_models:
        yield rows.group_by([*keys, "currency"]).aggregate(**of_models)
    if not {Figure.ORDERS, Figure.REVENUE}.isdisjoint(asked.figures):
        yield _orders(rows, asked, keys)
    if asked.has_clicks:
        yield _clicks(asked, keys)
    if asked.has_views:
        yield _views(asked, keys)
    if asked.has_costs:
        yield _costs(asked, keys)


def of_touchpoints(asked: Asked, there: Collection[str]) -> ibis.Table:
    """The clicks that are touchpoints: `click`, and a column for each dimension of clicks that is asked for."""
    rows = credits_of((), there)
    credited = rows.filter(rows.click_id.notnull()).select("click_id").distinct()
    clicks = _of_clicks(asked)
    return credited.join(clicks, credited.click_id == clicks.click).select(*clicks.columns)


def _with_clicks(rows: ibis.Table, asked: Asked, id_: str, table: Table = CLICKS) -> ibis.Table:
    """Rows with what is asked for of the click that they name; nothing is known of one that was deleted."""
    if not asked.of_clicks:
        return rows
    clicks = _of_clicks(asked, table)
    return rows.left_join(clicks, rows[id_] == clicks.click).drop("click")


def _of_clicks(asked: Asked, table: Table = CLICKS) -> ibis.Table:
    clicks = ibis.table({name: _KINDS[table.schema.field(name).type] for name in READ}, table.name)
    clicks = _fitting(clicks, asked, None, None)
    return clicks.select(click=clicks.id, **{str(each): SAID[each](clicks) for each in asked.of_clicks})


def first_orders(rows: ibis.Table) -> ibis.Table:
    """When each person bought for the first time, by these credits."""
    known = rows.filter(rows.person.notnull() & (rows[KIND] == PURCHASE))
    return known.group_by(["client_id", "person"]).aggregate(first_at=known.placed_at.min())


def _with_customer(rows: ibis.Table) -> ibis.Table:
    """Credits with what their order's customer was; orders outside of the days that are asked for count, too."""
    firsts = first_orders(rows).rename(first_client="client_id", first_person="person")
    joined = rows.left_join(firsts, [rows.client_id == firsts.first_client, rows.person == firsts.first_person])
    is_returning = (joined.placed_at > joined.first_at).fill_null(False)
    customer = joined.person.isnull().ifelse(
        ibis.null("string"), is_returning.ifelse(Customer.RETURNING.value, Customer.NEW.value)
    )
    return joined.mutate(customer=customer).select(*rows.columns, "customer")


def _orders(rows: ibis.Table, asked: Asked, keys: list[str]) -> ibis.Table:
    """Orders, each once in a group, however many of its touchpoints are there."""
    if OF_AN_ORDER.issuperset(asked.groups) and asked.channel is None:
        orders = rows.filter(_.place <= 1)
    else:
        named = {f"order_{name}": rows[name] for name in ("client_id", "order_id")}
        orders = rows.select(*dict.fromkeys((*keys, "currency", "amount_minor", KIND)), **named).distinct()
    is_mixed = {"kinds": _[KIND].nunique()} if asked.kind is None and Dimension.KIND not in asked.groups else {}
    return orders.group_by([*keys, "currency"]).aggregate(orders=_.count(), revenue=_.amount_minor.sum(), **is_mixed)


def _clicks(asked: Asked, keys: list[str]) -> ibis.Table:
    id_ = ["id"] if asked.of_clicks else []
    clicks = _about(rows_of(TOUCHES).select(*id_, "ad", "time_ms", *NAMESPACES), asked)
    counts = {"clicks": _.count()}
    if Figure.PEOPLE in asked.figures:
        # Before anything else: what is joined first is carried through all that follow.
        clicks = _with_person(clicks, id_)
        counts["people"] = _.person.nunique()
    clicks = _with_clicks(_with_ads(clicks, asked, ADS), asked, "id")
    return _by_keys(_named(clicks, asked, _OF_ADS), keys, **counts)


def _views(asked: Asked, keys: list[str]) -> ibis.Table:
    id_ = ["id"] if asked.of_clicks else []
    views = _about(rows_of(VIEW_TOUCHES).select(*id_, "ad", "time_ms"), asked)
    views = _with_clicks(_with_ads(views, asked, VIEW_ADS), asked, "id", VIEWS)
    return _by_keys(_named(views, asked, _OF_ADS), keys, views=_.count())


def _about(touches: ibis.Table, asked: Asked) -> ibis.Table:
    """Those of the days that are asked for, and of the next ones: whatever the zone is, none is lost."""
    if asked.since is not None:
        touches = touches.filter(touches.time_ms >= _midnight_ms(asked.since) - _ZONES_MS)
    if asked.until is not None:
        touches = touches.filter(touches.time_ms < _midnight_ms(asked.until) + _ZONES_MS)
    return touches


def _with_ads(touches: ibis.Table, asked: Asked, table: Table) -> ibis.Table:
    """Those that are asked about, with what their ad is, and with their day where that matters."""
    ads = rows_of(table).select("ad", "client_id", "channel", "seller_id", "campaign", "ad_set", "ad_id").distinct()
    touches = _with_day(touches, ads) if asked.has_days else touches.join(ads, "ad")
    return _fitting(touches, asked, "seller_id", "day" if asked.has_days else None)


def _by_keys(rows: ibis.Table, keys: list[str], **counts: Any) -> ibis.Table:
    """These counts of each group; no row where there is nothing."""
    count = next(iter(counts))
    counted = rows.group_by(keys).aggregate(**counts) if keys else rows.aggregate(**counts).filter(_[count] > 0)
    return counted.mutate(currency=ibis.null("string"))


def _with_day(clicks: ibis.Table, ads: ibis.Table) -> ibis.Table:
    """Clicks with what their ad is, and their day in the zone of its client."""
    zoned = ads.left_join(_table("zones", _ZONES), "client_id")
    clicks = clicks.join(zoned.select(*ads.columns, zone=zoned.zone.fill_null(0)), "ad")
    # Divided as doubles, which is exact here: no instant is near enough to a midnight for them to meet.
    clicks = clicks.mutate(utc_day=(clicks.time_ms / DAY_MS).floor().cast("int64"))
    its = _table("days", _DAYS)
    together = [clicks.zone == its.zone, clicks.utc_day == its.utc_day]
    return clicks.join(its, [*together, clicks.time_ms >= its.from_ms, clicks.time_ms < its.until_ms])


def _with_person(clicks: ibis.Table, id_: list[str]) -> ibis.Table:
    """Clicks by the person of their first identifier that is nobody else's; without one they are of nobody."""
    identities = rows_of(IDENTITIES)
    shared, own = identities.filter(identities.is_shared), identities.filter(~identities.is_shared)
    for name in NAMESPACES:
        of_many = shared.select(**{f"{name}_of_many": shared.code})
        clicks = clicks.left_join(of_many, clicks[name] == of_many[f"{name}_of_many"])
    single = [clicks[f"{name}_of_many"].isnull().ifelse(clicks[name], ibis.null("int64")) for name in NAMESPACES]
    clicks = clicks.mutate(known_by=ibis.coalesce(*single))
    clicks = clicks.left_join(own, clicks.known_by == own.code)
    return clicks.mutate(whose=clicks.person.coalesce(clicks.known_by)).select(*id_, "ad", "time_ms", person="whose")


def _costs(asked: Asked, keys: list[str]) -> ibis.Table:
    """Costs as they were last imported."""
    latest_first = ibis.window(
        group_by=["client_id", "day", "channel", "campaign", "ad_set", "ad"],
        order_by=[ibis.desc("imported_at"), "currency", "amount_minor"],
    )
    costs = rows_of(COSTS).mutate(nth=ibis.row_number().over(latest_first)).filter(_.nth == 0)
    costs = _named(_fitting(costs, asked, None, "day"), asked, _OF_COSTS)
    return costs.group_by([*keys, "currency"]).aggregate(cost=_.amount_minor.sum())


def _named(table: ibis.Table, asked: Asked, names: Mapping[Dimension, str]) -> ibis.Table:
    """With the dimensions as columns; what a table lacks is null."""
    columns = {str(each): names.get(each, str(each)) for each in asked.groups}
    return table.mutate(
        **{each: table[column] if column in table.columns else ibis.null("string") for each, column in columns.items()}
    )


def _fitting(table: ibis.Table, asked: Asked, seller: str | None, day: str | None) -> ibis.Table:
    """The rows that were asked about."""
    wanted = [(column, value) for column, value in _filters(asked, seller) if value is not None]
    conditions = [table[column] == value for column, value in wanted if column in table.columns]
    if asked.within is not None and "client_id" in table.columns:
        conditions.append(table.client_id.isin(asked.within))
    if day is not None and asked.since is not None:
        conditions.append(table[day] >= asked.since)
    if day is not None and asked.until is not None:
        conditions.append(table[day] <= asked.until)
    return table.filter(conditions) if conditions else table


def _filters(asked: Asked, seller: str | None) -> list[tuple[str, str | None]]:
    filters = [("client_id", asked.client_id), ("channel", asked.channel), ("currency", asked.currency)]
    return filters if seller is None else [*filters, (seller, asked.seller_id)]

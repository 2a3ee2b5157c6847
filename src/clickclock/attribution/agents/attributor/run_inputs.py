"""What a run looks at: clicks, orders, persons and ads as they were in certain versions of the lake.

Never changes anything, but that clicks are taken in as touches first. Invariant: two worlds of equal versions and
policies are equal.

>>> behold(lake, engine, policies, models, now_ms, None).orders.table.num_rows   # doctest: +SKIP
500000
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.agents.attributor import people
from clickclock.attribution.agents.attributor.blocks import Facts, facts_of
from clickclock.attribution.agents.attributor.click_links import (
    NO_TIES,
    Ties,
    linked_by_orders,
    ties_of,
    ties_of_all,
    ties_with,
)
from clickclock.attribution.agents.attributor.identified import links_by_customers
from clickclock.attribution.agents.attributor.intake import OF_VIEWS, TakenIn, take_in
from clickclock.attribution.agents.attributor.journey_kernel import Since, Walker
from clickclock.attribution.agents.attributor.orders import Orders, orders_since, read_orders
from clickclock.attribution.agents.attributor.people import Who
from clickclock.attribution.agents.attributor.previous import Then, then_of
from clickclock.attribution.agents.attributor.touch_delta import News, news_since
from clickclock.attribution.crediting.columns import identity
from clickclock.attribution.crediting.columns.identity import Persons, joined
from clickclock.attribution.crediting.columns.terms import Terms, terms_of
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.engines import PERSONS, Engine
from clickclock.attribution.lake import ADS, EVENTS, TOUCHES, VIEW_ADS, VIEW_TOUCHES, VIEWS, Lake, Table
from clickclock.attribution.models import Model
from clickclock.attribution.reporting.result import Result


@dataclass(frozen=True, eq=False)
class World:
    """All that decides, read once."""

    taken: TakenIn
    viewed: TakenIn | None
    """Of views; None as long as there was none."""
    views_version: int | None
    """The version of the views, which may be a table without any; None if there is no such table."""
    events_version: int | None
    """The version of the events, which have the identifications; None if there are none."""
    touches: list[str]
    """The files of clicks."""
    views: list[str]
    """The files of views, if any can earn credit."""
    orders: Orders
    ads: pa.Table
    news: News
    ties: Ties
    ties_then: Ties
    """Those of the version before; none, where everybody is looked at."""
    persons: Persons
    who: Who
    """The persons of the orders."""
    then: Then
    """The persons of the version before; nobody, where everybody is looked at."""
    facts: Facts
    terms: Terms
    policies: Policies
    models: Mapping[str, Model]

    def walker(self, since: Since | None = None) -> Walker:
        """The kernel for everybody, or for some."""
        return Walker(self.facts.terms, self.terms, since)

    @property
    def persons_table(self) -> pa.Table:
        """The persons as engines take them: a code that is its own person is not named."""
        rows = people.table_of(self.persons)
        return rows.filter(pc.is_null(rows["visitors"])).select(PERSONS.names)


def behold(
    lake: Lake,
    engine: Engine,
    policies: Policies,
    models: Mapping[str, Model],
    now_ms: int,
    before: Result | None,
) -> World:
    """The world as it is now, with what came since `before`; clicks are taken in for that.

    Orders, and what was known of persons, are read beside clicks: each takes what is mostly one core's work.
    Raises `VersionGone` if what came is not known any more, `RunOvertaken`, `LakeUnreachable`, `EngineFailing`.
    """
    with ThreadPoolExecutor(1, "orders") as beside:
        reading = (
            beside.submit(read_orders, lake, engine, policies)
            if before is None
            else beside.submit(orders_since, lake, engine, policies, before)
        )
        recalling = beside.submit(then_of, lake, before)
        taken = take_in(lake, engine, policies, now_ms)
        views_version = lake.version_of(VIEWS.name)
        has_views = lake.uris(VIEWS.name, views_version) or lake.table(VIEW_TOUCHES.name) is not None
        viewed = take_in(lake, engine, policies, now_ms, OF_VIEWS) if has_views else None
        ads, viewed_ads = _ads(lake, ADS, taken.ads_version), ADS.schema.empty_table()
        views: list[str] = []
        if viewed is not None and policies.credits_views:
            viewed_ads = _ads(lake, VIEW_ADS, viewed.ads_version)
            views = lake.uris(VIEW_TOUCHES.name, viewed.version)
        touches = lake.uris(TOUCHES.name, taken.version)
        news = news_since(lake, before)
        ties_then = NO_TIES if before is None else ties_of(lake, engine, before, ads, policies)
        if before is None or news.gone.num_rows:
            ties = ties_of_all(engine, touches, ads, policies)
        else:
            ties = ties_with(lake, engine, ties_then, news.touches, taken.version, ads, policies)
        events = lake.table(EVENTS.name)
        events_version = None if events is None else events.version()
        orders = reading.result()
        then = recalling.result()
    facts = facts_of(orders, ads, viewed_ads, policies)
    customers = links_by_customers(lake, events_version, orders.table, policies)
    links = linked_by_orders(joined([ties.links, customers]), orders.table, policies)
    persons = identity.persons(links, people.sentinels(policies, facts.ads.clients))
    return World(
        taken=taken,
        viewed=viewed,
        views_version=views_version if viewed is None else viewed.raw_version,
        events_version=events_version,
        touches=touches,
        views=views,
        orders=orders,
        ads=ads,
        news=news,
        ties=ties,
        ties_then=ties_then,
        persons=persons,
        who=people.who_ordered(orders.table, persons),
        then=then,
        facts=facts,
        terms=terms_of(facts.ads, policies),
        policies=policies,
        models=models,
    )


def _ads(lake: Lake, table: Table, version: int) -> pa.Table:
    batches = (batch.cast(table.schema) for batch in lake.scan(table.name, version=version))
    return pa.Table.from_batches(batches, table.schema)

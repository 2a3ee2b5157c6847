"""Affected: who could have changed since a version, each since when; and which orders were amended, are new, or gone.

Never looks at a credit but to see who had no click. Invariant: whoever is not named has the rows that he had. What a
click changes lies after it: it can spend a click id, make a repeat or a flood, and be credited, all of it later on.
Only who is someone else now, who lost a click, or who had none, is looked at in full.

>>> find_affected(lake, engine, world).nobodys   # doctest: +SKIP
array([], dtype=int64)
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clickclock.attribution.agents.attributor import people
from clickclock.attribution.agents.attributor.journey_kernel import CLEAR_MS, Since
from clickclock.attribution.agents.attributor.keys import KEY, Keys
from clickclock.attribution.agents.attributor.neighbours import Before, clicks_before, neighbours
from clickclock.attribution.agents.attributor.people import KINDS
from clickclock.attribution.agents.attributor.reprocess_from import Moments, Placed, moments_of, since_of, together
from clickclock.attribution.agents.attributor.run_inputs import World
from clickclock.attribution.clicks import identifier
from clickclock.attribution.crediting.columns import months
from clickclock.attribution.crediting.columns.codes import among, distinct, places
from clickclock.attribution.crediting.columns.identity import Persons
from clickclock.attribution.crediting.columns.rolling import changes
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.engines import Engine
from clickclock.attribution.lake import (
    Lake,
    Sums,
    Words,
    differing,
)
from clickclock.attribution.orders.amendment import KIND

Numbers = NDArray[np.int64]
BUSY_CLICKS: Final = 48
"""New ones, of a person; most often these are a day's."""
_SAID: Final = (*KEY, "placed_ms", "amount_minor", "refunded_minor", "currency", "status", "seller_id", KIND)
"""What an order says of itself in its rows of credits."""


@dataclass(frozen=True, eq=False)
class Affected:
    """The people and months that must be credited again."""

    since: Since
    amended: Words
    """Orders that are new, gone, or of which something else is said than before, as `keys_of` numbers them."""
    first_told: Numbers
    """Orders, by number, of which nothing was said before; sorted."""
    nobodys: Numbers
    """Orders, by number, that have no person and are new, amended, or had one."""
    gone: pa.Table
    """`client_id` and `order_id` of orders that were there and are not any more."""
    months: frozenset[str]
    """In which orders that are new, amended or gone are placed, or were."""


def find_affected(lake: Lake, engine: Engine, world: World) -> Affected:
    """The people who could have changed since the version before. Raises `VersionGone`."""
    then, new, gone = world.then.persons, world.news.touches, world.news.gone
    with ThreadPoolExecutor(1, "neighbours") as beside:
        looking = beside.submit(neighbours, lake, engine, world, pa.concat_tables([new, gone]))
        looking_back = beside.submit(clicks_before, lake, engine, world)
        amended = _amended(world)
        whole = [people.moved(then, world.persons)]
        for known in (then, world.persons):
            who = people.who_is([gone[kind] for kind in KINDS], known)
            whole.append(who.person[who.is_known])
        clicked = [_of_clicks(world, touches) for touches in (new, looking.result())]
        before = looking_back.result()
    whole += [moments.person[among(world.then.clickless, moments.person)] for moments in clicked]
    whole += _of_shared(world, then)
    others = together([clicked[1], *_of_orders(world, then)])
    since = since_of(
        together([clicked[0], others]),
        Placed(world.who, world.orders.table["placed_ms"].to_numpy(), world.facts.month),
        whole=distinct(np.concatenate(whole)),
        busy=_busy(clicked[0]),
        going_on=_going_on(world, clicked[0], before, others.person),
    )
    return Affected(
        since=since,
        amended=amended.keys,
        first_told=amended.first_told,
        nobodys=_nobodys(world, then),
        gone=amended.gone,
        months=amended.months,
    )


# --- clicks ---


def _of_clicks(world: World, touches: pa.Table) -> Moments:
    who = people.who_is([touches[kind] for kind in KINDS], world.persons)
    ads = world.facts.ads
    client = ads.client[ads.find(touches["ad"].to_numpy()[who.is_known])]
    at_ms = touches["time_ms"].to_numpy()[who.is_known]
    return moments_of(who.person[who.is_known], at_ms, client, ads.clients, world.policies)


def _busy(moments: Moments) -> Numbers:
    """People who clicked so often that they hardly have a quiet time: to find that out costs a second walk."""
    person, clicks = np.unique(moments.person, return_counts=True)
    return person[clicks >= BUSY_CLICKS]


def _going_on(world: World, moments: Moments, before: Before | None, others: Numbers) -> Numbers:
    """Whose new clicks come long after all others of theirs, if nothing else has happened to them; sorted."""
    if before is None:
        return others[:0]
    by_time = np.lexsort((moments.after_ms, moments.person))
    firsts = by_time[changes(moments.person[by_time])]
    person, first_ms = moments.person[firsts], moments.after_ms[firsts]
    who = people.who_is([before.clicks[kind] for kind in KINDS], world.persons)
    at = places(person, who.person)
    theirs = np.flatnonzero(who.is_known & (at >= 0))
    last_ms = np.full(len(person), before.from_ms - CLEAR_MS)
    for told in (before.clicks["time_ms"].to_numpy(), before.clicks["received_us"].to_numpy() // 1000 + 1):
        np.maximum.at(last_ms, at[theirs], told[theirs])
    is_long_after = (first_ms >= before.from_ms) & (first_ms - last_ms >= CLEAR_MS)
    going_on: Numbers = person[is_long_after & ~among(distinct(others), person)]
    return going_on


# --- orders ---


@dataclass(frozen=True, eq=False)
class _Amended:
    first_told: Numbers
    """The numbers of orders that are new; sorted."""
    gone: pa.Table
    months: frozenset[str]
    """Those of both."""
    keys: Words
    """Rows of both versions that differ."""


def _amended(world: World) -> _Amended:
    now, told, then = world.orders.anew, world.orders.fresh, world.orders.then
    gone = then.filter(pa.array(~Keys(told).among(then)))
    first_told = now[~Keys(then).among(told)]
    month = np.append(_placed(then, then["placed_ms"].to_numpy(), world.policies).month, world.facts.month[now])
    names = frozenset(months.name(each) for each in np.unique(month).tolist())
    sums = Sums(), Sums()
    for each, rows in zip(sums, (then, told), strict=True):
        each.add(rows.select(_SAID))
    return _Amended(first_told, gone.select(KEY), names, differing(*sums))


def _of_orders(world: World, then: Persons) -> Iterator[Moments]:
    """When orders that changed were placed, before and now: they themselves are wanted, too."""
    now, before = world.orders.fresh, world.orders.then
    for orders, known in ((now, world.persons), (before, then), (before, world.persons)):
        who = people.who_ordered(orders, known)
        mine = orders.filter(pa.array(who.is_known))
        found = _placed(mine, who.person[who.is_known], world.policies)
        yield replace(found, after_ms=found.after_ms - 1)


def _placed(orders: pa.Table, person: Numbers, policies: Policies) -> Moments:
    clients = orders["client_id"].combine_chunks().dictionary_encode()
    names = clients.dictionary.to_pylist()
    return moments_of(person, orders["placed_ms"].to_numpy(), clients.indices.to_numpy(), names, policies)


def _of_shared(world: World, then: Persons) -> Iterator[Numbers]:
    """The persons, before and now, of orders with an identifier that became shared, or is no more.

    Such an order is of its next identifier, which nothing else may have touched.
    """
    turned = np.setxor1d(then.shared, world.persons.shared)
    if not len(turned):
        return
    table = world.orders.table
    is_concerned = np.zeros(table.num_rows, np.bool_)
    for kind in set(identifier.SPACES) & set(table.column_names):
        is_there = np.asarray(pc.is_valid(table[kind]).cast(pa.int8())).view(np.bool_)
        is_concerned |= is_there & among(turned, pc.fill_null(table[kind], 0).to_numpy())
    concerned = table.filter(pa.array(is_concerned))
    for known in (then, world.persons):
        who = people.who_ordered(concerned, known)
        yield who.person[who.is_known]


def _nobodys(world: World, then: Persons) -> Numbers:
    numbers = np.flatnonzero(~world.who.is_known)
    was = people.who_ordered(world.orders.table.take(pa.array(numbers)), then)
    return numbers[was.is_known | (numbers >= world.orders.standing)]

"""A full run: everybody is looked at, and every credit is written anew.

Never publishes: what it wrote is seen by nobody until a result names it. Invariant: of a world there is one outcome.

>>> run_fully(lake, engine, world, Path("/tmp"), now_ms, 1, None)   # doctest: +SKIP
"""

import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from clickclock.attribution.agents.attributor import people
from clickclock.attribution.agents.attributor.blocks import Blocks, nobodys
from clickclock.attribution.agents.attributor.drafting import split_found, weighed, weighing
from clickclock.attribution.agents.attributor.learning import Learning, learnt
from clickclock.attribution.agents.attributor.run_inputs import World
from clickclock.attribution.agents.attributor.target import NOTE
from clickclock.attribution.engines import Engine
from clickclock.attribution.errors import VersionGone
from clickclock.attribution.lake import (
    COUNTS,
    CREDITS,
    FITTED,
    FOLDED,
    IDENTITIES,
    TIES,
    UNCONVERTED,
    Lake,
    Sums,
    credits_table,
    different,
)
from clickclock.attribution.reporting.result import Result
from clickclock.foundation.ordered_map import in_turn

WEIGHED_AT_ONCE: Final = 2
"""Blocks of orders, each of which is some hundred megabytes."""


@dataclass(frozen=True)
class Outcome:
    """What a run wrote: versions of tables, and how much is in them."""

    credits_version: int | None
    identities_version: int | None
    unconverted_version: int | None
    fitted_version: int | None
    ties_version: int | None
    counts_version: int | None
    folded_version: int | None
    orders: int
    credited: int
    touchpoints: int
    changed: int


def run_fully(
    lake: Lake, engine: Engine, world: World, scratch: Path, now_ms: int, number: int, before: Result | None
) -> Outcome:
    """Write the credits of all orders, for the result version `number`. Raises `RunOvertaken`, `LakeUnreachable`."""
    name, notes = f"part-{uuid.uuid4().hex}", {NOTE: number}
    tables = (credits_table(list(weighing(world.models))), IDENTITIES, UNCONVERTED, FITTED, TIES, COUNTS, FOLDED)
    ledgers = [lake.ledger(table) for table in tables]
    every = [ledger.parts(name, now_ms, number) for ledger in ledgers]
    parts, identities, unconverted, fitted, ties, counts, folded = every
    learning = Learning(world.models)
    credited_orders = touchpoints = 0
    sums = Sums()
    with Blocks(scratch, world.facts.month) as blocks:
        for found in engine.walk(
            [*world.touches, *world.views],
            world.ties.uses,
            world.ties.floods,
            world.orders.table,
            world.persons_table,
            world.walker(),
        ):
            journeys, paths = split_found(found, world)
            blocks.add(journeys)
            unconverted.write(paths)
            learning.show_unconverted(paths)
        blocks.add(nobodys(np.flatnonzero(~world.who.is_known)))
        identities.write(people.table_of(world.persons))
        ties.write(world.ties.as_table)
        folded.write(world.orders.table)
        for each in (unconverted, identities, ties, folded):
            each.settle()
        for rows in in_turn(lambda block: weighed(world.facts.rows(block), world), blocks, WEIGHED_AT_ONCE):
            parts.write(rows)
            learning.show(rows)
            place = rows["place"].to_numpy()
            credited_orders += int(np.count_nonzero(place == 1))
            touchpoints += int(np.count_nonzero(place))
            if before is not None:
                sums.add(rows)
    with ThreadPoolExecutor(1, "closing") as beside:
        # What waits to be written takes one core as long as the models take the other.
        closed = {each: beside.submit(each.close) for each in (parts, identities, unconverted, ties, folded)}
        counted = learning.counted()
        counts.write(counted)
        fitted.write(learnt(learning.models, counted))
        closed |= {each: beside.submit(each.close) for each in (counts, fitted)}
    orders = world.orders.table.num_rows
    changed = orders if before is None else _changed(lake, before, sums, orders)
    versions = {
        f"{table.name}_version": ledger.commit(closed[each].result(), now_ms, instead_of=None, notes=notes)
        for table, ledger, each in zip(tables, ledgers, every, strict=True)
    }
    return Outcome(**versions, orders=orders, credited=credited_orders, touchpoints=touchpoints, changed=changed)


def _changed(lake: Lake, before: Result, sums: Sums, orders: int) -> int:
    """How many orders differ from the version before; all, if that is gone."""
    then = Sums()
    try:
        for batch in lake.scan(CREDITS, version=before.credits_version):
            then.add(pa.Table.from_batches([batch]))
    except VersionGone:
        return orders
    return different(then, sums)

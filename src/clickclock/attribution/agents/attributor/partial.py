"""An incremental run: those who could have changed are looked at, and what changed is written beside what did not.

Never publishes. Invariant: what it writes, with what stands, is what a full run would write. Rows that changed are
retracted and written anew; a month of which much has been retracted is written anew as a whole, so that readers have
little to pass over. What models learn from is counted anew of what changed alone.

>>> run_partially(lake, engine, world, Path("/tmp"), now_ms, 2, result)   # doctest: +SKIP
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clickclock.attribution.agents.attributor import people
from clickclock.attribution.agents.attributor.affected import Affected, find_affected
from clickclock.attribution.agents.attributor.blocks import ROWS, Blocks, nobodys
from clickclock.attribution.agents.attributor.drafting import split_found, weighed, weighing
from clickclock.attribution.agents.attributor.full import Outcome
from clickclock.attribution.agents.attributor.journey_kernel import UNCERTAIN, Since
from clickclock.attribution.agents.attributor.keys import KEY, Keys
from clickclock.attribution.agents.attributor.learning import LEARNT_FROM, Learning, added_up, learnt, less
from clickclock.attribution.agents.attributor.orders import Orders
from clickclock.attribution.agents.attributor.paths import Paths
from clickclock.attribution.agents.attributor.run_inputs import World
from clickclock.attribution.agents.attributor.target import Target, but, crowded, rows_of_each
from clickclock.attribution.crediting.columns import months
from clickclock.attribution.crediting.columns.codes import among
from clickclock.attribution.engines import CREDITED, Engine
from clickclock.attribution.lake import (
    COUNTS,
    CREDITS,
    FITTED,
    FOLDED,
    IDENTITIES,
    ORDER_MONTH,
    RETRACTION,
    RUN,
    TIES,
    UNCONVERTED,
    Lake,
    Sums,
    Table,
    credits_table,
    differing,
    keys_of,
    whole_orders,
)
from clickclock.attribution.reporting.result import Result

COMPARED: Final = tuple(name for name in CREDITED.names if name not in (RUN, RETRACTION))
"""The columns of credits by which an order is seen to have changed, unless it was amended: others follow from these."""


def run_partially(
    lake: Lake, engine: Engine, world: World, scratch: Path, now_ms: int, number: int, before: Result
) -> Outcome:
    """Write what changed since `before`, for the result version `number`.

    Raises `VersionGone` if that is not known any more, `RunOvertaken`, `LakeUnreachable`.
    """
    affected = find_affected(lake, engine, world)
    target = Target(lake, now_ms, number)
    identities_version, unconverted_version = before.identities_version, before.unconverted_version
    ties_version = before.ties_version
    # Journeys and paths have nothing to do with each other, and neither of them takes more than one core.
    with Blocks(scratch, world.facts.month) as blocks, ThreadPoolExecutor(1, "beside") as beside:
        fresh, since = _walk(engine, world, affected, blocks)
        comparing = beside.submit(Paths, lake, engine, before.unconverted_version, since, fresh)
        journeys = _Journeys(lake, engine, before, world, affected, blocks)
        paths = comparing.result()
        writing = beside.submit(journeys.write, target)
        counts_version, fitted_version = _learn(target, before, journeys, paths)
        if ties_version is None or world.news:
            ties_version = target.replace(TIES, world.ties.as_table)
        if not people.is_same(world.then.persons, world.persons):
            identities_version = target.replace(IDENTITIES, people.table_of(world.persons))
        folded_version = _fold(target, before, world.orders)
        if paths.are_changed:
            unconverted_version = paths.write(target)
        credits_version = writing.result()
    return Outcome(
        credits_version,
        identities_version,
        unconverted_version,
        fitted_version,
        ties_version,
        counts_version,
        folded_version,
        orders=world.orders.table.num_rows,
        credited=before.credited + journeys.credited,
        touchpoints=before.touchpoints + journeys.touchpoints,
        changed=len(journeys.changed),
    )


def _walk(engine: Engine, world: World, affected: Affected, blocks: Blocks) -> tuple[pa.Table, Since]:
    """Put aside the journeys of all who could have changed.

    Returns their paths without an order, and from when on these are: of some, everything had to be looked at.
    """
    paths = [UNCONVERTED.whole.empty_table()]
    # A person who became part of another is not walked along, and only loses rows.
    walked = affected.since
    since = walked.only(people.are_persons(walked.person, world.persons))
    while len(since.person):
        uncertain = [np.empty(0, np.int64)]
        for found in engine.walk(
            [*world.touches, *world.views],
            world.ties.uses,
            world.ties.floods,
            world.orders.table,
            world.persons_table,
            world.walker(since),
            since.wanted,
        ):
            journeys, some = split_found(found, world)
            blocks.add(journeys)
            paths.append(some.cast(UNCONVERTED.whole))
            uncertain.append(found["person"].to_numpy()[found["number"].to_numpy() == UNCERTAIN])
        since = since.only(np.isin(since.person, np.concatenate(uncertain))).in_full
        walked = walked.afresh(since.person)
    blocks.add(nobodys(affected.nobodys))
    return pa.concat_tables(paths), walked


def _fold(target: Target, before: Result, orders: Orders) -> int | None:
    """Write the orders that are new or were amended. Returns the version."""
    version, gone = before.folded_version, orders.then.num_rows
    if not orders.fresh.num_rows and not gone:
        return version
    if crowded(target.lake.stored(FOLDED.name, version or 0), {"": orders.standing + gone}, {"": gone}):
        return target.replace(FOLDED, orders.table)
    return target.revise(FOLDED, version, [orders.fresh], [orders.then.select(KEY)])


def _learn(target: Target, before: Result, journeys: "_Journeys", paths: Paths) -> tuple[int | None, int | None]:
    """Write what models count and have learnt, of the months in which a count changed. Returns both versions."""
    journeys.then.show_unconverted(paths.gone)
    journeys.now.show_unconverted(paths.new)
    changes = less(journeys.now.counted(), journeys.then.counted())
    theirs = pc.unique(changes[ORDER_MONTH])
    if not len(theirs):
        return before.counts_version, before.fitted_version
    is_theirs = pc.field(ORDER_MONTH).isin(theirs)
    counted = added_up([_kept(target.lake, COUNTS, before.counts_version, is_theirs), changes])
    fitted = learnt(journeys.now.models, counted)
    others = _kept(target.lake, FITTED, before.fitted_version, ~is_theirs)
    return (
        target.revise(COUNTS, before.counts_version, [counted], (), theirs.to_pylist()),
        target.replace(FITTED, pa.concat_tables([others, fitted])),
    )


def _kept(lake: Lake, table: Table, version: int | None, where: pc.Expression) -> pa.Table:
    """Some rows of the version before."""
    batches = lake.scan(table.name, where, table.whole.names, version)
    return pa.Table.from_batches((batch.cast(table.whole) for batch in batches), table.whole)


class _Journeys:
    """Credits: of orders that were looked at again, and what stands of the others in their months."""

    def __init__(
        self, lake: Lake, engine: Engine, before: Result, world: World, affected: Affected, blocks: Blocks
    ) -> None:
        self._lake = lake
        self._engine = engine
        self._before = before
        self._world = world
        self._blocks = blocks
        self._table = credits_table(list(weighing(world.models)))
        self.then, self.now = Learning(world.models), Learning(world.models)
        """What models learn from orders that changed: what they were, and what they are."""
        numbers = blocks.numbers
        orders = world.orders.table.select(KEY).take(pa.array(numbers))
        self._amended = affected.amended
        self._first_told = affected.first_told
        there = orders.filter(pa.array(~among(affected.first_told, numbers)))
        self._renewed = Keys(pa.concat_tables([affected.gone, there]))
        """Orders that had rows before, which may be others now."""
        self._months = affected.months.union(map(months.name, np.unique(world.facts.month[numbers]).tolist()))
        """In which an order may have changed."""
        self.credited = self.touchpoints = 0
        """How many more there are than before."""
        self.changed = np.empty(0, np.uint64)
        """The orders that have other rows than before, by the numbers that `keys_of` gives them; sorted."""
        self._standing: Counter[str] = Counter()
        """How many rows of each month stand, as they are in files."""
        self._compare()
        self._numbers = numbers[self._is_changed(orders)]
        """Those of them that are there."""
        for rows in self._fresh(LEARNT_FROM):
            self.now.show(rows)

    def _compare(self) -> None:
        """See which orders have changed."""
        then, now = Sums(), Sums()
        old = [self._table.whole.empty_table().select(COMPARED)]
        wanted = dict.fromkeys(sorted(self._months), self._renewed.order_ids)
        version = self._before.credits_version
        for month, rows, count in self._lake.standing(self._table, version, wanted, self._engine.credited):
            self._standing[month] = count
            old.append(rows.select(COMPARED).filter(pa.array(self._renewed.among(rows))))
        whole = pa.concat_tables(old)
        whole = whole.take(pa.array(np.lexsort((whole["place"].to_numpy(), keys_of(whole)))))
        then.add(whole)
        self._count(whole, -1)
        for found in self._blocks:
            self._count(found, 1)
            # An order of which nothing was said before has changed, whatever is said now.
            is_known = ~among(self._first_told, found["number"].to_numpy())
            now.add(self._world.facts.rows(found.filter(pa.array(is_known)), COMPARED))
        self.changed = np.union1d(differing(then, now), self._amended)
        self._gone = whole.filter(pa.array(self._is_changed(whole)))
        self.then.show(self._gone)

    def write(self, target: Target) -> int | None:
        """Write the rows of orders that changed, and retract those that they had. Returns the version."""
        version = self._before.credits_version
        if not len(self.changed):
            return version
        gone = rows_of_each(self._gone[ORDER_MONTH])
        anew = crowded(self._lake.stored(CREDITS, version or 0), self._standing, gone)
        fresh = (weighed(rows, self._world) for rows in self._fresh(ROWS.names))
        kept = (rows.filter(pa.array(~self._is_changed(rows))) for rows in self._then(anew)) if anew else ()
        retracted = but(self._gone.filter(pc.less_equal(self._gone["place"], 1)), ORDER_MONTH, anew)
        return target.revise(self._table, version, chain(kept, fresh), [retracted], anew)

    def _fresh(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """What orders are that changed."""
        for found in self._blocks:
            is_changed = among(self._numbers, found["number"].to_numpy())
            yield self._world.facts.rows(found.filter(pa.array(is_changed)), names)

    def _then(self, wanted: Iterable[str]) -> Iterator[pa.Table]:
        """All credits of some months, as they were."""
        where = pc.field(ORDER_MONTH).isin(pa.array(sorted(wanted), pa.string()))
        return whole_orders(self._lake.scan(CREDITS, where, self._table.whole.names, self._before.credits_version))

    def _is_changed(self, rows: pa.Table) -> NDArray[np.bool_]:
        return np.isin(keys_of(rows), self.changed)

    def _count(self, rows: pa.Table, sign: int) -> None:
        place = rows["place"].to_numpy()
        self.credited += sign * int(np.count_nonzero(place == 1))
        self.touchpoints += sign * int(np.count_nonzero(place))

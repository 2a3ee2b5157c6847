"""An incremental run: those who could have changed are looked at, and what changed is written beside what did not.

Never publishes. Invariant: what it writes, with what stands, is what a full run would write. Rows that changed are
retracted and written anew; a month of which much has been retracted is written anew as a whole, so that readers have
little to pass over. Models learn again from the months in which a path may have changed.

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

from clickclock.attribution.attributor import people
from clickclock.attribution.attributor.affected import Affected, find_affected
from clickclock.attribution.attributor.blocks import ROWS, Blocks, nobodys
from clickclock.attribution.attributor.drafting import split_found, weighed, weighing
from clickclock.attribution.attributor.full import Outcome
from clickclock.attribution.attributor.keys import KEY, Keys
from clickclock.attribution.attributor.learning import LEARNT_FROM, Learning
from clickclock.attribution.attributor.paths import Paths
from clickclock.attribution.attributor.target import Target, but, crowded
from clickclock.attribution.attributor.walker import UNCERTAIN
from clickclock.attribution.attributor.world import World
from clickclock.attribution.engines import Engine
from clickclock.attribution.lake import (
    CREDITS,
    FITTED,
    IDENTITIES,
    ORDER_MONTH,
    TIES,
    UNCONVERTED,
    Lake,
    Sums,
    credits_table,
    differing,
    keys_of,
    whole_orders,
)
from clickclock.attribution.result import Result

COMPARED: Final = (*KEY, ORDER_MONTH, "person", "reason", "place", "click_id", "channel")
"""The columns of credits by which an order is seen to have changed, unless it was amended: others follow from these."""


def run_partially(
    lake: Lake, engine: Engine, world: World, scratch: Path, now_ms: int, number: int, before: Result
) -> Outcome:
    """Write what changed since `before`, for the result version `number`.

    Raises `VersionGone` if that is not known any more, `RunOvertaken`, `LakeUnreachable`.
    """
    affected = find_affected(lake, engine, world, before)
    target = Target(lake, now_ms, number)
    with Blocks(scratch) as blocks:
        fresh = _walk(engine, world, affected, blocks)
        journeys = _Journeys(lake, before, world, affected, blocks)
        paths = Paths(lake, before.unconverted_version, affected.since, fresh, journeys.months)
        journeys.compare(journeys.months | (paths.changed if journeys.learning.models else set()))
        with ThreadPoolExecutor(1, "learning") as beside:
            fitting = beside.submit(journeys.learning.fit, paths.nulls)
            credits_version = journeys.write(target)
            fitted_version = journeys.learn(target, fitting.result())
    identities_version, unconverted_version = before.identities_version, before.unconverted_version
    ties_version = before.ties_version
    if ties_version is None or world.news:
        ties_version = target.replace(TIES, world.ties.as_table)
    if not people.is_same(world.then.persons, world.persons):
        identities_version = target.replace(IDENTITIES, people.table_of(world.persons))
    if paths.changed:
        unconverted_version = paths.write(target)
    return Outcome(
        credits_version,
        identities_version,
        unconverted_version,
        fitted_version,
        ties_version,
        orders=world.orders.table.num_rows,
        credited=before.credited + journeys.credited,
        touchpoints=before.touchpoints + journeys.touchpoints,
        changed=len(journeys.changed),
    )


def _walk(engine: Engine, world: World, affected: Affected, blocks: Blocks) -> pa.Table:
    """Put aside the journeys of all who could have changed; returns their paths without an order."""
    paths = [UNCONVERTED.whole.empty_table()]
    # Who has become part of another is nobody to walk along, and has only rows to lose.
    since = affected.since.only(people.are_persons(affected.since.person, world.persons))
    while len(since.person):
        uncertain = [np.empty(0, np.int64)]
        for found in engine.walk(
            world.touches,
            world.ties.uses,
            world.ties.floods,
            world.orders.table,
            world.persons_table,
            world.walker(since),
            since.wanted,
        ):
            journeys, some = split_found(found, world)
            blocks.add(journeys)
            paths.append(some)
            uncertain.append(found["person"].to_numpy()[found["number"].to_numpy() == UNCERTAIN])
        since = since.only(np.isin(since.person, np.concatenate(uncertain))).in_full
    blocks.add(nobodys(affected.nobodys))
    return pa.concat_tables(paths)


class _Journeys:
    """Credits: of orders that were looked at again, and what stands of the others in their months."""

    def __init__(self, lake: Lake, before: Result, world: World, affected: Affected, blocks: Blocks) -> None:
        self._lake = lake
        self._before = before
        self._world = world
        self._blocks = blocks
        self._table = credits_table(list(weighing(world.models)))
        self.learning = Learning(world.models)
        keys = list(self._fresh((*KEY, ORDER_MONTH, "place")))
        self._amended = affected.amended
        self._renewed = Keys(pa.concat_tables([affected.gone, *(rows.select(KEY) for rows in keys)]))
        self.months = affected.months.union(*(rows[ORDER_MONTH].unique().to_pylist() for rows in keys))
        """In which an order may have changed."""
        self.credited = self.touchpoints = 0
        """How many more there are than before."""
        self.changed = np.empty(0, np.uint64)
        """The orders that have other rows than before, by the numbers that `keys_of` gives them; sorted."""
        self._gone: list[pa.Table] = []
        self._standing: Counter[str] = Counter()
        """How many rows of each month stand, as they are in files."""

    def compare(self, wanted: Iterable[str]) -> None:
        """See which orders have changed, and show all journeys of these months to models that learn."""
        then, now = Sums(), Sums()
        old: list[pa.Table] = []
        self._wanted = frozenset(wanted)
        for rows in self._then(self._wanted, COMPARED):
            is_renewed = self._renewed.among(rows)
            old.append(rows.filter(pa.array(is_renewed)))
            then.add(old[-1])
            self._count(old[-1], -1)
            self.learning.show(rows.select(LEARNT_FROM).filter(pa.array(~is_renewed)))
            for month in rows[ORDER_MONTH].value_counts().to_pylist():
                self._standing[month["values"]] += month["counts"]
        for rows in self._fresh(COMPARED):
            now.add(rows)
            self._count(rows, 1)
            self.learning.show(rows)
        self.changed = np.union1d(differing(then, now), self._amended)
        self._gone = [self._changed(rows) for rows in old]

    def write(self, target: Target) -> int | None:
        """Write the rows of orders that changed, and retract those that they had. Returns the version."""
        version = self._before.credits_version
        if not len(self.changed):
            return version
        gone = Counter(chain.from_iterable(rows[ORDER_MONTH].to_pylist() for rows in self._gone))
        anew = crowded(self._lake.stored(CREDITS, version or 0), self._standing, gone)
        fresh = (weighed(self._changed(rows), self._world) for rows in self._fresh(ROWS.names))
        kept = (
            (rows.filter(pa.array(~self._is_changed(rows))) for rows in self._then(anew, self._table.whole.names))
            if anew
            else ()
        )
        retracted = (but(rows.filter(pc.less_equal(rows["place"], 1)), ORDER_MONTH, anew) for rows in self._gone)
        return target.revise(self._table, version, chain(kept, fresh), retracted, anew)

    def learn(self, target: Target, learnt: pa.Table) -> int | None:
        """Write what models have learnt of the months that were compared, and of others as it was."""
        version = self._before.fitted_version
        if not self.learning.models or not self._wanted:
            return version
        batches = self._lake.scan(FITTED.name, version=version)
        stays = pa.Table.from_batches((batch.cast(FITTED.whole) for batch in batches), FITTED.whole)
        stays = stays.filter(pc.invert(pc.is_in(stays[ORDER_MONTH], pa.array(self._wanted, pa.string()))))
        return target.replace(FITTED, pa.concat_tables([stays, learnt]))

    def _fresh(self, names: Sequence[str]) -> Iterator[pa.Table]:
        for found in self._blocks:
            yield self._world.facts.rows(found, names)

    def _then(self, wanted: Iterable[str], columns: Sequence[str]) -> Iterator[pa.Table]:
        where = pc.field(ORDER_MONTH).isin(pa.array(sorted(wanted), pa.string()))
        return whole_orders(self._lake.scan(CREDITS, where, list(columns), self._before.credits_version))

    def _is_changed(self, rows: pa.Table) -> NDArray[np.bool_]:
        return np.isin(keys_of(rows), self.changed)

    def _changed(self, rows: pa.Table) -> pa.Table:
        return rows.filter(pa.array(self._is_changed(rows)))

    def _count(self, rows: pa.Table, sign: int) -> None:
        place = rows["place"].to_numpy()
        self.credited += sign * int(np.count_nonzero(place == 1))
        self.touchpoints += sign * int(np.count_nonzero(place))

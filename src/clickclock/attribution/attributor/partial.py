"""An incremental run: those who could have changed are looked at, and the months in which something did are made anew.

Never publishes. Invariant: what it writes, with what it leaves, is what a full run would write. A month is written anew
if the journey of one of its orders changed, or if a model learns from a path that changed; the rows of all its other
orders are taken over from the version before, and only models that learn are asked again.

>>> run_partially(lake, engine, world, Path("/tmp"), now_ms, 2, result)   # doctest: +SKIP
"""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clickclock.attribution import months
from clickclock.attribution.attributor import people
from clickclock.attribution.attributor.affected import Affected, find_affected
from clickclock.attribution.attributor.blocks import ROWS, Blocks, nobodys
from clickclock.attribution.attributor.crediting import Crediting
from clickclock.attribution.attributor.drafting import (
    Nulls,
    count_paths,
    credited,
    no_nulls,
    split_found,
    whole_orders,
)
from clickclock.attribution.attributor.full import NOTE, Outcome
from clickclock.attribution.attributor.keys import KEY, Keys
from clickclock.attribution.attributor.walker import UNCERTAIN, Since
from clickclock.attribution.attributor.world import World
from clickclock.attribution.engines import Engine
from clickclock.attribution.lake import (
    COLUMNS_OF_MODEL,
    CREDITS,
    IDENTITIES,
    ORDER_MONTH,
    UNCONVERTED,
    Lake,
    Sums,
    Table,
    credits_table,
    different,
)
from clickclock.attribution.result import Result

MONTH: Final = "month"


def run_partially(
    lake: Lake, engine: Engine, world: World, scratch: Path, now_ms: int, number: int, before: Result
) -> Outcome:
    """Write what changed since `before`, for the result version `number`.

    Raises `VersionGone` if that is not known any more, `RunOvertaken`, `LakeUnreachable`.
    """
    affected = find_affected(lake, engine, world, before)
    target = _Target(lake, now_ms, number)
    with Blocks(scratch) as blocks:
        paths = _Paths(lake, before, affected.since, _walk(engine, world, affected, blocks))
        journeys = _Journeys(lake, before, world, affected, blocks)
        written = journeys.write(target, paths)
    identities_version = before.identities_version
    if not people.is_same(affected.persons_then, world.persons):
        identities_version = target.write(IDENTITIES, [people.table_of(world.persons)], None, None)
    return Outcome(
        credits_version=written.version,
        identities_version=identities_version,
        unconverted_version=paths.write(target),
        orders=world.orders.table.num_rows,
        credited=before.credited + written.credited,
        touchpoints=before.touchpoints + written.touchpoints,
        changed=written.changed,
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
            world.ads,
            world.orders.table,
            world.persons_table,
            world.policies,
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


@dataclass(frozen=True)
class _Target:
    """Where a run writes."""

    lake: Lake
    now_ms: int
    number: int

    def write(
        self, table: Table, rows: "Iterator[pa.Table] | list[pa.Table]", instead_of: set[str] | None, base: int | None
    ) -> int:
        """Replace partitions, or all, by these rows; what a run wrote that died after version `base` is undone."""
        ledger = self.lake.ledger(table)
        if base is not None:
            ledger.restore(base)
        parts = ledger.parts(f"part-{uuid.uuid4().hex}", self.now_ms)
        for some in rows:
            parts.write(some)
        return ledger.commit(parts.close(), self.now_ms, instead_of=instead_of, notes={NOTE: self.number})


class _Paths:
    """Paths without an order: those of the version before, and those found now."""

    def __init__(self, lake: Lake, before: Result, since: Since, fresh: pa.Table) -> None:
        self._lake = lake
        self._version = before.unconverted_version
        self._since = since
        self._fresh = fresh
        dropped = [rows.filter(pa.array(~is_kept)) for rows, is_kept in self._then(None)]
        self.changed = _months_that_differ(pa.concat_tables([UNCONVERTED.whole.empty_table(), *dropped]), fresh)

    def nulls(self, wanted: set[str]) -> Nulls:
        """How often each path of some months was followed by no order."""
        nulls = no_nulls()
        for rows in self._now(wanted):
            count_paths(rows, nulls)
        return nulls

    def write(self, target: _Target) -> int | None:
        """Write the months that changed. Returns the version."""
        if not self.changed:
            return self._version
        return target.write(UNCONVERTED, self._now(self.changed), self.changed, self._version)

    def _now(self, wanted: set[str]) -> Iterator[pa.Table]:
        yield _only(self._fresh, MONTH, wanted)
        for rows, is_kept in self._then(wanted):
            yield rows.filter(pa.array(is_kept))

    def _then(self, wanted: set[str] | None) -> Iterator[tuple[pa.Table, NDArray[np.bool_]]]:
        """The rows of the version before, and which of them stay."""
        if not len(self._since.person):
            first = None
        elif (month := int(self._since.month.min())) >= 0:
            first = months.name(month)
        else:
            first = ""
        where = pc.field(MONTH).isin(_names(wanted)) if wanted is not None else pc.field(MONTH) >= (first or "")
        if first is None and wanted is None:
            return
        for batch in self._lake.scan(UNCONVERTED.name, where, UNCONVERTED.whole.names, self._version):
            rows = pa.Table.from_batches([batch]).cast(UNCONVERTED.whole)
            yield rows, ~self._is_renewed(rows)

    def _is_renewed(self, rows: pa.Table) -> NDArray[np.bool_]:
        persons, person = self._since.person, rows["person"].to_numpy()
        if not len(persons):
            return np.zeros(len(person), np.bool_)
        at = np.minimum(np.searchsorted(persons, person), len(persons) - 1)
        encoded = rows[MONTH].combine_chunks().dictionary_encode()
        numbers = np.array([months.number(name) for name in encoded.dictionary.to_pylist()], np.int64)
        month = numbers[encoded.indices.to_numpy()]
        renewed: NDArray[np.bool_] = (persons[at] == person) & (month >= self._since.month[at])
        return renewed


@dataclass
class _Written:
    """What was written of credits; the numbers say how much more there is than before."""

    version: int | None
    credited: int = 0
    touchpoints: int = 0
    changed: int = 0

    def count(self, rows: pa.Table, sign: int) -> None:
        place = rows["place"].to_numpy()
        self.credited += sign * int(np.count_nonzero(place == 1))
        self.touchpoints += sign * int(np.count_nonzero(place))


class _Journeys:
    """Credits: of orders that were looked at again, and of the others in their months."""

    def __init__(self, lake: Lake, before: Result, world: World, affected: Affected, blocks: Blocks) -> None:
        self._lake = lake
        self._before = before
        self._world = world
        self._blocks = blocks
        self._crediting = Crediting(world.models)
        self._table = credits_table(list(world.models))
        renewed = [affected.gone, *(rows.select(KEY) for rows in self._fresh((*KEY, "place")) if rows.num_rows)]
        self._renewed = Keys(pa.concat_tables(renewed))
        self._amended = affected.months

    def write(self, target: _Target, paths: _Paths) -> _Written:
        """Write the months anew in which something changed."""
        written = _Written(self._before.credits_version)
        learners = self._crediting.learners
        wanted = self._wanted(paths.changed if learners else set())
        if not wanted:
            return written
        then, now = Sums(), Sums()

        def rows() -> Iterator[pa.Table]:
            for some, was in credited(
                self._crediting,
                lambda names: (_only(each, ORDER_MONTH, wanted) for each in self._fresh(names)),
                lambda names: self._kept(wanted, names, then, written),
                paths.nulls(wanted) if learners else no_nulls(),
            ):
                if was is None:
                    now.add(some)
                    written.count(some, 1)
                else:
                    written.changed += _learnt_anew(was, some, learners)
                yield some

        written.version = target.write(self._table, rows(), wanted, self._before.credits_version)
        written.changed += different(then, now)
        return written

    def _wanted(self, learnt: set[str]) -> set[str]:
        """The months in which an order was amended, a journey changed, or a model learns something else."""
        stored = self._lake.stored(CREDITS, self._before.credits_version or 0)
        fresh: dict[str, Sums] = defaultdict(Sums)
        for rows in self._fresh(None):
            _add_by_month(rows, fresh)
        there = {file.partition for file in stored if file.partition is not None} | fresh.keys()
        wanted = (learnt | self._amended) & there
        then: dict[str, Sums] = defaultdict(Sums)
        where = pc.field(ORDER_MONTH).isin(_names(fresh.keys() - wanted))
        where &= pc.field("order_id").isin(self._renewed.order_ids)
        for batch in self._lake.scan(CREDITS, where, list(ROWS.names), self._before.credits_version):
            rows = pa.Table.from_batches([batch])
            _add_by_month(rows.filter(pa.array(self._renewed.among(rows))), then)
        return wanted | {month for month in fresh.keys() - wanted if different(then[month], fresh[month])}

    def _fresh(self, names: Sequence[str] | None) -> Iterator[pa.Table]:
        for found in self._blocks:
            yield self._world.facts.rows(found, ROWS.names if names is None else names)

    def _kept(self, wanted: set[str], names: Sequence[str] | None, then: Sums, written: _Written) -> Iterator[pa.Table]:
        """Rows of the version before, of orders that were not looked at again; in full, the others are counted."""
        columns = self._table.whole.names if names is None else list(dict.fromkeys([*names, "order_id"]))
        where = pc.field(ORDER_MONTH).isin(_names(wanted))
        for rows in whole_orders(self._lake.scan(CREDITS, where, columns, self._before.credits_version)):
            is_renewed = self._renewed.among(rows)
            if names is None:
                renewed = rows.filter(pa.array(is_renewed))
                then.add(renewed)
                written.count(renewed, -1)
            yield rows.filter(pa.array(~is_renewed)).select(names or self._table.whole.names)


def _add_by_month(rows: pa.Table, sums: dict[str, Sums]) -> None:
    for month in rows[ORDER_MONTH].unique().to_pylist():
        sums[month].add(_only(rows, ORDER_MONTH, {month}).cast(ROWS))


def _only(rows: pa.Table, column: str, values: set[str]) -> pa.Table:
    return rows.filter(pc.is_in(rows[column], _names(values)))


def _months_that_differ(then: pa.Table, now: pa.Table) -> set[str]:
    """The months in which two tables of paths have other rows."""
    by = ["client_id", "person", "path", MONTH]
    signs = pa.array(np.append(np.full(then.num_rows, -1), np.ones(now.num_rows, np.int64)))
    rows = pa.concat_tables([then, now]).append_column("sign", signs)
    sums = rows.group_by(by).aggregate([("sign", "sum")])
    differing: set[str] = set(sums.filter(pc.not_equal(sums["sign_sum"], 0))[MONTH].unique().to_pylist())
    return differing


def _names(values: Iterable[str]) -> pa.Array:
    return pa.array(sorted(values), pa.string())


def _learnt_anew(was: pa.Table, rows: pa.Table, learners: frozenset[str]) -> int:
    """Of how many orders a model that learns says something else than before."""
    is_other = np.zeros(rows.num_rows, np.bool_)
    for name in (f"{learner}_{kind}" for learner in learners for kind in COLUMNS_OF_MODEL):
        # A null is that of an order without touchpoints, then and now.
        is_other |= pc.fill_null(was[name], 0).to_numpy() != pc.fill_null(rows[name], 0).to_numpy()
    order = np.cumsum(rows["place"].to_numpy() <= 1)
    return len(np.unique(order[is_other]))

"""Paths without an order, from one version to the next: those that are new, those that are gone.

Never publishes. Invariants: of a person who was looked at again, the paths from the month on in which something
happened are those that were found now, or what they were with what was found now behind it; what is the same then and
now is neither new nor gone.

>>> Paths(lake, before, since, fresh).changed   # doctest: +SKIP
frozenset({'2026-11'})
"""

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clickclock.attribution import months
from clickclock.attribution.attributor.target import Target, but, crowded
from clickclock.attribution.attributor.walker import Since
from clickclock.attribution.codes import among, distinct, places
from clickclock.attribution.lake import UNCONVERTED, Lake
from clickclock.attribution.unconverted import PATH_SEPARATOR

MONTH: Final = "month"
AT_ONCE: Final = 2**18
_SIGN: Final = "sign"
_FEW: Final = ("client_id", "path", MONTH)


class Paths:
    """The paths of those who were looked at again, in the months in which something happened."""

    def __init__(self, lake: Lake, version: int | None, since: Since, fresh: pa.Table) -> None:
        """`version` is that of the table before; `fresh` are the paths of all who were looked at again."""
        self._lake = lake
        self._version = version
        self._since = since
        self._standing: Counter[str] = Counter()
        """How many rows of each month stood."""
        dropped = [UNCONVERTED.whole.empty_table()]
        for rows in self._then(self._where):
            for month in rows[MONTH].value_counts().to_pylist():
                self._standing[month["values"]] += month["counts"]
            dropped.append(rows.filter(pa.array(self._is_renewed(rows))).cast(UNCONVERTED.whole))
        differing = _differing(*_going_on(pa.concat_tables(dropped), fresh, since))
        self.new = differing.filter(pc.greater(differing[_SIGN], 0)).select(UNCONVERTED.whole.names)
        self.gone = differing.filter(pc.less(differing[_SIGN], 0)).select(UNCONVERTED.whole.names)
        self.changed: frozenset[str] = frozenset(differing[MONTH].unique().to_pylist())
        """The months of both."""

    def write(self, target: Target) -> int:
        """Write what is new, and retract what is gone. Returns the version."""
        gone = Counter(self.gone[MONTH].to_pylist())
        anew = crowded(self._lake.stored(UNCONVERTED.name, self._version or 0), self._standing, gone)
        then = self._then(pc.field(MONTH).isin(pa.array(sorted(anew), pa.string()))) if anew else ()
        kept = (
            rows.cast(UNCONVERTED.whole).join(self.gone, UNCONVERTED.whole.names, join_type="left anti")
            for rows in then
        )
        return target.revise(UNCONVERTED, self._version, chain(kept, [self.new]), [but(self.gone, MONTH, anew)], anew)

    @property
    def _where(self) -> pc.Expression:
        """The months that count."""
        if not len(self._since.person):
            return pc.scalar(False)
        first = int(self._since.month.min())
        return pc.field(MONTH) >= (months.name(first) if first >= 0 else "")

    def _then(self, where: pc.Expression) -> Iterator[pa.Table]:
        """The rows of the version before, their texts as dictionaries."""
        waiting: list[pa.RecordBatch] = []
        for batch in self._lake.scan(UNCONVERTED.name, where, UNCONVERTED.whole.names, self._version, _FEW):
            waiting.append(batch)
            if sum(each.num_rows for each in waiting) >= AT_ONCE:
                yield pa.Table.from_batches(waiting)
                waiting = []
        if waiting:
            yield pa.Table.from_batches(waiting)

    def _is_renewed(self, rows: pa.Table) -> NDArray[np.bool_]:
        person, month = rows["person"].to_numpy(), rows[MONTH].combine_chunks()
        is_renewed = np.zeros(len(person), np.bool_)
        for place, name in enumerate(month.dictionary.to_pylist()):
            theirs = np.flatnonzero(month.indices.to_numpy() == place)
            # Of most persons only the last month is looked at, and to find few of them takes a part of the time.
            is_renewed[theirs] = among(self._since.person[self._since.month <= months.number(name)], person[theirs])
        return is_renewed


def _going_on(then: pa.Table, now: pa.Table, since: Since) -> tuple[pa.Table, pa.Table]:
    """Both, where paths go on: those that do are behind what they were, and of the others nothing is gone."""
    is_theirs = among(since.person[since.goes_on], then["person"].to_numpy())
    theirs = then.filter(pa.array(is_theirs))  # the first month's: one of each person, and none of a later month
    theirs = theirs.take(pa.array(np.argsort(theirs["person"].to_numpy())))
    at = places(theirs["person"].to_numpy(), now["person"].to_numpy())
    places_then = pa.array(at, mask=at < 0)
    is_same = pc.fill_null(pc.equal(theirs[MONTH].take(places_then), now[MONTH]), fill_value=False).to_numpy()
    path_then = theirs["path"].take(pa.array(at, mask=~is_same))
    path = pc.binary_join_element_wise(path_then, now["path"], PATH_SEPARATOR, null_handling="skip")
    return (
        pa.concat_tables([then.filter(pa.array(~is_theirs)), theirs.take(pa.array(at[is_same]))]),
        now.set_column(now.column_names.index("path"), "path", path),
    )


def _differing(then: pa.Table, now: pa.Table) -> pa.Table:
    """The rows that are in one only; their `sign` says in which: below zero then, above it now."""
    # Of who had no path then, every one is new.
    is_known = among(distinct(then["person"].to_numpy()), now["person"].to_numpy())
    new, now = now.filter(pa.array(~is_known)), now.filter(pa.array(is_known))
    signs = pa.array(np.append(np.full(then.num_rows, -1), np.ones(now.num_rows, np.int64)))
    rows = pa.concat_tables([then, now]).append_column(_SIGN, signs)
    sums = rows.group_by(UNCONVERTED.whole.names).aggregate([(_SIGN, "sum")])
    sums = sums.filter(pc.not_equal(sums[f"{_SIGN}_sum"], 0)).rename_columns([*UNCONVERTED.whole.names, _SIGN])
    return pa.concat_tables([sums, new.append_column(_SIGN, pa.repeat(pa.scalar(1, pa.int64()), new.num_rows))])

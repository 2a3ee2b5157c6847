"""Paths without an order, from one version to the next: those that are new, those that are gone.

Never publishes. Invariants: of a person who was looked at again, the paths from the month on in which something
happened are those that were found now, or what they were with what was found now behind it; what is the same then and
now is neither new nor gone.

>>> Paths(lake, before, since, fresh).changed   # doctest: +SKIP
frozenset({'2026-11'})
"""

from collections import Counter
from collections.abc import Callable, Iterator
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
        then = pa.concat_tables(dropped)
        at = _matched(then, fresh)
        goes_on = (at >= 0) & among(since.person[since.goes_on], fresh["person"].to_numpy())
        path_then = then["path"].take(pa.array(at, mask=at < 0))
        on_from = pc.if_else(pa.array(goes_on), path_then, pa.scalar(None, pa.string()))
        path = pc.binary_join_element_wise(on_from, fresh["path"], PATH_SEPARATOR, null_handling="skip")
        is_new = ~pc.fill_null(pc.equal(path_then, path), fill_value=False).to_numpy()
        # Who only clicked on loses nothing, whatever the new clicks are worth.
        is_gone = ~among(since.person[since.goes_on], then["person"].to_numpy())
        is_gone[at[at >= 0]] = is_new[at >= 0]
        self.new = fresh.set_column(fresh.column_names.index("path"), "path", path).filter(pa.array(is_new))
        self.gone = then.filter(pa.array(is_gone))
        self.changed = frozenset(
            pc.unique(pa.chunked_array([*self.new[MONTH].chunks, *self.gone[MONTH].chunks], pa.string())).to_pylist()
        )
        """The months of both."""

    def write(self, target: Target) -> int:
        """Write what is new, and retract what is gone. Returns the version."""
        gone = Counter(self.gone[MONTH].to_pylist())
        anew = crowded(self._lake.stored(UNCONVERTED.name, self._version or 0), self._standing, gone)
        then = self._then(pc.field(MONTH).isin(pa.array(sorted(anew), pa.string()))) if anew else ()
        gone_in = {
            month: distinct(self.gone.filter(pc.equal(self.gone[MONTH], month))["person"].to_numpy()) for month in anew
        }
        kept = (rows.filter(pa.array(~_are_among(rows, gone_in.__getitem__))).cast(UNCONVERTED.whole) for rows in then)
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
        # Of most persons only the last month is looked at, and to find few of them takes a part of the time.
        return _are_among(rows, lambda month: self._since.person[self._since.month <= months.number(month)])


def _are_among(rows: pa.Table, persons: Callable[[str], NDArray[np.int64]]) -> NDArray[np.bool_]:
    """Which rows, whose months are a dictionary, are of the persons of their month, which are sorted."""
    person, month = rows["person"].to_numpy(), rows[MONTH].combine_chunks()
    are_among = np.zeros(len(person), np.bool_)
    for place, name in enumerate(month.dictionary.to_pylist()):
        theirs = np.flatnonzero(month.indices.to_numpy() == place)
        are_among[theirs] = among(persons(name), person[theirs])
    return are_among


def _matched(then: pa.Table, now: pa.Table) -> NDArray[np.intp]:
    """For each row of now that of then of the same person and month, of which there is at most one; or -1."""
    names = pc.unique(then[MONTH])
    month_then, month_now = (pc.fill_null(pc.index_in(rows[MONTH], names), -1).to_numpy() for rows in (then, now))
    person_then, person_now = (rows["person"].to_numpy() for rows in (then, now))
    at = np.full(now.num_rows, -1, np.intp)
    for month in range(len(names)):
        theirs_then, theirs_now = (np.flatnonzero(each == month) for each in (month_then, month_now))
        by_person = theirs_then[np.argsort(person_then[theirs_then])]
        found = places(person_then[by_person], person_now[theirs_now])
        at[theirs_now[found >= 0]] = by_person[found[found >= 0]]
    return at

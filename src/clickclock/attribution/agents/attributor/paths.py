"""Paths without an order, from one version to the next: those that are new, those that are gone.

Never publishes. Invariants: of a person who was looked at again, the paths from the month on in which something
happened are those that were found now, or what they were with what was found now behind it; what is the same then and
now is neither new nor gone.

>>> Paths(lake, engine, before, since, fresh).are_changed   # doctest: +SKIP
True
"""

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.agents.attributor.journey_kernel import Since
from clickclock.attribution.agents.attributor.target import Target, but, crowded, rows_of_each
from clickclock.attribution.crediting.columns import months
from clickclock.attribution.crediting.columns.codes import among, distinct, places
from clickclock.attribution.crediting.columns.unconverted import PATH_SEPARATOR
from clickclock.attribution.engines import Engine
from clickclock.attribution.lake import UNCONVERTED, Lake

MONTH: Final = "month"
_FEW: Final = ("client_id", "path", MONTH)
"""Texts of which few differ."""


class Paths:
    """The paths of those who were looked at again, in the months in which something happened."""

    def __init__(self, lake: Lake, engine: Engine, version: int | None, since: Since, fresh: pa.Table) -> None:
        """`version` is that of the table before; `fresh` are the paths of all who were looked at again."""
        self._lake = lake
        self._version = version
        self._stored = lake.stored(UNCONVERTED.name, version or 0)
        self._standing: Counter[str] = Counter()
        """How many rows of each month stood."""
        nothing = UNCONVERTED.whole.empty_table()
        then: dict[str, pa.Table] = {}
        for month, rows, count in lake.standing(UNCONVERTED, version, self._renewed(since), engine.unconverted):
            then[month] = rows.select(nothing.column_names)
            self._standing[month] = count
        new, gone = [nothing], [nothing]
        for month in sorted({*then, *fresh[MONTH].unique().to_pylist()}):
            now = fresh.filter(pc.equal(fresh[MONTH], month))
            of_month = _apart(then.get(month, nothing), now, since)
            new.append(of_month[0])
            gone.append(of_month[1])
        self.new, self.gone = pa.concat_tables(new), pa.concat_tables(gone)
        self.are_changed = bool(self.new.num_rows or self.gone.num_rows)

    def write(self, target: Target) -> int:
        """Write what is new, and retract what is gone. Returns the version."""
        gone = rows_of_each(self.gone[MONTH])
        anew = crowded(self._stored, self._standing, gone)
        kept = (rows for month in sorted(anew) for rows in self._kept(month))
        return target.revise(UNCONVERTED, self._version, chain(kept, [self.new]), [but(self.gone, MONTH, anew)], anew)

    def _renewed(self, since: Since) -> dict[str, pa.Array]:
        """The persons who were looked at again, by month; in most cases, these are the last one, or none."""
        partitions = sorted({file.partition or "" for file in self._stored})
        persons = {month: since.person[since.month <= months.number(month)] for month in partitions}
        return {month: pa.array(each) for month, each in persons.items() if len(each)}

    def _kept(self, month: str) -> Iterator[pa.Table]:
        """The paths of a month that is written anew, but those that are gone."""
        gone = distinct(self.gone.filter(pc.equal(self.gone[MONTH], month))["person"].to_numpy())
        where, names = pc.field(MONTH) == month, UNCONVERTED.whole.names
        for batch in self._lake.scan(UNCONVERTED.name, where, names, self._version, _FEW):
            kept = batch.filter(pa.array(~among(gone, batch["person"].to_numpy())))
            yield pa.Table.from_batches([kept]).cast(UNCONVERTED.whole)


def _apart(then: pa.Table, now: pa.Table, since: Since) -> tuple[pa.Table, pa.Table]:
    """The new and the lost paths of a month; a person has at most one, then and now."""
    person_then, person_now = (rows["person"].to_numpy() for rows in (then, now))
    by_person = np.argsort(person_then)
    found = places(person_then[by_person], person_now)
    is_known = found >= 0
    at = np.full(len(found), -1, np.intp)
    at[is_known] = by_person[found[is_known]]
    going_on = since.person[since.goes_on]
    path_then = then["path"].take(pa.array(at, mask=~is_known))
    goes_on = pa.array(is_known & among(going_on, person_now))
    on_from = pc.if_else(goes_on, path_then, pa.scalar(None, pa.string()))
    path = pc.binary_join_element_wise(on_from, now["path"], PATH_SEPARATOR, null_handling="skip")
    is_new = ~pc.fill_null(pc.equal(path_then, path), fill_value=False).to_numpy()
    # A person who only clicked again loses nothing, whatever the new clicks are worth.
    is_gone = ~among(going_on, person_then)
    is_gone[at[is_known]] = is_new[is_known]
    now = now.set_column(now.column_names.index("path"), "path", path)
    return now.filter(pa.array(is_new)), then.filter(pa.array(is_gone))

"""Ties: what touches have to do with each other, and what new ones add to it.

Never looks at all touches again for the sake of a few: what was known of the others is read from the table that keeps
it. Invariants: ties are a function of the touches and the rules; who reads them gets what was written. Where touches
are gone, nothing that was kept is certain, and all is found anew.

>>> NO_TIES.as_table.num_rows
0
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clickclock.attribution.attributor.people import KINDS
from clickclock.attribution.codes import among, distinct
from clickclock.attribution.engines import FLOODS, USES, Engine
from clickclock.attribution.lake import DAY, TIES, TOUCHES, Lake
from clickclock.attribution.policy import Policies
from clickclock.attribution.result import Result
from clickclock.attribution.rolling import changes
from clickclock.attribution.touchpoint import RETRY_US
from clickclock.attribution.traffic import FLOOD_MS

_LINK, _USE, _FLOOD = "link", "use", "flood"


@dataclass(frozen=True, eq=False)
class Ties:
    """Those of all touches."""

    links: NDArray[np.int64]
    """Each two codes that stand on one touch, once."""
    uses: pa.Table
    """`USES`."""
    floods: pa.Table
    """`FLOODS`."""

    @property
    def as_table(self) -> pa.Table:
        """The rows of the lake."""
        links = {"code": pa.array(self.links[:, 0]), "other": pa.array(self.links[:, 1])}
        uses = {"code": self.uses["used"], "id": self.uses["first_id"]}
        floods = {"code": self.floods["flooding"], "other": self.floods["flooded"], "at_ms": self.floods["at_ms"]}
        return pa.concat_tables([_rows(_LINK, links), _rows(_USE, uses), _rows(_FLOOD, floods)])


NO_TIES: Final = Ties(np.empty((0, 2), np.int64), USES.empty_table(), FLOODS.empty_table())
"""Those of no touches."""


def linked(known: NDArray[np.int64], rows: pa.Table) -> NDArray[np.int64]:
    """Each two codes that are linked already, or stand on one of these rows, once: the smaller one first.

    >>> linked(np.empty((0, 2), np.int64), pa.table({"cli_ubid": [7, 7, None], "device_id": [5, 5, 9]})).tolist()
    [[5, 7]]
    """
    found = [known]
    for kinds in combinations([kind for kind in KINDS if kind in rows.column_names], 2):
        both = np.column_stack([column.to_numpy() for column in rows.select(kinds).drop_null().columns])
        found.append(np.sort(both[both[:, 0] != both[:, 1]], axis=1))
    one, other = np.concatenate(found).T
    in_order = np.lexsort((other, one))
    one, other = one[in_order], other[in_order]
    return np.column_stack([one, other])[changes(one, other)]


def ties_of_all(engine: Engine, touches: list[str], ads: pa.Table, policies: Policies) -> Ties:
    """The ties, found in all touches."""
    links = engine.links(touches)
    return Ties(links, engine.uses(touches), engine.floods(touches, ads, policies))


def ties_with(
    lake: Lake, engine: Engine, known: Ties, touched: pa.Table, version: int, ads: pa.Table, policies: Policies
) -> Ties:
    """The ties of all touches of a version, `touched` among them, if `known` are those of the others."""
    if not touched.num_rows:
        return known
    earliest_ms = pc.min(touched["time_ms"]).as_py()
    recent = files_since(lake, version, earliest_ms)
    again = engine.floods(recent, ads, policies)
    stays, is_new = pc.less(known.floods["at_ms"], earliest_ms), pc.greater_equal(again["at_ms"], earliest_ms)
    uses = _uses(lake, engine, touched, version)
    is_other = pc.invert(pc.is_in(known.uses["used"], uses["used"].combine_chunks()))
    return Ties(
        linked(known.links, touched),
        pa.concat_tables([known.uses.filter(is_other), uses]),
        pa.concat_tables([known.floods.filter(stays), again.filter(is_new)]),
    )


def ties_of(lake: Lake, engine: Engine, result: Result, ads: pa.Table, policies: Policies) -> Ties:
    """The ties of a version, as its run kept them; found anew if it did not. Raises `VersionGone`."""
    if result.ties_version is None:
        return ties_of_all(engine, lake.uris(TOUCHES.name, result.touches_version), ads, policies)
    batches = (batch.cast(TIES.schema) for batch in lake.scan(TIES.name, version=result.ties_version))
    rows = pa.Table.from_batches(batches, TIES.schema)
    links, uses, floods = (rows.filter(pc.equal(rows["kind"], kind)) for kind in (_LINK, _USE, _FLOOD))
    return Ties(
        np.column_stack([links[name].to_numpy() for name in ("code", "other")]),
        uses.select(["code", "id"]).rename_columns(USES.names),
        floods.select(["code", "other", "at_ms"]).rename_columns(FLOODS.names),
    )


def files_since(lake: Lake, version: int, time_ms: int, but: Collection[str] = ()) -> list[str]:
    """The files of touches, but some, that can have clicks from this time on, or such in whose flood these are."""
    first = datetime.fromtimestamp((time_ms - FLOOD_MS) / 1000, UTC).date().isoformat()
    stored = lake.stored(TOUCHES.name, version)
    wanted = [file for file in stored if (file.partition or "") >= first and file.path not in but]
    return lake.addresses(TOUCHES.name, wanted)


def _uses(lake: Lake, engine: Engine, touched: pa.Table, version: int) -> pa.Table:
    """Of the click ids of some touches, those that several have of all."""
    wanted = pa.array(distinct(touched["click_id"].drop_null().to_numpy()))
    stored = lake.stored(TOUCHES.name, version)
    every = engine.received(lake.addresses(TOUCHES.name, stored), wanted)
    codes, count = np.unique(every["click_id"].to_numpy(), return_counts=True)
    several = codes[count > 1]
    is_several = pa.array(among(several, every["click_id"].to_numpy()))
    days = set(map(str, every[DAY].filter(is_several).unique().to_pylist()))
    if not days:
        return USES.empty_table()
    # A second look, at a few days, finds which click each was: to read all ids would cost more than all else.
    files = lake.addresses(TOUCHES.name, [file for file in stored if file.partition in days])
    used = engine.clicked(files, pa.array(several))
    used = _rising(used, "click_id", "parameters", "received_us", "id")
    # A click that was sent again uses nothing: see `expressions.uses`.
    is_copy = ~changes(used["click_id"].to_numpy(), used["parameters"].to_numpy())
    is_copy[1:] &= np.diff(used["received_us"].to_numpy()) <= RETRY_US
    used = _rising(
        used.append_column("is_copy", pa.array(is_copy)), "click_id", "is_copy", "time_ms", "received_us", "id"
    )
    first = np.unique(used["click_id"].to_numpy(), return_index=True)[1]
    return used.take(pa.array(first)).select(["click_id", "id"]).rename_columns(USES.names)


def _rising(rows: pa.Table, *names: str) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in names])


def _rows(kind: str, columns: dict[str, pa.Array | pa.ChunkedArray]) -> pa.Table:
    count = len(columns["code"])
    known = columns | {"kind": pa.repeat(pa.scalar(kind), count)}
    return pa.table([known.get(field.name, pa.nulls(count, field.type)) for field in TIES.schema], schema=TIES.schema)

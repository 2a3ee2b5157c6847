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

from clickclock.attribution.agents.attributor.people import KINDS
from clickclock.attribution.clicks.identifier import DEVICE, NAMESPACES
from clickclock.attribution.clicks.traffic import FLOOD_MS
from clickclock.attribution.crediting.columns.codes import among, distinct, places
from clickclock.attribution.crediting.columns.identity import Links, joined, links_of
from clickclock.attribution.crediting.columns.rolling import changes
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.crediting.touchpoint import RETRY_MS, RETRY_US
from clickclock.attribution.engines import FLOODS, USES, Engine
from clickclock.attribution.lake import DAY, TIES, TOUCHES, Lake
from clickclock.attribution.reporting.result import Result
from clickclock.foundation.instant import DAY_MS

_LINK, _USE, _FLOOD = "link", "use", "flood"
_OF_LINKS: Final = {
    "one": "code",
    "other": "other",
    "since": "since_day",
    "until": "until_day",
    "limit": "visitors_max",
}
"""The column of each field of `Links`."""
Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ties:
    """Those of all touches."""

    links: Links
    """Each two codes that stand on one touch, once."""
    uses: pa.Table
    """`USES`."""
    floods: pa.Table
    """`FLOODS`."""

    @property
    def as_table(self) -> pa.Table:
        """The rows of the lake."""
        links = {name: pa.array(getattr(self.links, field)) for field, name in _OF_LINKS.items()}
        uses = {"code": self.uses["used"], "id": self.uses["first_id"]}
        floods = {"code": self.floods["flooding"], "other": self.floods["flooded"], "at_ms": self.floods["at_ms"]}
        return pa.concat_tables([_rows(_LINK, links), _rows(_USE, uses), _rows(_FLOOD, floods)])


NO_TIES: Final = Ties(links_of([]), USES.empty_table(), FLOODS.empty_table())
"""Those of no touches."""


def linked_by_orders(known: Links, orders: pa.Table, policies: Policies) -> Links:
    """Each two codes that are linked already, or stand on one of these rows of `ORDERS`, once."""
    client = orders["client_id"].combine_chunks().dictionary_encode()
    rules = Rules.of(client.dictionary.to_pylist(), policies)
    return _linked(known, orders, orders["placed_ms"].to_numpy(), client.indices.to_numpy(), rules)


def ties_of_all(engine: Engine, touches: list[str], ads: pa.Table, policies: Policies) -> Ties:
    """The ties, found in all touches."""
    found = engine.links(touches)
    visits = found.filter(found["is_visit"])
    others = links_of(_pairs(found.filter(pc.invert(found["is_visit"])), "one", "other"))
    client, rules = _clients(visits["ad"].to_numpy(), ads, policies)
    first_ms, last_ms = visits["first_ms"].to_numpy(), visits["last_ms"].to_numpy()
    links = joined([others, rules.visits(_pairs(visits, "one", "other"), first_ms, last_ms, client)])
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
    client, rules = _clients(touched["ad"].to_numpy(), ads, policies)
    return Ties(
        _linked(known.links, touched, touched["time_ms"].to_numpy(), client, rules),
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
        Links(*(links[name].to_numpy() for name in _OF_LINKS.values())),
        uses.select(["code", "id"]).rename_columns(USES.names),
        floods.select(["code", "other", "at_ms"]).rename_columns(FLOODS.names),
    )


def files_since(lake: Lake, version: int, time_ms: int, but: Collection[str] = ()) -> list[str]:
    """The files of touches, but some, that can have clicks from this time on, or such in whose flood these are."""
    first = datetime.fromtimestamp((time_ms - FLOOD_MS) / 1000, UTC).date().isoformat()
    stored = lake.stored(TOUCHES.name, version)
    wanted = [file for file in stored if (file.partition or "") >= first and file.path not in but]
    return lake.addresses(TOUCHES.name, wanted)


@dataclass(frozen=True, eq=False)
class Rules:
    """What clients' policies say of visitors, by the clients' numbers."""

    limit: NDArray[np.int32]
    window: NDArray[np.int32]
    """In days."""

    @classmethod
    def of(cls, client_ids: list[str], policies: Policies) -> "Rules":
        """The rules of these clients."""
        found = [policies.find(client_id) for client_id in client_ids]
        limits, windows = [each.visitors_per_device_max for each in found], [each.window_days_max for each in found]
        return cls(np.array(limits, np.int32), np.array(windows, np.int32))

    def visits(self, pairs: Numbers, first_ms: Numbers, last_ms: Numbers, client: NDArray[np.integer]) -> Links:
        """The links of devices and visitors who were seen between these times."""
        since, last = ((each // DAY_MS).astype(np.int32) for each in (first_ms, last_ms))
        return links_of(pairs, since, last + self.window[client], self.limit[client])


def _linked(known: Links, rows: pa.Table, time_ms: Numbers, client: NDArray[np.integer], rules: Rules) -> Links:
    found = [known]
    for one, other in combinations([kind for kind in KINDS if kind in rows.column_names], 2):
        both = np.flatnonzero(pc.and_(pc.is_valid(rows[one]), pc.is_valid(rows[other])).to_numpy())
        pairs = _pairs(rows.select([one, other]).take(pa.array(both)), other, one)
        both, pairs = both[pairs[:, 0] != pairs[:, 1]], pairs[pairs[:, 0] != pairs[:, 1]]
        if NAMESPACES[one] == DEVICE:
            found.append(links_of(np.sort(pairs, axis=1)))
        else:
            found.append(rules.visits(pairs, time_ms[both], time_ms[both], client[both]))
    return joined(found)


def _clients(ad: Numbers, ads: pa.Table, policies: Policies) -> tuple[NDArray[np.integer], Rules]:
    """The client of each of these ads, as a number, and the rules of the clients."""
    known, first = np.unique(ads["ad"].to_numpy(), return_index=True)
    client = ads["client_id"].combine_chunks().dictionary_encode()
    return client.indices.to_numpy()[first][places(known, ad)], Rules.of(client.dictionary.to_pylist(), policies)


def _pairs(rows: pa.Table, *names: str) -> Numbers:
    return np.column_stack([rows[name].to_numpy() for name in names])


def _uses(lake: Lake, engine: Engine, touched: pa.Table, version: int) -> pa.Table:
    """The click ids of some touches that several of all touches have."""
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
    used = _rising(used, "click_id", "parameters", "time_ms", "received_us", "id")
    # A click that was sent again uses nothing: see `tying.uses`.
    is_new = changes(used["click_id"].to_numpy(), used["parameters"].to_numpy())
    is_new[1:] |= np.diff(used["time_ms"].to_numpy()) > RETRY_MS
    used = _rising(used.append_column("stretch", pa.array(np.cumsum(is_new))), "stretch", "received_us", "id")
    is_copy = ~changes(used["stretch"].to_numpy())
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

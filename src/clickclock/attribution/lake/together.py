"""Which identifiers were seen together on clicks and orders: those of one person, as attribution knows people.

Never guesses, and never writes. Invariants: what too many others were seen with is nobody's, and leads to nobody, as
in `identity.py`; the identifier that was asked for is always among those found.

>>> seen_together(lake, "shop", Identifier(kind="cli_ubid", value="browser-1"), ("any",))   # doctest: +SKIP
[Identifier(kind='cli_ubid', value='browser-1'), Identifier(kind='device_id', value='38400000-…')]
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.erasure import ORDER_ID, Identifier
from clickclock.attribution.identifier import NAMESPACES, folded
from clickclock.attribution.identity import LINKS_MAX
from clickclock.attribution.lake.tables import CLICKS, ORDERS, Table

if TYPE_CHECKING:
    from clickclock.attribution.lake import Lake

_BROWSER, _DEVICE = "cli_ubid", "device_id"
_KINDS: Final = {name: _BROWSER if name == _BROWSER else _DEVICE for name in NAMESPACES}
"""A device's id is the same in whichever field it comes."""


def seen_together(lake: "Lake", client_id: str, asked: Identifier, shared: Collection[str]) -> list[Identifier]:
    """The identifiers of the person that `asked` is of, or whose order it is; `shared` values are nobody's."""
    nobodys = frozenset(folded(value) for value in shared)
    found: list[Identifier] = []
    frontier = {_as_one(asked)} if asked.kind != ORDER_ID else _of_order(lake, client_id, asked.value)
    looked_at = set(frontier)
    while frontier:
        neighbours = _neighbours(lake, client_id, frontier)
        following: set[Identifier] = set()
        for each in frontier:
            is_shared = len(neighbours[each]) > LINKS_MAX or folded(each.value) in nobodys
            if not is_shared:
                following |= neighbours[each]
                found.append(each)
        frontier = following - looked_at
        looked_at |= frontier
    return sorted(found, key=lambda each: (each.kind, each.value))


def _as_one(identifier: Identifier) -> Identifier:
    if identifier.kind == _BROWSER:
        return identifier
    return Identifier(kind=_DEVICE, value=folded(identifier.value))


def _of_order(lake: "Lake", client_id: str, order_id: str) -> set[Identifier]:
    rows = _rows(lake, ORDERS, client_id, lambda batch: pc.equal(batch["order_id"], order_id))
    return {each for row in rows for each in row}


def _neighbours(lake: "Lake", client_id: str, frontier: Collection[Identifier]) -> dict[Identifier, set[Identifier]]:
    """Of each, the others that stand with it on any click or order."""
    values = {
        kind: pa.array([each.value for each in frontier if each.kind == kind], pa.string())
        for kind in (_BROWSER, _DEVICE)
    }

    def has_one(batch: pa.RecordBatch) -> pa.BooleanArray:
        is_it = pa.repeat(pa.scalar(False), batch.num_rows)
        for name, kind in _KINDS.items():
            if name in batch.schema.names:
                said = batch[name] if kind == _BROWSER else pc.ascii_lower(batch[name])
                is_it = pc.or_(is_it, pc.is_in(said, values[kind]))
        return is_it

    found: dict[Identifier, set[Identifier]] = defaultdict(set)
    for table in (CLICKS, ORDERS):
        for row in _rows(lake, table, client_id, has_one):
            for each in row:
                found[each] |= row - {each}
    return found


def _rows(
    lake: "Lake", table: Table, client_id: str, fit: Callable[[pa.RecordBatch], pa.BooleanArray]
) -> Iterator[frozenset[Identifier]]:
    """The identifiers of each row that fits, rows that have the same ones only once in a while."""
    names = [name for name in _KINDS if name in table.schema.names]
    others = [name for name in ("client_id", "order_id") if name in table.schema.names]
    for batch in lake.scan(table.name, columns=[*others, *names]):
        rows = batch.filter(pc.and_(pc.equal(batch["client_id"], client_id), fit(batch)))
        for row in pa.Table.from_batches([rows]).group_by(names).aggregate([]).to_pylist():
            yield frozenset(_as_one(Identifier(kind=_KINDS[name], value=row[name])) for name in names if row[name])

"""Which identifiers were seen together on clicks and orders, or are of one customer: those of one person.

Never guesses, and never writes. Invariants: what too many others were seen with is nobody's, and leads to nobody, as
in `identity.py`; a device of too many visitors leads to none of them, and is found only if it was asked for.

>>> seen_together(lake, "shop", Identifier(kind="cli_ubid", value="browser-1"), Policy())   # doctest: +SKIP
[Identifier(kind='cli_ubid', value='browser-1'), Identifier(kind='device_id', value='38400000-…')]
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import chain, permutations
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.clicks.absent import present
from clickclock.attribution.clicks.identifier import CUSTOMER, SPACES, folded
from clickclock.attribution.crediting.columns.identity import LINKS_MAX, visitors_at_once
from clickclock.attribution.crediting.policy import Policy
from clickclock.attribution.erasing.erasure import ORDER_ID, Identifier
from clickclock.attribution.lake.tables import CLICKS, EVENTS, ORDERS, Table
from clickclock.attribution.registering.identification import NAME, Identification, Pair, of_query, standing, withdrawn
from clickclock.foundation.instant import DAY_MS, ms_of

if TYPE_CHECKING:
    from clickclock.attribution.lake import Lake

Days: TypeAlias = tuple[int, int]
"""The first and the last one, numbered from 1970, in UTC."""
_BROWSER, _DEVICE = "cli_ubid", "device_id"
_VISITORS: Final = {_DEVICE: (_BROWSER, CUSTOMER), _BROWSER: (CUSTOMER,), CUSTOMER: ()}
Together: TypeAlias = tuple[frozenset[Identifier], Days]
_KINDS: Final = {name: name if name in (_BROWSER, CUSTOMER) else _DEVICE for name in SPACES}
"""A device's id is the same in whichever field it comes."""


def seen_together(lake: "Lake", client_id: str, asked: Identifier, policy: Policy) -> list[Identifier]:
    """The identifiers of the person that `asked` is of, or whose order it is, by the client's policy."""
    nobodys = frozenset(folded(value) for value in policy.shared_identifiers)
    found: list[Identifier] = []
    frontier = {_as_one(asked)} if asked.kind != ORDER_ID else _of_order(lake, client_id, asked.value)
    looked_at = set(frontier)
    said = _said(lake, client_id)
    while frontier:
        neighbours = _neighbours(lake, client_id, frontier, said)
        following: set[Identifier] = set()
        for each in frontier:
            if len(neighbours[each]) > LINKS_MAX or folded(each.value) in nobodys:
                continue
            is_crowded = _visitors(each, neighbours[each], nobodys, policy) > policy.visitors_per_device_max
            if not is_crowded:
                following |= neighbours[each].keys()
            if not is_crowded or each == _as_one(asked):
                found.append(each)
        frontier = following - looked_at
        looked_at |= frontier
    return sorted(found, key=lambda each: (each.kind, each.value))


def _as_one(identifier: Identifier) -> Identifier:
    if identifier.kind in (_BROWSER, CUSTOMER):
        return identifier
    return Identifier(kind=_DEVICE, value=folded(identifier.value))


def _of_order(lake: "Lake", client_id: str, order_id: str) -> set[Identifier]:
    rows = _rows(lake, ORDERS, client_id, lambda batch: pc.equal(batch["order_id"], order_id), {})
    return {each for row, _ in rows for each in row}


def _visitors(device: Identifier, others: Mapping[Identifier, Days], nobodys: Collection[str], policy: Policy) -> int:
    """How many visitors a device had at one time, or customers a browser, at the most."""
    kinds = _VISITORS[device.kind]
    visits = [days for each, days in others.items() if each.kind in kinds and folded(each.value) not in nobodys]
    return visitors_at_once([first for first, _ in visits], [last + policy.window_days_max for _, last in visits])


def _neighbours(
    lake: "Lake", client_id: str, frontier: Collection[Identifier], said: Collection[Identification]
) -> dict[Identifier, dict[Identifier, Days]]:
    """Of each, the others that stand with it on any click or order, and on which days they first and last did."""
    values = {
        kind: pa.array([each.value for each in frontier if each.kind == kind], pa.string())
        for kind in (_BROWSER, _DEVICE, CUSTOMER)
    }

    def has_one(batch: pa.RecordBatch) -> pa.BooleanArray:
        is_it = pa.repeat(pa.scalar(False), batch.num_rows)
        for name, kind in _KINDS.items():
            if name in batch.schema.names:
                value = pc.ascii_lower(batch[name]) if kind == _DEVICE else batch[name]
                is_it = pc.or_(is_it, pc.is_in(value, values[kind]))
        return is_it

    found: dict[Identifier, dict[Identifier, Days]] = defaultdict(dict)
    until_ms = withdrawn(said)
    rows = chain.from_iterable(_rows(lake, table, client_id, has_one, until_ms) for table in (CLICKS, ORDERS))
    for row, (first, last) in chain(rows, _identified(said)):
        for each, other in permutations(row, 2):
            known = found[each].get(other, (first, last))
            found[each][other] = min(known[0], first), max(known[1], last)
    return found


def _said(lake: "Lake", client_id: str) -> list[Identification]:
    """All that the client said of its customers."""
    where = (pc.field("name") == NAME) & (pc.field("client_id") == client_id)
    batches = lake.scan(EVENTS.name, where, ["id", "received_at", "raw"])
    rows = (row for batch in batches for row in batch.to_pylist())
    said = (of_query(row["raw"], ms_of(row["received_at"]), entry_id=row["id"]) for row in rows)
    return [each for each in said if isinstance(each, Identification)]


def _identified(said: Collection[Identification]) -> list[Together]:
    """What the identifications that stand say, a pair each."""
    return [
        (frozenset(_as_one(Identifier(*named)) for named in pair.items()), (each.event_time_ms // DAY_MS,) * 2)
        for each in standing(said)
        for pair in each.links
    ]


def _rows(
    lake: "Lake",
    table: Table,
    client_id: str,
    fit: Callable[[pa.RecordBatch], pa.BooleanArray],
    until_ms: Mapping[Pair, int],
) -> Iterator[Together]:
    """The identifiers of each row that fits, and its day, or the days of several rows with the same identifiers.

    Of an order, its customer stands with the browser or device alone, unless that pair was withdrawn since.
    """
    names = [name for name in _KINDS if name in table.schema.names]
    whose = [name for name in ("client_id", "order_id") if name in table.schema.names]
    for batch in lake.scan(table.name, columns=[*whose, *names, "event_time", "received_at"]):
        rows = batch.filter(pc.and_(pc.equal(batch["client_id"], client_id), fit(batch)))
        at_ms = pc.cast(pc.coalesce(rows["event_time"], rows["received_at"]), pa.timestamp("ms", "UTC"), safe=False)
        rows = rows.append_column("at_ms", at_ms.cast(pa.int64()))
        by_names = pa.Table.from_batches([rows]).group_by([*whose, *names])
        for row in by_names.aggregate([("at_ms", "min"), ("at_ms", "max")]).to_pylist():
            days = row["at_ms_min"] // DAY_MS, row["at_ms_max"] // DAY_MS
            found = [_as_one(Identifier(kind=_KINDS[name], value=row[name])) for name in names if present(row, name)]
            customer = next((each for each in found if each.kind == CUSTOMER), None)
            if customer is None:
                yield frozenset(found), days
                continue
            others = [each for each in found if each != customer]
            yield frozenset(others), days
            pair = (client_id, customer.value, others[0].kind, others[0].value) if others else None
            is_gone = pair is not None and until_ms.get(pair, -1) >= row["at_ms_min"]
            yield frozenset([customer, *([] if is_gone else others[:1])]), days

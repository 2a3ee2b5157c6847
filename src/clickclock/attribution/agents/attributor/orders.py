"""Orders as columns: what all amendments of each say, for all orders at once.

Never adds up money, and never invents: an amendment that the rules of today cannot read is counted and left out.
Invariants: an order is what `order.fold` makes of its amendments; its row number says where it stands. If all are read,
they are sorted by client and order id; if only what is new, the orders that this is about come last.

>>> read_orders(lake, engine, policies).table.num_rows   # doctest: +SKIP
0
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clickclock.attribution.agents.attributor.keys import KEY, Keys
from clickclock.attribution.agents.attributor.touch_delta import net
from clickclock.attribution.clicks import identifier
from clickclock.attribution.clicks.identifier import CUSTOMER
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.engines import IDENTIFIED, Engine
from clickclock.attribution.lake import FOLDED, ORDERS, TEXTS, Lake
from clickclock.attribution.orders.amendment import KIND, PURCHASE, Amendment, Item, Status
from clickclock.attribution.orders.order import Order, fold
from clickclock.attribution.reporting.result import Result

READ: Final = (
    *("id", "received_at", "event_time", "event_time_sent", "client_id", "order_id", "cli_ubid", "device_id"),
    *("seller_id", "amount_minor", "currency", "status", "refunded_minor", "items", CUSTOMER, KIND),
)
"""The columns of the lake that an order is folded from."""
CODED: Final = {"cli_ubid": "browser_code", "device_id": "device_code", CUSTOMER: "customer_code"}
"""The columns of the codes of identifiers."""
SCHEMA: Final = FOLDED.whole
_AT_MS: Final = "at_ms"
"""The column of the time that counts: what was said, but never later than the receipt."""


@dataclass(frozen=True, eq=False)
class Orders:
    """All orders, as `SCHEMA` says; an order's number is its row."""

    table: pa.Table
    unjudgeable: int
    version: int | None = None
    """The version of the lake's amendments; None if there are none."""
    standing: int = 0
    """So many, the first ones, are what they were in a version before. All others are new, or were amended since."""
    then: pa.Table = field(default_factory=SCHEMA.empty_table)
    """What those were in that version that were there, and those that are gone."""

    @property
    def fresh(self) -> pa.Table:
        """Those that are new, or were amended."""
        return self.table.slice(self.standing)

    @property
    def anew(self) -> NDArray[np.int64]:
        """Their numbers."""
        return np.arange(self.standing, self.table.num_rows)


def read_orders(lake: Lake, engine: Engine, policies: Policies) -> Orders:
    """All orders as they are now. Raises `LakeUnreachable`, `EngineFailing`."""
    delta = lake.table(ORDERS.name)
    version = None if delta is None else delta.version()
    return replace(_folded_of(_amendments(lake, version), engine, policies), version=version)


def orders_since(lake: Lake, engine: Engine, policies: Policies, before: Result) -> Orders:
    """The same, if `before` kept its orders: only those are folded that are new or were amended since.

    Raises `VersionGone` if the lake does not know any more what changed, `LakeUnreachable`, `EngineFailing`.
    """
    changes = lake.changes(ORDERS.name, before.orders_version)
    came, went = net(lake, ORDERS, changes, READ)
    unjudgeable = before.unjudgeable + came["event_time"].null_count - went["event_time"].null_count
    batches = lake.scan(FOLDED.name, version=before.folded_version)
    known = pa.Table.from_batches((batch.cast(SCHEMA) for batch in batches), SCHEMA)
    known = known.set_column(SCHEMA.get_field_index(KIND), KIND, pc.fill_null(known[KIND], PURCHASE))
    keys = Keys(pa.concat_tables([came.select(KEY), went.select(KEY)]))
    is_amended = keys.among(known)
    then = known.filter(pa.array(is_amended))
    if then.num_rows:
        known = known.filter(pa.array(~is_amended))
        came = _amendments(lake, changes.version)
        came = came.filter(pa.array(keys.among(came)))
    fresh = _folded_of(came, engine, policies).table
    return Orders(
        pa.concat_tables([known, fresh]).combine_chunks(),
        unjudgeable,
        version=None if before.orders_version is None and not changes else changes.version,
        standing=known.num_rows,
        then=then,
    )


def _amendments(lake: Lake, version: int | None) -> pa.Table:
    schema = pa.schema([ORDERS.schema.field(name) for name in READ])
    batches = lake.scan(ORDERS.name, columns=list(READ), version=version)
    return pa.Table.from_batches((batch.cast(schema) for batch in batches), schema)


def _folded_of(amendments: pa.Table, engine: Engine, policies: Policies) -> Orders:
    codes = engine.codes(amendments.select(IDENTIFIED.names), policies)
    for kind, name in CODED.items():
        amendments = amendments.append_column(name, codes[kind])
    return folded(amendments, policies)


def folded(amendments: pa.Table, policies: Policies) -> Orders:
    """The orders that amendments, with the columns `READ` and those of `CODED`, make."""
    unjudgeable = amendments["event_time"].null_count
    known = amendments.filter(pc.is_valid(amendments["event_time"])) if unjudgeable else amendments
    by_order = _by_order(known)
    starts = _starts(known.select(KEY).take(pa.array(by_order)))
    order = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, known.num_rows)))
    said_ms, received_ms = _ms(known["event_time"]).to_numpy(), _ms(known["received_at"]).to_numpy()
    # Releases before this one kept times later than the receipt.
    known = known.append_column(_AT_MS, pa.array(np.minimum(said_ms, received_ms)))
    rank = [known[_AT_MS].to_numpy(), _stages(known["status"]), known["refunded_minor"].to_numpy()]
    rank = [column[by_order] for column in rank]
    by_rank = np.lexsort((*rank[::-1], order)) if len(order) > len(starts) else np.arange(len(order))
    is_tied = np.zeros(len(starts), np.bool_)
    same = [column[by_rank[1:]] == column[by_rank[:-1]] for column in (order, *rank)]
    is_tied[order[by_rank[1:]][np.logical_and.reduce(same)]] = True
    is_ahead = (_are_there(known["event_time_sent"]) | (said_ms > received_ms))[by_order]
    is_tied[order[is_ahead]] = np.bincount(order)[order[is_ahead]] > 1
    codes, place = _Codes(policies), by_order[by_rank]
    # Only the definition knows which one counts of amendments that say the same of time, stage and refund; and which
    # are copies of those whose clock was ahead, for these count from when they came.
    tied = known.take(pa.array(place[is_tied[order]]))
    folds = pa.Table.from_pylist([_row(each, codes) for each in _folds(tied, order[is_tied[order]])], SCHEMA)
    stacked = _stacked(known, place[~is_tied[order]], order[~is_tied[order]])
    table = pa.concat_tables([stacked, folds])
    if folds.num_rows:
        numbers = np.concatenate([np.flatnonzero(~is_tied), np.flatnonzero(is_tied)])
        table = table.take(pa.array(np.argsort(numbers)))
    return Orders(table.combine_chunks(), unjudgeable)


def _by_order(rows: pa.Table) -> NDArray[np.intp]:
    """The rows sorted by client and order id, as places: to sort by two texts at once takes three times as long."""
    clients = rows["client_id"].combine_chunks().dictionary_encode()
    rank = np.empty(len(clients.dictionary), np.int64)
    rank[pc.sort_indices(clients.dictionary).to_numpy()] = np.arange(len(rank))
    by_id = pc.sort_indices(rows["order_id"].combine_chunks()).to_numpy()
    places: NDArray[np.intp] = by_id[np.argsort(rank[clients.indices.to_numpy()][by_id], kind="stable")]
    return places


def _starts(rows: pa.Table) -> NDArray[np.int64]:
    """Where each order's rows begin."""
    if not rows.num_rows:
        return np.empty(0, np.int64)
    is_new = np.zeros(rows.num_rows, np.bool_)
    is_new[0] = True
    for name in KEY:
        column = rows[name].combine_chunks()
        is_new[1:] |= _truths(pc.not_equal(column[1:], column[:-1]))
    return np.flatnonzero(is_new)


def _stages(status: pa.ChunkedArray) -> NDArray[np.int64]:
    found: NDArray[np.int64] = pc.index_in(status, pa.array([str(each) for each in Status])).to_numpy().astype(np.int64)
    return found


def _stacked(rows: pa.Table, at: NDArray[np.intp], order: NDArray[np.int64]) -> pa.Table:
    """Orders of amendments, whose ranks rise along `at`: the last one counts, what it leaves out stays as it was."""
    is_first = np.append(True, order[1:] != order[:-1])[: len(order)]
    starts = np.flatnonzero(is_first)
    ends = np.append(starts[1:], len(order))[: len(starts)] - 1
    first, final = pa.array(at[starts]), pa.array(at[ends])
    seller_id = _last(rows["seller_id"], at, starts)
    items = _last(rows["items"], at, starts, pc.greater(pc.fill_null(pc.list_value_length(rows["items"]), 0), 0))
    made = {
        "placed_ms": rows[_AT_MS].take(first),
        "amended_ms": rows[_AT_MS].take(final),
        "seller_id": seller_id,
        "sellers": _sellers(seller_id.combine_chunks(), items.combine_chunks()),
        **{kind: _last(rows[name], at, starts) for kind, name in CODED.items()},
        KIND: pc.fill_null(_last(rows[KIND], at, starts), PURCHASE),
    }
    return pa.table([made[name] if name in made else rows[name].take(final) for name in SCHEMA.names], schema=SCHEMA)


def _last(
    column: pa.ChunkedArray,
    at: NDArray[np.intp],
    starts: NDArray[np.int64],
    is_said: pa.ChunkedArray | None = None,
) -> pa.ChunkedArray:
    """Of each order, which begins at one of `starts` in `at`, the last value that was said."""
    said = (_are_there(column) if is_said is None else _truths(is_said))[at]
    if not len(starts):
        return column.slice(0, 0)
    places = np.maximum.reduceat(np.where(said, np.arange(len(said)), -1), starts)
    # -1 of an order is not the -1 of another: a place before its own rows is none.
    return column.take(pa.array(at[places], mask=places < starts))


class _Codes:
    """Identifiers as codes. What identifies nobody does so in any case of its letters, and has one code."""

    def __init__(self, policies: Policies) -> None:
        self._policies = policies
        self._shared: dict[str, frozenset[str]] = {}

    def code(self, client_id: str, kind: str, value: str) -> int:
        shared = self._shared.get(client_id)
        if shared is None:
            shared = frozenset(identifier.folded(each) for each in self._policies.find(client_id).shared_identifiers)
            self._shared[client_id] = shared
        return identifier.code(client_id, kind, value, shared)


def _are_there(column: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
    return _truths(pc.is_valid(column))


def _truths(column: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
    return np.asarray(column.cast(pa.int8())).view(np.bool_)


def _ms(instants: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.cast(instants, pa.timestamp("ms", "UTC")).cast(pa.int64())


def _sellers(seller_ids: pa.Array, items: pa.Array) -> pa.Array:
    """The sellers that each order names: its own first, then those of its items. One may be there twice."""
    of_items = pc.list_flatten(items).field("seller_id") if len(pc.list_flatten(items)) else pa.nulls(0, pa.string())
    order = np.concatenate([np.arange(len(items)), np.asarray(pc.list_parent_indices(items))])
    sellers = pa.concat_arrays([seller_ids, of_items])
    by_order = np.flatnonzero(_are_there(sellers))
    by_order = by_order[np.argsort(order[by_order], kind="stable")]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(order[by_order], minlength=len(items)))])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), sellers.take(pa.array(by_order)), TEXTS)


def _folds(rows: pa.Table, order: NDArray[np.int64]) -> Iterator[Order]:
    each = zip(order.tolist(), rows.to_pylist(), strict=True)
    for _, those in groupby(each, key=itemgetter(0)):
        yield fold(_amendment(row) for _, row in those)


def _amendment(row: dict[str, Any]) -> Amendment:
    sent = row["event_time_sent"] or row["event_time"]
    return Amendment(
        row["client_id"],
        row["order_id"],
        round(sent.timestamp() * 1000),
        row["amount_minor"],
        row["currency"],
        Status(row["status"]),
        row["refunded_minor"],
        row["cli_ubid"],
        row["device_id"],
        row["seller_id"],
        tuple(Item(**item) for item in row["items"] or ()),
        round(row["received_at"].timestamp() * 1000),
        row["id"],
        row[CUSTOMER],
        row[KIND],
    )


def _row(order: Order, codes: _Codes) -> dict[str, Any]:
    sellers = [order.seller_id, *(item.seller_id for item in order.items)]
    ids = {kind: getattr(order, kind) for kind in CODED}
    return {
        **{name: getattr(order, name) for name in SCHEMA.names if name != "sellers"},
        "status": str(order.status),
        "sellers": [seller for seller in sellers if seller is not None],
        **{kind: None if value is None else codes.code(order.client_id, kind, value) for kind, value in ids.items()},
    }

"""Identified: links of visitors and devices with the customers that clients say they are.

Never keeps what it reads: what stands is found anew in every run, as identifications are few beside clicks. Invariants:
links are those of the identifications that stand in a version of the lake's events, whenever they came, and those of
orders that name a customer; a withdrawal undoes those of orders that were placed until then.

>>> is_news(lake, before.events_version)   # doctest: +SKIP
False
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.agents.attributor.click_links import Rules
from clickclock.attribution.clicks.identifier import CUSTOMER, code, folded
from clickclock.attribution.crediting.columns.identity import Links, joined
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.lake import EVENTS, Lake
from clickclock.attribution.registering.identification import NAME, Identification, of_query, standing, withdrawn
from clickclock.foundation.instant import ms_of

_NAME = pa.schema([EVENTS.schema.field("name")])
Code = Callable[[str, str, str], int]
"""The code of a client's identifier, of a kind."""


def is_news(lake: Lake, since: int | None) -> bool:
    """Whether identifications came or went since a version of the events. Raises `VersionGone`."""
    changes = lake.changes(EVENTS.name, since)
    files = [*changes.added, *changes.removed]
    return bool(pc.any(pc.equal(lake.rows(EVENTS.name, files, _NAME)["name"], NAME)).as_py())


def links_by_customers(lake: Lake, version: int | None, orders: pa.Table, policies: Policies) -> Links:
    """What the identifications that stand in a version of the events link, and these orders. Raises `VersionGone`."""
    said = list(_identifications(lake, version))
    clients = sorted({each.client_id for each in said})
    nobody = {name: {folded(value) for value in policies.find(name).shared_identifiers} for name in clients}

    def coded(client_id: str, kind: str, value: str) -> int:
        return code(client_id, kind, value, nobody[client_id])

    pairs: list[list[int]] = []
    rows: list[tuple[int, int]] = []
    number = {client_id: place for place, client_id in enumerate(clients)}
    for each in standing(said):
        for pair in each.links:
            pairs.append([coded(each.client_id, *named) for named in pair.items()])
            rows.append((each.event_time_ms, number[each.client_id]))
    time_ms, client = np.array(rows, np.int64).reshape(-1, 2).T
    links = Rules.of(clients, policies).visits(np.array(pairs, np.int64).reshape(-1, 2), time_ms, time_ms, client)
    return joined([links, _of_orders(orders, _withdrawn(said, coded), policies)])


def _identifications(lake: Lake, version: int | None) -> Iterator[Identification]:
    if version is None:
        return
    columns = ["id", "received_at", "raw"]
    for batch in lake.scan(EVENTS.name, pc.field("name") == NAME, columns, version):
        for row in batch.to_pylist():
            said = of_query(row["raw"], ms_of(row["received_at"]), entry_id=row["id"])
            if isinstance(said, Identification):
                yield said


def _withdrawn(said: Iterable[Identification], coded: Code) -> pa.Table:
    """The codes of each pair that was withdrawn, and when, in milliseconds."""
    rows = [
        (coded(client_id, kind, value), coded(client_id, CUSTOMER, customer_id), time_ms)
        for (client_id, customer_id, kind, value), time_ms in withdrawn(said).items()
    ]
    return pa.table(dict(zip(("one", "other", "gone_ms"), np.array(rows, np.int64).reshape(-1, 3).T, strict=True)))


def _of_orders(orders: pa.Table, gone: pa.Table, policies: Policies) -> Links:
    """The links of customers with the browsers, or else the devices, from which they ordered."""
    rows = orders.filter(pc.is_valid(orders[CUSTOMER]))
    visitor = pc.coalesce(rows["cli_ubid"], rows["device_id"])
    rows = pa.table(
        {name: rows[name] for name in ("client_id", "placed_ms")} | {"one": visitor, "other": rows[CUSTOMER]}
    )
    rows = rows.filter(pc.is_valid(visitor))
    if rows.num_rows and gone.num_rows:
        rows = rows.join(gone, ["one", "other"])
        rows = rows.filter(pc.greater(rows["placed_ms"], pc.fill_null(rows["gone_ms"], 0)))
    client = rows["client_id"].combine_chunks().dictionary_encode()
    rules = Rules.of(client.dictionary.to_pylist(), policies)
    pairs, placed_ms = np.column_stack([rows["one"].to_numpy(), rows["other"].to_numpy()]), rows["placed_ms"].to_numpy()
    return rules.visits(pairs, placed_ms, placed_ms, client.indices.to_numpy())

"""Identified: links of visitors and devices with the customers that clients say they are.

Never keeps what it reads: what stands is found anew in every run, as identifications are few beside clicks. Invariant:
links are those of the identifications that stand in a version of the lake's events, whenever they came.

>>> is_news(lake, before.events_version)   # doctest: +SKIP
False
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.attributor.ties import Rules
from clickclock.attribution.identification import NAME, Identification, of_query, standing
from clickclock.attribution.identifier import code, folded
from clickclock.attribution.identity import Links, joined
from clickclock.attribution.lake import EVENTS, Lake
from clickclock.attribution.policy import Policies
from clickclock.foundation.instant import ms_of

_NAME = pa.schema([EVENTS.schema.field("name")])


def is_news(lake: Lake, since: int | None) -> bool:
    """Whether identifications came or went since a version of the events. Raises `VersionGone`."""
    changes = lake.changes(EVENTS.name, since)
    files = [*changes.added, *changes.removed]
    return bool(pc.any(pc.equal(lake.rows(EVENTS.name, files, _NAME)["name"], NAME)).as_py())


def links_by_customers(lake: Lake, version: int | None, policies: Policies) -> Links:
    """What the identifications that stand in a version of the events link. Raises `VersionGone`."""
    said = standing(_identifications(lake, version))
    clients = sorted({each.client_id for each in said})
    nobody = {name: {folded(value) for value in policies.find(name).shared_identifiers} for name in clients}
    pairs: list[list[int]] = []
    rows: list[tuple[int, int]] = []
    number = {client_id: place for place, client_id in enumerate(clients)}
    for each in said:
        for pair in each.links:
            pairs.append([code(each.client_id, *named, nobody[each.client_id]) for named in pair.items()])
            rows.append((each.event_time_ms, number[each.client_id]))
    time_ms, client = np.array(rows, np.int64).reshape(-1, 2).T
    links = Rules.of(clients, policies).visits(np.array(pairs, np.int64).reshape(-1, 2), time_ms, time_ms, client)
    return joined([links])


def _identifications(lake: Lake, version: int | None) -> Iterator[Identification]:
    if version is None:
        return
    columns = ["id", "received_at", "raw"]
    for batch in lake.scan(EVENTS.name, pc.field("name") == NAME, columns, version):
        for row in batch.to_pylist():
            said = of_query(row["raw"], ms_of(row["received_at"]), row["id"])
            if isinstance(said, Identification):
                yield said

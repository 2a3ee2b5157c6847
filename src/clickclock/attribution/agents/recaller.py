"""Recalls the last clicks, views, rejections and orders, as whoever watches them live would have seen them.

Never judges anew (`sighting.py`). Invariants: newest first, each once, also while a compactor moves entries from the
journals into the lake; nothing older than `DAYS_MAX` is looked for.

>>> Recaller(lake, Path("journal")).last(Last(limit=50), now)   # doctest: +SKIP
[]
"""

import heapq
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from clickclock.attribution.clicks.entry import Entry, EntryKind, decode
from clickclock.attribution.journal import NEWEST_MAX, newest
from clickclock.attribution.lake import CLICKS, DAY, EVENTS, ORDERS, REJECTIONS, VIEWS, Lake, of_clients, with_query
from clickclock.attribution.registering.recent import Last
from clickclock.attribution.registering.sighting import SEEN, Seen, sight
from clickclock.foundation.instant import ms_of

DAYS_MAX: Final = 31
_SPANS: Final = (timedelta(minutes=10), timedelta(hours=2), timedelta(days=1), timedelta(days=DAYS_MAX))
"""How far back is looked, one after the other: as far as there are enough."""
_TABLES: Final = {
    Seen.CLICK: CLICKS,
    Seen.VIEW: VIEWS,
    Seen.REJECTION: REJECTIONS,
    Seen.ORDER: ORDERS,
    Seen.OTHER: EVENTS,
}
_PREFETCH: Final = "prefetch"

Row = Mapping[str, Any]


class Recaller:
    """Over one lake and the journals before it."""

    def __init__(self, lake: Lake, journals: Path) -> None:
        self._lake = lake
        self._journals = journals

    def last(self, asked: Last, now: datetime) -> list[dict[str, Any]]:
        """The newest, newest first, each with what it is as `seen`. Raises `LakeUnreachable`."""
        entries = map(decode, newest(self._journals, NEWEST_MAX))
        found = {entry.id: told for entry in entries if (told := _told(entry, asked))}
        for kind in asked.kinds:
            for entry in self._stored(kind, asked, now):
                if entry.id not in found and (told := _told(entry, asked)):
                    found[entry.id] = told
        return heapq.nlargest(asked.limit, found.values(), key=lambda told: (told["receivedAt"], told["id"]))

    def _stored(self, kind: Seen, asked: Last, now: datetime) -> Iterator[Entry]:
        """The newest rows of a table, as the entries that they were; at least as many as are asked for."""
        table = _TABLES[kind]
        times: list[int] = []
        for span in _SPANS:
            where = _since(now - span, asked)
            times = [
                each
                for batch in self._lake.scan(table.name, where, ["received_at"])
                for each in batch["received_at"].cast(pa.int64()).to_pylist()
            ]
            if len(times) >= asked.limit:
                break
        if not times:
            return
        oldest_us = heapq.nlargest(asked.limit, times)[-1]
        where = _since(datetime.fromtimestamp(oldest_us / 1e6, UTC) - timedelta(milliseconds=1), asked)
        for batch in self._lake.scan(table.name, where):
            for row in batch.to_pylist():
                yield _ENTRIES[kind](row)


def _told(entry: Entry, asked: Last) -> dict[str, Any] | None:
    """An entry as it is shown to a person who asks for it."""
    if SEEN[entry.kind] not in asked.kinds:
        return None
    sighting = sight(entry)
    if not asked.takes(sighting.client_id):
        return None
    return {"seen": sighting.seen, **sighting.fields}


def _since(since: datetime, asked: Last) -> pc.Expression:
    where = (pc.field("received_at") >= since) & (pc.field(DAY) >= since.astimezone(UTC).date())
    return where if asked.clients is None else where & of_clients(asked.clients)


def _click(row: dict[str, Any], kind: EntryKind = EntryKind.CLICK) -> Entry:
    is_prefetch = _PREFETCH in (row["flags"] or ())
    detail = f"{row['profile']}{' prefetch' * is_prefetch}"
    return _entry(kind, row, detail.encode(), with_query(row)["query"])


def _view(row: dict[str, Any]) -> Entry:
    return _click(row, EntryKind.VIEW)


def _rejection(row: dict[str, Any]) -> Entry:
    told = {"was": row["what"], "kind": row["kind"], "faults": row["faults"] or [], "flags": row["flags"] or []}
    return _entry(EntryKind.REJECTION, row, msgspec.json.encode(told), row["raw"])


def _order(row: dict[str, Any]) -> Entry:
    return _entry(EntryKind.ORDER, row, row["call"] or b"", row["raw"])


def _other(row: dict[str, Any]) -> Entry:
    return _entry(EntryKind.OTHER, row, (row["name"] or "").encode(), row["raw"])


_ENTRIES: Final = {
    Seen.CLICK: _click,
    Seen.VIEW: _view,
    Seen.REJECTION: _rejection,
    Seen.ORDER: _order,
    Seen.OTHER: _other,
}


def _entry(kind: EntryKind, row: Row, detail: bytes, raw: bytes) -> Entry:
    agent, referer = (row["user_agent"] or "").encode(), (row["referer"] or "").encode()
    return Entry(kind, row["id"], ms_of(row["received_at"]), row["address"] or "", agent, referer, detail, raw)

"""A small shop in a lake: people with clicks, orders, refusals, and all that was derived of them and exported.

Never uses the services: entries are kept in a journal as a collector would. Invariant: person `n` has identifiers that
no other has, and everything about it says at least one of them.

>>> browser(7)
'browser|0000007-x'
"""

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pyarrow as pa

from clickclock.attribution.clicks.entry import EntryKind, connection, encode
from clickclock.attribution.clicks.identifier import code
from clickclock.attribution.erasing.erasure import Erasure, Identifier
from clickclock.attribution.lake import (
    ADS,
    FOLDED,
    IDENTITIES,
    TOUCHES,
    UNCONVERTED,
    UPLOADS,
    Lake,
    Table,
    credits_table,
)
from clickclock.attribution.reporting.result import Result
from clickclock.attribution.uploads.meta_upload import hashed
from tests.kept import DAY_MS, RECEIVED_MS

CLIENT = "shop-1"
NOW_MS = RECEIVED_MS + 10 * DAY_MS
CREDITS = credits_table(["last", "linear"])
GOOGLE_FILE = f"google-{CLIENT}-000001-0a1b2c3d-0001-conversions.csv"
META_FILE = f"meta-{CLIENT}-000001-0a1b2c3d-0001-events.json"
_ORIGIN = connection("00ff00ff00ff00ff", b"Mozilla/5.0", b"https://shop.example/")
_REFUSED = (
    b'{"what":"click","kind":"invalid","faults":[{"field":"atag","code":"missing","message":"atag is required."}]}'
)


def browser(person: int) -> str:
    """The `cli_ubid` of a person; it has to be encoded in a query."""
    return f"browser|{person:07}-x"


def device(person: int) -> str:
    """The device of a person."""
    return f"38400000-8cf0-11bd-b23e-{person:012x}"


def gclid(person: int) -> str:
    """What Google called its click."""
    return f"Cj0KCQiA{person:07}"


def order(person: int) -> str:
    """The order of a person."""
    return f"order-{person:07}"


def entry_id(person: int, nth: int) -> str:
    """The id of the nth entry about a person."""
    return f"{person * 10 + nth:032x}"


def entries(person: int) -> list[bytes]:
    """Two clicks of a person, an order, its refund, a refusal, a view; and a click of another person that says it."""
    received_ms = RECEIVED_MS + person % 3 * DAY_MS + person * 10
    whose = f"client_id={CLIENT}&cli_ubid={quote(browser(person), safe='')}"
    click = f"{whose}&seller_id=s&asvt=v&atag=t&event_time={received_ms}"
    told = {
        "client_id": CLIENT,
        "order_id": order(person),
        "cli_ubid": browser(person),
        "event_time": received_ms + 60_000,
        "amount": "9.90",
        "currency": "EUR",
    }
    twice = quote(quote(f"https://shop.example/?user={browser(person)}&x=1", safe=""), safe="")
    made = [
        (
            EntryKind.PLAIN_CLICK,
            b"strict",
            f"{click}&device_id={device(person).upper()}&gclid={gclid(person)}".encode(),
        ),
        (
            EntryKind.CLICK,
            b"strict",
            f"client_id={CLIENT}&device_id={device(person)}&seller_id=s&asvt=v&atag=t&event_time={received_ms}&x=%C3%A9".encode(),
        ),
        (EntryKind.ORDER, b"", json.dumps(told).encode()),
        (EntryKind.ORDER, b"", json.dumps({**told, "status": "refunded", "event_time": received_ms + 90_000}).encode()),
        (EntryKind.REJECTION, _REFUSED, f"client_id={CLIENT}&page={twice}".encode()),
        (EntryKind.OTHER, b"viewproduct", f"{whose}&event_name=viewproduct&sku_id=7".encode()),
        (
            EntryKind.CLICK,
            b"strict",
            f"client_id={CLIENT}&cli_ubid=somebody-{person}&seller_id=s&asvt=v&atag=t&event_time={received_ms}&ref={twice}".encode(),
        ),
    ]
    return [
        encode(kind, entry_id(person, nth), received_ms + nth + 100_000 * (nth > 1), _ORIGIN, detail, raw)
        for nth, (kind, detail, raw) in enumerate(made)
    ]


def view(person: int) -> bytes:
    """A view by a person, which says what the first click says."""
    _, entry, rest = entries(person)[0].split(b"\t", 2)
    assert entry.decode() == entry_id(person, 0)
    return b"\t".join((EntryKind.VIEW.encode(), entry_id(person, 9).encode(), rest))


def derive(lake: Lake, people: int) -> None:
    """What a run would make of them, and what an export would remember; published as version 1."""
    each = range(people)
    of_touches = [
        {
            "id": entry_id(person, nth),
            "received_us": RECEIVED_MS * 1000,
            "time_ms": RECEIVED_MS,
            "cli_ubid": code(CLIENT, "cli_ubid", browser(person)) if nth == 0 else None,
            "device_id": code(CLIENT, "device_id", device(person)),
            "received_day": date(2027, 1, 15),
        }
        for person in each
        for nth in (0, 1)
    ]
    of_identities = [
        {"code": max(_codes(person)), "person": min(_codes(person)), "is_shared": False, "links": 1} for person in each
    ]
    of_unconverted = [
        {"client_id": CLIENT, "person": min(_codes(person)), "path": "google", "month": "2027-02"} for person in each
    ]
    of_credits = [
        {
            "client_id": CLIENT,
            "order_id": order(person),
            "person": min(_codes(person)),
            "order_month": "2027-01",
            "place": place,
            "touches": 2,
            "click_id": entry_id(person, place - 1),
            "last_credit": 990 * (place == 2),
            "linear_credit": 495,
        }
        for person in each
        for place in (1, 2)
    ]
    of_folded = [
        {
            "client_id": CLIENT,
            "order_id": order(person),
            "cli_ubid": code(CLIENT, "cli_ubid", browser(person)),
            "device_id": code(CLIENT, "device_id", device(person)),
        }
        for person in each
    ]
    of_uploads = [
        {
            "network": "google",
            "client_id": CLIENT,
            "order_id": order(person),
            "click_id": entry_id(person, 0),
            "kind": "conversion",
            "file": GOOGLE_FILE,
        }
        for person in each
    ]
    tables: list[tuple[Table, list[Any]]] = [
        (TOUCHES, of_touches),
        (IDENTITIES, of_identities),
        (UNCONVERTED, of_unconverted),
        (CREDITS, of_credits),
        (FOLDED, of_folded),
        (UPLOADS, of_uploads),
        (ADS, [{"ad": 1, "client_id": CLIENT, "channel": "google"}]),
    ]
    versions = {table.name: _write(lake, table, rows) for table, rows in tables}
    result = Result(
        version=1,
        orders=people,
        credited=people,
        touchpoints=2 * people,
        credits_version=versions["credits"],
        identities_version=versions["identities"],
        unconverted_version=versions["unconverted"],
        touches_version=versions["touches"],
        ads_version=versions["ads"],
        folded_version=versions["folded"],
    )
    lake.publish(result, NOW_MS)


def export(folder: Path, people: int) -> None:
    """Two files for ad networks."""
    folder.mkdir()
    rows = [f"{gclid(person)},Order,2027-01-15 09:00:00,9.90,EUR,{order(person)}\n" for person in range(people)]
    names = "Google Click ID,Conversion Name,Conversion Time,Conversion Value,Conversion Currency,Order ID"
    head = f"Parameters:TimeZone=UTC\n{names}\n"
    (folder / GOOGLE_FILE).write_text(head + "".join(rows), encoding="utf-8")
    events = [
        {
            "user_data": {"external_id": [hashed(browser(person))]},
            "custom_data": {"value": 9.90, "order_id": order(person)},
        }
        for person in range(people)
    ]
    (folder / META_FILE).write_bytes(msgspec.json.encode({"data": events}))


def asked(identifier: Identifier, *, with_person: bool = False) -> Erasure:
    """An erasure that was asked for."""
    return Erasure(
        id="e" * 32,
        client_id=CLIENT,
        asked=identifier,
        with_person=with_person,
        until_ms=NOW_MS,
        reason="asked by letter",
    )


def _codes(person: int) -> tuple[int, int]:
    return code(CLIENT, "cli_ubid", browser(person)), code(CLIENT, "device_id", device(person))


def _write(lake: Lake, table: Table, rows: list[Any]) -> int:
    ledger = lake.ledger(table)
    parts = ledger.parts("part-1", NOW_MS)
    parts.write(pa.Table.from_pylist(rows, table.whole))
    return ledger.commit(parts.close(), NOW_MS, notes={"result": 1})


def epoch(ms: int) -> datetime:
    """An instant."""
    return datetime.fromtimestamp(ms / 1000, UTC)

r"""Journals with entries of every kind in them, and what a lake then has to have.

>>> lines(3)[0][:2]
b'c\t'
"""

import asyncio
from collections import Counter
from pathlib import Path

from clickclock.attribution.clicks.entry import EntryKind, connection, encode
from clickclock.attribution.journal import Journal
from clickclock.attribution.lake import TABLES, Lake

DAY_MS = 86_400_000
RECEIVED_MS = 1_800_000_000_000
_ORIGIN = connection("00ff00ff00ff00ff", b"Mozilla/5.0 (X11; Linux)", b"https://shop.example/?a=b&c=d")
_CLICK = "client_id=c{client}&cli_ubid=u{number}&seller_id=s&asvt=v%7C1&atag=t&event_time={time}&gclid=g{number}"
_ORDER = (
    '{{"client_id":"c1","order_id":"{number}","cli_ubid":"u","event_time":{time},"amount":"9.90","currency":"EUR",'
    '"items":[{{"sku_id":"k","price":"9.90","quantity":2}}]}}'
)
_REFUSED = (
    b'{"what":"click","kind":"invalid","faults":[{"field":"atag","code":"missing","message":"atag is required."}]}'
)


def line(number: int) -> bytes:
    """Entry `number`: of every ten, six plain clicks, and one of each other kind. They come from three days."""
    received_ms = RECEIVED_MS + number % 3 * DAY_MS + number
    query = _CLICK.format(client=number % 5, number=number, time=received_ms - 1000)
    kind, detail, raw = {
        6: (EntryKind.CLICK, b"strict", f"{query}&name=%C3%A9".encode()),
        7: (EntryKind.REJECTION, _REFUSED, b"client_id=c1&raw=\xff\0"),
        8: (EntryKind.ORDER, b"", _ORDER.format(number=number, time=received_ms).encode()),
        9: (EntryKind.OTHER, b"viewproduct", b"client_id=c1&event_name=viewproduct&sku_id=7"),
    }.get(number % 10, (EntryKind.PLAIN_CLICK, b"strict", query.encode()))
    return encode(kind, f"{number:032x}", received_ms, _ORIGIN, detail, raw)


def lines(count: int, first: int = 0) -> list[bytes]:
    """So many entries."""
    return [line(number) for number in range(first, first + count)]


def ids(count: int, first: int = 0) -> Counter[str]:
    """The ids that a lake is to have of them, each once."""
    return Counter(f"{number:032x}" for number in range(first, first + count))


async def keep(folder: Path, entries: list[bytes], *, at_a_time: int = 20, segment_bytes: int = 2**16) -> None:
    """Acknowledge entries by a real journal, which then is closed: all its segments are sealed."""
    journal = await Journal.open(folder, segment_bytes=segment_bytes)
    loop = asyncio.get_running_loop()
    for start in range(0, len(entries), at_a_time):
        told = [loop.create_future() for _ in entries[start : start + at_a_time]]
        for entry, future in zip(entries[start : start + at_a_time], told, strict=True):
            journal.append(entry, future.set_result)
        assert set(await asyncio.gather(*told)) == {None}
    await journal.close()


def ids_in(lake: Lake) -> Counter[str]:
    """The id of every row of every table."""
    found: Counter[str] = Counter()
    for table in TABLES:
        for batch in lake.scan(table.name, columns=["id"]):
            found.update(batch["id"].to_pylist())
    return found

"""A world for the benchmarks of attribution: clicks and orders as rows of the lake, the same ones for the same seed.

Never goes through the journals: what they cost is measured elsewhere. People are heavy-tailed (8 % of them own 62 % of
the clicks) and of one client each. Of five, four have a device id and the others a browser's; some have both, and
now and then show both on one click. Seven clicks of ten are Google's, two Meta's, the rest onsite ones and newsletters.
There are retries, click ids that are used again, clicks that come days late, shared identifiers, bots, and one flood.

>>> batch = next(clicks(World(clicks=100, orders=5, days=2)))
>>> batch.schema == CLICKS.schema, batch.num_rows
(True, 50)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clickclock.attribution.clicks.absent import REVISION
from clickclock.attribution.lake import CLICKS, ORDERS, Lake, Written
from clickclock.attribution.lake.files import DayFiles, Storage
from clickclock.attribution.lake.tables import INSTANT, PARAMETERS, TEXTS, Table

Integers: TypeAlias = NDArray[np.int64]
Truths: TypeAlias = NDArray[np.bool_]

DAY_MS: Final = 86_400_000
START_MS: Final = int(datetime(2026, 9, 11, tzinfo=UTC).timestamp() * 1000)
"""In the middle of a month, and so is the day after thirty: to add a day on a month's first would be less work."""
CLIENTS: Final = 40
ADS: Final = 20_000
"""Ads of all clients; each is of one client, seller and campaign."""
CLICKS_PER_PERSON: Final = 4
SPREAD: Final = 1.71
"""Of a lognormal distribution: the busiest 8 % have 62 %."""
ORDERS_BY_CLICKS: Final = 0.125
"""Of the orders: who clicks much orders more. All others are as likely anybody's."""
ROWS: Final = 2**19
"""Of a batch, and so of a row group."""
_BASE64: Final = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8)
_HEX: Final = np.frombuffer(b"0123456789abcdef", np.uint8)
_GCLID: Final = 50
_JOURNAL: Final = "b" * 32


@dataclass(frozen=True)
class World:
    """How much there is. `late_share` of the clicks come up to three days after they happened."""

    clicks: int
    orders: int
    days: int = 30
    late_share: float = 0.01
    seed: int = 4
    first_day: int = 0
    """Counted from `START_MS`: a world that begins later has the same people, and further rows."""

    @cached_property
    def people(self) -> NDArray[np.float64]:
        """Of each person, the share of all clicks up to and with it."""
        weights = np.random.default_rng(self.seed).lognormal(sigma=SPREAD, size=self.population)
        shares: NDArray[np.float64] = np.cumsum(weights) / weights.sum()
        return shares

    @property
    def population(self) -> int:
        """How many people there may be, whatever part of the world is made."""
        return max(100, self.clicks_a_day * 30 // CLICKS_PER_PERSON)

    @property
    def clicks_a_day(self) -> int:
        return self.clicks // self.days

    def parts(self, rows: int, kind: int) -> Iterator[tuple[int, int, np.random.Generator]]:
        """Days and their rows in parts that are no more than `ROWS`, each with its own chance."""
        for day in range(self.first_day, self.first_day + self.days):
            share = rows * (day - self.first_day + 1) // self.days - rows * (day - self.first_day) // self.days
            for part, start in enumerate(range(0, share, ROWS)):
                yield day, min(ROWS, share - start), np.random.default_rng((self.seed, kind, day, part))


def clicks(world: World) -> Iterator[pa.RecordBatch]:
    """Rows of `CLICKS`, each batch of one day of receipt, in order of receipt within it."""
    for day, rows, chance in world.parts(world.clicks, 0):
        yield _Clicks(world, day, rows, chance).batch()


def orders(world: World) -> Iterator[pa.RecordBatch]:
    """Rows of `ORDERS`: one for each order and, for every twentieth, its refund a moment later."""
    for number, (day, rows, chance) in enumerate(world.parts(world.orders, 1)):
        yield _orders(world, number, day, rows, chance)


def fill(lake: Lake, world: World) -> None:
    """Commit all of it to the lake."""
    load, actions = lake.load(), {}
    for table, rows in ((CLICKS, clicks(world)), (ORDERS, orders(world))):
        files = DayFiles(table, Storage(f"{lake.url}/{table.name}", lake.storage_options), f"made-{world.first_day}", 0)
        for batch in rows:
            files.write([batch])
        actions[table.name] = files.close()
    load.commit([Written(actions, world.clicks + world.orders)], {_JOURNAL: [world.first_day + 1]}, {})


class _Clicks:
    """The columns of a part of a day."""

    def __init__(self, world: World, day: int, rows: int, chance: np.random.Generator) -> None:
        self._chance = chance
        self._rows = rows
        self._received_ms = START_MS + day * DAY_MS + np.sort(chance.integers(0, DAY_MS, rows))
        self._source = np.arange(rows)
        self._person = np.searchsorted(world.people, chance.random(rows)).astype(np.int64)
        client = _client_of(self._person)
        self._ad = _ads_of(client, chance.integers(0, ADS // CLIENTS, rows))
        if day == world.first_day:
            self._flood()
        self._retry()
        self._late = chance.random(rows) < world.late_share

    def _retry(self) -> None:
        """One of a hundred is the one before it once more, moments later."""
        retries = np.flatnonzero(self._chance.random(self._rows) < 0.01)
        retries = retries[retries > 0]
        self._source[retries] = self._source[retries - 1]
        self._received_ms[retries] = self._received_ms[retries - 1] + 40
        self._received_ms.sort()
        self._person, self._ad = self._person[self._source], self._ad[self._source]

    def _flood(self) -> None:
        """Up to two thousand clicks on one ad within some minutes."""
        rows = slice(self._rows // 2, self._rows // 2 + min(2000, self._rows // 50))
        self._person[rows] = self._person[rows.start]
        self._ad[rows] = self._ad[rows.start]
        self._received_ms[rows] = self._received_ms[rows.start] + np.arange(rows.stop - rows.start) * 100
        self._received_ms.sort()

    def batch(self) -> pa.RecordBatch:
        """The rows."""
        return _batch(CLICKS, self._columns(), self._rows)

    def _columns(self) -> dict[str, pa.Array]:
        rows, person, ad, chance = self._rows, self._person, self._ad, self._chance
        kind = _mix(ad, 1) % 100
        is_google, is_meta = kind < 70, (kind >= 70) & (kind < 90)
        is_onsite = kind >= 95
        ahead_ms = chance.integers(20, 9000, rows)
        ahead_ms[self._late] += chance.integers(DAY_MS // 2, 3 * DAY_MS, int(self._late.sum()))
        event_ms = (self._received_ms - ahead_ms)[self._source]
        return {
            **_identifiers(person, _mix(self._source + self._received_ms[0], 2) % 100),
            "id": _ids(self._received_ms, chance),
            "received_at": _instants(self._received_ms),
            "event_time": _instants(event_ms),
            "flags": pa.ListArray.from_arrays(
                pa.repeat(pa.scalar(0, pa.int32()), rows + 1), pa.array([], pa.string())
            ).cast(TEXTS),
            "profile": pa.repeat(pa.scalar("observed"), rows),
            "revision": pa.repeat(pa.scalar(REVISION, pa.int8()), rows),
            "client_id": _named(_client_of(person), "5f3c0de1-{:04x}", CLIENTS),
            "seller_id": _named(_mix(ad, 3) % 3000, "{}", 3000, is_onsite, first=100_000),
            "asvt": _named(_mix(ad, 4) % 500, "v_{}", 500, is_onsite),
            "atag": _named(_mix(ad, 5) % 400, "tag-{}", 400, is_onsite),
            "uclid": _tokens(chance, rows, 32, ~is_onsite, self._source),
            "gclid": self._gclids(~is_google),
            "utm_source": _texts(["google", "facebook", "newsletter"]).take(
                pa.array(np.select([is_google, is_meta], [0, 1], 2), mask=is_onsite)
            ),
            "utm_campaign": _named(_mix(ad, 5) % 400, "{}", 400, ~is_google, first=10**16),
            "utm_content": _named(ad, "{}", ADS, ~is_google, first=10**16),
            "fb_campaign_id": _named(_mix(ad, 5) % 400, "{}", 400, ~is_meta, first=2 * 10**16),
            "fb_adset_id": _named(_mix(ad, 6) % 2000, "{}", 2000, ~is_meta, first=3 * 10**16),
            "fb_ad_id": _named(ad, "{}", ADS, ~is_meta, first=4 * 10**16),
            "device_brand": _texts(["Samsung", "Xiaomi"]).take(pa.array(_mix(person, 7) % 2)),
            "device_model": _named(_mix(person, 8) % 70, "SM-G{}B", 70, first=900),
            "other": _others(_mix(ad, 9) % 20 == 0),
            "shape": pa.repeat(pa.scalar("client_id=&device_id=&event_time="), rows),
            "address": _hex(_mix(person, 10) % 65_536, 16),
            "user_agent": _agents(person),
            "referer": pa.repeat(pa.scalar("https://www.google.com/"), rows),
            "journal": pa.repeat(pa.scalar(_JOURNAL), rows),
            "segment": pa.repeat(pa.scalar(1, pa.int64()), rows),
        }

    def _gclids(self, is_null: Truths) -> pa.Array:
        """One of two hundred is that of an earlier click: a link that was shared."""
        again = np.flatnonzero(self._chance.random(self._rows) < 0.005)
        source = self._source.copy()
        source[again] = self._source[again // 2]
        return _tokens(self._chance, self._rows, _GCLID, is_null, source)


def _orders(world: World, number: int, day: int, rows: int, chance: np.random.Generator) -> pa.RecordBatch:
    placed_ms = START_MS + day * DAY_MS + np.sort(chance.integers(0, DAY_MS - 1000, rows))
    person = np.searchsorted(world.people, chance.random(rows)).astype(np.int64)
    is_anybody = chance.random(rows) >= ORDERS_BY_CLICKS
    person[is_anybody] = chance.integers(0, world.population, np.count_nonzero(is_anybody))
    minor = chance.integers(100, 100_000, rows)
    refunded = np.flatnonzero(np.arange(rows) % 20 == 7)
    every = np.concatenate([np.arange(rows), refunded])
    is_refund = np.arange(len(every)) >= rows
    event_ms = placed_ms[every] + is_refund * 500
    identifiers = _identifiers(person[every], _mix(placed_ms[every], 11) % 100)
    order = world.first_day * 10**9 + number * ROWS + every
    columns: dict[str, pa.Array] = {
        "id": _ids(event_ms, chance),
        "received_at": _instants(event_ms + 300),
        "event_time": _instants(event_ms),
        "client_id": _named(_client_of(person[every]), "5f3c0de1-{:04x}", CLIENTS),
        "order_id": pa.array(order).cast(pa.string()),
        "cli_ubid": identifiers["cli_ubid"],
        "device_id": identifiers["device_id"],
        "seller_id": _named(_mix(person[every], 12) % 3000, "{}", 3000, first=100_000),
        "amount_minor": pa.array(minor[every]),
        "currency": pa.repeat(pa.scalar("EUR"), len(every)),
        "status": _texts(["completed", "refunded"]).take(pa.array(is_refund.astype(np.int64))),
        "refunded_minor": pa.array(np.where(is_refund, minor[every], 0)),
        "raw": pa.repeat(pa.scalar(b"{}", pa.binary()), len(every)),
        "journal": pa.repeat(pa.scalar(_JOURNAL), len(every)),
        "segment": pa.repeat(pa.scalar(1, pa.int64()), len(every)),
    }
    return _batch(ORDERS, columns, len(every))


def _batch(table: Table, columns: dict[str, pa.Array], rows: int) -> pa.RecordBatch:
    whole = [columns[field.name] if field.name in columns else pa.nulls(rows, field.type) for field in table.schema]
    return pa.RecordBatch.from_arrays(whole, schema=table.schema)


def _mix(numbers: Integers, salt: int) -> Integers:
    """Numbers that look random and are not, from 0 up."""
    mixed = numbers.astype(np.uint64) + np.uint64(salt * 0x9E3779B97F4A7C15 % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(1)).astype(np.int64)


def _client_of(person: Integers) -> Integers:
    """A few clients are large."""
    at = (_mix(person, 20) % 1_000_000) / 1e6
    return (at * at * CLIENTS).astype(np.int64)


def _ads_of(client: Integers, number: Integers) -> Integers:
    return client * (ADS // CLIENTS) + number


def _identifiers(person: Integers, chance: Integers) -> dict[str, pa.Array]:
    """What a click or an order of a person shows: `chance` is from 0 to 99."""
    kind = _mix(person, 21) % 10
    has_both = kind == 9
    shows_browser = (kind >= 8) & (~has_both | (chance < 60))
    shows_device = (kind < 8) | (has_both & (chance >= 30))
    browsers = _hex(_mix(person, 22), 26)
    shared = _mix(person * 101 + chance, 23) % 1000 == 0
    browsers = pc.if_else(pa.array(shared), pa.scalar("Any"), browsers)
    devices = _uuids(person)
    is_android = pa.array(shows_device & (kind == 1))
    return {
        "cli_ubid": pc.if_else(pa.array(shows_browser), browsers, pa.scalar(None, pa.string())),
        "device_id": pc.if_else(pa.array(shows_device), devices, pa.scalar(None, pa.string())),
        "gaid": pc.if_else(is_android, pc.utf8_upper(devices), pa.scalar(None, pa.string())),
    }


def _texts(values: list[str]) -> pa.StringArray:
    return pa.array(values, pa.string())


def _named(codes: Integers, form: str, count: int, is_null: Truths | None = None, *, first: int = 0) -> pa.Array:
    names = _texts([form.format(first + number) for number in range(count)])
    return names.take(pa.array(codes, mask=is_null))


def _instants(ms: Integers) -> pa.Array:
    return pa.array(ms * 1000).cast(INSTANT)


def _characters(characters: NDArray[np.uint8]) -> pa.StringArray:
    """A row of ASCII characters for each text."""
    rows, width = characters.shape
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(width)
    data = pa.py_buffer(np.ascontiguousarray(characters))
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), data)


def _digits(high: Integers, low: Integers) -> NDArray[np.uint8]:
    """32 hexadecimal digits of two numbers."""
    both = np.stack([high, low], axis=1).astype(">i8").view(np.uint8)
    return _HEX[np.stack([both >> 4, both & 15], axis=2).reshape(len(high), 32)]


def _hex(numbers: Integers, width: int) -> pa.StringArray:
    return _characters(_digits(_mix(numbers, 24), numbers)[:, 32 - width :])


def _uuids(person: Integers) -> pa.StringArray:
    digits = _digits(_mix(person, 25), _mix(person, 26))
    return _characters(np.insert(digits, [8, 12, 16, 20], ord("-"), axis=1))


def _ids(ms: Integers, chance: np.random.Generator) -> pa.StringArray:
    rising = (ms << 16) | (0x7000 | np.sort(chance.integers(0, 0x1000, len(ms))))
    return _characters(_digits(rising, chance.integers(-(2**63), -(2**62), len(ms))))


def _tokens(chance: np.random.Generator, rows: int, width: int, is_null: Truths, source: Integers) -> pa.Array:
    places = np.flatnonzero(~is_null[source])
    tokens = np.full(rows, -1)
    tokens[places] = np.arange(len(places))
    made = _characters(_BASE64[chance.integers(0, 64, (len(places), width), np.uint8)])
    chosen = tokens[source]
    return made.take(pa.array(chosen, mask=is_null | (chosen < 0)))


def _agents(person: Integers) -> pa.Array:
    form = "Mozilla/5.0 (Linux; Android {}; SM-G{}B) AppleWebKit/537.36 (KHTML) Chrome/{}.0.0.0 Mobile Safari/537.36"
    agents = [form.format(8 + n % 7, 900 + n % 70, 100 + n % 31) for n in range(2000)]
    agents[:20] = [f"Mozilla/5.0 (compatible; Googlebot/2.{n}; +http://www.google.com/bot.html)" for n in range(20)]
    return _texts(agents).take(pa.array(_mix(person, 27) % 2000))


def _others(has_any: Truths) -> pa.MapArray:
    offsets = np.concatenate([[0], np.cumsum(has_any)]).astype(np.int32)
    count = int(offsets[-1])
    keys, items = pa.repeat(pa.scalar("lang"), count), pa.repeat(pa.scalar("en"), count)
    return pa.MapArray.from_arrays(pa.array(offsets), keys, items, type=PARAMETERS, mask=pa.array(~has_any))

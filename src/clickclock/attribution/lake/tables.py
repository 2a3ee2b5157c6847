"""The lake's tables: their columns, and how each is laid out in a file.

Never reads or writes anything. Invariants: a column that was published keeps its name, type and meaning; what names one
click, order or person is random, so it gets no dictionary, and what repeats gets one.

>>> CLICKS.name, CLICKS.schema.field("client_id").type
('clicks', DataType(string))
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from clickclock.attribution.orders.amendment import KIND

DAY: Final = "received_day"
"""The partition: the day of receipt in UTC. Not by client: a thousand clients a day would be a thousand tiny files."""
_BY_DAY: Final = pa.field(DAY, pa.date32())

INSTANT: Final = pa.timestamp("us", tz="UTC")
TEXTS: Final = pa.list_(pa.field("element", pa.string()))
PARAMETERS: Final = pa.map_(pa.string(), pa.string())
_FAULT: Final = pa.struct([("field", pa.string()), ("code", pa.string()), ("message", pa.string())])
_ITEM: Final = pa.struct(
    [("sku_id", pa.string()), ("seller_id", pa.string()), ("price_minor", pa.int64()), ("quantity", pa.int64())]
)

CLICK_PARAMETERS: Final = (
    *("client_id", "cli_ubid", "device_id", "gaid", "idfa", "seller_id", "asvt", "atag", "uclid"),
    *("gclid", "gbraid", "wbraid", "gad_source"),
    *("fb_account_id", "fb_campaign_id", "fb_adset_id", "fb_ad_id"),
    *("source", "utm_source", "utm_medium", "utm_campaign", "utm_content", "utm_term"),
    *("device_brand", "device_model"),
)
"""Parameters with a column of their own; every other but `event_time` is in `other`."""

_HEAD: Final = [pa.field("id", pa.string(), nullable=False), pa.field("received_at", INSTANT, nullable=False)]
_ORIGIN: Final = [pa.field(name, pa.string()) for name in ("address", "user_agent", "referer", "journal")]
_TAIL: Final = [*_ORIGIN, pa.field("segment", pa.int64())]

# Written as deltas, long runs of one beginning (ids of one moment) cost nothing.
RANDOM: Final = "DELTA_LENGTH_BYTE_ARRAY"
RISING: Final = "DELTA_BYTE_ARRAY"
NUMBERS: Final = "DELTA_BINARY_PACKED"
PLAIN: Final = "PLAIN"
"""Columns that compression alone makes shortest and cheapest to write. Codes get none: nothing shortens them."""


RUN: Final = "run"
RETRACTION: Final = "is_retraction"
OF_REVISIONS: Final = pa.schema([(RUN, pa.int64()), (RETRACTION, pa.bool_())])
"""For a table with a key: the run that wrote a row, and whether the row only retracts earlier ones of its key."""


@dataclass(frozen=True, eq=False)
class Table:
    """One table: its rows, and how they are in files."""

    name: str
    rows: pa.Schema
    """What a row says, but for the partition's column, which is in no file."""
    encodings: Mapping[str, str]
    """Encodings of the columns that get no dictionary."""
    statistics: tuple[str, ...]
    """Columns whose least and greatest value each file tells, so that a reader can pass over it."""
    partition: pa.Field | None = _BY_DAY
    """The column by whose values the files are kept apart; None if they are not."""
    key: tuple[str, ...] = ()
    """For a table that later runs revise: the columns by which rows are retracted, beside the partition's."""
    bare: tuple[str, ...] = ()
    """Columns that are not compressed, beside codes: those of which every run reads all for the sake of a few rows."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of its files."""
        return pa.schema([*self.rows, *OF_REVISIONS]) if self.key else self.rows

    @property
    def stored(self) -> pa.Schema:
        """The schema of the table, as Delta has it."""
        return self.schema if self.partition is None else self.schema.append(self.partition)

    @property
    def whole(self) -> pa.Schema:
        """The schema that a reader sees: what counts, without what says so."""
        return self.rows if self.partition is None else self.rows.append(self.partition)

    @property
    def partition_by(self) -> list[str]:
        """The partition's column by name, as Delta takes it."""
        return [] if self.partition is None else [self.partition.name]

    def batch(self, rows: list[dict[str, Any]]) -> pa.RecordBatch:
        """Rows as columns; what a row does not name is null."""
        return pa.RecordBatch.from_pylist(rows, schema=self.schema)


def _table(name: str, columns: list[Any], encodings: dict[str, str], statistics: tuple[str, ...] = ()) -> Table:
    own = {"id": RISING, "received_at": NUMBERS}
    fields = [field if isinstance(field, pa.Field) else pa.field(*field) for field in columns]
    schema = pa.schema([*_HEAD, *fields, *_TAIL])
    return Table(name, schema, MappingProxyType(own | encodings), ("id", "received_at", *statistics))


CLICKS: Final = _table(
    "clicks",
    [
        ("event_time", INSTANT),
        ("event_time_sent", INSTANT),
        ("flags", TEXTS),
        ("profile", pa.string()),
        ("revision", pa.int8()),
        *((name, pa.string()) for name in CLICK_PARAMETERS),
        ("other", PARAMETERS),
        ("shape", pa.string()),
        ("query", pa.binary()),
    ],
    {
        "event_time": NUMBERS,
        "event_time_sent": NUMBERS,
        "query": RANDOM,
        **dict.fromkeys(("cli_ubid", "device_id", "gaid", "idfa", "uclid", "gclid", "gbraid", "wbraid"), RANDOM),
    },
    ("event_time", "client_id", "revision"),
)
"""`event_time` is the time that counts; `event_time_sent` is what the client said, where that is another. `revision` is
that of `absent` by which columns are null; null in rows of earlier releases."""

VIEWS: Final = replace(CLICKS, name="views")
"""Views of ads that nobody clicked: what they say of it is what clicks say."""

ORDERS: Final = _table(
    "orders",
    [
        ("event_time", INSTANT),
        ("event_time_sent", INSTANT),
        ("client_id", pa.string()),
        ("order_id", pa.string()),
        ("cli_ubid", pa.string()),
        ("device_id", pa.string()),
        ("seller_id", pa.string()),
        ("amount_minor", pa.int64()),
        ("currency", pa.string()),
        ("status", pa.string()),
        ("refunded_minor", pa.int64()),
        ("items", pa.list_(pa.field("element", _ITEM))),
        ("raw", pa.binary()),
        ("call", pa.binary()),
        ("customer_id", pa.string()),
        (KIND, pa.string()),
    ],
    {
        "event_time": NUMBERS,
        "event_time_sent": NUMBERS,
        **dict.fromkeys(("order_id", "cli_ubid", "device_id", "raw", "call", "customer_id"), RANDOM),
    },
    ("event_time", "client_id"),
)
"""One row for each amendment; `raw` is its JSON as it came, `call` the query of an order that came by /appsflyer."""

REJECTIONS: Final = _table(
    "rejections",
    [
        ("what", pa.string()),
        ("kind", pa.string()),
        ("client_id", pa.string()),
        ("faults", pa.list_(pa.field("element", _FAULT))),
        ("raw", pa.binary()),
        ("flags", TEXTS),
    ],
    {"raw": RANDOM},
    ("client_id",),
)
"""Refused requests, with every reason; `raw` is the request as it came, and `flags` are for a retrial."""

EVENTS: Final = _table(
    "events",
    [("name", pa.string()), ("client_id", pa.string()), ("parameters", PARAMETERS), ("raw", pa.binary())],
    {"raw": RANDOM},
    ("client_id",),
)
"""Calls of /appsflyer that are no order."""

TABLES: Final = (CLICKS, VIEWS, ORDERS, REJECTIONS, EVENTS)

"""Where table-sized work runs: DuckDB in this process, or Spark where one machine is outgrown. This is the door.

Never decides: what a click is worth is decided by the nouns, and by the kernel that the caller hands over. The work is
written once (`expressions.py`, `tying.py`, `revising.py`), as expressions that ibis compiles for each member; a member
runs the text and streams the rows. Invariants: every member gives the same rows, apart from codes that are its own, of
which equal ones are equal on both; no member holds more than a part of a large table in memory; none of them downloads
anything.

>>> WALK.names[:3]
['person', 'time_ms', 'is_order']
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import pyarrow as pa

from clickclock.attribution.clicks.identifier import CUSTOMER, NAMESPACES
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.engines.sql_text import INSTANT
from clickclock.attribution.lake import DAY, ORDER_MONTH, RETRACTION, RUN, UNCONVERTED, credits_table

if TYPE_CHECKING:
    import ibis

__all__ = [
    "CHANGED",
    "CLICKED",
    "CREDITED",
    "FLOODS",
    "IDENTIFIED",
    "INSTANT",
    "LAST",
    "LINKS",
    "ORDERS",
    "PATHS",
    "PERSONS",
    "RECEIVED",
    "SEEN",
    "SENT",
    "USES",
    "WALK",
    "Engine",
    "Kernel",
    "Source",
]

Source: TypeAlias = Sequence[str] | pa.Table
"""The rows of a table: Parquet files, as a Delta table's log names them, or Arrow."""

PERSONS: Final = pa.schema([("code", pa.int64()), ("person", pa.int64()), ("is_shared", pa.bool_())])
"""The `person` of each `code` that is not its own person. A shared code identifies nobody."""

ORDERS: Final = pa.schema(
    [("placed_ms", pa.int64()), *((name, pa.int64()) for name in ("cli_ubid", "device_id", CUSTOMER))]
)
"""What of an order is needed: when it was placed, and the codes of its identifiers."""

IDENTIFIED: Final = pa.schema([(name, pa.string()) for name in ("client_id", "cli_ubid", "device_id", CUSTOMER)])
"""What identifies whoever placed an order, as it came."""

LINKS: Final = pa.schema(
    [("one", pa.int64()), ("other", pa.int64()), ("is_visit", pa.bool_())]
    + [(name, pa.int64()) for name in ("first_ms", "last_ms", "ad")]
)
"""Two codes that were seen on one click. In a visit, `one` is the device and `other` its visitor (`cli_ubid`); else
`one` is the smaller code. They were first and last seen at these times, and on an ad with the code `ad`."""

USES: Final = pa.schema([("used", pa.int64()), ("first_id", pa.string())])
"""Click ids that several clicks have, and the click of each that used it first."""

FLOODS: Final = pa.schema([("flooding", pa.int64()), ("flooded", pa.int64()), ("at_ms", pa.int64())])
"""Networks, ads and times: there were too many clicks on the ad from the network in `FLOOD_MS` up to that time."""

RECEIVED: Final = pa.schema([("click_id", pa.int64()), (DAY, pa.date32())])
CLICKED: Final = pa.schema(
    [(name, pa.int64()) for name in ("click_id", "parameters", "time_ms", "received_us")] + [("id", pa.string())]
)
"""Columns about clicks by their click ids, at a first and at a second look."""

SEEN: Final = pa.schema([(name, pa.int64()) for name in (*NAMESPACES, "ad", "time_ms")])
"""Columns about a click that others concern."""

LAST: Final = pa.schema([(name, pa.int64()) for name in (*NAMESPACES, "received_us", "time_ms")])
"""Columns about clicks that came shortly before others."""

SENT: Final = pa.schema([("parameters", pa.int64()), ("received_us", pa.int64())])
"""What a click repeats, and when each was received."""

_COMPARED: Final = ("client_id", "order_id", ORDER_MONTH, "person", "reason", "place", "click_id", "channel")
CREDITED: Final = pa.schema(credits_table(()).stored.field(name) for name in (*_COMPARED, RUN, RETRACTION))
"""Columns of credits: they show whether an order changed, unless it was amended."""

PATHS: Final = UNCONVERTED.stored
"""Columns of paths without an order."""

CHANGED: Final = pa.schema([("person", pa.int64()), ("since_ms", pa.int64())])
"""Persons, and from when on their clicks and orders are wanted: what happened then or later, and what came then."""

WALK: Final = pa.schema(
    [
        ("person", pa.int64()),
        ("time_ms", pa.int64()),
        ("is_order", pa.bool_()),
        ("strength", pa.int8()),
        ("received_us", pa.int64()),
        ("id", pa.string()),
        ("number", pa.int64()),
        ("ad", pa.int64()),
        ("ad_key", pa.int64()),
        ("parameters", pa.int64()),
        ("is_spent", pa.bool_()),
        ("is_bot", pa.bool_()),
        ("is_flood", pa.bool_()),
    ]
)
"""Clicks and orders of persons, as a kernel gets them. `number` is the order's row; the columns from `id` on say
nothing of an order, and `received_us` is 0. `is_bot` is of prefetches as well; `is_flood` is of clicks on one ad from
one network."""


class Kernel(Protocol):
    """Work on the clicks and orders of whole persons. It must be picklable, because Spark sends it elsewhere."""

    @property
    def schema(self) -> pa.Schema:
        """Schema of the rows that it gives."""
        ...

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """`rows` are `WALK`, sorted by its columns from `person` to `number`, with all rows of each person in them."""
        ...


class Engine(Protocol):
    """Runs table-sized work, for several threads at once. An iterator that it gives is read to its end, or let go."""

    name: str

    def fingerprint(self, rules: Policies) -> str:
        """Equal for touches that can be used together: of this engine, its version and rules that say the same."""
        ...

    def touches(self, clicks: Sequence[str], rules: Policies) -> Iterator[pa.RecordBatch]:
        """Raw clicks in codes: a row of the lake's `touches` for each, while they are read.

        Those of one file come near each other, in no certain order. Only the columns that are needed are read.
        """
        ...

    def ads(self, clicks: Sequence[str], ids: pa.Array, rules: Policies) -> pa.Table:
        """The ads of those of the clicks that have these ids, as rows of the lake's `ads`, each once."""
        ...

    def codes(self, texts: pa.Table, rules: Policies) -> pa.Table:
        """The codes of the identifiers in rows of `IDENTIFIED`, row by row: the same columns, but for the client's."""
        ...

    def links(self, touches: Source) -> pa.Table:
        """`LINKS` of these clicks, each two codes once."""
        ...

    def uses(self, touches: Source) -> pa.Table:
        """`USES` of these clicks."""
        ...

    def floods(self, touches: Source, ads: pa.Table, rules: Policies) -> pa.Table:
        """`FLOODS` of these clicks, once each."""
        ...

    def received(self, touches: Source, click_ids: pa.Array) -> pa.Table:
        """`RECEIVED` of the clicks, in files of a day each, that have one of these click ids."""
        ...

    def clicked(self, touches: Source, click_ids: pa.Array) -> pa.Table:
        """`CLICKED` of the clicks that have one of these click ids. To read the ids of clicks costs most of all."""
        ...

    def concerned(self, touches: Source, click_ids: pa.Array, sent: pa.Table, floods: pa.Table) -> pa.Table:
        """`SEEN` of the clicks that others concern.

        They have one of the click ids, or the parameters of one of `sent` (`SENT`, at least one) that was received
        before, or are of `floods` (`FLOODS`). A person who is concerned twice may be given twice.
        """
        ...

    def last(self, touches: Source, since_ms: int) -> pa.Table:
        """`LAST` of the clicks that were made or received at this time or later."""
        ...

    def credited(self, rows: Source, order_ids: pa.Array) -> pa.Table:
        """`CREDITED` of the rows of orders with one of these ids, each once; retractions are rows as well."""
        ...

    def unconverted(self, rows: Source, persons: pa.Array) -> pa.Table:
        """`PATHS` of the rows of these persons, each once; retractions are rows as well."""
        ...

    def walk(
        self,
        touches: Source,
        uses: pa.Table,
        floods: pa.Table,
        orders: pa.Table,
        persons: pa.Table,
        kernel: Kernel,
        of: pa.Table | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """What the kernel makes of every person's clicks and orders, in any order of the persons.

        `orders` has the columns of `ORDERS`, `persons` those of `PERSONS`, each perhaps with others beside them. Clicks
        and orders without a person are left out: all their identifiers are shared, or there is none. `of` (`CHANGED`)
        leaves out other persons and what was earlier; it changes nothing about the rows that stay. `uses` and `floods`
        are those of the clicks of all.
        """
        ...

    def query(
        self, expression: "ibis.Table", tables: Mapping[str, Source], instant: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of an expression over unbound tables, each of which is named in `tables`.

        Where it has the number `INSTANT`, `instant` stands, so that it is written in SQL once for all instants.
        Of a list of files, the columns that are in the folders' names (`day=2026-11-20`) have the expression's types.
        """
        ...

    def close(self) -> None:
        """Let go of everything. Doing so twice is harmless."""
        ...

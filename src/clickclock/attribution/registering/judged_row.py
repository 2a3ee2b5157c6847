r"""A row that was judged: a click, an order or an identification of a file, and the entry that it becomes.

Never judges. Invariants: the same row of the same file always becomes the same entry; what is refused becomes one, too.

>>> from clickclock.attribution.importing.order_row import of_mapped
>>> OrderEntry(of_mapped({"order_id": "7"}), 5, None).line()[:2]
b'o\t'
"""

from hashlib import blake2b
from typing import Final, NamedTuple

from clickclock.attribution.clicks import click
from clickclock.attribution.clicks.entry import EntryKind, connection, encode
from clickclock.attribution.importing.historical import Historical, Unusable, id_of
from clickclock.attribution.importing.order_row import OrderRow
from clickclock.attribution.orders import amendment
from clickclock.attribution.registering.identification import NAME, Identification
from clickclock.attribution.registering.registration import ORDER, detail_of, line_of

_NOWHERE: Final = connection("", b"", b"")


class ClickRow(NamedTuple):
    """A click or a view of a file, judged."""

    found: Historical
    time_ms: int
    received_ms: int
    judged: click.Click | click.Rejection
    origin: bytes

    @property
    def is_dated(self) -> bool:
        """Whether somebody wrote down when it came."""
        return self.found.received_ms is not None

    @property
    def key(self) -> int | None:
        """Equal for those that are the same but for their number: the same click twice in a file is two clicks."""
        return int.from_bytes(blake2b(b"%d " % self.time_ms + self.found.query, digest_size=8).digest())

    def line(self) -> bytes:
        """Its entry, as that of the first click of its key."""
        entry_id = id_of(self.time_ms, self.found.query, 0)
        is_view = self.found.is_view
        return line_of(self.judged, entry_id, self.received_ms, self.origin, self.found.query, is_view=is_view)


class OrderEntry(NamedTuple):
    """An order of a file, judged; None is one that is plainly good."""

    row: OrderRow
    received_ms: int
    judged: amendment.Amendment | amendment.Rejection | None

    @property
    def is_dated(self) -> bool:
        """Whether somebody wrote down when it came."""
        return self.row.received_ms is not None

    @property
    def key(self) -> int | None:
        """None: the same said twice of an order is said once."""
        return None

    def line(self) -> bytes:
        """Its entry."""
        row = self.row
        if isinstance(self.judged, amendment.Rejection):
            return encode(
                EntryKind.REJECTION, row.id, self.received_ms, _NOWHERE, detail_of(self.judged, ORDER), row.raw
            )
        return encode(EntryKind.ORDER, row.id, self.received_ms, _NOWHERE, b"", row.raw)


class IdentificationRow(NamedTuple):
    """An identification of a file, judged."""

    row: OrderRow
    received_ms: int
    judged: Identification | amendment.Rejection

    @property
    def is_dated(self) -> bool:
        """Whether somebody wrote down when it came."""
        return self.row.received_ms is not None

    @property
    def key(self) -> int | None:
        """None: the same said twice is said once."""
        return None

    def line(self) -> bytes:
        """Its entry."""
        row, judged = self.row, self.judged
        if isinstance(judged, Identification):
            return encode(EntryKind.OTHER, row.id, self.received_ms, _NOWHERE, NAME.encode(), judged.query)
        detail = detail_of(judged, "identification")
        return encode(EntryKind.REJECTION, row.id, self.received_ms, _NOWHERE, detail, row.raw)


Brought = tuple[int, ClickRow | OrderEntry | IdentificationRow | Unusable | None]
"""A row's number in its file, and what it is; None is a row that is left out, or a log's line of another request."""

"""A receipt: what was erased, when and why, without what was erased.

Never does I/O, and never holds an identifier. Invariant: whoever knows the identifier and the data folder's secret can
tell that a receipt is of it; nobody else can.

>>> receipt = Receipt(id="01", kind=Kind.RETENTION, created_at="2026-11-20T10:00:00.000Z", rows={"clicks": 7})
>>> receipt.wire["rows"], receipt.total
({'clicks': 7}, 7)
"""

from enum import StrEnum
from typing import Any

import msgspec


class Kind(StrEnum):
    """Why rows went."""

    ERASURE = "erasure"
    """Somebody asked."""
    RETENTION = "retention"
    """They were too old."""


class Digest(msgspec.Struct, frozen=True):
    """What stands for an identifier."""

    kind: str
    digest: str


class Receipt(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of a request, or of a day's retention."""

    id: str
    kind: Kind
    created_at: str
    """RFC 3339, in UTC."""
    reason: str = ""
    client_id: str | None = None
    identifiers: tuple[Digest, ...] = ()
    """The one that was asked for comes first."""
    before: dict[str, str] = {}
    """Of retention, by table: the first day that stays."""
    rows: dict[str, int]
    """How many went, by place."""
    verified_files: int = 0
    verified_bytes: int = 0
    """The places that were read afterwards, without a trace of it."""

    @property
    def total(self) -> int:
        """Rows of all places."""
        return sum(self.rows.values())

    @property
    def wire(self) -> dict[str, Any]:
        """As JSON."""
        told: dict[str, Any] = msgspec.to_builtins(self)
        return told

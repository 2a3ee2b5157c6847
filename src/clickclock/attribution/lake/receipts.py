"""Receipts in the lake: what was erased, and when.

Never changes one. Invariant: a receipt is there once, however often it is given.

>>> give_receipt(lake, receipt, datetime(2026, 11, 20, tzinfo=UTC)) == receipt   # doctest: +SKIP
True
"""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from clickclock.attribution.erasing.receipt import Receipt
from clickclock.attribution.lake.derived import RECEIPTS
from clickclock.foundation.instant import ms_of

if TYPE_CHECKING:
    from clickclock.attribution.lake import Lake


def kept_receipts(lake: "Lake") -> Iterator[Receipt]:
    """All that are kept, in no certain order."""
    for batch in lake.scan(RECEIPTS.name, columns=["receipt"]):
        for text in batch["receipt"].to_pylist():
            yield msgspec.json.decode(text, type=Receipt)


def give_receipt(lake: "Lake", receipt: Receipt, now: datetime) -> Receipt:
    """Keep a receipt, and return the one that is kept: of two with one id, the first."""
    for kept in kept_receipts(lake):
        if kept.id == receipt.id:
            return kept
    row = {
        "id": receipt.id,
        "created_at": now,
        "kind": str(receipt.kind),
        "client_id": receipt.client_id,
        "receipt": msgspec.json.encode(receipt).decode(),
    }
    lake.append(RECEIPTS, pa.Table.from_pylist([row], RECEIPTS.whole), ms_of(now))
    return receipt

"""Receipts in the lake: what was erased, and when.

Never changes one. Invariant: a receipt is there once, however often it is given.

>>> give_receipt(lake, receipt, datetime(2026, 11, 20, tzinfo=UTC)) == receipt   # doctest: +SKIP
True
"""

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from clickclock.attribution.erasing.receipt import Receipt
from clickclock.attribution.lake.derived import RECEIPTS
from clickclock.foundation.instant import ms_of

if TYPE_CHECKING:
    from clickclock.attribution.lake import Lake


def give_receipt(lake: "Lake", receipt: Receipt, now: datetime) -> Receipt:
    """Keep a receipt, and return the one that is kept: of two with one id, the first."""
    for batch in lake.scan(RECEIPTS.name, columns=["id", "receipt"]):
        for row in batch.to_pylist():
            if row["id"] == receipt.id:
                return msgspec.json.decode(row["receipt"], type=Receipt)
    row = {
        "id": receipt.id,
        "created_at": now,
        "kind": str(receipt.kind),
        "client_id": receipt.client_id,
        "receipt": msgspec.json.encode(receipt).decode(),
    }
    lake.append(RECEIPTS, pa.Table.from_pylist([row], RECEIPTS.whole), ms_of(now))
    return receipt

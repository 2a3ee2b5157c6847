"""Keys: which rows are about one of some orders.

Never takes two orders for one. Invariant: an order is its client and its order id, together.

>>> keys = Keys(pa.table({"client_id": ["a", "b"], "order_id": ["1", "2"]}))
>>> keys.among(pa.table({"client_id": ["a", "a", "b"], "order_id": ["1", "2", "2"]})).tolist()
[True, False, True]
"""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

KEY: Final = ("client_id", "order_id")


class Keys:
    """Some orders, by rows about them."""

    def __init__(self, rows: pa.Table) -> None:
        self.order_ids: pa.Array = rows["order_id"].combine_chunks().unique()
        self._keys = _joined(rows).unique()

    def __len__(self) -> int:
        return len(self._keys)

    def among(self, rows: pa.Table) -> NDArray[np.bool_]:
        """Which rows are about one of them."""
        is_among = _is_in(rows["order_id"], self.order_ids)
        maybe = np.flatnonzero(is_among)
        # Most rows are out by their order id alone, without a text being made of both.
        is_among[maybe] = _is_in(_joined(rows.select(KEY).take(pa.array(maybe))), self._keys)
        return is_among


def _joined(rows: pa.Table) -> pa.Array:
    client_id = rows["client_id"].cast(pa.string())  # which may be a dictionary
    return pc.binary_join_element_wise(client_id, rows["order_id"], "\x1f").combine_chunks()


def _is_in(values: pa.Array | pa.ChunkedArray, known: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(pc.is_in(values, known).cast(pa.int8())).view(np.bool_).copy()

"""Which orders differ between two versions of credits: a sum over all that is said of each order, to be compared.

Never says what differs: whoever wants to know reads the rows. Invariant: orders whose rows are equal have equal sums,
in whatever order the rows come; those whose rows differ have not, but for a chance of one in 2**64.

>>> before, after = Sums(), Sums()
>>> before.add(pa.table({"client_id": ["c"], "order_id": ["7"], "place": [1]}))
>>> after.add(pa.table({"client_id": ["c"], "order_id": ["7"], "place": [2]}))
>>> different(before, after)
1
"""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clickclock.attribution.crediting.columns.rolling import mixed

Words = NDArray[np.uint64]
_KEY: Final = ("client_id", "order_id")
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_NULL: Final = 0x5851F42D4C957F2D
"""Stands for null, and so for hardly any value."""
_ID_BYTES: Final = 32
"""Bytes of a click's id."""
_SEED: Final = np.int64(hash("clicks"))
"""Another one in each process, so that nobody can choose ids whose words are equal."""


class Sums:
    """The sums of orders by their keys; both are numbers that mean nothing in another process."""

    def __init__(self) -> None:
        self._keys: list[Words] = []
        self._sums: list[Words] = []

    def add(self, rows: pa.Table) -> None:
        """Add rows; an order's may come in several parts."""
        if rows.num_rows:
            keys, sums = _summed(keys_of(rows), mixed_rows(rows, tuple(sorted(rows.column_names))))
            self._keys.append(keys)
            self._sums.append(sums)

    @property
    def by_order(self) -> tuple[Words, Words]:
        """The orders, sorted, and the sum of each."""
        none = np.empty(0, np.uint64)
        return _summed(np.concatenate([none, *self._keys]), np.concatenate([none, *self._sums]))


def differing(before: Sums, after: Sums) -> Words:
    """The keys of orders that are in one only, or have different sums; sorted."""
    (keys_then, sums_then), (keys_now, sums_now) = before.by_order, after.by_order
    _, then, now = np.intersect1d(keys_then, keys_now, assume_unique=True, return_indices=True)
    equal = keys_then[then[sums_then[then] == sums_now[now]]]
    return np.setdiff1d(np.union1d(keys_then, keys_now), equal, assume_unique=True)


def different(before: Sums, after: Sums) -> int:
    """How many orders are in one only, or have different sums."""
    return len(differing(before, after))


def keys_of(rows: pa.Table) -> Words:
    """The key of each row's order."""
    return mixed_rows(rows, _KEY)


def _summed(keys: Words, words: Words) -> tuple[Words, Words]:
    by_key = np.argsort(keys)
    keys = keys[by_key]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else np.empty(0, np.intp)
    return keys[starts], np.add.reduceat(words[by_key], starts) if len(starts) else words


def mixed_rows(rows: pa.Table, names: tuple[str, ...]) -> Words:
    """A word for each row, of all its values."""
    words: Words = np.zeros(rows.num_rows, np.uint64)
    for name in names:
        words *= _FACTOR
        words += _words(rows[name])
    return mixed(words.view(np.int64))


def _words(column: pa.ChunkedArray) -> Words:
    """A word for each value."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_dictionary(kind):
        found = _words_of_texts(column.combine_chunks())
    else:
        whole = column.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date(kind) else column
        whole = whole.cast(pa.int64()) if not pa.types.is_floating(kind) else whole
        found = pc.fill_null(whole, 0).to_numpy().view(np.uint64)
    if not column.null_count:
        return found
    is_null = np.asarray(pc.is_null(column).cast(pa.int8())).view(np.bool_)
    result: Words = np.where(is_null, np.uint64(_NULL), found)
    return result


def _words_of_texts(texts: pa.StringArray | pa.DictionaryArray) -> Words:
    """A word for each text; for null, any. Ids are many, and hardly two are equal; of other texts, few differ."""
    if pa.types.is_dictionary(texts.type):
        of_each: Words = np.append(_words_of_texts(texts.dictionary), np.uint64(0))
        of_row: Words = of_each[pc.fill_null(texts.indices, -1).to_numpy()]
        return of_row
    lengths = pc.fill_null(pc.binary_length(texts), 0).to_numpy()
    is_id = lengths == _ID_BYTES
    if is_id.all():
        return _words_of_ids(texts)
    words = np.empty(len(texts), np.uint64)
    if is_id.any():
        words[is_id] = _words_of_ids(texts.filter(pa.array(is_id)))
        texts = texts.filter(pa.array(~is_id))
    encoded = texts.dictionary_encode()
    of_text = np.array([hash(text) for text in encoded.dictionary.to_pylist()] or [0], np.int64)
    words[~is_id] = of_text[pc.fill_null(encoded.indices, 0).to_numpy()].view(np.uint64)
    return words


def _words_of_ids(ids: pa.StringArray) -> Words:
    """A word for each id, read as numbers."""
    if not len(ids):
        return np.empty(0, np.uint64)
    _, offsets, content = ids.buffers()
    first = int(np.frombuffer(offsets, np.int32)[ids.offset])
    parts = np.ndarray((len(ids), _ID_BYTES // 8), np.int64, content, first)
    return mixed(parts[:, 0] ^ _SEED, *parts.T[1:])

"""Slices of one long run of bytes: read as numbers, decoded where they are percent-encoded, made into Arrow texts.

Never copies a byte that it need not. Invariants: `starts[i]` and `ends[i]` bound the i-th slice; there is room behind
the bytes, so that `BEGINNING_BYTES` may be read anywhere.

>>> runs = Runs(b"a%20b")
>>> runs.pieces(runs.decoded(np.array([0]), np.array([5]))).to_pylist()
['a b']
"""

from collections.abc import Collection
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clickclock.attribution.clicks.shape import FORM, PERCENT, UNESCAPED

Integers = NDArray[np.int64]
Offsets = NDArray[np.int32]
Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
Truths = NDArray[np.bool_]

BEGINNING_BYTES: Final = 16
"""Bytes that are compared at once."""
_MASKS: Final = np.tri(BEGINNING_BYTES + 1, BEGINNING_BYTES, -1, np.uint8) * np.uint8(255)
"""For each length, the bytes within it."""

_PERCENT, _PLUS, _SPACE, _TWO, _SEVEN = np.frombuffer(b"%+ 27", np.uint8)
_NO_DIGIT: Final = 255
_DIGIT_OF: Final = np.full(256, _NO_DIGIT, np.uint8)
_DIGIT_OF[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
_DIGIT_OF[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)
_IS_LOWER: Final = np.zeros(256, np.bool_)
_IS_LOWER[np.frombuffer(b"abcdef", np.uint8)] = True
_IS_UNESCAPED: Final = {
    way: np.isin(np.arange(256), np.frombuffer(bytes(sorted(plain)), np.uint8)) for way, plain in UNESCAPED.items()
}


def pieces(content: pa.Buffer, offsets: Offsets, kind: pa.DataType) -> pa.Array:
    """The bytes between each two of these offsets, without a copy; `kind` is `string` or `binary`."""
    return pa.Array.from_buffers(kind, len(offsets) - 1, [None, pa.py_buffer(offsets), content])


def columns_of(names: Collection[str], values: pa.Array) -> dict[str, pa.Array]:
    """One array as columns of one length, which stand in it one behind the other."""
    rows = len(values) // len(names)
    return {name: values.slice(at * rows, rows) for at, name in enumerate(names)}


def where_any(content: Bytes, one: np.uint8, *others: np.uint8) -> Integers:
    """Where one of several bytes stands."""
    is_any = content == one
    for other in others:
        is_any |= content == other
    return np.flatnonzero(is_any)


class Runs:
    """Bytes, and further ones that were decoded from them, behind each other."""

    def __init__(self, content: bytes | Bytes) -> None:
        self.size = len(content)
        # Decoded bytes have room behind them, for they are never longer.
        self._bytes = np.empty(2 * self.size + BEGINNING_BYTES, np.uint8)
        self._bytes[: self.size] = np.frombuffer(content, np.uint8)
        self.content = self._bytes[: self.size]
        self._beginnings = np.ndarray((self.size + 1,), f"V{BEGINNING_BYTES}", self._bytes, strides=(1,))

    def are_like_first(self, starts: Integers, lengths: Integers) -> Truths:
        """Of each row of slices, whether they begin as those of the first row; the lengths are for each column."""
        found = self._beginnings[starts].view(np.uint64)
        found ^= found[0].copy()
        found &= _MASKS.take(lengths, axis=0, mode="clip").view(np.uint64).ravel()
        answer: Truths = np.bitwise_or.reduce(found, axis=1) == 0
        return answer

    def are_escapes(self, places: Integers, ends: Integers) -> Truths:
        """Whether at each place is a `+`, or a `%` that a plain query may have: with two digits, of a visible byte."""
        tail = np.minimum(places + 2, self.size - 1)
        high, low = self.content[tail - 1], self.content[tail]
        is_digits = (places + 2 < ends) & (high >= _TWO) & (high <= _SEVEN) & (_DIGIT_OF[low] != _NO_DIGIT)
        answer: Truths = is_digits | (self.content[places] == _PLUS)
        return answer

    def pieces(self, offsets: Offsets) -> pa.StringArray:
        """The texts between each two of these offsets; those that are used must be UTF-8."""
        return pieces(pa.py_buffer(self._bytes), offsets, pa.string())

    def _gathered(self, starts: Integers, ends: Integers) -> tuple[Bytes, Integers]:
        """The slices one behind the other, and the offsets between them."""
        lengths = ends - starts
        offsets = np.zeros(len(starts) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return self.content[places], offsets

    def decoded(self, starts: Integers, ends: Integers) -> Offsets:
        """The same slices percent-decoded, `+` being a space, one behind the other: the offsets between them.

        Every `%` must have its digits.
        """
        content, offsets = self._gathered(starts, ends)
        escapes = np.flatnonzero(content == _PERCENT)
        fresh = np.where(content == _PLUS, _SPACE, content)
        fresh[escapes] = _DIGIT_OF[content[escapes + 1]] * 16 + _DIGIT_OF[content[escapes + 2]]
        is_kept = np.ones(len(content), np.bool_)
        is_kept[escapes + 1] = is_kept[escapes + 2] = False
        shorter = (self.size + offsets - 2 * np.searchsorted(escapes, offsets)).astype(np.int32)
        self._bytes[self.size : shorter[-1]] = fresh[is_kept]
        return shorter

    def ways(self, starts: Integers, ends: Integers) -> tuple[Truths, Truths]:
        """Of each slice, whether `PERCENT` would write its value so, and whether `FORM` would."""
        content, offsets = self._gathered(starts, ends)
        escapes = np.flatnonzero(content == _PERCENT)
        high, low = content[escapes + 1], content[escapes + 2]
        value = _DIGIT_OF[high] * 16 + _DIGIT_OF[low]
        is_lower = _IS_LOWER[high] | _IS_LOWER[low]
        is_raw = np.ones(len(content), np.bool_)
        for shift in range(3):
            is_raw[escapes + shift] = False
        raw = np.flatnonzero(is_raw)
        is_plus = content[raw] == _PLUS

        def holds(wrong_escape: Truths, wrong_raw: Truths) -> Truths:
            wrong = np.concatenate([escapes[wrong_escape], raw[wrong_raw]])
            good = np.ones(len(starts), np.bool_)
            good[np.searchsorted(offsets, wrong, side="right") - 1] = False
            return good

        percent, form = _IS_UNESCAPED[PERCENT], _IS_UNESCAPED[FORM]
        return (
            holds(is_lower | percent[value], ~percent[content[raw]]),
            holds(is_lower | form[value] | (value == _SPACE), ~(form[content[raw]] | is_plus)),
        )

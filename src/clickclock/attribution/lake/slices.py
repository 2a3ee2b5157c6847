"""Slices of one long run of bytes: read as numbers, decoded where they are percent-encoded, made into Arrow texts.

Never copies a byte that it need not. Invariants: `starts[i]` and `ends[i]` bound the i-th slice; behind the bytes there
are `PAD_BYTES` zeros, so that eight may be read anywhere.

>>> runs = Runs(b"a%20b")
>>> runs.pieces(runs.decoded(np.array([0]), np.array([5]))).to_pylist()
['a b']
"""

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clickclock.attribution.shape import FORM, PERCENT, UNESCAPED

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
Truths = NDArray[np.bool_]

PAD_BYTES: Final = 32
WORD_BYTES: Final = 8
_MASKS: Final = np.array([(1 << (8 * count)) - 1 for count in range(WORD_BYTES + 1)], np.uint64)

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


def pieces(content: pa.Buffer, offsets: Integers, kind: pa.DataType) -> pa.Array:
    """What is between each two of these offsets, without a copy; `kind` is `string` or `binary`."""
    return pa.Array.from_buffers(kind, len(offsets) - 1, [None, pa.py_buffer(offsets.astype(np.int32)), content])


def where_either(content: Bytes, one: np.uint8, other: np.uint8) -> Integers:
    """Where one of two bytes stands."""
    is_either = content == one
    is_either |= content == other
    return np.flatnonzero(is_either)


class Runs:
    """Bytes, and further ones that were decoded from them, behind each other."""

    def __init__(self, content: bytes | pa.Buffer | Bytes) -> None:
        self._take(np.frombuffer(content, np.uint8) if not isinstance(content, np.ndarray) else content)

    def _take(self, content: Bytes) -> None:
        self.size = len(content)
        padded = np.concatenate([content, np.zeros(PAD_BYTES, np.uint8)])
        self.content = padded[: self.size]
        self._words: Words = np.ndarray((len(padded) - WORD_BYTES + 1,), "<u8", padded, strides=(1,))
        self._buffer = pa.py_buffer(padded)

    def word(self, starts: Integers, lengths: Integers) -> Words:
        """The first bytes of each slice, at most eight, as a number; bytes behind its length are zero."""
        kept: Words = _MASKS.take(lengths, mode="clip")
        kept &= self._words[starts]
        return kept

    def are_escapes(self, places: Integers, ends: Integers) -> Truths:
        """Whether at each place is a `+`, or a `%` that a plain query may have: with two digits, of a visible byte."""
        tail = np.minimum(places + 2, self.size - 1)
        high, low = self.content[tail - 1], self.content[tail]
        is_digits = (places + 2 < ends) & (high >= _TWO) & (high <= _SEVEN) & (_DIGIT_OF[low] != _NO_DIGIT)
        answer: Truths = is_digits | (self.content[places] == _PLUS)
        return answer

    def pieces(self, offsets: Integers) -> pa.StringArray:
        """What is between each two of these offsets, as texts; those that are used must be UTF-8."""
        return pieces(self._buffer, offsets, pa.string())

    def _gathered(self, starts: Integers, ends: Integers) -> tuple[Bytes, Integers]:
        """The slices one behind the other, and the offsets between them."""
        lengths = ends - starts
        offsets = np.zeros(len(starts) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return self.content[places], offsets

    def decoded(self, starts: Integers, ends: Integers) -> Integers:
        """The same slices percent-decoded, `+` being a space, one behind the other: the offsets between them.

        Every `%` must have its digits.
        """
        content, offsets = self._gathered(starts, ends)
        escapes = np.flatnonzero(content == _PERCENT)
        fresh = np.where(content == _PLUS, _SPACE, content)
        fresh[escapes] = _DIGIT_OF[content[escapes + 1]] * 16 + _DIGIT_OF[content[escapes + 2]]
        is_kept = np.ones(len(content), np.bool_)
        is_kept[escapes + 1] = is_kept[escapes + 2] = False
        shorter = self.size + offsets - 2 * np.searchsorted(escapes, offsets)
        self._take(np.concatenate([self.content, fresh[is_kept]]))
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

"""Slices of one long run of bytes: read as numbers, decoded where they are percent-encoded, made into Arrow texts.

Never copies a byte that it need not. Invariants: `starts[i]` and `ends[i]` bound the i-th slice, and a slice that ends
before it starts is null; behind the bytes there are `PAD_BYTES` zeros, so that eight may be read anywhere.

>>> runs = Runs(b"a%20b")
>>> runs.texts(*runs.decoded(np.array([0]), np.array([5]))).to_pylist()
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
_INLINE_BYTES: Final = 12
"""Arrow keeps a shorter text in its view; of a longer one, the first four bytes and where it is."""
_MASKS: Final = np.array([(1 << (8 * count)) - 1 for count in range(WORD_BYTES + 1)], np.uint64)
_HALF: Final = np.uint64(32)

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
        kept: Words = _MASKS[np.clip(lengths, 0, WORD_BYTES)]
        return self._words[starts] & kept

    def are_escapes(self, places: Integers, ends: Integers) -> Truths:
        """Whether at each place is a `+`, or a `%` that a plain query may have: with two digits, of a visible byte."""
        tail = np.minimum(places + 2, self.size - 1)
        high, low = self.content[tail - 1], self.content[tail]
        is_digits = (places + 2 < ends) & (high >= _TWO) & (high <= _SEVEN) & (_DIGIT_OF[low] != _NO_DIGIT)
        answer: Truths = is_digits | (self.content[places] == _PLUS)
        return answer

    def texts(self, starts: Integers, ends: Integers) -> pa.StringArray:
        """The slices as texts; they must be UTF-8."""
        lengths = ends - starts
        validity = None
        if (is_null := lengths < 0).any():
            validity = pa.py_buffer(np.packbits(~is_null, bitorder="little"))
            lengths[is_null] = 0
        views = np.empty((len(starts), 2), np.uint64)
        first = self.word(starts, lengths)
        views[:, 0] = lengths.astype(np.uint64) | (first << _HALF)
        views[:, 1] = starts.astype(np.uint64) << _HALF
        short = np.flatnonzero(lengths <= _INLINE_BYTES)
        if len(short):
            rest = self.word(starts[short] + WORD_BYTES, lengths[short] - WORD_BYTES)
            views[short, 1] = (first[short] >> _HALF) | (rest << _HALF)
        array = pa.Array.from_buffers(pa.string_view(), len(starts), [validity, pa.py_buffer(views), self._buffer])
        return array.cast(pa.string())

    def _gathered(self, starts: Integers, ends: Integers) -> tuple[Bytes, Integers]:
        """The slices one behind the other, and the offsets between them."""
        lengths = ends - starts
        offsets = np.zeros(len(starts) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return self.content[places], offsets

    def decoded(self, starts: Integers, ends: Integers) -> tuple[Integers, Integers]:
        """The same slices percent-decoded, `+` being a space: where they are now. Every `%` must have its digits."""
        content, offsets = self._gathered(starts, ends)
        escapes = np.flatnonzero(content == _PERCENT)
        fresh = np.where(content == _PLUS, _SPACE, content)
        fresh[escapes] = _DIGIT_OF[content[escapes + 1]] * 16 + _DIGIT_OF[content[escapes + 2]]
        is_kept = np.ones(len(content), np.bool_)
        is_kept[escapes + 1] = is_kept[escapes + 2] = False
        shorter = self.size + offsets - 2 * np.searchsorted(escapes, offsets)
        self._take(np.concatenate([self.content, fresh[is_kept]]))
        return shorter[:-1], shorter[1:]

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

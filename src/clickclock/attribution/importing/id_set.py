"""Sets of ids, and what repeats, for millions of rows at a few bytes each.

Never does I/O. Invariants: an `IdSet` is exact: no id is taken for another; of what repeats, the first has number 0,
the next one 1, and so on, in the order of asking.

>>> ids = IdSet()
>>> ids.add(["0" * 32])
>>> ids.among(["0" * 32, "1" * 32])
{'00000000000000000000000000000000'}
"""

from array import array
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

_ID_BYTES: Final = 16
_Ids: TypeAlias = NDArray[np.bytes_]


class IdSet:
    """Ids of 32 hexadecimal digits, 16 bytes each."""

    def __init__(self) -> None:
        self._runs: list[_Ids] = []
        """Sorted, each less than half as long as the one before: a few of them, and adding costs little."""

    def add(self, ids: Sequence[str]) -> None:
        """Take in ids."""
        if not ids:
            return
        run = np.sort(_packed(ids))
        while self._runs and 2 * len(run) > len(self._runs[-1]):
            run = np.sort(np.concatenate([self._runs.pop(), run]), kind="stable")
        self._runs.append(run)

    def among(self, ids: Sequence[str]) -> set[str]:
        """Those of these ids that are in the set."""
        asked = _packed(ids)
        is_in = np.zeros(len(ids), np.bool_)
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, asked), len(run) - 1)
            is_in |= run[places] == asked
        return {ids[place] for place in np.flatnonzero(is_in).tolist()}


def _packed(ids: Sequence[str]) -> _Ids:
    return np.frombuffer(bytes.fromhex("".join(ids)), f"S{_ID_BYTES}")


class Repeats:
    """How often each key of a long sequence came before, where nearly none comes twice.

    First all keys are noted, 8 bytes each; then they are asked for, in the same order, and memory holds those that
    repeat. Keys are hashes of 64 bits: two that collide only count together, the same way each time.
    """

    def __init__(self) -> None:
        self._noted = array("Q")
        self._unique = 0
        self._counts: dict[int, int] = {}

    def note(self, key: int | None) -> None:
        """One key, from 0 to 2**64 - 1; None is one that never repeats."""
        if key is None:
            self._unique += 1
        else:
            self._noted.append(key)

    def close(self) -> None:
        """All are noted."""
        keys = np.sort(np.frombuffer(self._noted, np.uint64))
        again = keys[1:][keys[1:] == keys[:-1]]
        self._counts = dict.fromkeys(again.tolist(), 0)

    def numbers(self) -> Iterator[int]:
        """For each that was noted, in the same order, how often its key came before. Keys and None are not mixed."""
        for key in self._noted:
            yield self.nth(key)
        yield from repeat(0, self._unique)

    def nth(self, key: int) -> int:
        """How often this key was asked for before."""
        count = self._counts.get(key)
        if count is None:
            return 0
        self._counts[key] = count + 1
        return count

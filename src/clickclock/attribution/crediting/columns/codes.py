"""Codes of identifiers, millions of them looked up among sorted ones.

Never looks at what a code stands for. Invariant: what is found is what a binary search alone would find.

Codes are as good as random. So a table by some of their bits says at once where a code must be, if it is there: to
search for each takes four times as long.

>>> places(np.array([2, 5, 9]), np.array([5, 4, 9, 10])).tolist()
[1, -1, 2, -1]
>>> among(np.array([2, 5, 9]), np.array([5, 4])).tolist()
[True, False]
"""

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

SLOTS_PER_CODE: Final = 8
"""At least: so few codes have a slot that another one has, too."""
SLOTS_MAX: Final = 2**24
"""Of four bytes each; with ever more codes, more and more are searched for."""

Codes: TypeAlias = NDArray[np.int64]


def places(known: Codes, asked: Codes) -> NDArray[np.intp]:
    """The place of each code among sorted ones, which are all different; -1 if it is not there."""
    found = np.full(len(asked), -1, np.intp)
    if len(known):
        mask = min(1 << (len(known) * SLOTS_PER_CODE).bit_length(), SLOTS_MAX) - 1
        slots = np.full(mask + 1, -1, np.int32)
        slots[known & mask] = np.arange(len(known))
        at = slots[asked & mask]
        maybe = np.flatnonzero(at >= 0)
        at, wanted = at[maybe], asked[maybe]
        others = np.flatnonzero(known[at] != wanted)
        at[others] = np.minimum(np.searchsorted(known, wanted[others]), len(known) - 1)
        found[maybe] = np.where(known[at] == wanted, at, -1)
    return found


def distinct(codes: Codes) -> Codes:
    """The codes sorted, each once: what `np.unique` says, which has a table of hashes and takes ten times as long.

    >>> distinct(np.array([5, 2, 5])).tolist()
    [2, 5]
    """
    ordered = np.sort(codes)
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def among(known: Codes, asked: Codes) -> NDArray[np.bool_]:
    """Whether each code is one of some sorted ones."""
    found: NDArray[np.bool_] = places(known, asked) >= 0
    return found

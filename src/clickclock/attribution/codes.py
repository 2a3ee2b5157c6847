"""Codes of identifiers, millions of them looked up among sorted ones.

Never looks at what a code stands for. Invariant: what is found is what a binary search alone would find.

Codes are as good as random, and most of those that are asked for are not there. So a table of marks by some of their
bits, which stays in the cache, leaves out nearly all of these before any search.

>>> places(np.array([2, 5, 9]), np.array([5, 4, 9, 10])).tolist()
[1, -1, 2, -1]
>>> among(np.array([2, 5, 9]), np.array([5, 4])).tolist()
[True, False]
"""

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

MARKS_PER_CODE: Final = 8
"""At least: so few of those that are not there are marked by another."""
MARKS_MAX: Final = 2**24
"""Megabytes; with ever more codes, more and more are searched for."""

Codes: TypeAlias = NDArray[np.int64]


def places(known: Codes, asked: Codes) -> NDArray[np.intp]:
    """The place of each code among sorted ones, which are all different; -1 if it is not there."""
    found = np.full(len(asked), -1, np.intp)
    if len(known):
        mask = min(1 << (len(known) * MARKS_PER_CODE).bit_length(), MARKS_MAX) - 1
        is_marked = np.zeros(mask + 1, np.bool_)
        is_marked[known & mask] = True
        maybe = np.flatnonzero(is_marked[asked & mask])
        at = np.minimum(np.searchsorted(known, asked[maybe]), len(known) - 1)
        found[maybe] = np.where(known[at] == asked[maybe], at, -1)
    return found


def among(known: Codes, asked: Codes) -> NDArray[np.bool_]:
    """Whether each code is one of some sorted ones."""
    found: NDArray[np.bool_] = places(known, asked) >= 0
    return found

"""Unconverted paths: what people clicked in a month without an order of theirs, for models that count null paths.

Never looks at a person's other months. Invariants: a person has at most one path a month; paths that are equal have one
number, and a number stands for one path.

>>> person, month, channel = np.array([1, 1, 1, 2, 3]), np.array([5, 5, 6, 5, 5]), np.array([0, 1, 0, 0, 0])
>>> found = paths_without_order(person, month, channel, np.array([2]), np.array([5]))
>>> found.first.tolist(), found.path.tolist(), found.offsets.tolist(), found.steps.tolist()
([0, 2, 4], [1, 0, 0], [0, 1, 3], [0, 0, 1])
"""

from itertools import count
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from clickclock.attribution.crediting.columns.rolling import Places, changes, mixed, ranges

PATH_SEPARATOR: Final = " > "
"""Between the channels of a path that is kept as text."""
MONTHS_MAX: Final = 1 << 20
"""More than any calendar has: a person and a month make one number."""

Numbers: TypeAlias = NDArray[np.integer[Any]]


class Paths(msgspec.Struct, frozen=True, eq=False):
    """The paths, one for each person and month."""

    first: Places
    """The path's first touchpoint."""
    path: Places
    """Index of the distinct path."""
    offsets: Places
    """Where each of these begins in `steps`, and at last where they all end."""
    steps: Numbers
    """Their channels."""


def paths_without_order(
    person: Numbers, month: Numbers, channel: Numbers, order_person: Numbers, order_month: Numbers
) -> Paths:
    """The paths of touchpoints, sorted by person and month, without those of a person and month that has an order."""
    first = np.flatnonzero(changes(person, month))
    length = np.diff(first, append=len(person))
    known = person[first].astype(np.int64) * MONTHS_MAX + month[first]
    ordered = order_person.astype(np.int64) * MONTHS_MAX + order_month
    left = ~np.isin(known, ordered)
    first, length = first[left], length[left]
    path, distinct = _numbered(channel[ranges(first, length)], length)
    first_of_all, length = first[distinct], length[distinct]
    return Paths(first, path, np.append(0, np.cumsum(length)), channel[ranges(first_of_all, length)])


def _numbered(steps: Numbers, length: Numbers) -> tuple[Places, Places]:
    """The number of each sequence, equal ones having one; and of each number, one that has it.

    Sequences are grouped by a hash and then compared. Should two that differ collide, another hash is taken.
    """
    start = np.cumsum(length) - length
    within = np.arange(len(steps)) - np.repeat(start, length)
    for salt in count():
        words = mixed(steps.astype(np.int64), within + (salt << 32))
        hashes = np.add.reduceat(words, start) if len(start) else words
        _, distinct, number = np.unique(hashes, return_index=True, return_inverse=True)
        alike = distinct[number]
        if np.array_equal(length[alike], length) and np.array_equal(steps[ranges(start[alike], length)], steps):
            break
    return number, distinct

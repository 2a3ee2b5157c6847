"""Persons: which identifiers belong together, because they were seen together on one click or order.

Never guesses: no likeness, no address, no time counts. Invariants: a person is the smallest code of its connected
component, whatever the order of the links; an identifier that is shared joins nobody; codes of different clients are
never linked, so neither are their persons.

What is linked to more than `LINKS_MAX` others is shared by people: a kiosk, a test device, a placeholder that an
integration sends for everyone. Sentinels are the codes of values that are known to be such.

>>> found = persons(np.array([[1, 2], [2, 3], [7, 9]]), sentinels=np.array([9]))
>>> found.codes.tolist(), found.persons.tolist(), found.shared.tolist()
([2, 3], [1, 1], [9])
>>> find(found, np.array([3, 7])).tolist()
[1, 7]
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clickclock.attribution.codes import Codes, among, distinct, places

LINKS_MAX: Final = 50
"""A person with a new browser each week has as many within a year; beyond that it is not one person."""


@dataclass(frozen=True, eq=False)
class Persons:
    """Who is who, and which identifiers are nobody's."""

    codes: Codes
    """Sorted; only those whose person is another code."""
    persons: Codes
    """The person of each of `codes`."""
    shared: Codes
    """Sorted: sentinels, and what has too many links."""
    links: Codes
    """How many links each of `shared` has; 0 for a sentinel, whose links nobody counts."""


def persons(pairs: Codes, sentinels: Codes) -> Persons:
    """The persons of distinct links, a row of two different codes for each.

    Ten million links take a few seconds and some hundred megabytes beside them.
    """
    codes, ends, links = _compacted(pairs)
    sentinels = distinct(sentinels)
    is_sentinel = among(sentinels, codes)
    is_shared = is_sentinel | (links > LINKS_MAX)
    ends = ends[:, ~(is_shared[ends[0]] | is_shared[ends[1]])]
    person = codes[_smallest_of_component(ends, len(codes))]
    is_another = person != codes
    guarded = is_shared & ~is_sentinel
    shared = np.concatenate([codes[guarded], sentinels])
    counts = np.concatenate([links[guarded], np.zeros(len(sentinels), np.int64)])
    by_code = np.argsort(shared)
    return Persons(codes[is_another], person[is_another], shared[by_code], counts[by_code])


def find(known: Persons, codes: Codes) -> Codes:
    """The person of each code: itself, if nothing else is known. Shared codes have none: leave them out."""
    person = codes.copy()
    at = places(known.codes, codes)
    is_another = at >= 0
    person[is_another] = known.persons[at[is_another]]
    return person


def _compacted(pairs: Codes) -> tuple[Codes, NDArray[np.int32], Codes]:
    """All codes, sorted; the links as places among them, a row for each end; and of each code its number of links."""
    flat = pairs.ravel()
    by_code = np.argsort(flat)
    ordered = flat[by_code]
    is_first = np.ones(len(flat), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    codes = ordered[is_first]
    del ordered
    ranks = np.cumsum(is_first, dtype=np.int32)
    ranks -= 1
    places = np.empty(len(flat), np.int32)
    places[by_code] = ranks
    links = np.diff(np.append(np.flatnonzero(is_first), len(flat)))
    return codes, places.reshape(-1, 2).T, links


def _smallest_of_component(joins: NDArray[np.int32], count: int) -> NDArray[np.int32]:
    """Of each of `count` places, the smallest place that it is joined with."""
    smallest = np.arange(count, dtype=np.int32)
    one, other = joins
    while len(one):
        np.minimum.at(smallest, np.maximum(one, other), np.minimum(one, other))
        # Whoever was led to a place is led on to where that one leads, until all are where a place leads to itself.
        while not np.array_equal(smallest, further := smallest[smallest]):
            smallest = further
        one, other = smallest[one], smallest[other]
        is_apart = one != other
        one, other = one[is_apart], other[is_apart]
    return smallest

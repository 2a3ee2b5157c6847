"""Persons: which identifiers belong together, because they were seen together on one click or order.

Never guesses: no likeness and no address counts. Invariants: a person is the smallest code of its connected component,
whatever the order of the links; an identifier that is shared or crowded joins nobody; codes of different clients are
never linked, so neither are their persons.

An identifier with more than `LINKS_MAX` links is shared by people: a kiosk, a test device, a placeholder that an
integration sends for everyone. Sentinels are the codes of values that are known to be such. A shared identifier is
nobody's. A crowded one is a device that too many visitors (`cli_ubid`) had at one time: it links none of them, and is
the person of those clicks and orders that carry no visitor.

>>> found = persons(links_of([[1, 2], [2, 3], [7, 9]]), sentinels=np.array([9]))
>>> found.codes.tolist(), found.persons.tolist(), found.shared.tolist()
([2, 3], [1, 1], [9])
>>> find(found, np.array([3, 7])).tolist()
[1, 7]
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clickclock.attribution.crediting.columns.codes import Codes, among, distinct, places
from clickclock.attribution.crediting.columns.rolling import changes

LINKS_MAX: Final = 50
"""A person with a new browser each week has as many within a year; beyond that it is not one person."""
NO_LIMIT: Final = 0
"""Instead of a limit, where no visitor is linked."""

Days = NDArray[np.int32]
"""Numbered from 1970, in UTC."""


@dataclass(frozen=True, eq=False)
class Links:
    """Two different codes that were seen together, in each row."""

    one: Codes
    """The device, where the other is a visitor; else the smaller code."""
    other: Codes
    since: Days
    """The day on which a visitor was first seen with the device; 0 if the other is no visitor."""
    until: Days
    """The day from which the visitor does not count any more: its last one, and the window after it."""
    limit: NDArray[np.int32]
    """The most visitors that the device of one person has at one time; `NO_LIMIT` if the other is no visitor."""

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> "Links":
        """Some of the rows."""
        return Links(*(getattr(self, each.name)[rows] for each in fields(self)))


def links_of(pairs: ArrayLike, since: ArrayLike = 0, until: ArrayLike = 0, limit: ArrayLike = NO_LIMIT) -> Links:
    """Links of rows of two codes each; what is one number is that of every row."""
    codes = np.asarray(pairs, np.int64).reshape(-1, 2)
    numbers = (np.broadcast_to(np.asarray(each, np.int32), len(codes)) for each in (since, until, limit))
    return Links(codes[:, 0], codes[:, 1], *numbers)


def joined(several: Iterable[Links]) -> Links:
    """All links, each two codes once: from the first day on that any of the rows says, until the last.

    >>> both = joined([links_of([[5, 7]], 3, 33, 2), links_of([[5, 7]], 9, 39, 2)])
    >>> both.since.tolist(), both.until.tolist()
    ([3], [39])
    """
    every = [[getattr(each, name.name) for name in fields(Links)] for each in several]
    one, other, since, until, limit = (np.concatenate(column) for column in zip(*every, strict=True))
    in_order = np.lexsort((other, one))
    one, other = one[in_order], other[in_order]
    starts = np.flatnonzero(changes(one, other))
    if not len(starts):
        return Links(one, other, since, until, limit)
    return Links(
        one[starts],
        other[starts],
        np.minimum.reduceat(since[in_order], starts),
        np.maximum.reduceat(until[in_order], starts),
        limit[in_order[starts]],
    )


@dataclass(frozen=True, eq=False)
class Persons:
    """The persons, the identifiers that are nobody's, and the devices that link nobody."""

    codes: Codes
    """Sorted; only those whose person is another code."""
    persons: Codes
    """The person of each of `codes`."""
    shared: Codes
    """Sorted: sentinels, and what has too many links."""
    links: Codes
    """How many links each of `shared` has; 0 for a sentinel, whose links nobody counts."""
    crowded: Codes = field(default_factory=lambda: np.empty(0, np.int64))
    """Sorted: devices that had too many visitors at one time. Each is its own person."""
    visitors: Codes = field(default_factory=lambda: np.empty(0, np.int64))
    """The most visitors that each of `crowded` had at one time."""


def persons(links: Links, sentinels: Codes) -> Persons:
    """The persons of distinct links.

    Ten million links take a few seconds and some hundred megabytes beside them.
    """
    codes, ends, count = _compacted(links)
    sentinels = distinct(sentinels)
    is_sentinel = among(sentinels, codes)
    is_shared = is_sentinel | (count > LINKS_MAX)
    is_joining = ~(is_shared[ends[0]] | is_shared[ends[1]])
    # A device has no more visitors than links. So few of them have to be looked at closely.
    is_maybe = is_joining & (links.limit > NO_LIMIT) & (count[ends[0]] > links.limit)
    crowded, visitors = _crowded(links.take(is_maybe))
    if len(crowded):
        is_crowded = among(crowded, codes)
        is_joining &= ~(is_crowded[ends[0]] | is_crowded[ends[1]])
    person = codes[_smallest_of_component(ends[:, is_joining], len(codes))]
    is_another = person != codes
    guarded = is_shared & ~is_sentinel
    shared = np.concatenate([codes[guarded], sentinels])
    counts = np.concatenate([count[guarded], np.zeros(len(sentinels), np.int64)])
    by_code = np.argsort(shared)
    return Persons(codes[is_another], person[is_another], shared[by_code], counts[by_code], crowded, visitors)


def visitors_at_once(since: Sequence[int], until: Sequence[int]) -> int:
    """How many of these visitors of one device there were at one time, at the most.

    >>> visitors_at_once([0, 10, 30], [30, 40, 60])
    2
    """
    rows = [(0, number) for number in range(1, len(since) + 1)]
    return int(_most(links_of(rows, since, until))[1].max(initial=0))


def _crowded(visits: Links) -> tuple[Codes, Codes]:
    """The devices that had more visitors at one time than their limit, sorted; and the most that each had."""
    devices, most = _most(visits)
    at = places(devices, visits.one)
    limit = np.zeros(len(devices), np.int64)
    limit[at] = visits.limit
    is_crowded = most > limit
    return devices[is_crowded], most[is_crowded]


def _most(visits: Links) -> tuple[Codes, Codes]:
    """The devices, sorted, and the most visitors that each had at one time."""
    count = len(visits.one)
    device = np.concatenate([visits.one, visits.one])
    day = np.concatenate([visits.since, visits.until])
    step = np.repeat(np.array([1, -1]), count)
    # On one day, leaving comes before arriving, so that each device ends with nobody.
    in_order = np.lexsort((step, day, device))
    device, there = device[in_order], np.cumsum(step[in_order])
    starts = np.flatnonzero(changes(device))
    most: Codes = np.maximum.reduceat(there, starts) if count else there
    return device[starts], most


def find(known: Persons, codes: Codes) -> Codes:
    """The person of each code: itself, if nothing else is known. Shared codes have none: leave them out."""
    person = codes.copy()
    at = places(known.codes, codes)
    is_another = at >= 0
    person[is_another] = known.persons[at[is_another]]
    return person


def _compacted(links: Links) -> tuple[Codes, NDArray[np.int32], Codes]:
    """All codes, sorted; the links as places among them, a row for each end; and of each code its number of links."""
    flat = np.concatenate([links.one, links.other])
    by_code = np.argsort(flat)
    ordered = flat[by_code]
    is_first = np.ones(len(flat), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    codes = ordered[is_first]
    del ordered
    ranks = np.cumsum(is_first, dtype=np.int32)
    ranks -= 1
    at = np.empty(len(flat), np.int32)
    at[by_code] = ranks
    counts = np.diff(np.append(np.flatnonzero(is_first), len(flat)))
    return codes, at.reshape(2, -1), counts


def _smallest_of_component(joins: NDArray[np.int32], count: int) -> NDArray[np.int32]:
    """Of each of `count` places, the smallest place that it is joined with."""
    smallest = np.arange(count, dtype=np.int32)
    one, other = joins
    while len(one):
        np.minimum.at(smallest, np.maximum(one, other), np.minimum(one, other))
        # Each place is followed to the place that it leads to, until all lead to themselves.
        while not np.array_equal(smallest, further := smallest[smallest]):
            smallest = further
        one, other = smallest[one], smallest[other]
        is_apart = one != other
        one, other = one[is_apart], other[is_apart]
    return smallest

"""Walks along people's clicks, millions at once: what came too soon after the last that counted, and what in a flood.

Never looks at a policy or an order. Invariant: each walk says of a click what a walk along its person's clicks alone
says, one click after the other.

Whether a click counts depends on the last one that did, which is why a walk is a walk. But after a pause nothing before
matters, so that clicks fall into short chains, of which all but the first are too soon; only in a chain longer than the
pause others count as well, and these are found by ever longer jumps.

>>> at = np.array([0, 40, 80, 0])
>>> too_soon(at, np.array([True, False, False, True]), 60).tolist()
[False, True, False, False]
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Places: TypeAlias = NDArray[np.intp]
Numbers: TypeAlias = NDArray[np.int64]
Marks: TypeAlias = NDArray[np.bool_]


def too_soon(at: Numbers, is_first: Marks, pause: int) -> Marks:
    """What came less than `pause` after the last of its group that did not.

    `at` never falls within a group; `is_first` marks where a group begins.
    """
    is_too_soon = ~is_first
    is_too_soon[1:] &= at[1:] - at[:-1] < pause
    heads = np.flatnonzero(~is_too_soon)
    lengths = np.diff(heads, append=len(at))
    spans = at[heads + lengths - 1] - at[heads]
    long = np.flatnonzero(spans >= pause)
    if len(long):
        heads, lengths, spans = heads[long], lengths[long], spans[long]
        rows = ranges(heads, lengths)
        # One chain after the other, a pause between them, so that one search finds who counts next.
        moved = np.cumsum(spans + pause) - (spans + pause) - at[heads]
        shifted = at[rows] + np.repeat(moved, lengths)
        is_head = np.zeros(len(rows), np.bool_)
        is_head[np.cumsum(lengths) - lengths] = True
        is_too_soon[rows] = ~_reached(is_head, np.searchsorted(shifted, shifted + pause))
    return is_too_soon


def _reached(is_start: Marks, next_place: Places) -> Marks:
    """What the starts reach, going from place to next place; the place after the last one is the end.

    Every round looks twice as far as the one before, so that the rounds are as many as the longest way's length has
    binary digits.
    """
    end = len(is_start)
    is_reached = np.append(is_start, True)
    jump = np.append(next_place, end)
    while True:
        reached = np.flatnonzero(is_reached)
        is_reached[jump[reached]] = True
        if np.count_nonzero(is_reached) == len(reached):
            return is_reached[:-1]
        jump = jump[jump]


def flooding(person: Numbers, time_ms: Numbers, clicks_max: Numbers, length_ms: int) -> Marks:
    """Before which, within `length_ms`, and at whose time, its person has more than `clicks_max` clicks.

    Sorted by person and time. `clicks_max` is one for each click, at least 1.
    """
    is_flood = np.zeros(len(person), np.bool_)
    least = int(clicks_max.min(initial=len(person)))
    crowded = person[least:][person[least:] == person[: len(person) - least]]
    if not len(crowded):
        return is_flood
    crowded = crowded[changes(crowded)]
    starts = np.searchsorted(person, crowded)
    rows = ranges(starts, np.searchsorted(person, crowded, side="right") - starts)
    person, time_ms = person[rows], time_ms[rows]
    is_run = changes(person, time_ms)
    run_ends = np.append(np.flatnonzero(is_run)[1:], len(rows))
    # Of its peers the last, and so many clicks before that one: if it is near, there are too many in between.
    before = run_ends[np.cumsum(is_run) - 1] - 1 - clicks_max[rows]
    is_there, before = before >= 0, np.maximum(before, 0)
    is_near = is_there & (person[before] == person) & (time_ms[before] > time_ms - length_ms)
    is_flood[rows[is_near]] = True
    return is_flood


def grouped(*keys: Numbers) -> tuple[Places, Marks]:
    """The places, those of equal keys together and in their order; and where each group begins.

    A hash of the keys and the place share one word, so that words are sorted and no indices; that is several times as
    fast. Hashes that collide are found out, and then the keys are sorted themselves.
    """
    count = len(keys[0])
    place_bits = np.uint64(max(count - 1, 1).bit_length())
    words = mixed(*keys) >> place_bits << place_bits
    words |= np.arange(count, dtype=np.uint64)
    words.sort()
    places = (words & ((np.uint64(1) << place_bits) - np.uint64(1))).astype(np.intp)
    is_first = changes(*(key[places] for key in keys))
    if np.any(is_first[1:] & (words[1:] >> place_bits == words[:-1] >> place_bits)):
        places = np.lexsort(keys)
        is_first = changes(*(key[places] for key in keys))
    return places, is_first


def mixed(*keys: Numbers) -> NDArray[np.uint64]:
    """A hash of the keys: the finalizer of MurmurHash3 after each."""
    words = np.zeros(len(keys[0]), np.uint64)
    for key in keys:
        words ^= key.view(np.uint64)
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            words ^= words >> np.uint64(33)
            words *= np.uint64(factor)
        words ^= words >> np.uint64(33)
    return words


def changes(*keys: NDArray[np.generic]) -> Marks:
    """Where a key is not that of the place before; the first place is such a one."""
    is_change = np.zeros(len(keys[0]), np.bool_)
    is_change[:1] = True
    for key in keys:
        is_change[1:] |= key[1:] != key[:-1]
    return is_change


def ranges(starts: NDArray[np.integer], lengths: NDArray[np.integer]) -> Places:
    """From each start so many numbers on, one range after the other."""
    ends = np.cumsum(lengths)
    result: Places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)
    return result


def first_at_least(values: Numbers, starts: Places, ends: Places, wanted: Numbers) -> Places:
    """The first place in each stretch of `values` with at least what is wanted, or the stretch's end.

    Values never fall within a stretch.
    """
    low, high = starts.copy(), ends.copy()
    while np.any(is_open := low < high):
        middle = (low + high) // 2
        is_below = is_open & (values[np.where(is_open, middle, 0)] < wanted)
        low = np.where(is_below, middle + 1, low)
        high = np.where(is_open & ~is_below, middle, high)
    return low

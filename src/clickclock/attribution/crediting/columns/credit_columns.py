"""Allotment: the amounts of many orders, each split over its touchpoints as `credit.split` does, in numpy.

Never decides what is not certain at its precision: that is left to `credit.split`, order by order.
Invariant: the parts are those of `credit.split`, to the unit.

Whole weights are split in 64-bit numbers, where no product outgrows them. Other weights are split in floats, with a
bound on what rounding can have done: a share that near to a whole number is not certain, and neither is it who gets a
unit where two remainders are that near to each other. Those of equal weights are equal, not only near.

>>> split_many(np.array([100, 5]), np.array([1, 1, 1, 3, 2]), np.array([0, 3, 5]))
array([33, 33, 34,  3,  2])
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickclock.attribution.crediting.credit import NoWeights, split

Whole = NDArray[np.int64]
Yes = NDArray[np.bool_]

PRODUCT_MAX = 2.0**62
"""Half of what 64 bits hold: a product that rounding has brought below this is still well below that."""
EXACT_MAX = 2**53
"""The whole numbers that a float holds."""
ROUNDING = 2.0**-52
"""Twice what one operation on floats can be off, as a part of its result."""
OPERATIONS = 4
"""On a share, beside the additions of the total and with some to spare."""
WIDTHS = 4
"""Of tables, from one length of orders to its double: more leave less empty, and each takes its time."""


def split_many(amounts_minor: Whole, weights: NDArray[Any], offsets: Whole) -> Whole:
    """The parts of each amount, one for each touchpoint; `offsets` says where each order's begin, and where all end.

    Raises `NoWeights`, as `credit.split` does.
    """
    touches = np.diff(offsets)
    if np.any(amounts_minor < 0):
        raise NoWeights(f"{amounts_minor.min()} is negative; an order's credits share what was paid.")
    if np.any(touches < 1):
        raise NoWeights("An order without touchpoints cannot be split.")
    parts = np.zeros(len(weights), dtype=np.int64)
    is_left = np.ones(len(amounts_minor), dtype=np.bool_)
    for way in (_split_whole, _split_floats) if weights.dtype != np.object_ else ():
        if np.any(is_left):
            here = slice(None) if np.all(is_left) else np.repeat(is_left, touches)
            with np.errstate(all="ignore"):  # what overflows or is no number is not certain, and so left
                parts[here], is_certain = way(amounts_minor[is_left], weights[here], touches[is_left])
            is_left[is_left] = ~is_certain
    for number in np.flatnonzero(is_left).tolist():
        start, end = offsets[number], offsets[number + 1]
        parts[start:end] = split(int(amounts_minor[number]), weights[start:end].tolist())
    return parts


def _split_whole(amounts: Whole, weights: NDArray[Any], touches: Whole) -> tuple[Whole, Yes]:
    """The parts, and of which orders they are certain: those of whole weights that are small enough."""
    starts = np.cumsum(touches) - touches
    highest = np.maximum.reduceat(weights, starts)
    if weights.dtype.kind == "f":
        # Equal weights are as many ones, whatever they are.
        ones = weights / np.repeat(highest, touches)
        is_even = np.logical_and.reduceat((ones == 0) | (ones == 1), starts)
        weights = np.where(np.repeat(is_even, touches), ones, weights)
        highest = np.where(is_even, 1, highest)
    is_small = np.maximum(amounts, touches) * highest.astype(np.float64) <= PRODUCT_MAX
    is_right = np.logical_and.reduceat((weights >= 0) & (weights == np.floor(weights)), starts)
    is_certain = is_small & is_right & (highest > 0)
    whole = np.where(np.repeat(is_certain, touches), weights, 0).astype(np.int64)
    total = np.repeat(np.maximum(np.add.reduceat(whole, starts), 1), touches)
    product = whole * np.repeat(amounts, touches)
    parts = product // total
    left = np.where(is_certain, amounts - np.add.reduceat(parts, starts), 0)
    return parts + _largest(product - parts * total, left, starts, touches), is_certain


def _split_floats(amounts: Whole, weights: NDArray[Any], touches: Whole) -> tuple[Whole, Yes]:
    """The parts, and of which orders they are certain: those where rounding could not change them."""
    starts = np.cumsum(touches) - touches
    is_exact = np.maximum.reduceat(weights, starts) <= EXACT_MAX if weights.dtype.kind != "f" else True
    weights = weights.astype(np.float64)
    total = np.add.reduceat(weights, starts)
    shares = weights / np.repeat(total, touches) * np.repeat(amounts, touches)
    parts = np.floor(shares)
    rest = shares - parts
    off = ROUNDING * amounts * (touches + OPERATIONS)
    offs = np.repeat(off, touches)
    # Below one, a share is rounded down to 0 however near to that it is.
    is_clear = (weights == 0) | ((weights > 0) & ((rest > offs) | (parts == 0)) & (rest < 1 - offs))
    is_certain = np.logical_and.reduceat(is_clear, starts) & (total > 0) & np.isfinite(total) & (amounts <= EXACT_MAX)
    is_certain &= is_exact
    parts = np.where(np.repeat(is_certain, touches), parts, 0).astype(np.int64)
    left = np.where(is_certain, amounts - np.add.reduceat(parts, starts), 0)
    gets = _largest(rest, left, starts, touches)
    least = np.repeat(np.minimum.reduceat(np.where(gets, rest, np.inf), starts), touches)
    weight = np.repeat(np.maximum.reduceat(np.where(gets & (rest == least), weights, 0), starts), touches)
    is_close = (np.abs(rest - least) <= 2 * offs) & (weights != weight)
    return parts + gets, is_certain & ~np.logical_or.reduceat(is_close, starts)


def _largest(rest: NDArray[Any], count: Whole, starts: Whole, touches: Whole) -> Yes:
    """Which touchpoints have one of the `count` largest of their order's rests; of equal ones, the later."""
    chosen = np.zeros(len(rest), dtype=np.bool_)
    wanted = np.flatnonzero(count)
    width = (WIDTHS * np.log2(touches[wanted])).astype(np.int64)
    by_width = np.argsort(width, kind="stable")
    wanted, width = wanted[by_width], width[by_width]
    # Orders of about one length are the rows of one table, each at its right end; what is left of it is less than any.
    for orders in np.split(wanted, np.flatnonzero(np.diff(width)) + 1) if len(wanted) else ():
        place = np.arange(touches[orders].max())
        at = (starts[orders] + touches[orders])[:, np.newaxis] - len(place) + place
        is_out = at < starts[orders, np.newaxis]
        ranked = np.argsort(np.where(is_out, -1, rest[at]), axis=1, kind="stable")
        ranked += at[:, :1]
        chosen[ranked[place >= len(place) - count[orders, np.newaxis]]] = True
    return chosen

"""Credit: an order's amount, split over its touchpoints by a model's weights, to the last minor unit.

Never uses a float: a weight that is one counts as the exact number that it is.
Invariants: the parts sum to the amount; each is its exact share, rounded down or up; the same weights give the same
parts for ever, and so do the same weights times any whole number.

Largest remainder (Hamilton's method): each touchpoint gets its share rounded down, and the units that are left go one
each to the largest remainders. Of equal remainders the later touchpoint is first: it is nearer to the order.

>>> split(100, [1, 1, 1])
[33, 33, 34]
"""

from collections.abc import Sequence


class NoWeights(ValueError):
    """These weights split nothing; the text says why."""


def split(amount_minor: int, weights: Sequence[float]) -> list[int]:
    """The parts of `amount_minor`, at least 0, one for each touchpoint in time order. Raises `NoWeights`.

    A touchpoint of weight 0 gets nothing.
    """
    if amount_minor < 0:
        raise NoWeights(f"{amount_minor} is negative; an order's credits share what was paid.")
    whole = _whole(weights)
    total = sum(whole)
    if total <= 0 or min(whole) < 0:
        raise NoWeights("Give weights of at least 0, one of them above.")
    parts, remainders = [], []
    for weight in whole:
        part, remainder = divmod(amount_minor * weight, total)
        parts.append(part)
        remainders.append(remainder)
    left = amount_minor - sum(parts)
    if left:
        by_remainder = sorted(range(len(parts)), key=lambda place: (remainders[place], place), reverse=True)
        for place in by_remainder[:left]:
            parts[place] += 1
    return parts


def _whole(weights: Sequence[float]) -> list[int]:
    """The weights as whole numbers in the same proportion: a float is a whole number over a power of two."""
    try:
        ratios = [weight.as_integer_ratio() for weight in weights]
    except (OverflowError, ValueError):
        raise NoWeights("A weight is infinite or no number.") from None
    scale = max((below for _, below in ratios), default=1)
    return [above * (scale // below) for above, below in ratios]

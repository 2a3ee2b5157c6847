"""Moments: when something about a person changed, and so from when on its clicks and orders have to be looked at again.

Never looks at a click or an order. Invariant: what a person is needed from is early enough for every one of its
moments: the beginning of any month whose path is wanted, and of everything if an order is.

>>> moments = moments_of(np.array([7, 7]), np.array([1_800_000_000_000] * 2), np.array([0, 0]), ["shop"], Policies())
>>> nobody, zero = np.empty(0, np.int64), np.zeros(1, np.int64)
>>> since_of(moments, np.array([9]), nobody, Who(np.array([7]), np.array([True])), zero, zero).person.tolist()
[7, 9]
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clickclock.attribution import months
from clickclock.attribution.attributor.people import Who
from clickclock.attribution.attributor.walker import EVER_MS, EVERY_MONTH, Since
from clickclock.attribution.codes import among, places
from clickclock.attribution.policy import Policies
from clickclock.attribution.rolling import changes

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Moments:
    """A row for each thing that happened."""

    person: Numbers
    after_ms: Numbers
    """Orders placed later than this could have changed."""
    month: Numbers
    """Paths of this month and later ones could."""
    month_ms: Numbers
    """When the month began."""
    next_ms: Numbers
    """When the next one begins."""


def moments_of(
    person: Numbers, at_ms: Numbers, client: NDArray[np.integer], clients: Sequence[str], policies: Policies
) -> Moments:
    """What happened to persons at some times, by the rules of their clients; `client` says which of `clients`."""
    zones = [policies.find(name).zone for name in clients]
    month, month_ms, next_ms = (np.zeros(len(person), np.int64) for _ in range(3))
    for zone in set(zones):
        mine = np.flatnonzero(np.array([each == zone for each in zones], np.bool_)[client])
        month[mine] = months.months(at_ms[mine], zone)
        distinct, which = np.unique(month[mine], return_inverse=True)
        for begins_ms, months_on in ((month_ms, 0), (next_ms, 1)):
            starts = [months.span_ms(*months.days_of(each + months_on), zone)[0] for each in distinct.tolist()]
            begins_ms[mine] = np.array(starts, np.int64)[which]
    return Moments(person, at_ms, month, month_ms, next_ms)


def together(many: Iterable[Moments]) -> Moments:
    """One after the other."""
    columns = zip(*((each.person, each.after_ms, each.month, each.month_ms, each.next_ms) for each in many), strict=True)
    return Moments(*map(np.concatenate, columns))


def since_of(
    moments: Moments,
    whole: Numbers,
    busy: Numbers,
    who: Who,
    placed_ms: Numbers,
    placed_month: NDArray[np.integer],
) -> Since:
    """Every person of these moments, from the earliest on, and those of whom everything is wanted, who are sorted.

    `who`, `placed_ms` and `placed_month` are those of all orders. Of who placed one that is wanted, all clicks count:
    what an order without touchpoints lacks depends on all of them. So they do of the `busy`, who are sorted, too. Of
    the others, clicks count for the months alone; and who placed an order in the first of these, which is none that is
    wanted and so was there before, had no path in that month and has none.
    """
    by_person = np.argsort(moments.person)
    starts = np.flatnonzero(changes(moments.person[by_person]))
    person = moments.person[by_person[starts]]
    is_partial = ~among(whole, person)
    person = person[is_partial]
    after_ms, month, month_ms, next_ms = (
        (np.minimum.reduceat(column[by_person], starts) if len(starts) else column)[is_partial]
        for column in (moments.after_ms, moments.month, moments.month_ms, moments.next_ms)
    )
    has_order, has_no_path = np.zeros(len(person), np.bool_), np.zeros(len(person), np.bool_)
    place = places(person, who.person)
    theirs = np.flatnonzero(who.is_known & (place >= 0))
    at = place[theirs]
    has_order[at[placed_ms[theirs] > after_ms[at]]] = True
    has_no_path[at[placed_month[theirs] == month[at]]] = True
    has_no_path &= ~has_order
    month += has_no_path
    needed_ms = np.where(has_no_path, next_ms, month_ms)
    needed_ms[has_order | among(busy, person)] = EVER_MS
    everybody = np.concatenate([person, whole])
    by_person = np.argsort(everybody)
    columns = ((after_ms, EVER_MS), (month, EVERY_MONTH), (needed_ms, EVER_MS))
    return Since(
        everybody[by_person],
        *(np.concatenate([column, np.full(len(whole), ever)])[by_person] for column, ever in columns),
    )

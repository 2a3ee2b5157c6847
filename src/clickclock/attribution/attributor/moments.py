"""Moments: when something about a person changed, and so from when on its clicks and orders have to be looked at again.

Never looks at a click or an order. Invariant: what a person is needed from is early enough for every one of its
moments: the beginning of any month whose path is wanted, and of everything if an order is.

>>> moments = moments_of(np.array([7, 7]), np.array([1_800_000_000_000] * 2), np.array([0, 0]), ["shop"], Policies())
>>> since_of(moments, np.array([9]), Who(np.array([7]), np.array([True])), np.array([0])).person.tolist()
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


def moments_of(
    person: Numbers, at_ms: Numbers, client: NDArray[np.integer], clients: Sequence[str], policies: Policies
) -> Moments:
    """What happened to persons at some times, by the rules of their clients; `client` says which of `clients`."""
    zones = [policies.find(name).zone for name in clients]
    month, month_ms = np.zeros(len(person), np.int64), np.zeros(len(person), np.int64)
    for zone in set(zones):
        mine = np.flatnonzero(np.array([each == zone for each in zones], np.bool_)[client])
        month[mine] = months.months(at_ms[mine], zone)
        distinct, which = np.unique(month[mine], return_inverse=True)
        starts = [months.span_ms(*months.days_of(each), zone)[0] for each in distinct.tolist()]
        month_ms[mine] = np.array(starts, np.int64)[which]
    return Moments(person, at_ms, month, month_ms)


def together(many: Iterable[Moments]) -> Moments:
    """One after the other."""
    columns = zip(*((each.person, each.after_ms, each.month, each.month_ms) for each in many), strict=True)
    return Moments(*map(np.concatenate, columns))


def since_of(moments: Moments, whole: Numbers, who: Who, placed_ms: Numbers) -> Since:
    """Every person of these moments, from the earliest on, and those who are looked at in full, which are sorted.

    `who` and `placed_ms` are those of all orders. Of who placed one that is wanted, all clicks are: what an order
    without touchpoints lacks depends on all of them. Of the others, clicks are wanted for the months alone.
    """
    by_person = np.argsort(moments.person)
    starts = np.flatnonzero(changes(moments.person[by_person]))
    person = moments.person[by_person[starts]]
    after_ms, month, month_ms = (
        np.minimum.reduceat(column[by_person], starts) if len(starts) else column
        for column in (moments.after_ms, moments.month, moments.month_ms)
    )
    is_partial = ~among(whole, person)
    person, after_ms, month = person[is_partial], after_ms[is_partial], month[is_partial]
    has_order = np.zeros(len(person), np.bool_)
    place = places(person, who.person)
    theirs = np.flatnonzero(who.is_known & (place >= 0))
    has_order[place[theirs[placed_ms[theirs] > after_ms[place[theirs]]]]] = True
    needed_ms = np.where(has_order, EVER_MS, month_ms[is_partial])
    everybody = np.concatenate([person, whole])
    by_person = np.argsort(everybody)
    columns = ((after_ms, EVER_MS), (month, EVERY_MONTH), (needed_ms, EVER_MS))
    return Since(
        everybody[by_person],
        *(np.concatenate([column, np.full(len(whole), ever)])[by_person] for column, ever in columns),
    )

"""Moments: when something about a person changed, and so from when on its clicks and orders have to be looked at again.

Never looks at a click or an order. Invariant: what a person is needed from is early enough for every one of its
moments: the beginning of any month whose path is wanted, and of everything if an order is.

>>> moments = moments_of(np.array([7, 7]), np.array([1_800_000_000_000] * 2), np.array([0, 0]), ["shop"], Policies())
>>> nobody, placed = np.empty(0, np.int64), Placed(Who(np.array([7]), np.array([True])), np.zeros(1), np.zeros(1))
>>> since_of(moments, placed, whole=np.array([9]), busy=nobody, going_on=nobody).person.tolist()
[7, 9]
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clickclock.attribution.agents.attributor.journey_kernel import EVER_MS, EVERY_MONTH, Since
from clickclock.attribution.agents.attributor.people import Who
from clickclock.attribution.crediting.columns import months
from clickclock.attribution.crediting.columns.codes import among, places
from clickclock.attribution.crediting.columns.rolling import changes
from clickclock.attribution.crediting.policy import Policies

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


@dataclass(frozen=True, eq=False)
class Placed:
    """All orders."""

    who: Who
    at_ms: Numbers
    month: NDArray[np.integer]


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
    columns = zip(
        *((each.person, each.after_ms, each.month, each.month_ms, each.next_ms) for each in many), strict=True
    )
    return Moments(*map(np.concatenate, columns))


def since_of(moments: Moments, placed: Placed, *, whole: Numbers, busy: Numbers, going_on: Numbers) -> Since:
    """Every person of these moments, from the earliest on, and those of whom the `whole` is wanted.

    Of who placed an order that is wanted, all clicks count: what one without touchpoints lacks depends on all of them.
    So they do of the `busy`. Of the others, clicks count for the months alone: of those who are `going_on`, from the
    earliest moment on. And who placed an order in the first of these months, which is none that is wanted and so was
    there before, had no path in that month and has none. Whoever is named is sorted.
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
    place = places(person, placed.who.person)
    theirs = np.flatnonzero(placed.who.is_known & (place >= 0))
    at = place[theirs]
    has_order[at[placed.at_ms[theirs] > after_ms[at]]] = True
    has_no_path[at[placed.month[theirs] == month[at]]] = True
    has_no_path &= ~has_order
    goes_on = among(going_on, person) & ~has_order & ~has_no_path
    month += has_no_path
    needed_ms = np.where(has_no_path, next_ms, np.where(goes_on, after_ms, month_ms))
    needed_ms[has_order | (among(busy, person) & ~goes_on)] = EVER_MS
    everybody = np.concatenate([person, whole])
    by_person = np.argsort(everybody)
    columns = ((after_ms, EVER_MS), (month, EVERY_MONTH), (needed_ms, EVER_MS), (goes_on, False))
    return Since(
        everybody[by_person],
        *(np.concatenate([column, np.full(len(whole), ever)])[by_person] for column, ever in columns),
    )

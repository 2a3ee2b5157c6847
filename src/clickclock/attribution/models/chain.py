"""An absorbing Markov chain over paths, and what passes through each of its channels.

Never simulates. Invariants: every state reaches an end; nothing is subtracted but in the inversion, so that small
results are as exact as large ones.

A state is the last k channels. A move from a state to itself is left out: it does not change where a path ends.
With Q the moves and R what each state yields when it ends, h = Q h + R is what is still to come from each state. What
passes through the states C of a channel is u = h in C, and u = Q u elsewhere; u of the start is what the channel's
removal costs.

Chains that are small, or end slowly, are inverted: N = (I - Q)^-1, h = N R. The visits to C from the start are
N_0C = f N_CC, where f is how likely C is entered first at each of its states; u_0 = f h_C. One inversion serves all
channels. The others are sparse, and both equations are iterated from zero, which counts the paths of at most n moves.
What is missing is no more than who still moves times the best yield; it goes on until that is nothing beside the
smallest u_0.

Source: Kemeny and Snell, "Finite Markov Chains" (1960).

>>> from clickclock.attribution.models.table import PathRow
>>> rows = [PathRow(("ga",), 2, 0, 1), PathRow(("mail",), 1), PathRow(("ga", "mail"), 1)]
>>> whole, lost = solve(build(Paths.of(rows), 1))
>>> round(whole[0], 9), round(lost["ga"][0], 9), round(lost["mail"][0], 9)
(0.8, 0.6, 0.4)
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clickclock.attribution.models.journeys import distinct
from clickclock.attribution.models.table import Paths

if TYPE_CHECKING:
    from scipy.sparse import csr_array

STATES_FEW = 50
"""An inversion of these takes a millisecond."""
STATES_INVERTED_MAX = 2000
"""An inversion of these takes a second, and a hundred megabytes."""
STEPS_FEW = 2000
"""Enough for paths of fifty touches; they take a second where an inversion takes one."""
STATES_MAX = 100_000
"""An iteration then holds some hundred megabytes for a few dozen channels."""
STEPS_MAX = 50_000
"""Paths of a thousand touches need about as many; more would take hours."""
MISSING_MAX = 1e-15
"""Of the smallest result: below what a float can hold of it."""

Numbers = NDArray[np.float64]
Places = NDArray[np.intp]
Yield = tuple[float, float]
"""Conversions and value, per path that starts."""


class TooManyStates(ValueError):
    """The table has too many states for this order, or they end too slowly; the text says which."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The chain, its start at place 0."""

    members: Mapping[str, Places]
    """The places of the states that end in each channel."""
    moves: "csr_array"
    """How likely each state moves to each other one."""
    yields: Numbers
    """What each state yields when it ends: conversions, value; shape (states, 2)."""
    best: Numbers
    """The most that an end yields: conversions, value."""
    longest: int
    """Moves of the longest path, at most."""

    @property
    def size(self) -> int:
        """How many states there are."""
        return len(self.yields)


def build(paths: Paths, order: int) -> Chain:
    """The chain of `order` over paths that each have conversions or nulls. Raises `TooManyStates`."""
    # Here and not at the top: whoever only reads the lake loads the models, too, and would wait for it.
    from scipy.sparse import csr_array  # noqa: PLC0415 (see the line above)

    journeys = paths.journeys
    starts, ends, size = journeys.starts, journeys.ends, len(journeys.channels)
    # Of each touchpoint, the state before it and after it: 0 is the start. Longer states are made of shorter ones.
    here = np.zeros(len(journeys.channel), np.int64)
    for _ in range(order):
        states, there = distinct(here * size + journeys.channel, (here.max() + 1) * size)
        there += 1
        here = np.roll(there, 1)
        here[starts] = 0
    count = len(states) + 1
    if count > STATES_MAX:
        raise TooManyStates(
            f"Order {order} has {count:,} states here, and at most {STATES_MAX:,} are solved; "
            "take a lower order, or the transform exposure or first."
        )
    weight = paths.conversions + paths.nulls
    is_move = here != there
    pairs, which = distinct((here * count + there)[is_move], count**2)
    moves = np.bincount(which, journeys.spread(weight)[is_move], len(pairs))
    froms, tos = np.divmod(pairs, count)
    worth = (paths.conversions, np.where(paths.conversions > 0, paths.value, 0.0), weight)
    *ended, left = (np.bincount(there[ends], each, count) for each in worth)
    leaving = np.bincount(froms, moves, count) + left
    yields = np.stack(ended, axis=1)
    return Chain(
        members={journeys.channels[code]: np.flatnonzero(states % size == code) + 1 for code in range(size)},
        moves=csr_array((moves / leaving[froms], (froms, tos)), shape=(count, count)),
        yields=yields / leaving[:, np.newaxis],
        best=(yields[left > 0] / left[left > 0, np.newaxis]).max(axis=0),
        longest=int(journeys.touches.max()),
    )


def solve(chain: Chain) -> tuple[Yield, dict[str, Yield]]:
    """What the whole chain yields, and what of it passes through each channel. Raises `TooManyStates`."""
    if chain.size > STATES_INVERTED_MAX:
        return iterated(chain)
    if chain.size > STATES_FEW:
        with suppress(TooManyStates):  # they end slowly, and an inversion takes as long for these as for any
            return iterated(chain, STEPS_FEW)
    return inverted(chain)


def inverted(chain: Chain) -> tuple[Yield, dict[str, Yield]]:
    """`solve`, by the fundamental matrix."""
    fundamental = np.linalg.inv(np.eye(chain.size) - chain.moves.toarray())
    to_come = fundamental @ chain.yields
    lost = {}
    for channel, places in chain.members.items():
        entered = np.linalg.solve(fundamental[np.ix_(places, places)].T, fundamental[0, places])
        lost[channel] = _yield(entered @ to_come[places])
    return _yield(to_come[0]), lost


def iterated(chain: Chain, steps_max: int = STEPS_MAX) -> tuple[Yield, dict[str, Yield]]:
    """`solve`, by paths of more and more moves."""
    # Columns: h; u of each channel; and, last, how much still moves.
    now = np.zeros((chain.size, 2 * len(chain.members) + 3))
    now[:, -1] = 1.0
    for step in range(1, steps_max + 1):
        after = chain.moves @ now
        after[:, :2] += chain.yields
        for number, places in enumerate(chain.members.values(), 1):
            after[places, 2 * number : 2 * number + 2] = after[places, :2]
        now = after
        # By then each path of the table was counted: what is still zero stays zero.
        if step > chain.longest:
            found = now[0, 2:-1].reshape(-1, 2)
            if np.all((found == 0) | (now[0, -1] * chain.best <= MISSING_MAX * found)):
                return _yield(now[0, :2]), dict(zip(chain.members, map(_yield, found), strict=True))
    raise TooManyStates(
        f"The {chain.size:,} states of these paths end too slowly to be solved; take a lower order, or the transform "
        "exposure or first."
    )


def _yield(numbers: Numbers) -> Yield:
    return float(numbers[0]), float(numbers[1])

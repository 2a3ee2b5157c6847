"""An absorbing Markov chain over paths, and what passes through each of its channels.

Never simulates. Invariants: every state reaches an end; nothing is subtracted but in the inversion, so that small
results are as exact as large ones.

A state is the last k channels. A move from a state to itself is left out: it does not change where a path ends.
With Q the moves and R what each state yields when it ends, h = Q h + R is what is still to come from each state. What
passes through the states C of a channel is u = h in C, and u = Q u elsewhere; u of the start is what the channel's
removal costs.

Small chains are inverted: N = (I - Q)^-1, h = N R. The visits to C from the start are N_0C = f N_CC, where f is how
likely C is entered first at each of its states; u_0 = f h_C. One inversion serves all channels.
Large ones are sparse. There both equations are iterated from zero, which counts the paths of at most n moves. What is
missing is no more than who still moves times the best yield; it goes on until that is nothing beside the smallest u_0.

Source: Kemeny and Snell, "Finite Markov Chains" (1960).

>>> whole, lost = solve(build([PathRow(("ga",), 2, 0, 1), PathRow(("mail",), 1), PathRow(("ga", "mail"), 1)], 1))
>>> round(whole[0], 9), round(lost["ga"][0], 9), round(lost["mail"][0], 9)
(0.8, 0.6, 0.4)
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clickclock.attribution.models.table import PathRow

STATES_INVERTED_MAX = 1000
"""Up to here an inversion takes a fraction of a second and a few tens of megabytes."""
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
    here: Places
    there: Places
    likely: Numbers
    """How likely `here` moves to `there`; sorted by `here`."""
    yields: Numbers
    """What each state yields when it ends: conversions, value; shape (states, 2)."""
    best: Numbers
    """The most that an end yields: conversions, value."""
    longest: int
    """Moves of the longest path."""

    @property
    def size(self) -> int:
        """How many states there are."""
        return len(self.yields)


def build(table: Sequence[PathRow], order: int) -> Chain:
    """The chain of `order` over paths that each have conversions or nulls. Raises `TooManyStates`."""
    states: dict[tuple[str, ...], int] = {(): 0}
    moves: dict[tuple[int, int], float] = defaultdict(float)
    leaving: dict[int, float] = defaultdict(float)
    ends: dict[int, tuple[float, float, float]] = {}
    for path, conversions, value, nulls in table:
        weight = conversions + nulls
        here = 0
        for place in range(1, len(path) + 1):
            there = states.setdefault(path[max(0, place - order) : place], len(states))
            if there != here:
                moves[here, there] += weight
                leaving[here] += weight
                here = there
        leaving[here] += weight
        old = ends.get(here, (0.0, 0.0, 0.0))
        ends[here] = (old[0] + conversions, old[1] + (value if conversions else 0.0), old[2] + weight)
    if len(states) > STATES_MAX:
        raise TooManyStates(
            f"Order {order} has {len(states):,} states here, and at most {STATES_MAX:,} are solved; "
            "take a lower order, or the transform exposure or first."
        )
    members: dict[str, list[int]] = defaultdict(list)
    for state, place in states.items():
        if state:
            members[state[-1]].append(place)
    yields = np.zeros((len(states), 2))
    for place, (conversions, value, _) in ends.items():
        yields[place] = conversions / leaving[place], value / leaving[place]
    pairs = sorted(moves)
    return Chain(
        members={channel: np.array(places, dtype=np.intp) for channel, places in members.items()},
        here=np.array([here for here, _ in pairs], dtype=np.intp),
        there=np.array([there for _, there in pairs], dtype=np.intp),
        likely=np.array([moves[pair] / leaving[pair[0]] for pair in pairs]),
        yields=yields,
        best=np.array([[end[0] / end[2], end[1] / end[2]] for end in ends.values()]).max(axis=0),
        longest=max(len(row.path) for row in table),
    )


def solve(chain: Chain) -> tuple[Yield, dict[str, Yield]]:
    """What the whole chain yields, and what of it passes through each channel. Raises `TooManyStates`."""
    return inverted(chain) if chain.size <= STATES_INVERTED_MAX else iterated(chain)


def inverted(chain: Chain) -> tuple[Yield, dict[str, Yield]]:
    """`solve`, by the fundamental matrix."""
    moving = np.eye(chain.size)
    moving[chain.here, chain.there] -= chain.likely
    fundamental = np.linalg.inv(moving)
    to_come = fundamental @ chain.yields
    lost = {}
    for channel, places in chain.members.items():
        entered = np.linalg.solve(fundamental[np.ix_(places, places)].T, fundamental[0, places])
        lost[channel] = _yield(entered @ to_come[places])
    return _yield(to_come[0]), lost


def iterated(chain: Chain) -> tuple[Yield, dict[str, Yield]]:
    """`solve`, by paths of more and more moves."""
    starts = np.flatnonzero(np.diff(chain.here, prepend=-1))
    rows = chain.here[starts]
    likely = chain.likely[:, np.newaxis]
    # Columns: h; u of each channel; and, last, how much still moves.
    now = np.zeros((chain.size, 2 * len(chain.members) + 3))
    now[:, -1] = 1.0
    for step in range(1, STEPS_MAX + 1):
        after = np.zeros_like(now)
        after[rows] = np.add.reduceat(likely * now[chain.there], starts, axis=0)
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

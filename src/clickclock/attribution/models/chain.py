"""An absorbing Markov chain over paths, and what passes through each of its channels.

Never simulates. Invariants: every state reaches an end; nothing is subtracted but where a large chain is inverted, so
that small results are as exact as large ones; a chain follows from its steps, in whatever order these come.

A state is the last k channels. A move from a state to itself is left out: it does not change where a path ends. So is a
state that leads to no yield, and moving there is an end without one: anybody can send clicks of ever new channels. A
step is what a chain is made of: the channels of a state and the one that comes next, or `END`. If these are no more
than k channels, and no end, it is the beginning of a path.

With Q the moves and R what each state yields when it ends, h = Q h + R is what is still to come from each state. What
passes through the states C of a channel is u = h in C, and u = Q u elsewhere; u of the start is what the channel's
removal costs.

Of small chains, one state after the other is passed over: whoever moved to it moves on as it does. The others are
sparse, and both equations are iterated from zero, which counts the paths of at most n moves. What is missing is no more
than who still moves times the best yield; it goes on until that is nothing beside the smallest u_0. Those that end too
slowly for that are inverted: N = (I - Q)^-1, h = N R. The visits to C from the start are N_0C = f N_CC, where f is how
likely C is entered first at each of its states; u_0 = f h_C. One inversion serves all channels.

Of a channel with one state that no path can pass twice, N_CC is 1, and so u_0 is N_0C h_C: what comes to it from the
start times what comes of it, two vectors for all such channels. So somebody who buys after a click on each of thousands
of channels that nobody else has costs some seconds, and not hours.

Source: Kemeny and Snell, "Finite Markov Chains" (1960); Grassmann, Taksar and Heyman, "Regenerative Analysis and Steady
State Distributions for Markov Chains" (1985), for states that are passed over.

>>> from clickclock.attribution.models.table import PathRow
>>> rows = [PathRow(("ga",), 2, 0, 1), PathRow(("mail",), 1), PathRow(("ga", "mail"), 1)]
>>> [(row.path, row.conversions) for row in steps(Paths.of(rows[2:]), 1)]
[(('ga',), 1.0), (('ga', 'mail'), 1.0), (('mail', ''), 1.0)]
>>> whole, lost = solve(build(steps(Paths.of(rows), 1), 1))
>>> round(whole[0], 9), round(lost["ga"][0], 9), round(lost["mail"][0], 9)
(0.8, 0.6, 0.4)
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from clickclock.attribution.models.journeys import Journeys, Whole, distinct, offsets_of
from clickclock.attribution.models.table import Paths

if TYPE_CHECKING:
    from scipy.sparse import csr_array

END = ""
"""Stands in a step behind the last channel of a path, which no channel is called."""
STATES_FEW = 50
"""To pass over these takes a few milliseconds."""
STATES_INVERTED_MAX = 2000
"""An inversion of these takes a second, and a hundred megabytes."""
STATES_MAX = 500_000
"""These fit into some hundred megabytes, as they are iterated some channels at a time."""
CELLS_MAX = 20_000_000
"""States times what is iterated of each: a few hundred megabytes. The channels beyond are for the next time."""
STEPS_FEW, STEPS_MAX = 2000, 50_000
"""Paths of a thousand touches need about as many: few where an inversion takes a second, more where none can be."""
WORK_FEW, WORK_MAX = 4 * 10**9, 5 * 10**11
"""Steps times what is iterated in each: some seconds, and some minutes."""
MISSING_MAX = 1e-15
"""Relative to the smallest result: below the precision of a float."""

Numbers = NDArray[np.float64]
Places = NDArray[np.intp]
Yield = tuple[float, float]
"""Conversions and value, per path that starts."""


class TooManyStates(ValueError):
    """The table has too many states for this order, or they end too slowly; the text says which."""


class Chain(msgspec.Struct, frozen=True):
    """The chain, its start at place 0."""

    members: Mapping[str, Places]
    """The places of the states that end in each channel; a channel without any is not there."""
    froms: Places
    """Of each move between two states, where it begins."""
    tos: Places
    """Where it leads."""
    moves: Numbers
    """How likely it is, of all that begin there."""
    ends: Numbers
    """How likely each state ends, rather than move."""
    yields: Numbers
    """What each state yields when it ends: conversions, value; shape (states, 2)."""
    best: Numbers
    """The most that an end yields: conversions, value."""

    @property
    def size(self) -> int:
        """How many states there are."""
        return len(self.yields)

    @property
    def dense(self) -> Numbers:
        """The moves as a matrix, for chains that are small."""
        cells = np.zeros((self.size, self.size))
        np.add.at(cells, (self.froms, self.tos), self.moves)
        return cells

    @property
    def sparse(self) -> "csr_array":
        """The moves as a matrix, for the others."""
        # Here and not at the top: nearly all chains are small and need none of scipy, which takes 0.1 s to load.
        from scipy.sparse import csr_array  # noqa: PLC0415 (see the line above)

        return csr_array((self.moves, (self.froms, self.tos)), shape=(self.size, self.size))


def steps(paths: Paths, order: int) -> Paths:
    """The steps of all paths, each once, with how often it was part of a conversion and how often not.

    The value is that of the conversions that end there; without one it counts for nothing.
    """
    journeys = paths.journeys
    if not len(journeys):
        return paths
    size, ends = len(journeys.channels), journeys.ends
    here, there, states = _states(journeys, order)
    place = np.arange(len(here)) - journeys.spread(journeys.starts)
    moved = np.flatnonzero(here != there)
    moves, which = distinct(here[moved] * size + journeys.channel[moved], (len(states) + 1) * size)
    ended, whose = distinct(there[ends], len(states) + 1)
    # One of the touchpoints that come last in each step: its step is theirs.
    last = np.empty(len(moves) + len(ended), np.int64)
    last[which], last[len(moves) + whose] = moved, ends
    is_end = np.arange(len(last)) >= len(moves)
    touches = np.minimum(place[last] + is_end, order) + 1
    offsets = offsets_of(touches)
    at = np.arange(offsets[-1]) + np.repeat(last + is_end + 1 - offsets[1:], touches)
    at[offsets[1:][is_end] - 1] = len(here)
    channel = np.append(journeys.channel + 1, 0)[at]

    def counted(of_path: Numbers) -> Numbers:
        of_moves = np.bincount(which, journeys.spread(of_path)[moved], len(moves))
        return np.concatenate([of_moves, np.bincount(whose, of_path, len(ended))])

    value = np.bincount(whose, np.where(paths.conversions > 0, paths.value, 0.0), len(ended))
    return Paths(
        Journeys(offsets, channel, [END, *journeys.channels]),
        counted(paths.conversions),
        np.concatenate([np.zeros(len(moves)), value]),
        counted(paths.nulls),
    )


def build(counted: Paths, order: int) -> Chain:
    """The chain of `order` of steps that each have conversions or nulls. Raises `TooManyStates`."""
    journeys = counted.journeys
    here, there, states = _states(journeys, order)
    here, there = here[journeys.ends], there[journeys.ends]
    is_end = journeys.channel[journeys.ends] == list(journeys.channels).index(END)
    # Within a step there are beginnings that no path has; each state that one has is where a step leads.
    real, to = distinct(there[~is_end], len(states) + 1)
    known = np.zeros(len(states) + 1, np.int64)
    known[real] = np.arange(1, len(real) + 1)
    weight = counted.conversions + counted.nulls
    froms, tos, moves = known[here[~is_end]], to + 1, weight[~is_end]
    worth = (counted.conversions, counted.value, weight)
    *ended, left = (np.bincount(known[here[is_end]], each[is_end], len(real) + 1) for each in worth)
    leaving = np.bincount(froms, moves, len(real) + 1) + left
    yields = np.stack(ended, axis=1)
    kept = _that_lead(np.any(yields, axis=1), froms, tos)
    if len(kept) > STATES_MAX:
        raise TooManyStates(
            f"Order {order} has {len(kept):,} states here, and at most {STATES_MAX:,} are solved; "
            "take a lower order, or the transform exposure or first."
        )
    place = np.full(len(leaving), -1)
    place[kept] = np.arange(len(kept))
    stays = place[froms] >= 0
    lost = stays & (place[tos] < 0)
    left += np.bincount(froms[lost], moves[lost], len(left))
    stays &= ~lost
    froms, tos, moves = froms[stays], tos[stays], moves[stays]
    channel = states[real[kept[1:] - 1] - 1] % len(journeys.channels)
    by_channel = np.argsort(channel, kind="stable")
    codes, firsts = np.unique(channel[by_channel], return_index=True)
    parts = np.split(by_channel + 1, firsts[1:]) if len(codes) else []
    return Chain(
        members={journeys.channels[code]: part for code, part in zip(codes.tolist(), parts, strict=True)},
        froms=place[froms],
        tos=place[tos],
        moves=moves / leaving[froms],
        ends=left[kept] / leaving[kept],
        yields=yields[kept] / leaving[kept, np.newaxis],
        best=(yields[left > 0] / left[left > 0, np.newaxis]).max(axis=0),
    )


def _that_lead(is_yielding: NDArray[np.bool_], froms: Whole, tos: Whole) -> Whole:
    """The start, and the places of the states that lead to a yield."""
    leads = is_yielding.copy()
    leads[0] = True
    while True:
        more = froms[leads[tos] & ~leads[froms]]
        if not len(more):
            return np.flatnonzero(leads)
        leads[more] = True


def _states(journeys: Journeys, order: int) -> tuple[Whole, Whole, Whole]:
    """Of each touchpoint, the number of the state before it and after it, 0 being the start; and the states' codes.

    States are numbered from 1 on in the order of their channels. A code's remainder by the number of all channels is
    the state's last one.
    """
    size, starts = len(journeys.channels), journeys.starts
    here = np.zeros(len(journeys.channel), np.int64)
    # Longer states are made of shorter ones.
    for _ in range(order):
        states, there = distinct(here * size + journeys.channel, (here.max() + 1) * size)
        there += 1
        here = np.roll(there, 1)
        here[starts] = 0
    return here, there, states


def solve(chain: Chain) -> tuple[Yield, dict[str, Yield]]:
    """What the whole chain yields, and what of it passes through each channel. Raises `TooManyStates`."""
    if chain.size <= STATES_FEW:
        return eliminated(chain)
    if chain.size > STATES_INVERTED_MAX:
        return divided(chain)
    with suppress(TooManyStates):  # they end slowly, and an inversion takes as long for these as for any
        return divided(chain, STEPS_FEW, WORK_FEW)
    return inverted(chain)


def eliminated(chain: Chain) -> tuple[Yield, dict[str, Yield]]:
    """`solve`, by passing over one state after the other."""
    moves, to_come = chain.dense, chain.yields.copy()
    leaving = _passed_over(moves, chain.ends.copy(), to_come)
    for state in range(chain.size):
        to_come[state] = (to_come[state] + moves[state, :state] @ to_come[:state]) / leaving[state]
    # Of each channel a chain of its own, in which its states end at once and yield what is still to come from them.
    many = len(chain.members)
    moves = np.repeat(chain.dense[np.newaxis], many, axis=0)
    ends = np.repeat(chain.ends[np.newaxis], many, axis=0)
    passing = np.zeros((many, chain.size, 2))
    for number, places in enumerate(chain.members.values()):
        moves[number, places], ends[number, places], passing[number, places] = 0, 1, to_come[places]
    lost = passing[:, 0] / _passed_over(moves, ends, passing)[:, :1]
    return _yield(to_come[0]), dict(zip(chain.members, map(_yield, lost), strict=True))


def _passed_over(moves: Numbers, ends: Numbers, yields: Numbers) -> Numbers:
    """From the last state on, give those before it what it has; returns how likely each state is left for these.

    What is given is changed: each state then has what it had when it was passed over.
    """
    leaving = ends.copy()
    for state in range(ends.shape[-1] - 1, -1, -1):
        before = slice(state)
        leaving[..., state] = ends[..., state] + moves[..., state, before].sum(axis=-1)
        part = moves[..., before, state] / leaving[..., state, np.newaxis]
        moves[..., before, before] += part[..., np.newaxis] * moves[..., np.newaxis, state, before]
        yields[..., before, :] += part[..., np.newaxis] * yields[..., np.newaxis, state, :]
        ends[..., before] += part * ends[..., state, np.newaxis]
    return leaving


def inverted(chain: Chain) -> tuple[Yield, dict[str, Yield]]:
    """`solve`, by the fundamental matrix."""
    fundamental = np.linalg.inv(np.eye(chain.size) - chain.dense)
    to_come = fundamental @ chain.yields
    lost = {}
    for channel, places in chain.members.items():
        entered = np.linalg.solve(fundamental[np.ix_(places, places)].T, fundamental[0, places])
        lost[channel] = _yield(entered @ to_come[places])
    return _yield(to_come[0]), lost


def divided(chain: Chain, steps_max: int = STEPS_MAX, work: int = WORK_MAX) -> tuple[Yield, dict[str, Yield]]:
    """`solve`, of channels that no path passes twice all at once, and of the others by iteration."""
    once = _passed_once(chain)
    others = {channel: places for channel, places in chain.members.items() if channel not in once}
    steps, whole, lost = _straight(chain, once, steps_max)
    affordable = min(work // (chain.size * (2 * len(others) + 3)), steps_max)
    if others and steps > affordable:
        raise _slow(chain)  # before it is tried: the others take as many steps
    if others:
        lost |= iterated(replace(chain, members=others), affordable)[1]
    return whole, {channel: lost[channel] for channel in chain.members}


def _passed_once(chain: Chain) -> dict[str, Places]:
    """Channels with one state alone, to which no way leads from any ring of moves, or from which none leads to one."""
    alone = {channel: places for channel, places in chain.members.items() if len(places) == 1}
    between, is_known = np.ones(chain.size, np.bool_), not alone
    while not is_known:
        stays = between[chain.froms] & between[chain.tos]
        begins, ends = (np.bincount(places[stays], minlength=chain.size) > 0 for places in (chain.froms, chain.tos))
        is_known = np.array_equal(between, begins & ends)
        between = begins & ends
    return {channel: places for channel, places in alone.items() if not between[places].any()}


def _straight(chain: Chain, members: Mapping[str, Places], steps_max: int) -> tuple[int, Yield, dict[str, Yield]]:
    """`solve`, of channels that are passed once at most; and the steps that this took."""
    moves = chain.sparse
    back, leads = moves.T.tocsr(), _leads(chain)
    places = np.concatenate([[0], *members.values()]).astype(np.intp)
    # Columns: h; and, last, how much still moves. What came to each state cannot come to lack more than that.
    now, came = np.zeros((chain.size, 3)), np.zeros(chain.size)
    now[:, -1] = 1.0
    for step in range(1, steps_max + 1):
        now = moves @ now
        now[:, :2] += chain.yields
        came = back @ came
        came[0] = 1.0
        found, missing = now[places, :2], now[places, -1:] * chain.best
        if np.all(~leads[places] | (missing <= MISSING_MAX * found)) and np.all(
            now[0, -1] <= MISSING_MAX * came[places]
        ):
            lost = came[places[1:], np.newaxis] * found[1:]
            return step, _yield(found[0]), dict(zip(members, map(_yield, lost), strict=True))
    raise _slow(chain)


def iterated(chain: Chain, steps_max: int = STEPS_MAX) -> tuple[Yield, dict[str, Yield]]:
    """`solve`, by paths of more and more moves."""
    whole: Yield = (0.0, 0.0)
    lost: dict[str, Yield] = {}
    some = max(CELLS_MAX // (2 * chain.size), 1)
    members = list(chain.members.items())
    for first in range(0, max(len(members), 1), some):
        whole, found = _iterated(chain, dict(members[first : first + some]), steps_max)
        lost |= found
    return whole, lost


def _iterated(chain: Chain, members: Mapping[str, Places], steps_max: int) -> tuple[Yield, dict[str, Yield]]:
    """`iterated`, for some of the channels: the chain itself takes much less than these."""
    moves, leads = chain.sparse, _leads(chain)
    is_some = np.array([leads[places].any(axis=0) for places in members.values()], np.bool_).reshape(-1, 2)
    # Columns: h; u of each channel; and, last, how much still moves.
    now = np.zeros((chain.size, 2 * len(members) + 3))
    now[:, -1] = 1.0
    for _ in range(steps_max):
        after = moves @ now
        after[:, :2] += chain.yields
        for number, places in enumerate(members.values(), 1):
            after[places, 2 * number : 2 * number + 2] = after[places, :2]
        now = after
        found = now[0, 2:-1].reshape(-1, 2)
        if np.all(~is_some | (now[0, -1] * chain.best <= MISSING_MAX * found)):
            return _yield(now[0, :2]), dict(zip(members, map(_yield, found), strict=True))
    raise _slow(chain)


def _leads(chain: Chain) -> NDArray[np.bool_]:
    """Which states lead to a yield at all: whatever passes through no other is zero, and stays it."""
    moves, leads, known = chain.sparse, chain.yields > 0, None
    while known is None or not np.array_equal(leads, known):
        known, leads = leads, leads | (moves @ leads > 0)
    return leads


def _slow(chain: Chain) -> TooManyStates:
    return TooManyStates(
        f"The {chain.size:,} states of these paths end too slowly to be solved; take a lower order, or the transform "
        "exposure or first."
    )


def _yield(numbers: Numbers) -> Yield:
    return float(numbers[0]), float(numbers[1])

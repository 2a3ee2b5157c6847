"""Due schedules → triggers: steps 1 to 4 of the journey.

Never starts anything. Invariants: whatever dies here, a due time is either still due or has its row; a time is decided
`ahead_s` before it comes at the earliest, or within the horizon where it cannot come out otherwise (`lookahead.py`);
what it becomes is started when it has come.

>>> Planner(store, clock, replaced=watcher_loop.wake)   # doctest: +SKIP
"""

import heapq
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from clickclock.foundation.clock import Clock
from clickclock.scheduler.store import Due, Planned, Span, Store, Taker
from clickclock.scheduler.times.schedule import Decision, decide

CLAIM_FIRST = 50
CLAIM_MAX = 250
"""Schedules in one transaction: few at first, so that the first of a thousand start while the others are planned."""
AHEAD_MAX = 100
"""Batch limit when planning ahead; small, so that requests reach the writer sooner."""
CLEAR_S = 0.02
"""What can wait is not begun when something is due within this: about what a short job takes, from plan to end."""
START_S = 0.004
"""About what a start takes, from its moment to the first instruction of the job."""
YIELD_S = 0.05
"""After another replica has planned what was due, this one pauses for so long, rather than race it each time."""
POSTPONE_S = 60.0
"""A schedule that cannot be planned is looked at again after this long, and holds up no other meanwhile."""

Plan = Callable[[Taker | None], Awaitable[Planned]]
"""One planning transaction, with the taker of what it fires."""

_log = logging.getLogger(__name__)


def decide_due(due: Due) -> Decision:
    """What becomes of a claimed schedule's due times. Pure."""
    times = due.schedule.timetable(due.anchor, due.days)
    return decide(due.schedule_id, due.schedule, times, due.high_water, due.facts)


async def queue_all(plan: Plan) -> Planned:
    """Plan what others start."""
    return await plan(None)


class Planner:
    """One step plans what is due now, or `ahead_s` from now; or, within the horizon, what can be known by then."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        replaced: Callable[[], None],
        start_with: Callable[[Plan], Awaitable[Planned]] = queue_all,
        ahead_s: float = 0.0,
        horizon_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`start_with` plans, and starts what is taken.

        `horizon_s` is how far ahead a start can be handed over: it is held for its moment by what outlives us.
        """
        self._store = store
        self._clock = clock
        self._ahead = timedelta(seconds=ahead_s)
        self._replaced = replaced
        self._start_with = start_with
        self._horizon_s = horizon_s
        self._next_due: datetime | None = None
        self._looked: datetime | None = None
        self._beyond: datetime | None = None
        self._moments: list[datetime] = []
        self._is_behind = False

    def busy_s(self) -> float:
        """Seconds until nothing is due within `CLEAR_S`, and what was due has started; 0 if that is so now."""
        now = self._clock.now()
        if self._next_due is not None and (due_s := (self._next_due - now).total_seconds()) < CLEAR_S:
            return max(due_s, 0.0) + START_S
        while self._moments and (start_s := (self._moments[0] - now).total_seconds()) < CLEAR_S:
            if start_s + START_S > 0:
                return start_s + START_S
            heapq.heappop(self._moments)
        return 0.0

    async def step(self) -> float | None:
        """Plan; returns seconds until the next schedule is due, or what comes is to be planned ahead."""
        now = self._clock.now() + self._ahead
        is_due = self._next_due is not None and self._next_due <= now
        span = self._span(now, is_due=is_due)
        is_ahead = span.until is not None
        limit = AHEAD_MAX if is_ahead else CLAIM_MAX if self._is_behind else CLAIM_FIRST

        async def plan(taker: Taker | None) -> Planned:
            postpone_to = now + timedelta(seconds=POSTPONE_S)
            return await self._store.queue.plan(now, limit, decide_due, postpone_to, taker, span)

        planned = await self._start_with(plan)
        self._is_behind = planned.claimed == limit and not is_ahead
        for schedule_id, error in planned.faults:
            _log.error("schedule %s cannot be planned and waits %.0f s: %s", schedule_id, POSTPONE_S, error)
        self._next_due, self._beyond, self._looked = planned.next_due, planned.beyond, planned.looked
        self._expect({each.not_before or now for each in planned.launches} | ({now} if planned.queued else set()))
        if planned.replaced:
            self._replaced()
        if self._is_behind:
            return 0.0
        pause_s = self._next_in_s()
        is_beaten = is_due and not planned.claimed and not self._store.writes_in_order
        return max(pause_s, YIELD_S) if is_beaten and pause_s is not None else pause_s

    def _span(self, now: datetime, *, is_due: bool) -> Span:
        """What to look at ahead: all within the horizon, if the first of it is half of it away, and nothing is due."""
        horizon = timedelta(seconds=self._horizon_s())
        until = now + horizon
        after = max(now, min(self._looked or now, until))  # the clock may have been set back
        is_time = self._beyond is not None and self._beyond <= now + horizon / 2
        return Span(after, until if is_time and not is_due and after < until else None)

    def _expect(self, moments: set[datetime]) -> None:
        for moment in moments:
            heapq.heappush(self._moments, moment)

    def _next_in_s(self) -> float | None:
        moments = [] if self._next_due is None else [self._next_due]
        if (horizon_s := self._horizon_s()) and self._beyond is not None:
            moments.append(self._beyond - timedelta(seconds=horizon_s / 2))
        return (min(moments) - self._ahead - self._clock.now()).total_seconds() if moments else None

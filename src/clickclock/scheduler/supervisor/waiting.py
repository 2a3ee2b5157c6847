"""Launches that were accepted and not started yet: they wait for their moment, then for their turn.

Never starts anything. Invariants: nobody is taken before its moment; those whose moment has come are taken in the order
in which it came; a moment further away than `HOLD_S_MAX` is not believed, because no service plans so far ahead.

>>> waiting = Waiting()
>>> waiting.add({"name": "a"}, now_s=1.0, moment_s=0.0)
>>> waiting.take(1.0)
{'name': 'a'}
"""

import heapq
import time
from collections import deque

from clickclock.scheduler.supervisor.spawn import Launch

HOLD_S_MAX = 0.1
"""The clocks of two machines, or one that was set back, must not keep a job from starting."""
_EARLY_S = 0.0012
"""The selector wakes up to a millisecond late: it is woken so much too early, and the rest is slept away exactly."""


class Waiting:
    """The queue of one supervisor. Times are seconds of the monotonic clock."""

    def __init__(self) -> None:
        self._held: list[tuple[float, int, Launch]] = []
        self._due: deque[Launch] = deque()
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._due or self._held)

    def add(self, launch: Launch, now_s: float, moment_s: float) -> None:
        """Let it wait until `moment_s`."""
        if now_s < moment_s <= now_s + HOLD_S_MAX:
            self._count += 1
            heapq.heappush(self._held, (moment_s, self._count, launch))
        else:
            self._due.append(launch)

    def wake_s(self) -> float:
        """Until when the loop may do something else; infinity if nothing waits."""
        if self._due:
            return 0.0
        return self._held[0][0] - _EARLY_S if self._held else float("inf")

    def take(self, now_s: float) -> Launch | None:
        """The next whose moment has come, or comes so soon that there is no time for anything else."""
        if not self._due and self._held and self._held[0][0] - now_s <= _EARLY_S:
            time.sleep(max(0.0, self._held[0][0] - now_s))
            now_s = max(now_s, self._held[0][0])
        while self._held and self._held[0][0] <= now_s:
            self._due.append(heapq.heappop(self._held)[2])
        return self._due.popleft() if self._due else None

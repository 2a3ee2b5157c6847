"""Launches that were accepted and not started yet: they wait for their moment, then for their turn.

Never starts anything. Invariants: nobody is taken before its moment; those whose moment has come are taken in the order
in which it came; who was held for its moment is announced before it is taken; a moment further away than `HOLD_S_MAX`
is not believed, because no service plans so far ahead.

>>> waiting = Waiting()
>>> waiting.add({"name": "a"}, now_s=1.0, moment_s=0.0)
>>> waiting.take(1.0)
{'name': 'a'}
"""

import heapq
import time
from collections import deque
from collections.abc import Callable, Sequence

from clickclock.scheduler.supervisor.forked import Launch

HOLD_S_MAX = 1.0
"""The clocks of two machines, or one that was set back, must not keep a job from starting."""
AGAIN_S = 1.0
"""An attempt that could not be announced is held for so long again."""
_EARLY_S = 0.0012
"""The selector wakes up to a millisecond late: it is woken so much too early, and the rest is slept away exactly."""

Moments = Sequence[tuple[float, Launch]]
"""Launches, each after the moment that it waits for."""


def is_held(now_s: float, moment_s: float) -> bool:
    """Whether a launch with this moment has to wait for it."""
    return now_s < moment_s <= now_s + HOLD_S_MAX


class Waiting:
    """The queue of one supervisor. Times are seconds of the monotonic clock."""

    def __init__(self, announce: Callable[[float, Moments], None] = lambda now_s, near: None) -> None:
        """`announce` hears of those whose moment is near: until then they are held, and afterwards they may be started.

        If it raises `OSError`, they are held again.
        """
        self._announce = announce
        self._held: list[tuple[float, int, Launch]] = []
        self._near: deque[tuple[float, Launch]] = deque()
        self._due: deque[Launch] = deque()
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._held or self.is_behind)

    @property
    def is_behind(self) -> bool:
        """Whether somebody could be started now, or in a moment."""
        return bool(self._due or self._near)

    def add(self, launch: Launch, now_s: float, moment_s: float) -> None:
        """Let it wait until `moment_s`."""
        if is_held(now_s, moment_s):
            self._count += 1
            heapq.heappush(self._held, (moment_s, self._count, launch))
        else:
            self._due.append(launch)

    def wake_s(self) -> float:
        """Until when the loop may do something else; infinity if nothing waits."""
        if self.is_behind:
            return 0.0
        return self._held[0][0] - _EARLY_S if self._held else float("inf")

    def take(self, now_s: float) -> Launch | None:
        """The next whose moment has come, or comes so soon that there is no time for anything else."""
        self._draw_near(now_s)
        if not self._due and self._near:
            time.sleep(max(0.0, self._near[0][0] - now_s))
            now_s = max(now_s, self._near[0][0])
        while self._near and self._near[0][0] <= now_s:
            self._due.append(self._near.popleft()[1])
        return self._due.popleft() if self._due else None

    def _draw_near(self, now_s: float) -> None:
        near: list[tuple[float, Launch]] = []
        while self._held and self._held[0][0] - now_s <= _EARLY_S:
            moment_s, _, launch = heapq.heappop(self._held)
            near.append((moment_s, launch))
        if not near:
            return
        try:
            self._announce(now_s, near)
        except OSError:
            for _, launch in near:
                self.add(launch, now_s, now_s + AGAIN_S)
        else:
            self._near += near

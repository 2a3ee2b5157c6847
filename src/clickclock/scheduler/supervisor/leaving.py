"""Attempts whose first process has ended while something that they started has not.

It never decides how an attempt ended: that is known by now. Invariants: an attempt is over only when nothing of it is
left, so its next run, or whatever waits for its end, never meets it; what was asked to stop keeps its grace period, and
anything else is killed at once; what cannot be killed holds up the end for `GIVE_UP_S` and is named in its message.
Killing makes orphans, and orphans come to the supervisor: it looks again until there is nobody.

>>> Leaving(None, lambda name, how: None).wake_s()
inf
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from clickclock.scheduler.supervisor.descendants import Children, Kin, Kins
from clickclock.scheduler.supervisor.journal import Ending

GIVE_UP_S = 10.0
"""A killed process is gone in milliseconds, unless the kernel holds it (a hung disk) or it belongs to another user."""
LOOK_S = 0.02
"""How often /proc is walked for those that are no children of ours."""
EMPTY_LOOKS = 10
"""A walk may pass over one that forks and leaves meanwhile: where it does not come to us, so many find nobody."""
UNSURE_LOOKS = 10
"""A walk from which somebody left meanwhile counts only as one of so many parts of a walk."""
NAMED_MAX = 10
_NEVER_S = float("inf")


@dataclass(slots=True)
class _Rest:
    kin: Kin
    how: Ending
    is_near: bool
    kill_at: float
    is_adopted: bool
    empty_looks: float = 0.0


class Leaving:
    """The attempts of one supervisor that are not over. Times are seconds of the monotonic clock."""

    def __init__(self, children: Children | None, end: Callable[[str, Ending], None]) -> None:
        """`end` is called once for each attempt that was added, when it is over."""
        self._children, self._end = children, end
        self._rests: dict[str, _Rest] = {}
        self._look_at = _NEVER_S

    def __bool__(self) -> bool:
        return bool(self._rests)

    def __contains__(self, name: str) -> bool:
        return name in self._rests

    def __iter__(self) -> Iterator[str]:
        return iter(self._rests)

    def add(self, kin: Kin, how: Ending, *, is_adopted: bool, kill_at: float) -> None:
        """Its first process has ended thus. Unless it `is_adopted`, its other processes become ours with time."""
        self._rests[kin.name] = _Rest(kin, how, not is_adopted and self.sees(kin), kill_at, is_adopted)
        self._look_at = 0.0

    def sees(self, kin: Kin) -> bool:
        """Whether all that such an attempt leaves comes to us: a child of a detached process, which stays, does not."""
        return self._children is not None and not kin.keeps_detached

    def hurry(self, name: str, kill_at: float) -> None:
        """Kill what is left at this time, if that is sooner."""
        self._rests[name].kill_at = min(self._rests[name].kill_at, kill_at)
        self._look_at = 0.0

    def wake_s(self) -> float:
        """When to look again, if no child of ours ends before; infinity if nobody is leaving."""
        return self._look_at

    def look(self, now_s: float) -> None:
        """End those of whom nothing is left, and kill what is left of the others."""
        is_due, next_look_s = now_s >= self._look_at, _NEVER_S
        far = Kins([rest.kin for rest in self._rests.values() if is_due and not rest.is_near])
        left: dict[str, list[int]] = {}
        for kin, pid in far.find():
            left.setdefault(kin.name, []).append(pid)
            if now_s >= self._rests[kin.name].kill_at:
                far.kill(pid)
        for name, rest in list(self._rests.items()):
            if not (rest.is_near or is_due):
                next_look_s = min(next_look_s, self._look_at)
                continue
            near = self._children if rest.is_near else None
            pids = near.of(rest.kin) if near else left.get(name, [])
            rest.empty_looks = 0.0 if pids else rest.empty_looks + (1.0 if near or far.is_sure else 1.0 / UNSURE_LOOKS)
            is_over = not pids and (not rest.is_adopted or rest.empty_looks >= EMPTY_LOOKS)
            if is_over or now_s >= rest.kill_at + GIVE_UP_S:
                del self._rests[name]
                self._end(name, {**rest.how, **_remark(rest.how, pids)})
                continue
            if near and now_s >= rest.kill_at:
                for pid in pids:
                    _kill_child(pid)
            moment_s = rest.kill_at if now_s < rest.kill_at else rest.kill_at + GIVE_UP_S
            next_look_s = min(next_look_s, moment_s, _NEVER_S if near else now_s + LOOK_S)
        self._look_at = next_look_s


def _kill_child(pid: int) -> None:
    """Our child, and its group at once, which forks faster than we look: it has our child's number until we reap it."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
        os.killpg(os.getpgid(pid), signal.SIGKILL)


def _remark(how: Ending, pids: list[int]) -> Ending:
    if not pids:
        return {}
    named = ", ".join(map(str, sorted(pids)[:NAMED_MAX]))
    remark = f"Processes that it started could not be ended: {named}. See what holds them and end them by hand."
    return {"message": f"{how['message']} {remark}" if how.get("message") else remark}

"""The processes of attempts that run or are leaving: reaped, signalled with all that they started, known to be gone.

It never decides why an attempt ends, or when. Invariants: our own child keeps its number until it is reaped here; an
adopted one, whose parent was another supervisor, is identified before it is signalled; an end is reported once, when
nothing of the attempt is left.

`Processes(journal, clock, conclude).signal(["0193…-1"], signal.SIGTERM)`
"""

import os
import signal
from collections.abc import Callable, Collection
from contextlib import suppress

from clickclock.foundation.clock import SystemClock
from clickclock.scheduler.supervisor.descendants import Kin, Kins, see_children
from clickclock.scheduler.supervisor.journal import Attempt, Ending, Journal
from clickclock.scheduler.supervisor.leaving import Leaving
from clickclock.scheduler.supervisor.spawn import start_ticks

DETACHES_WITHIN_S = 1.0
"""A daemon forks before it makes a session of its own, and its parent may end between the two."""


class Processes:
    """All processes of one supervisor. Times are seconds of the monotonic clock."""

    def __init__(self, journal: Journal, clock: SystemClock, conclude: Callable[[str, Ending], None]) -> None:
        """`conclude` is called when an attempt is over, with how its first process ended."""
        self._journal, self._clock, self._conclude = journal, clock, conclude
        self.running: dict[int, str] = {}
        """Attempts by their first process."""
        self.adopted: dict[int, int] = {}
        """Pidfds of those first processes that are no children of ours."""
        self._children = see_children()
        self._leaving = Leaving(self._children, conclude)
        self._kill_at: dict[str, float] = {}

    def __bool__(self) -> bool:
        return bool(self.running or self._leaving)

    @property
    def names(self) -> list[str]:
        """The attempts that are not over."""
        return [*self.running.values(), *self._leaving]

    def wake_s(self) -> float:
        """When `reap` has something to do, if no child ends before."""
        return self._leaving.wake_s()

    def pid(self, name: str) -> int:
        """The first process of an attempt that has not ended; 0 if it has, or was not started."""
        attempt = self._journal.attempts.get(name, {})
        return 0 if "exit" in attempt else attempt.get("pid", 0)

    def is_there(self, name: str) -> bool:
        """Whether an attempt's first process runs, and has its number still."""
        pid = self.pid(name)
        return pid in self.running and (pid not in self.adopted or is_alive(self._journal.attempts[name]))

    def kill_at(self, name: str, moment_s: float) -> None:
        """What the first process leaves may stay until then, if it was asked to end."""
        if name in self._leaving:
            self._leaving.hurry(name, moment_s)
        else:
            self._kill_at[name] = min(moment_s, self._kill_at.get(name, moment_s))

    def signal(self, names: Collection[str], *numbers: signal.Signals) -> None:
        """Signal all that these attempts consist of: each first process with its group, then whoever left that."""
        kins = [self._kin(name, leads=True) for name in names if self.is_there(name)]
        for kin in kins:
            for number in numbers:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(kin.leader, number)
        everyone = Kins(kins)
        for kin, pid in everyone.find():
            with suppress(ProcessLookupError):
                if os.getpgid(pid) != kin.leader:
                    everyone.send(pid, *numbers)

    def reap(self) -> None:
        """Take in whoever ended, and end what is to end with it."""
        ended: list[tuple[str, Ending]] = []
        is_news = False
        while (each := _wait()) is not None:
            pid, how = each
            is_news = True
            if (name := self.running.pop(pid, None)) is not None:
                ended.append((name, how))
            elif self._children is not None:
                self._children.reaped(pid)
        if self._children is not None and (ended or (is_news and self._leaving)):
            self._children.look(self.running)
        for name, how in ended:
            self.leave(name, how)
        if self._leaving and (is_news or self._clock.monotonic_s() >= self._leaving.wake_s()):
            self._leaving.look(self._clock.monotonic_s())

    def leave(self, name: str, how: Ending, *, is_adopted: bool = False) -> None:
        """An attempt's first process, which was our child unless it `is_adopted`, has ended thus."""
        kin, now_s = self._kin(name, leads=False), self._clock.monotonic_s()
        settled_s = now_s + DETACHES_WITHIN_S if kin.keeps_detached else now_s
        kill_at = max(now_s, self._kill_at.pop(name, settled_s))
        is_near = self._leaving.sees(kin) and not is_adopted
        if is_near and self._children is not None and not self._children.of(kin):
            self._conclude(name, how)
            return
        self._journal.note(Attempt(name=name, result=how))
        self._leaving.add(kin, how, is_adopted=is_adopted, kill_at=kill_at)

    def _kin(self, name: str, *, leads: bool) -> Kin:
        attempt = self._journal.attempts[name]
        return Kin(name, attempt.get("pid", 0), leads, attempt.get("keeps_detached", False))


def _wait() -> tuple[int, Ending] | None:
    """A child that has ended, and how; None if none has."""
    try:
        pid, status, usage = os.wait4(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    if pid == 0:
        return None
    code = os.waitstatus_to_exitcode(status)
    how = Ending(kind="code", code=code) if code >= 0 else Ending(kind="signal", signal=-code)
    how["cpu_seconds"] = round(usage.ru_utime + usage.ru_stime, 6)
    how["max_memory_bytes"] = usage.ru_maxrss * 1024
    return pid, how


def is_alive(attempt: Attempt) -> bool:
    """Whether the process with the attempt's number is still the attempt's."""
    tick, (first, last) = start_ticks(attempt["pid"]), attempt["born"]
    return tick is not None and first <= tick <= last

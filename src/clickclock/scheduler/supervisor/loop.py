"""The supervisor's loop: requests in, processes out, exits into the journal and to the service, limits kept.

It never forgets by itself and never starts a name twice: a name in the journal is known until the service forgets it,
and the service forgets a name only after its ending is recorded for good and it will not ask again.
Invariants: one supervisor per folder (a lock that dies with its holder); one service at a time, the newest; an attempt
is in the journal before it is spawned; what a command leaves running in its process group ends with it; with nothing
running there are no wake-ups, and with nothing running and no service there is no supervisor.

`Supervisor("/var/lib/clickclock/supervisor", listener).run()` returns when it is no longer needed.
"""

import heapq
import os
import selectors
import signal
import socket
from collections.abc import Callable
from typing import Any

from clickclock.foundation.clock import SystemClock
from clickclock.scheduler.supervisor.journal import Attempt, Ending, Journal
from clickclock.scheduler.supervisor.link import Link
from clickclock.scheduler.supervisor.news import News
from clickclock.scheduler.supervisor.spawn import (
    ATTEMPT_VARIABLE,
    Launch,
    NotStarted,
    Spawner,
    age_s,
    allow_descriptors,
    cut_log,
    find_attempts,
    is_leader,
    log_path,
    open_log,
    start_ticks,
    ticks_now,
)
from clickclock.scheduler.supervisor.waiting import HOLD_S_MAX, Moments, Waiting, is_held

TURN_S = 0.001
"""How long spawning may go on before exits and requests get their turn."""
LOOK_S_MIN, LOOK_S_MAX = 0.25, 4.0
"""How often logs are measured: while they grow, and while they are quiet."""
UNCLAIMED_S = 10.0
"""How long a fresh supervisor waits for the service that started it."""
RETRY_S = 1.0
"""How soon a journal write that failed is tried again."""
STOOD_STILL_S = 3.0
"""Who finds a moment so long past that it was to hold for has stood still. Whose attempt it was may have lost its lease
meanwhile, and another may run it: it is given back."""


class Supervisor:
    """State and loop of one supervisor process."""

    def __init__(self, folder: str, listener: socket.socket) -> None:
        self._logs = os.path.join(os.path.dirname(folder), "logs")
        self._clock = SystemClock()
        self._spawner = Spawner()
        self._selector = selectors.DefaultSelector()
        self._environment: dict[str, str] = {}
        self._log_bytes_max: int | None = None
        self._waiting = Waiting(self._let_go)
        self._running: dict[int, str] = {}
        self._adopted: dict[int, int] = {}
        self._news = News()
        self._timers: list[tuple[float, str, str]] = []
        self._sizes: dict[str, int] = {}
        self._look_s, self._look_at = LOOK_S_MIN, float("inf")
        self._leave_at = self._clock.monotonic_s() + UNCLAIMED_S
        self._write_again_at = 0.0
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            self._journal = Journal(os.path.join(folder, "journal"), file.read().strip())
        self._catch_signals()
        self._adopt_all()
        self._link = Link(listener, self._selector, self._greet, self._obey)

    def run(self) -> None:
        """Serve until there is nothing to run and nobody to serve."""
        while not (self._idle() and self._clock.monotonic_s() >= self._leave_at):
            for key, _ in self._selector.select(self._wait_s()):
                key.data()
            self._spawn_some()
            self._reap()
            self._keep_limits()
            self._report()

    def _idle(self) -> bool:
        return not (self._running or self._waiting or self._link.connected or self._journal.pending)

    def _wait_s(self) -> float | None:
        now_s = self._clock.monotonic_s()
        moments = [self._look_at if self._running else float("inf"), self._waiting.wake_s()]
        moments.append(self._news.wake_s(starts_wait=self._waiting.is_behind))
        if self._timers:
            moments.append(self._timers[0][0])
        moments += [self._leave_at] if self._idle() else []
        moments += [self._write_again_at] if self._journal.pending else []
        wait_s = min(moments) - now_s
        return None if wait_s == float("inf") else max(0.0, wait_s)

    def _watch(self, source: socket.socket | int, act: Callable[[], object]) -> None:
        self._selector.register(source, selectors.EVENT_READ, act)

    def _catch_signals(self) -> None:
        bell, clapper = socket.socketpair()
        bell.setblocking(False)
        clapper.setblocking(False)
        signal.set_wakeup_fd(clapper.fileno(), warn_on_full_buffer=False)
        self._clapper = clapper
        signal.pthread_sigmask(signal.SIG_SETMASK, ())  # whatever the service had blocked when it started us
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            # Stopping the service, or closing its terminal, must not stop its jobs.
            signal.signal(number, signal.SIG_IGN)
        self._watch(bell, lambda: bell.recv(4096))

    # The service's side.

    def _obey(self, request: dict[str, Any]) -> None:
        answer: dict[str, Any] = {"done": request["id"]}
        match request["do"]:
            case "hello":
                self._environment, self._log_bytes_max = request["environment"], request["log_bytes_max"]
            case "start":
                self._journal.forget(request["forget"])
                try:
                    self._start(request["launches"])
                except OSError as error:
                    answer["error"] = f"The supervisor cannot write its journal: {error.strerror}."
            case "stop":
                self._reap()  # whoever ended before the request came was not stopped by it
                for name in request["names"]:
                    self._stop(name, "stopped", request["grace_s"])
            case "forget":
                self._journal.forget(request["names"])
        self._link.send(answer)

    def _greet(self) -> dict[str, Any]:
        self._leave_at = 0.0
        self._news.clear()
        return {"holds_s": HOLD_S_MAX, "attempts": [self._told(name) for name in self._journal.attempts]}

    def _start(self, launches: list[Launch]) -> None:
        fresh = {launch["name"]: launch for launch in launches if launch["name"] not in self._journal.attempts}
        if not fresh:
            return
        now_s, epoch_s = self._clock.monotonic_s(), self._clock.epoch_s()
        moments = {name: epoch_s + launch.get("not_before", 0.0) for name, launch in fresh.items()}
        self._journal.accept(
            [
                Attempt(
                    name=name,
                    timeout_s=launch.get("timeout_s"),
                    grace_s=launch.get("grace_s", 10.0),
                    held=is_held(now_s, moments[name]),
                )
                for name, launch in fresh.items()
            ]
        )
        for name, launch in fresh.items():
            self._waiting.add(launch, now_s, moments[name])

    def _told(self, name: str) -> dict[str, Any]:
        attempt = self._journal.attempts[name]
        return {"name": name, "at": attempt.get("at"), "exit": attempt.get("exit")}

    def _report(self) -> None:
        """What happened in this turn: first to the journal, in one write, then to the service, in one message."""
        try:
            if self._clock.monotonic_s() >= self._write_again_at:
                self._journal.flush()
        except OSError:
            # The disk is full or failing. Jobs run on, their ends are kept in memory, and the write is tried again.
            self._write_again_at = self._clock.monotonic_s() + RETRY_S
        if names := self._news.take(self._clock.monotonic_s(), starts_wait=self._waiting.is_behind):
            self._link.send({"seen": [self._told(name) for name in names if name in self._journal.attempts]})
        self._link.flush()

    # The processes' side.

    def _spawn_some(self) -> None:
        until = self._clock.monotonic_s() + TURN_S
        while (launch := self._waiting.take(self._clock.monotonic_s())) is not None:
            if self._is_wanted(launch["name"]):
                self._spawn(launch)
            if self._clock.monotonic_s() > until:
                break

    def _let_go(self, now_s: float, near: Moments) -> None:
        """Those that were held may be spawned from now on; who is not in the journal as such never was."""
        waiting = [(moment_s, launch["name"]) for moment_s, launch in near if self._is_wanted(launch["name"])]
        missed = [name for moment_s, name in waiting if now_s - moment_s > STOOD_STILL_S]
        if len(missed) < len(waiting):
            self._journal.let_go([name for _, name in waiting if name not in missed])
        for name in missed:
            self._end(name, "unstarted", message="The process supervisor stood still over the attempt's time.")

    def _is_wanted(self, name: str) -> bool:
        return "exit" not in self._journal.attempts.get(name, {"exit": {}})

    def _spawn(self, launch: Launch) -> None:
        name = launch["name"]
        environment = {**self._environment, **launch["environment"], ATTEMPT_VARIABLE: name}
        at, first_tick = self._now(), ticks_now()
        try:
            log = open_log(log_path(self._logs, name))
        except (OSError, ValueError) as error:
            self._end(name, "notStarted", message=f"The attempt's log cannot be opened: {error}.")
            return
        try:
            pid = self._spawner.spawn(launch, environment, log)
        except NotStarted as error:
            self._end(name, "notStarted", message=str(error))
            return
        finally:
            os.close(log)
        # Its birth is known without /proc/<pid>/stat, which can be read only once the program is loaded.
        # If we die before this is written, the environment in /proc tells whose process it is.
        self._journal.note(Attempt(name=name, pid=pid, born=(first_tick, ticks_now()), at=at))
        self._begin(name, pid, 0.0)
        self._news.started(name, self._clock.monotonic_s())

    def _begin(self, name: str, pid: int, elapsed_s: float) -> None:
        self._running[pid] = name
        self._look_s = LOOK_S_MIN
        self._look_at = min(self._look_at, self._clock.monotonic_s() + LOOK_S_MIN)
        timeout_s = self._journal.attempts[name].get("timeout_s")
        if timeout_s is not None:
            self._set_timer(timeout_s - elapsed_s, name, "timeout")

    def _set_timer(self, delay_s: float, name: str, what: str) -> None:
        if len(self._timers) > 64 + 4 * len(self._running):
            self._timers = [timer for timer in self._timers if self._pid(timer[1]) is not None]
            heapq.heapify(self._timers)
        heapq.heappush(self._timers, (self._clock.monotonic_s() + delay_s, name, what))

    def _pid(self, name: str) -> int | None:
        """The process of an attempt that runs."""
        attempt = self._journal.attempts.get(name, {})
        return None if "exit" in attempt else attempt.get("pid")

    def _stop(self, name: str, why: str, grace_s: float) -> None:
        attempt = self._journal.attempts.get(name)
        if attempt is None or "exit" in attempt:
            return
        pid = self._pid(name)
        if pid is None:
            self._end(name, why, message="Stopped before it was started.")
            return
        if "stopping" not in attempt:
            self._journal.note(Attempt(name=name, stopping=why))
        self._signal(pid, signal.SIGTERM)
        self._signal(pid, signal.SIGCONT)  # a suspended process could not hear it
        self._set_timer(grace_s, name, "kill")

    def _signal(self, pid: int, number: signal.Signals) -> None:
        """Signal the whole group. Our own child holds its number until reaped; an adopted one is asked who it is."""
        if pid in self._adopted and not _is_alive(self._journal.attempts[self._running[pid]]):
            return
        try:
            os.killpg(pid, number)
        except (ProcessLookupError, PermissionError):
            return

    def _reap(self) -> None:
        while self._running:
            try:
                info = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if info is None:
                return
            pid = info.si_pid
            self._signal(pid, signal.SIGKILL)  # while the zombie keeps the group's number from being used again
            _, status, usage = os.wait4(pid, 0)
            name = self._running.pop(pid, None)
            if name is None:
                continue
            result = os.waitstatus_to_exitcode(status)
            how = Ending(code=result) if result >= 0 else Ending(signal=-result)
            how["cpu_seconds"] = round(usage.ru_utime + usage.ru_stime, 6)
            how["max_memory_bytes"] = usage.ru_maxrss * 1024
            self._end(name, "code" if result >= 0 else "signal", how)

    def _end(self, name: str, kind: str, how: Ending | None = None, message: str | None = None) -> None:
        ending: Ending = {**(how or {}), "kind": self._journal.attempts[name].get("stopping", kind), "at": self._now()}
        if message is not None:
            ending["message"] = message
        self._cut(name)
        self._sizes.pop(name, None)
        self._journal.note(Attempt(name=name, exit=ending))
        self._news.ended(name)

    def _now(self) -> float:
        return self._clock.now().timestamp()

    # Limits.

    def _keep_limits(self) -> None:
        now = self._clock.monotonic_s()
        while self._timers and self._timers[0][0] <= now:
            _, name, what = heapq.heappop(self._timers)
            pid = self._pid(name)
            if pid is None:
                continue
            if what == "kill":
                self._signal(pid, signal.SIGKILL)
            else:
                self._stop(name, "timeout", self._journal.attempts[name]["grace_s"])
        if not self._running:
            self._look_at = float("inf")
        elif now >= self._look_at:
            grew = [name for name in self._running.values() if self._cut(name)]
            self._look_s = LOOK_S_MIN if grew else min(2 * self._look_s, LOOK_S_MAX)
            self._look_at = now + self._look_s

    def _cut(self, name: str) -> bool:
        """Hold a log to its limit; whether it has grown since the last look."""
        if self._log_bytes_max is None:
            return False
        try:
            size = cut_log(log_path(self._logs, name), self._log_bytes_max)
        except (OSError, ValueError):
            return False
        before, self._sizes[name] = self._sizes.get(name, 0), size
        return size != before

    # After the death of another supervisor.

    def _adopt_all(self) -> None:
        living = [attempt for attempt in self._journal.attempts.values() if "exit" not in attempt]
        held = {attempt["name"] for attempt in living if attempt.get("held")}
        unrecorded = {attempt["name"] for attempt in living if "pid" not in attempt} - held
        found = find_attempts(unrecorded) if not self._journal.rebooted else {}
        allow_descriptors(len(living))  # to watch one that is adopted takes one, to watch our own none
        for attempt in living:
            name = attempt["name"]
            if self._journal.rebooted:
                self._end(name, "lost", message="The machine restarted while the attempt ran.")
                continue
            if name in held:
                self._end(name, "unstarted", message="The process supervisor died before the attempt's time.")
                continue
            if name in unrecorded:
                pid = next(iter(found.get(name, ())), 0)
                if not is_leader(pid):
                    self._end_strays(name, found)
                    self._end(name, "lost", message="The process supervisor died: the attempt may or may not have run.")
                    continue
                tick = start_ticks(pid) or 0
                self._journal.note(Attempt(name=name, pid=pid, born=(tick, tick), at=self._now() - age_s(tick)))
            self._adopt(attempt)

    def _adopt(self, attempt: Attempt) -> None:
        name, pid = attempt["name"], attempt["pid"]
        try:
            watch = os.pidfd_open(pid)
        except ProcessLookupError:
            watch = -1
        if watch < 0 or not _is_alive(attempt):
            self._adopted_ended(name)
            return
        self._adopted[pid] = watch
        self._watch(watch, lambda: self._adopted_gone(pid))
        self._begin(name, pid, age_s(attempt["born"][0]))
        self._news.ended(name)
        if "stopping" in attempt:
            self._stop(name, attempt["stopping"], attempt["grace_s"])

    def _adopted_gone(self, pid: int) -> None:
        watch = self._adopted.pop(pid)
        self._selector.unregister(watch)
        os.close(watch)
        self._adopted_ended(self._running.pop(pid))

    def _adopted_ended(self, name: str) -> None:
        self._end_strays(name, find_attempts({name}))
        stopping = "stopping" in self._journal.attempts[name]  # then that is how it ended, and nothing is unknown
        sentence = "The process supervisor died before the attempt ended: its exit is unknown."
        self._end(name, "lost", message=None if stopping else sentence)

    def _end_strays(self, name: str, found: dict[str, list[int]]) -> None:
        """End what is left of the group of an attempt whose first process is gone; a daemon's own session is let be."""
        leader = self._journal.attempts[name].get("pid")
        for pid in found.get(name, ()):
            try:
                session = os.getsid(pid)
                if session == leader or (leader is None and start_ticks(session) is None):
                    os.killpg(os.getpgid(pid), signal.SIGKILL)
            except ProcessLookupError:
                continue


def _is_alive(attempt: Attempt) -> bool:
    """Whether the process with the attempt's number is still the attempt's."""
    tick, (first, last) = start_ticks(attempt["pid"]), attempt["born"]
    return tick is not None and first <= tick <= last

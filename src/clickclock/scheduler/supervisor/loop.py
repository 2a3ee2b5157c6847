"""The supervisor's loop: requests in, processes out, exits into the journal and to the service, limits kept.

It never forgets by itself and never starts a name twice: a name in the journal is known until the service forgets it,
and the service forgets a name only after its ending is recorded for good and it will not ask again.
Invariants: one supervisor per folder (a lock that dies with its holder); one service at a time, the newest; an attempt
is in the journal before it is spawned; an attempt is over when its first process has ended and nothing that it started
is left (`leaving.py`); with nothing running there are no wake-ups, and with no service either there is no supervisor.

`Supervisor("/var/lib/clickclock/supervisor", listener).run()` returns when it is no longer needed.
"""

import heapq
import os
import selectors
import signal
import socket
from collections.abc import Callable, Collection, Mapping
from typing import Any

from clickclock.foundation.clock import SystemClock
from clickclock.scheduler.supervisor.attempt_log import LOOK_S_MIN, hold, keeps_ends, log_path, look_again_s, open_log
from clickclock.scheduler.supervisor.descendants import Kin, Kins, put_mark
from clickclock.scheduler.supervisor.detached import Detached
from clickclock.scheduler.supervisor.forked import Launch, keep_capabilities
from clickclock.scheduler.supervisor.journal import Attempt, Ending, Journal
from clickclock.scheduler.supervisor.link import Link
from clickclock.scheduler.supervisor.news import News
from clickclock.scheduler.supervisor.processes import Processes, is_alive
from clickclock.scheduler.supervisor.program import NotStarted
from clickclock.scheduler.supervisor.spawn import (
    ATTEMPT_VARIABLE,
    Spawner,
    age_s,
    allow_descriptors,
    is_leader,
    start_ticks,
    ticks_now,
)
from clickclock.scheduler.supervisor.waiting import HOLD_S_MAX, Moments, Waiting, is_held

TURN_S = 0.001
"""How long spawning may go on before exits and requests get their turn."""
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
        self._ends_kept = False
        self._waiting = Waiting(self._let_go)
        self._news = News()
        self._timers: list[tuple[float, str, str]] = []
        self._sizes: dict[str, int] = {}
        self._look_s, self._look_at = LOOK_S_MIN, float("inf")
        self._leave_at = self._clock.monotonic_s() + UNCLAIMED_S
        self._write_again_at = 0.0
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            self._journal = Journal(os.path.join(folder, "journal"), file.read().strip())
        self._processes = Processes(self._journal, self._clock, self._conclude)
        self._detached = Detached(self._logs)
        keep_capabilities()
        self._catch_signals()
        self._adopt_all()
        self._link = Link(listener, self._selector, self._greet, self._obey)

    def run(self) -> None:
        """Serve until there is nothing to run and nobody to serve."""
        while not (self._idle() and self._clock.monotonic_s() >= self._leave_at):
            for key, _ in self._selector.select(self._wait_s()):
                key.data()
            self._spawn_some()
            self._processes.reap()
            self._keep_limits()
            self._report()

    def _idle(self) -> bool:
        is_quiet = not (self._processes or self._waiting or self._detached)
        return is_quiet and not (self._link.connected or self._journal.pending)

    def _wait_s(self) -> float | None:
        now_s = self._clock.monotonic_s()
        moments = [self._look_at, self._detached.wake_s(), self._waiting.wake_s(), self._processes.wake_s()]
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
                self._ends_kept = keeps_ends(self._logs)
                if (umask := request.get("umask")) is not None:
                    os.umask(umask)  # for jobs: each file of ours is made with a mode of its own
            case "start":
                self._journal.forget(request["forget"])
                try:
                    self._start(request["launches"])
                except OSError as error:
                    answer["error"] = f"The supervisor cannot write its journal: {error.strerror}."
            case "stop":
                self._processes.reap()  # whoever ended before the request came was not stopped by it
                self._stop(dict.fromkeys(request["names"], request["grace_s"]), "stopped")
            case "forget":
                self._journal.forget(request["names"])
        self._link.send(answer)

    def _greet(self) -> dict[str, Any]:
        self._leave_at = 0.0
        self._news.clear()
        return {
            "holds_s": HOLD_S_MAX,
            "changes_users": True,
            "attempts": [self._told(name) for name in self._journal.attempts],
        }

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
                    **({"keeps_detached": True} if launch.get("keep_detached") else {}),
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
            sentence = "The process supervisor stood still over the attempt's time."
            self._end(name, {"kind": "unstarted", "message": sentence})

    def _is_wanted(self, name: str) -> bool:
        return "exit" not in self._journal.attempts.get(name, {"exit": {}})

    def _spawn(self, launch: Launch) -> None:
        name = launch["name"]
        environment = {**self._environment, **launch["environment"], ATTEMPT_VARIABLE: name}
        at, first_tick = self._now(), ticks_now()
        try:
            log = open_log(log_path(self._logs, name))
        except (OSError, ValueError) as error:
            self._end(name, {"kind": "notStarted", "message": f"The attempt's log cannot be opened: {error}."})
            return
        try:
            put_mark(name)
            pid = self._spawner.spawn(launch, environment, log)
        except NotStarted as error:
            self._end(name, {"kind": "notStarted", "message": str(error)})
            return
        finally:
            os.close(log)
        # Its birth is known without /proc/<pid>/stat, which can be read only once the program is loaded.
        # If we die before this is written, its mark tells whose process it is.
        self._journal.note(Attempt(name=name, pid=pid, born=(first_tick, ticks_now()), at=at))
        self._begin(name, pid, 0.0)
        self._news.started(name, self._clock.monotonic_s())

    def _begin(self, name: str, pid: int, elapsed_s: float) -> None:
        self._processes.running[pid] = name
        self._look_s = LOOK_S_MIN
        self._look_at = min(self._look_at, self._clock.monotonic_s() + LOOK_S_MIN)
        timeout_s = self._journal.attempts[name].get("timeout_s")
        if timeout_s is not None:
            self._set_timer(timeout_s - elapsed_s, name, "timeout")

    def _set_timer(self, delay_s: float, name: str, what: str) -> None:
        if len(self._timers) > 64 + 4 * len(self._processes.running):
            self._timers = [timer for timer in self._timers if self._processes.pid(timer[1])]
            heapq.heapify(self._timers)
        heapq.heappush(self._timers, (self._clock.monotonic_s() + delay_s, name, what))

    def _stop(self, graces_s: Mapping[str, float], why: str) -> None:
        """Ask attempts to end, all that they consist of, and kill what is left after their grace periods."""
        asked = []
        for name, grace_s in graces_s.items():
            attempt = self._journal.attempts.get(name)
            if attempt is None or "exit" in attempt:
                continue
            if self._processes.pid(name) == 0:
                self._end(name, {"kind": why, "message": "Stopped before it was started."})
                continue
            self._processes.kill_at(name, self._clock.monotonic_s() + grace_s)
            if self._processes.is_there(name):
                if "stopping" not in attempt:
                    self._journal.note(Attempt(name=name, stopping=why))
                self._set_timer(grace_s, name, "kill")
                asked.append(name)
        self._processes.signal(asked, signal.SIGTERM, signal.SIGCONT)  # a suspended process could not hear the first

    def _conclude(self, name: str, how: Ending) -> None:
        self._end(name, {**how, "kind": self._journal.attempts[name].get("stopping", how["kind"])})

    def _end(self, name: str, how: Ending) -> None:
        self._hold(name)
        self._sizes.pop(name, None)
        if self._journal.attempts[name].get("keeps_detached"):
            self._detached.expect(self._clock.monotonic_s())
        self._journal.note(Attempt(name=name, exit={**how, "at": self._now()}))
        self._news.ended(name)

    def _now(self) -> float:
        return self._clock.now().timestamp()

    # Limits.

    def _keep_limits(self) -> None:
        now = self._clock.monotonic_s()
        due: dict[str, list[str]] = {"kill": [], "timeout": []}
        while self._timers and self._timers[0][0] <= now:
            _, name, what = heapq.heappop(self._timers)
            if self._processes.is_there(name):
                due[what].append(name)
        self._processes.signal(due["kill"], signal.SIGKILL)
        self._stop({name: self._journal.attempts[name]["grace_s"] for name in due["timeout"]}, "timeout")
        if now >= self._detached.wake_s():
            self._detached.look(now, self._processes.names)
            self._sizes = {name: self._sizes.get(name, 0) for name in self._logs_written()}
            self._look_at = min(self._look_at, now + LOOK_S_MIN)
        if now >= self._look_at:
            self._look_at = float("inf")
            if names := self._logs_written():
                grown = max([self._hold(name) for name in names])
                self._look_s = look_again_s(grown, self._look_s, self._log_bytes_max or 0, running=len(names))
                self._look_at = now + self._look_s

    def _logs_written(self) -> list[str]:
        return [*self._processes.names, *self._detached.names]

    def _hold(self, name: str) -> int:
        """Hold a log to its limit; by how many bytes its size has changed since the last look."""
        if self._log_bytes_max is None:
            return 0
        try:
            size = hold(log_path(self._logs, name), self._log_bytes_max, ends_kept=self._ends_kept)
        except (OSError, ValueError):
            return 0
        before, self._sizes[name] = self._sizes.get(name, 0), size
        return abs(size - before)

    # After the death of another supervisor.

    def _adopt_all(self) -> None:
        living = [attempt for attempt in self._journal.attempts.values() if "exit" not in attempt]
        held = {attempt["name"] for attempt in living if attempt.get("held")}
        unrecorded = {attempt["name"] for attempt in living if "pid" not in attempt} - held
        found = {} if self._journal.rebooted else self._first_processes(unrecorded)
        allow_descriptors(len(living))  # to watch one that is adopted takes one, to watch our own none
        for attempt in living:
            name = attempt["name"]
            if self._journal.rebooted:
                self._end(name, {"kind": "lost", "message": "The machine restarted while the attempt ran."})
            elif name in held:
                sentence = "The process supervisor died before the attempt's time."
                self._end(name, {"kind": "unstarted", "message": sentence})
            elif name in unrecorded and name not in found:
                sentence = "The process supervisor died: the attempt may or may not have run."
                self._processes.leave(name, {"kind": "lost", "message": sentence}, is_adopted=True)
            else:
                if name in found:
                    tick = start_ticks(found[name]) or 0
                    at = self._now() - age_s(tick)
                    self._journal.note(Attempt(name=name, pid=found[name], born=(tick, tick), at=at))
                self._adopt(attempt)

    def _first_processes(self, names: Collection[str]) -> dict[str, int]:
        """Of attempts whose start was not recorded, those that run: each leads the session that it was given."""
        kins = Kins([Kin(name, 0, leads=False, keeps_detached=False) for name in names])
        leaders = [(start_ticks(pid) or 0, kin.name, pid) for kin, pid in kins.find() if is_leader(pid)]
        return {name: pid for _, name, pid in sorted(leaders, reverse=True)}

    def _adopt(self, attempt: Attempt) -> None:
        name, pid = attempt["name"], attempt["pid"]
        try:
            watch = os.pidfd_open(pid)
        except ProcessLookupError:
            watch = -1
        if watch < 0 or "result" in attempt or not is_alive(attempt):
            self._adopted_ended(name)
            return
        self._processes.adopted[pid] = watch
        self._watch(watch, lambda: self._adopted_gone(pid))
        self._begin(name, pid, age_s(attempt["born"][0]))
        self._news.ended(name)
        if "stopping" in attempt:
            self._stop({name: attempt["grace_s"]}, attempt["stopping"])

    def _adopted_gone(self, pid: int) -> None:
        watch = self._processes.adopted.pop(pid)
        self._selector.unregister(watch)
        os.close(watch)
        self._adopted_ended(self._processes.running.pop(pid))

    def _adopted_ended(self, name: str) -> None:
        attempt = self._journal.attempts[name]
        how = attempt.get("result", Ending(kind="lost"))
        if not attempt.keys() & {"result", "stopping"}:  # if it was stopped, that is how it ended
            how["message"] = "The process supervisor died before the attempt ended: its exit is unknown."
        self._processes.leave(name, how, is_adopted=True)

"""`/metrics`: what Prometheus is shown of one replica.

Never asks the store, so that it answers while the store is away, and never has a label that a job, a user or a caller
can name: however many jobs there are, the page is as long. Invariants: a code that was not found is there as 0; each
trigger is counted by one replica, so numbers of all replicas may be summed up.

>>> [family.name for family in Measures.families_of("0.1.0")][0]
'clickclock_build_info'
"""

import os
import platform
import resource
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clickclock.foundation.commit import commit
from clickclock.foundation.measure import Family, text
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.insight.finding import RULES
from clickclock.scheduler.insight.statistics import Ending

LAGS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 3600.0)
DURATIONS_S: Final = (0.01, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0)
ANSWERS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER: Final = "other"
ATTRIBUTION: Final = "/attribution/"
_STAT: Final = Path("/proc/self/stat")
_BOOT: Final = Path("/proc/stat")


class Measures:
    """The numbers of one replica. Its methods are called on the loop alone."""

    def __init__(self, engine: Engine, paths: Sequence[str]) -> None:
        """`paths` are those with a label of their own; all others share one."""
        self._engine = engine
        self._paths = frozenset(paths)
        self._families = {family.name: family for family in self.families_of(engine.version)}
        self._concluded = self._families["clickclock_triggers_concluded_total"]
        self._lags = self._families["clickclock_trigger_lag_seconds"]
        self._durations = self._families["clickclock_trigger_duration_seconds"]
        self._requests = self._families["clickclock_http_requests_total"]
        self._answers = self._families["clickclock_http_request_duration_seconds"]
        self._writes = self._families["clickclock_store_write_duration_seconds"]
        self._process = {name: family for name, family in self._families.items() if name.startswith("process_")}
        self._process["process_start_time_seconds"].set(_started_s())
        engine.store.statistics.on_counted = self.counted
        engine.store.on_write = self._writes.observe

    @staticmethod
    def families_of(version: str) -> tuple[Family, ...]:
        """Every family, as it is when nothing has happened."""
        build = Family("clickclock_build_info", "gauge", "1, with what runs here.", ("version", "commit", "python"))
        build.set(1, version, commit() or "unknown", platform.python_version())
        return (
            build,
            Family("clickclock_findings", "gauge", "What is wrong now, counted, by its code.", ("code", "severity")),
            Family("clickclock_scan_timestamp_seconds", "gauge", "When that was looked for, in seconds since 1970."),
            Family("clickclock_scan_duration_seconds", "gauge", "How long the look took."),
            Family(
                "clickclock_loop_overdue_seconds",
                "gauge",
                "How long a loop is over the time in which it meant to step.",
                ("loop",),
            ),
            Family(
                "clickclock_triggers",
                "gauge",
                "Triggers that wait, and that start or run, of all replicas, as of the last scan.",
                ("state",),
            ),
            Family("clickclock_jobs", "gauge", "Jobs, as of the last scan."),
            Family("clickclock_schedules", "gauge", "Schedules, as of the last scan."),
            Family(
                "clickclock_triggers_concluded_total",
                "counter",
                "Triggers that ended, a moment after it, by their last state.",
                ("state",),
            ),
            Family(
                "clickclock_trigger_lag_seconds",
                "histogram",
                "How long after its due time a trigger started; counted when it has ended.",
                bounds=LAGS_S,
            ),
            Family(
                "clickclock_trigger_duration_seconds",
                "histogram",
                "How long the last attempt of a trigger ran, by the trigger's last state.",
                ("state",),
                DURATIONS_S,
            ),
            *_families_of_the_process(),
        )

    def counted(self, endings: Sequence[Ending]) -> None:
        """These triggers have ended, and are counted here and nowhere else."""
        for each in endings:
            self._concluded.add(each.count, each.state)
            if each.lag_ms is not None:
                self._lags.observe(each.lag_ms / 1000)
            if each.duration_ms is not None:
                self._durations.observe(each.duration_ms / 1000, each.state)

    def answered(self, method: str, path: str, status: int, took_s: float) -> None:
        """A request has its answer, or the beginning of one."""
        method = method if method in METHODS else OTHER
        if path not in self._paths:
            path = f"{ATTRIBUTION}*" if path.startswith(ATTRIBUTION) else OTHER
        self._requests.add(1, method, path, str(status))
        self._answers.observe(took_s, method, path)

    def text(self) -> str:
        """The page as it is now; what the first look has not found yet is not there."""
        self._look()
        return text(self._families.values())

    def _look(self) -> None:
        scanner, families = self._engine.scanner, self._families
        if (scan := scanner.last) is not None:
            counts: Counter[str] = Counter()
            for each in scan.findings:
                counts[each.code] += each.count
            for code, rule in RULES.items():
                families["clickclock_findings"].set(counts[code], code, rule.severity)
            families["clickclock_scan_timestamp_seconds"].set(scan.at.timestamp())
            families["clickclock_scan_duration_seconds"].set(scan.took_s)
        if (census := scanner.census) is not None:
            families["clickclock_triggers"].set(census.queued, "queued")
            families["clickclock_triggers"].set(census.running, "running")
            families["clickclock_jobs"].set(census.jobs)
            families["clickclock_schedules"].set(census.schedules)
        for loop in self._engine.loops():
            families["clickclock_loop_overdue_seconds"].set(loop.overdue_s, loop.name)
        if (backup := scanner.backup()) is not None and backup.verified_at is not None:
            families["clickclock_backup_verified_timestamp_seconds"].set(backup.verified_at.timestamp())
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self._process["process_cpu_seconds_total"].set(usage.ru_utime + usage.ru_stime)
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        self._process["process_resident_memory_bytes"].set(pages * resource.getpagesize())
        self._process["process_open_fds"].set(len(os.listdir("/proc/self/fd")))  # noqa: PTH208 (names are enough)
        self._process["process_max_fds"].set(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


class Measured:
    """An application whose requests are counted and timed, until the first byte of an answer."""

    def __init__(self, app: ASGIApp, measures: Measures) -> None:
        self._app = app
        self._measures = measures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let it through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun_s = perf_counter()

        async def send_and_count(message: Message) -> None:
            if message["type"] == "http.response.start":
                took_s = perf_counter() - begun_s
                self._measures.answered(scope["method"], scope["path"], message["status"], took_s)
            await send(message)

        await self._app(scope, receive, send_and_count)


def _families_of_the_process() -> tuple[Family, ...]:
    """Counts answers, writes and their times."""
    return (
        Family(
            "clickclock_http_requests_total",
            "counter",
            "Requests that were answered.",
            ("method", "path", "status"),
        ),
        Family(
            "clickclock_http_request_duration_seconds",
            "histogram",
            "How long a request waited until its answer began.",
            ("method", "path"),
            ANSWERS_S,
        ),
        Family(
            "clickclock_store_write_duration_seconds",
            "histogram",
            "How long a write waited until it was on disk.",
            bounds=ANSWERS_S,
        ),
        Family(
            "clickclock_backup_verified_timestamp_seconds",
            "gauge",
            "When the last backup was verified, in seconds since 1970; not there without one.",
        ),
        Family("process_cpu_seconds_total", "counter", "Processor time of the service's process, in seconds."),
        Family("process_resident_memory_bytes", "gauge", "Memory of the service's process."),
        Family("process_start_time_seconds", "gauge", "When the process started, in seconds since 1970."),
        Family("process_open_fds", "gauge", "Open files, connections among them."),
        Family("process_max_fds", "gauge", "Open files that the system allows."),
    )


def _started_s() -> float:
    """When this process started, as the kernel knows it."""
    ticks = int(_STAT.read_text(encoding="utf-8").rpartition(")")[2].split()[19])
    boot = next(line for line in _BOOT.read_text(encoding="ascii").splitlines() if line.startswith("btime "))
    return int(boot.split()[1]) + ticks / os.sysconf("SC_CLK_TCK")

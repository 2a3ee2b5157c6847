"""APScheduler 3 on SQLite, tuned so that it drops nothing: no misfire grace, no coalescing, a thread for every job.

Never started in this process by a benchmark: `Peer("APScheduler", folder)` runs it as a program.
Invariant: while it fires, its store is as durable as SQLite's defaults make it; only the bulk creation before a
measurement runs with `synchronous=OFF`, as that is not what is measured (`create` measures it, with the defaults).
"""

import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from sqlalchemy import create_engine, event

from tests.bench.peer import obey
from tests.bench.stamps import spawn

THREADS = 20


def start(program: str, file: str, label: str) -> None:
    """The job."""
    spawn([program, file, label])


class Orders:
    """What the benchmarks ask for."""

    def __init__(self, folder: Path) -> None:
        self._job = (str(folder / "stamp"), str(folder / "stamps"))
        self._is_durable = True
        self._engine = create_engine(f"sqlite:///{folder / 'apscheduler.db'}")
        event.listen(self._engine, "connect", self._settings)
        self._scheduler = BackgroundScheduler(
            jobstores={"default": SQLAlchemyJobStore(engine=self._engine)},
            executors={"default": ThreadPoolExecutor(THREADS)},
            job_defaults={"misfire_grace_time": None, "coalesce": False, "max_instances": 1_000_000},
            timezone=UTC,
        )
        self._scheduler.start()

    def _settings(self, connection: Any, _entry: object) -> None:
        if not self._is_durable:
            connection.execute("PRAGMA synchronous=OFF")

    def _make_durable(self, durable: bool) -> None:
        self._is_durable = durable
        self._engine.dispose()

    def due(self, at_ns: int, count: int) -> None:
        """One-off jobs, all due at one instant."""
        at = datetime.fromtimestamp(at_ns / 1e9, UTC)
        self._scheduler.pause()
        self._make_durable(False)
        for n in range(count):
            self._scheduler.add_job(start, "date", run_date=at, args=[*self._job, str(n)], id=f"{at_ns}-{n}")
        self._make_durable(True)
        self._scheduler.resume()

    def steady(self, at_ns: int, seconds: int, phases: list[float]) -> None:
        """A job a second for each phase (s), for so many seconds."""
        for n, phase in enumerate(phases):
            first = datetime.fromtimestamp(at_ns / 1e9, UTC) + timedelta(seconds=phase)
            last = first + timedelta(seconds=seconds - 0.5)
            self._scheduler.add_job(
                start, "interval", seconds=1, start_date=first, end_date=last, args=[*self._job, str(n)]
            )

    def trigger(self, label: str) -> int:
        """Run one job now; returns when that was asked for, in ns since 1970."""
        asked = time.time_ns()
        self._scheduler.add_job(start, args=[*self._job, label])
        return asked

    def create(self, count: int) -> float:
        """Create idle jobs, as durable as they are by default; returns the seconds that took."""
        begun = time.perf_counter()
        for n in range(count):
            self._scheduler.add_job(start, "interval", days=300, args=[*self._job, str(n)])
        return time.perf_counter() - begun


if __name__ == "__main__":
    obey(Orders(Path(sys.argv[1])))

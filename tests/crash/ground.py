"""The ground on which a service is killed: a data folder, a store, jobs that leave marks, and the count at the end.

A job appends one line to the marks (one write, O_APPEND) each time it runs, and ends with the exit code that follows
from its trigger's id: so the marks say what ran, the rows say what the service believes, and the two must agree.
"""

import asyncio
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from clickclock.foundation.clock import SystemClock
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.trigger import FINISHED, State, parse_attempt_name
from clickclock.scheduler.store import NewSchedule, Store
from clickclock.scheduler.store.schema import attempt, job_trigger, schedule
from clickclock.scheduler.times.schedule import Schedule, upcoming
from tests.crash.mortal import Death
from tests.crash.nursery import Child
from tests.supervisors import kill_supervisor

DEADLINE_S = 90.0
POLL_S = 0.02
REST = 4
"""Who asks takes a fifth of a core at most: whoever is waited for needs it."""
CODES = 100
MARK = (
    'code=$((0x${CLICKCLOCK_TRIGGER_ID#"${CLICKCLOCK_TRIGGER_ID%???}"} % 100)); '
    'echo "$CLICKCLOCK_TRIGGER_ID $CLICKCLOCK_ATTEMPT $$" >> "$MARKS"; '
)


def true_code(trigger_id: str) -> int:
    """The exit code of every attempt of a trigger."""
    return int(trigger_id[-3:], 16) % CODES


async def until(holds: Callable[[], Awaitable[bool]], what: str, deadline_s: float = DEADLINE_S) -> None:
    """Wait until another process has done something that has no event here."""
    try:
        async with asyncio.timeout(deadline_s):
            asked_s = time.monotonic()
            while not await holds():
                await asyncio.sleep(max(POLL_S, REST * (time.monotonic() - asked_s)))
                asked_s = time.monotonic()
    except TimeoutError:
        raise AssertionError(f"after {deadline_s:.0f} s still not: {what}") from None


@dataclass(frozen=True, slots=True)
class Mark:
    """What one run of a job left."""

    trigger_id: str
    attempt: int
    pid: int


@dataclass(slots=True)
class Tally:
    """The count: rows against marks. All three lists are empty when all is well."""

    runs: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @property
    def faults(self) -> list[str]:
        return [*self.lost, *self.doubled, *self.unknown]


class Ground:
    """One data folder and one store, over all the lives of a service."""

    def __init__(self, folder: Path, database_url: str | None = None, **settings: Any) -> None:
        """`settings` are the service's own; without `database_url` the store is SQLite in the data folder."""
        self.folder = folder
        self.marks_file = folder / "marks"
        self.config = {"data_dir": str(folder / "data"), "port": 0, "clicks": False, "log_level": "warning", **settings}
        if database_url is not None:
            self.config["database_url"] = database_url
        self.url = database_url or f"sqlite:///{folder / 'data' / 'clickclock.db'}"
        (folder / "data").mkdir(parents=True, exist_ok=True)
        self.engine = sa.create_engine(sa.make_url(self.url).set(drivername=_driver(self.url)), pool_pre_ping=True)
        self.service: Child | None = None
        self.address = ""

    # Before: what is to run.

    def job(self, job_name: str, script: str = 'exit "$code"', **more: Any) -> Job:
        """A job that leaves its mark and then runs `script`."""
        return Job.model_validate(
            {
                "application": "crash",
                "jobName": job_name,
                "command": MARK + script,
                "shell": True,
                "environment": {"MARKS": str(self.marks_file)},
                **more,
            }
        )

    async def prepare(self, jobs: Sequence[Job], plan: Callable[[datetime], Sequence[Schedule]]) -> datetime:
        """Write jobs, and the schedules that `plan` makes of now, straight into the store. Returns that moment."""
        store = await Store.open(self.url)
        now = SystemClock().now()
        await store.jobs.create(jobs, now)
        schedules = [
            NewSchedule(each, each.schedule_id, upcoming(each, each.schedule_id, each.timetable(now), now))
            for each in plan(now)
            if each.schedule_id is not None
        ]
        if schedules:
            await store.schedules.create(schedules, now)
        await store.close()
        return now

    # The lives.

    def start(self, death: Death | None = None) -> Child:
        """Start the service, doomed or not; it does not wait for anything."""
        self.service = Child("mortal", {"config": self.config, "death": death and death.as_json()})
        return self.service

    async def ready(self) -> str:
        """Wait until the service answers; returns the address of its API."""
        assert self.service is not None
        async with asyncio.timeout(DEADLINE_S):
            line = await asyncio.to_thread(self.service.stdout.readline)
        assert "is ready at " in line, f"the service said {line!r} and ended with {self.service.poll()}"
        self.address = line.split("is ready at ")[1].split(" ")[0].rstrip("/")
        return self.address

    async def died(self) -> int:
        """Wait until the service has ended; the exit code, below 0 for a signal."""
        assert self.service is not None
        service, self.service = self.service, None
        code = await asyncio.to_thread(service.wait, DEADLINE_S)
        service.stdout.close()
        return code

    async def end(self, number: signal.Signals) -> int:
        """Signal the service and wait until it has ended."""
        assert self.service is not None
        self.service.send_signal(number)
        return await self.died()

    def kill_supervisor(self) -> None:
        """`kill -9` the process that runs the jobs."""
        assert kill_supervisor(self.folder / "data")

    async def clear(self) -> None:
        """End whatever of this ground still lives."""
        if self.service is not None:
            await self.end(signal.SIGKILL)
        for pid in self.living():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.engine.dispose()

    def forget_schedules(self) -> None:
        """Delete all schedules, behind the service's back: nothing new becomes due."""
        with self.engine.begin() as connection:
            connection.execute(sa.delete(schedule))

    # After: what became of it.

    def marks(self) -> list[Mark]:
        """What ran, in order."""
        if not self.marks_file.exists():
            return []
        words = [line.split() for line in self.marks_file.read_text(encoding="ascii").splitlines()]
        return [Mark(trigger_id, int(number), int(pid)) for trigger_id, number, pid in words]

    def held(self) -> set[str]:
        """Triggers whose attempts the supervisor holds for their moment, as its journal says."""
        journal = self.folder / "data/supervisor/journal"
        is_held: dict[str, bool] = {}
        for line in journal.read_bytes().split(b"\n")[:-1] if journal.exists() else ():
            for told in json.loads(line).get("attempts", ()):
                is_held[told["name"]] = told.get("held", is_held.get(told["name"], False))
        return {parse_attempt_name(name)[0] for name, held in is_held.items() if held}

    def living(self) -> list[int]:
        """Processes of jobs of this ground that run now."""
        ours = f"MARKS={self.marks_file}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    if ours in (entry / "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
        return found

    def _read(self, statement: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        with self.engine.connect() as connection:
            return connection.execute(statement).all()

    def rows(self) -> Sequence[sa.Row[Any]]:
        """All triggers, oldest first."""
        return self._read(sa.select(job_trigger).order_by(job_trigger.c.trigger_id))

    def attempts(self) -> Sequence[sa.Row[Any]]:
        """All concluded attempts."""
        return self._read(sa.select(attempt))

    async def settled(self, rows: int) -> None:
        """Wait until there are at least so many triggers, and all have ended."""

        async def done() -> bool:
            states = [State(row.state) for row in self.rows()]
            return len(states) >= rows and all(state in FINISHED for state in states)

        await until(done, f"{rows} triggers, all finished")

    def tally(self, expected: Sequence[tuple[str, datetime]]) -> Tally:
        """Count, when all has settled. `expected` are the (schedule, nominal time) that had to run."""
        rows, marks = self.rows(), Counter(mark.trigger_id for mark in self.marks())
        of_time = Counter((row.schedule_id, row.nominal_time) for row in rows if row.schedule_id is not None)
        tally = Tally(runs=sum(marks.values()))
        tally.lost = [f"{name} at {at}: no row" for name, at in expected if not of_time[name, at]]
        tally.doubled = [f"{key}: {count} rows" for key, count in of_time.items() if count > 1]
        tally.doubled += [f"{trigger_id}: ran {count} times" for trigger_id, count in marks.items() if count > 1]
        known = {row.trigger_id for row in rows}
        tally.doubled += [f"{trigger_id}: ran without a row" for trigger_id in marks if trigger_id not in known]
        for row in rows:
            if row.state == State.SKIPPED or not marks[row.trigger_id]:
                tally.lost.append(f"{row.trigger_id} ({row.schedule_id} at {row.nominal_time}): {row.state}, never ran")
            elif row.exit_code != true_code(row.trigger_id):
                tally.unknown.append(f"{row.trigger_id}: {row.state}, {row.exit_code}, not {true_code(row.trigger_id)}")
        concluded = Counter((row.trigger_id, row.attempt) for row in self.attempts())
        tally.doubled += [f"{key}: concluded {count} times" for key, count in concluded.items() if count > 1]
        return tally


def _driver(url: str) -> str:
    return "sqlite" if url.startswith("sqlite") else "postgresql+psycopg"

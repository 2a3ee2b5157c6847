"""A seeded simulation: one store, up to three replicas stepped by hand, and everything that can go wrong with them.

Never sleeps and never reads a real clock. Invariants: one seed plays the same drama every time; after every single
step all of `invariants.py` holds; when all is quiet at the end, nothing is left unfinished.

>>> asyncio.run(play(seed=7, url="sqlite:////tmp/7.db"))   # doctest: +SKIP
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from clickclock.foundation.clock import ManualClock
from clickclock.foundation.errors import ClickclockError, Invalid, Transient
from clickclock.foundation.ids import new_id
from clickclock.scheduler.agents.rescuer import LOOK_EVERY_S
from clickclock.scheduler.engine import HEARTBEAT_EVERY_S, PLAN_AHEAD_S, Engine
from clickclock.scheduler.jobs.group import Group
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.trigger import FINISHED, NewTrigger, State
from clickclock.scheduler.store import Edited, NewSchedule, Store
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.migrate import migrate
from clickclock.scheduler.times.backfill import Backfill, BackfillState, count_times
from clickclock.scheduler.times.lookahead import HORIZON_S
from clickclock.scheduler.times.schedule import Schedule, upcoming
from tests.simulation.chains import everyone_was_told
from tests.simulation.invariants import Invariants, Promises
from tests.simulation.world import Connection, Died, Faults, FaultyDatabase, Node, Turns, World, jump

NODES = ("north", "south", "east")
STEPS = 160
QUIET_ROUNDS = 400
KEPT = 400
"""Lines of the trace that a failure shows."""
CLUSTER = "local"
GROUP = Group(group_name="pair", max_concurrent_triggers=2)
_RETRY: dict[str, Any] = {"max_retries": 2, "retry_backoff": {"initialSeconds": 2, "multiplier": 1}}
JOBS = tuple(
    Job.model_validate({"application": "sim", "job_name": name, "command": "true", **more})
    for name, more in (
        ("plain", {}),
        ("single", {"max_concurrent_triggers": 1, **_RETRY}),
        ("left", {"group_name": "pair", "preemption": True, "priority": 20, **_RETRY}),
        ("right", {"group_name": "pair"}),
        ("batch", {"preemption": True, "priority": 10}),
        ("third", {"depends_on": ["plain", "left"]}),
        ("second", {"depends_on": ["plain"]}),
        ("last", {"depends_on": ["second", "third"]}),
        ("alarm", {"depends_on": [{"jobName": "single", "when": "failed"}]}),
        (
            "clean",
            {"depends_on": [{"jobName": "third", "when": "finished"}, {"jobName": "single", "when": "finished"}]},
        ),
        ("either", {"depends_on": [{"jobName": name, "when": "anySucceeded"} for name in ("plain", "right")]}),
    )
)
SCHEDULED = JOBS[:-5]
"""The others run only after those that they depend on."""
EXPRESSIONS = (
    ("interval", "1"),
    ("interval", "3"),
    ("interval", "PT20S"),
    ("cron", "*/5 * * * * *"),
    ("cron", "* * * * *"),
)
NEAR_S = 5.0
SILENT_S = 5.0
"""A replica that says nothing for less than this has lost nothing."""


class Replica:
    """One life of one engine on its node."""

    def __init__(self, drama: "Drama", node: Node) -> None:
        self.node = node
        self.faults = Faults(drama.dice)
        connection = Connection(drama.world, node, self.faults)
        store = Store(FaultyDatabase(drama.database, self.faults), CLUSTER)
        self.engine = Engine(
            store, drama.clock, {CLUSTER: connection}, node=node.name, version="0", fraction=drama.dice.random
        )
        self.beats_s = self.rescues_s = drama.clock.monotonic_s()

    def steps(self) -> dict[str, Callable[[], Awaitable[object]]]:
        return {
            "plans": self.engine.planner.step,
            "dispatches": self._dispatch,
            "watches": self._watch,
            "preempts": self.engine.preempter.step,
            "chains": self.engine.chainer.step,
            "counts": self.engine.counter.step,
            "fills": self.engine.backfiller.step,
        }

    async def _dispatch(self) -> None:
        await self.engine.dispatcher.step()
        if self.engine.store.queue.backlog.waits_for_slots:
            await self.engine.preempter.step()

    async def _watch(self) -> object:
        self.engine.watcher.look_for_stops()
        return await self.engine.watcher.step()


class Drama:
    """All that happens under one seed."""

    def __init__(self, seed: int, database: Database) -> None:
        self.dice = random.Random(seed)
        self.database = database
        self.clock = ManualClock(datetime(2026, 3, 29, 0, 59, tzinfo=UTC))
        self.latest = self.clock.now()
        self.world = World(self.dice, self.clock)
        self.store = Store(database, CLUSTER)
        self.promises = Promises(caps={"single": 1}, group_caps={"pair": 2})
        self.invariants = Invariants(database, self.world, self.promises)
        self.replicas: dict[str, Replica] = {}
        self.frozen: set[str] = set()
        self.silent_since_s: dict[str, float] = {}
        self.was_silent: set[str] = set()
        self.trace: list[str] = []
        self.schedules: dict[str, Schedule] = {}
        self.ids: list[str] = []
        self.times: list[datetime] = []

    async def play(self) -> None:
        """The whole drama; raises `AssertionError` with the trace."""
        try:
            await self._open()
            for _ in range(STEPS):
                await self._one_step()
                await self._check()
            await self._quiet()
        except (AssertionError, ClickclockError) as error:
            trace = "\n".join(self.trace[-KEPT:])
            raise AssertionError(f"{type(error).__name__}: {error}\n{trace}") from error

    def _tell(self, what: str) -> None:
        self.trace.append(f"{self.clock.now():%H:%M:%S.%f} ({self.clock.monotonic_s():.1f} s) {what}")

    async def _check(self) -> None:
        for name, since_s in self.silent_since_s.items():
            if self.clock.monotonic_s() - since_s >= SILENT_S:
                self.was_silent.add(name)
        now = await self.invariants.check()
        self.ids = sorted(now.triggers)
        self.times = sorted({row.nominal_time for row in now.triggers.values() if row.schedule_id is not None})[-5:]
        for name, node in self.invariants.lost_of.items():
            assert node in self.was_silent, f"{name} was given up, and {node} was there all the time"

    async def _open(self) -> None:
        now = self.clock.now()
        await self.store.groups.create(GROUP, now)
        await self.store.jobs.create(JOBS, now)
        for name in NODES[: self.dice.choice((1, 1, 2, 3))]:
            self.world.nodes[name] = Node(name)
            self.silent_since_s[name] = self.clock.monotonic_s()
            await self._start(name)
        for _ in range(3):
            await self._create_schedule()

    # What happens.

    async def _one_step(self) -> None:
        happenings: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (45, self._replica_steps),
            (15, self._replicas_step_together),
            (25, self._time_passes),
            (15, self._time_draws_near),
            (4, self._trigger),
            (4, self._flood),
            (3, self._cancel),
            (2, self._create_schedule),
            (3, self._change_schedule),
            (2, self._change_job),
            (2, self._change_group),
            (3, self._doom),
            (4, self._restart),
            (2, self._trouble),
            (2, self._freeze),
            (2, self._jump),
            (3, self._backfill),
        ]
        weights = [weight for weight, _ in happenings]
        ((_, happening),) = self.dice.choices(happenings, weights)
        await happening()

    async def _replica_steps(self) -> None:
        awake = [name for name in self.replicas if name not in self.frozen]
        if not awake:
            return
        name = self.dice.choice(awake)
        step_name, step = self.dice.choice(list(self.replicas[name].steps().items()))
        await self._let(name, step_name, step)

    async def _replicas_step_together(self) -> None:
        """Agents of one replica or of several, each in the middle of its step while the others are in theirs."""
        awake = [name for name in self.replicas if name not in self.frozen]
        steps = [(name, *step) for name in awake for step in self.replicas[name].steps().items()]
        chosen = self.dice.sample(steps, min(len(steps), self.dice.randrange(2, 5)))
        turns = Turns(self.dice)
        for name in awake:
            self.replicas[name].faults.turns = turns
        self._tell("at the same time:")
        results = await turns.play(*(self._let(*each) for each in chosen))
        for name in awake:
            if name in self.replicas:
                self.replicas[name].faults.turns = None
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _let(self, name: str, what: str, step: Callable[[], Awaitable[object]]) -> None:
        """One step of a replica: it may fail, and it may be its last."""
        try:
            await step()
            self._tell(f"{name} {what}")
        except Transient as error:
            self._tell(f"{name} {what}, in vain: {type(error).__name__}")
        except Died:
            self._tell(f"{name} {what} and dies")
            self._bury(name)

    def _bury(self, name: str) -> None:
        if self.replicas.pop(name, None) is None:
            return  # another of its agents died first
        self.frozen.discard(name)
        self.world.nodes[name].listener = None

    async def _start(self, name: str) -> None:
        replica = Replica(self, self.world.nodes[name])
        if self.dice.random() < 0.3:
            replica.faults.calls_to_live = self.dice.randrange(12)
        self.replicas[name] = replica
        try:
            await replica.engine.open()
            self._tell(f"{name} starts")
            self.silent_since_s[name] = self.clock.monotonic_s()
        except Died:
            self._tell(f"{name} starts and dies")
            self._bury(name)

    async def _time_passes(self) -> None:
        await self._advance(self.dice.choice((0.05, 0.5, 1.0, 2.0)))

    async def _advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.latest = max(self.latest, self.clock.now())
        self.world.pass_time()
        self._tell("time passes")
        await self._keep_time()

    async def _time_draws_near(self) -> None:
        """A planner looks again and again, until some time is a moment away."""
        for ahead_s in (0.6, self.dice.choice((0.24, 0.1, 0.004)), 0.6, self.dice.choice((0.24, 0.1, 0.004))):
            now = self.clock.now()
            following = [each.next_fire_at for each in await self.store.schedules.find({}, None, 100)]
            next_s = min(((each - now).total_seconds() for each in following if each and each > now), default=0.0)
            if ahead_s < next_s < NEAR_S:
                await self._advance(next_s - ahead_s)
            for name in [each for each in self.replicas if each not in self.frozen]:
                await self._let(name, "plans", self.replicas[name].engine.planner.step)

    async def _keep_time(self) -> None:
        """Heartbeats and rescues come in time, as their loops bring them; in which order, nobody knows."""
        now_s = self.clock.monotonic_s()
        for name in self.dice.sample(sorted(self.replicas), len(self.replicas)):
            replica = self.replicas[name]
            chores = self.dice.sample(("beat", "rescue"), 2)
            for chore in chores:
                if name not in self.replicas or name in self.frozen:
                    continue
                if chore == "beat" and now_s - replica.beats_s >= HEARTBEAT_EVERY_S:
                    await self._let(name, "beats", partial(self._beat, replica, name))
                if chore == "rescue" and now_s - replica.rescues_s >= LOOK_EVERY_S:
                    replica.rescues_s = now_s
                    await self._let(name, "rescues", replica.engine.rescuer.step)
                    await self._let(name, "counts", replica.engine.counter.step)

    async def _beat(self, replica: Replica, name: str) -> None:
        await replica.engine.beat()
        replica.beats_s = self.silent_since_s[name] = self.clock.monotonic_s()

    # What users do.

    async def _create_schedule(self) -> None:
        kind, expression = self.dice.choice(EXPRESSIONS)
        now = self.clock.now()
        if self.dice.random() < 0.1:
            kind, expression = "once", now.isoformat()
        schedule_id = f"s{len(self.schedules)}"
        schedule = Schedule.model_validate(
            {
                "application": "sim",
                "jobName": self.dice.choice(SCHEDULED).job_name,
                "scheduleId": schedule_id,
                "kind": kind,
                "expression": expression,
                "timeZone": self.dice.choice(("UTC", "Europe/Berlin")),
                "overlapPolicy": self.dice.choice(("skip", "queue", "replace", "allow")),
                "catchUp": {"policy": self.dice.choice(("latest", "all", "none")), "maxTriggers": 4},
                "jitterSeconds": self.dice.choice((0, 0, 2)),
            }
        )
        first = upcoming(schedule, schedule_id, schedule.timetable(now), now)
        await self.store.schedules.create([NewSchedule(schedule, schedule_id, first)], now)
        self.schedules[schedule_id] = schedule
        self.promises.barriers[schedule_id] = now
        self._tell(f"{schedule_id} is created: {schedule.job_name} {expression} {schedule.overlap_policy}")

    async def _change_schedule(self) -> None:
        living = [each.schedule_id for each in await self.store.schedules.find({}, None, 100)]
        if not living:
            return
        schedule_id, now = self.dice.choice(living), self.clock.now()
        if self.dice.random() < 0.2:
            await self.store.schedules.delete(schedule_id, self.clock.now())
            self._tell(f"{schedule_id} is deleted")
            return
        old = self.schedules[schedule_id]
        change: dict[str, Any] = {"paused": not old.paused}
        if self.dice.random() < 0.5:
            change = dict(zip(("kind", "expression"), self.dice.choice(EXPRESSIONS), strict=True))
        await self._put_schedule(schedule_id, Schedule.model_validate({**old.wire(), **change}), now)
        self._tell(f"{schedule_id} becomes {change}")

    async def _backfill(self) -> None:
        """Times of the last minutes are to run, or a backfill that there is ends."""
        now = self.clock.now()
        for each in await self.store.backfills.find({"state": BackfillState.RUNNING}, None, 1):
            if self.dice.random() < 0.2:
                await self.store.backfills.cancel(each.backfill_id, now)
                self._tell(f"the backfill of {each.schedule_id} is cancelled")
                return
        living = await self.store.schedules.find({}, None, 100)
        if not living:
            return
        of = self.dice.choice(living)
        since = now - timedelta(seconds=self.dice.choice((30, 120, 600)))
        asked = Backfill(schedule_id=of.schedule_id, since=since, until=now, max_concurrent_triggers=3)
        try:
            counted = count_times(of.timetable(of.created_at), since, now, 1000)
        except Invalid:
            return  # it had no time then
        await self.store.backfills.create(asked, counted, now)
        self.promises.backfilled.add(of.schedule_id)
        self._tell(f"{of.schedule_id} is run again from {since}: {counted.total} times")

    async def _put_schedule(self, schedule_id: str, schedule: Schedule, now: datetime) -> None:
        await self.store.schedules.put(NewSchedule(schedule, schedule_id), now)
        self.promises.amended[schedule_id] = now
        (self.promises.paused.add if schedule.paused else self.promises.paused.discard)(schedule_id)
        for due_time in (await self.store.queue.under_way(Edited(schedule_id=schedule_id), [CLUSTER], now)).values():
            ahead = due_time - now
            assert ahead <= max(self.latest, now) - now + timedelta(seconds=HORIZON_S + PLAN_AHEAD_S), (
                f"{schedule_id} waits {ahead}"
            )
        if schedule != self.schedules[schedule_id]:  # else what is due by now is as it was
            self._bar(schedule_id)
        self.schedules[schedule_id] = schedule

    def _bar(self, *schedule_ids: str) -> None:
        """What is due by now has missed its chance."""
        for schedule_id in schedule_ids:
            self.promises.barriers[schedule_id] = max(self.promises.barriers[schedule_id], self.clock.now())

    async def _change_job(self) -> None:
        job = self.dice.choice(JOBS)
        stored = await self.store.jobs.get(*job.key)
        await self._put_job(job, enabled=not stored.enabled)

    async def _put_job(self, job: Job, *, enabled: bool) -> None:
        await self.store.jobs.put(job.model_copy(update={"enabled": enabled}), self.clock.now())
        self._tell(f"{job.job_name} is {'enabled' if enabled else 'disabled'}")
        if enabled:
            self._bar(*(name for name, each in self.schedules.items() if each.job_name == job.job_name))

    async def _change_group(self) -> None:
        (stored,) = await self.store.groups.find({}, None, 1)
        await self._put_group(paused=not stored.paused)

    async def _put_group(self, *, paused: bool) -> None:
        await self.store.groups.put(GROUP.model_copy(update={"paused": paused}), self.clock.now())
        self._tell(f"the group is {'paused' if paused else 'resumed'}")
        if not paused:
            members = {job.job_name for job in JOBS if job.group_name}
            self._bar(*(name for name, each in self.schedules.items() if each.job_name in members))

    async def _flood(self) -> None:
        """More than there is room for, and then what is urgent."""
        for job in self.dice.choices(JOBS, [3 if job.preemption else 1 for job in JOBS], k=self.dice.randrange(3, 8)):
            await self._trigger(job)

    async def _trigger(self, job: Job | None = None) -> None:
        key = self.dice.choice((None, None, "k1", "k2", "k3"))
        job = job or self.dice.choice(JOBS)
        new = NewTrigger(
            new_id(),
            "sim",
            job.job_name,
            {},
            idempotency_key=key,
            priority=self.dice.choice((None, 90)),
            nominal_time=self.dice.choice((None, None, *self.times)),
            dependents=self.dice.random() < 0.8,
        )
        try:
            trigger, created = await self.store.triggers.create(new, self.clock.now())
        except ClickclockError as error:
            self._tell(f"{job.job_name} cannot be triggered: {error}")
            return
        self._tell(f"{job.job_name} is triggered with key {key}: {trigger.trigger_id}")
        self.promises.accepted.add(trigger.trigger_id)
        if key is not None:
            earlier = self.promises.by_key.setdefault(f"{job.job_name} {key}", trigger.trigger_id)
            assert earlier == trigger.trigger_id, f"{key} made a second trigger"
            assert created == (new.trigger_id == earlier)

    async def _cancel(self) -> None:
        if not self.ids:
            return
        trigger_id = self.dice.choice(self.ids[-12:])
        try:
            trigger = await self.store.triggers.cancel(trigger_id, self.clock.now())
        except ClickclockError:
            return
        self.promises.cancelled.setdefault(trigger_id, trigger.attempt)
        self._tell(f"{trigger_id} is cancelled")

    # What goes wrong.

    async def _doom(self) -> None:
        """A replica dies at one of its next calls, in the middle of whatever it does then."""
        if self.replicas:
            name = self.dice.choice(sorted(self.replicas))
            self.replicas[name].faults.calls_to_live = self.dice.randrange(10)

    async def _restart(self) -> None:
        dead = sorted(self.world.nodes.keys() - self.replicas.keys())
        if dead:
            await self._start(self.dice.choice(dead))

    async def _trouble(self) -> None:
        """Store and cluster answer badly for a while, or well again."""
        failing = self.dice.choice((0.0, 0.0, 0.3))
        for replica in self.replicas.values():
            replica.faults.failing = failing
        self._tell(f"{failing:.0%} of the calls fail")

    async def _freeze(self) -> None:
        """One replica stands still while the world goes on; or moves again."""
        if self.frozen:
            self._tell(f"{self.frozen} move again")
            self.frozen.clear()
        elif self.replicas:
            self.frozen.add(self.dice.choice(sorted(self.replicas)))
            self._tell(f"{self.frozen} freeze")

    async def _jump(self) -> None:
        seconds = self.dice.choice((-3600.0, -30.0, -1.5, 1.5, 30.0, 3600.0))
        jump(self.clock, seconds)
        self.latest = max(self.latest, self.clock.now())
        self._tell(f"the clock jumps by {seconds} s")
        await self._keep_time()

    # The end.

    async def _quiet(self) -> None:
        """Nobody asks for anything more, nothing fails any more: all must come to its end."""
        self._tell("all is to be quiet")
        # The clock is right again: what was asked for before it went back is due then, and not an hour later.
        self.clock.step_to(max(self.clock.now(), self.latest))
        self.frozen.clear()
        gone = {name for name in self.world.nodes if name not in self.replicas and self.dice.random() < 0.3}
        if gone == self.world.nodes.keys():
            gone.pop()
        for schedule_id in [each.schedule_id for each in await self.store.schedules.find({}, None, 100)]:
            await self.store.schedules.delete(schedule_id, self.clock.now())
        for job in JOBS:
            await self._put_job(job, enabled=True)
        await self._put_group(paused=False)
        for _ in range(QUIET_ROUNDS):
            for name in self.world.nodes.keys() - gone - self.replicas.keys():
                await self._start(name)
            for replica in self.replicas.values():
                replica.faults.failing, replica.faults.calls_to_live = 0.0, None
            self.clock.advance(1.0)
            self.world.pass_time()
            await self._keep_time()
            for name in sorted(self.replicas):
                for what, step in self.replicas[name].steps().items():
                    await self._let(name, what, step)
            now = await self.invariants.check()
            # An end that dependents have not heard of yet may let something start.
            unfinished = [
                str(row) for row in now.triggers.values() if State(row.state) not in FINISHED or row.unfollowed
            ]
            if not unfinished:
                break
        assert not unfinished, f"after {QUIET_ROUNDS} quiet seconds still not finished: {unfinished}"
        await self._check()
        for replica in self.replicas.values():
            await replica.engine.counter.step()
        now = await self.invariants.check()
        uncounted = [row.trigger_id for row in now.triggers.values() if not row.counted]
        assert not uncounted, f"not in the statistics: {uncounted}"
        everyone_was_told(now)
        ran = {name for name, process in self.world.runs.items() if process.exit is not None}
        for name in ran - self.invariants.lost_of.keys():
            assert name in self.invariants.concluded, f"{name} ran, and nobody knows how it ended"


async def play(seed: int, url: str) -> None:
    """One drama on the empty store at `url`; raises `AssertionError` with the trace."""
    database = Database(url)
    await asyncio.to_thread(migrate, database)
    try:
        await Drama(seed, database).play()
    finally:
        await asyncio.to_thread(database.close)

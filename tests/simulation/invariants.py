"""What must hold after every step, whatever happened: read from the store, compared with the world and the past.

Never changes anything. Each check is one sentence of the promise (docs/explanation/reliability.md).
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from clickclock.scheduler.insight.statistics import Rollup
from clickclock.scheduler.jobs.trigger import FINISHED, LIVE, TRANSITIONS, Kind, State, attempt_name
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.schema import attempt, job_trigger, replica, rollup, schedule
from tests.simulation.chains import Snapshot, chains_hold, preemptions_hold
from tests.simulation.world import World

_t = job_trigger.c
_TRIGGERS = sa.select(
    _t.trigger_id, _t.kind, _t.job_name, _t.schedule_id, _t.group_name, _t.nominal_time, _t.due_time, _t.state,
    _t.attempt, _t.lease_id, _t.serial, _t.skipped_count, _t.exit_code, _t.finished_at, _t.stop_reason, _t.node,
    _t.message, _t.priority, _t.waits, _t.upstream, _t.skip_reason, _t.preempted_by, _t.preemption_count,
    _t.counted, _t.unfollowed, _t.run_id,
)  # fmt: skip
_NOTES = 3
"""The last columns are notes that others make on a row: that it was counted, and told to its dependents."""
_SCHEDULES = sa.select(schedule.c.schedule_id, schedule.c.high_water)
_ATTEMPTS = sa.select(
    attempt.c.trigger_id, attempt.c.attempt, attempt.c.state, attempt.c.exit_code, attempt.c.node,
    attempt.c.preempted_by,
)  # fmt: skip
_ROLLUPS = sa.select(rollup.c.name, rollup.c.content).where(rollup.c.kind == "job")


def _within_an_attempt() -> dict[State, frozenset[State]]:
    """Which states can follow without a new claim, in any number of transitions."""
    edges = {state: following - {State.STARTING} for state, following in TRANSITIONS.items()}
    reach = {state: {state} for state in State}
    for _ in State:
        for state in State:
            for middle in tuple(reach[state]):
                reach[state] |= edges[middle]
    return {state: frozenset(following) for state, following in reach.items()}


REACH = _within_an_attempt()
FROM_A_CLAIM = REACH[State.STARTING]


@dataclass(slots=True)
class Promises:
    """What users were told, so that it can be held against what happens."""

    caps: dict[str, int]
    group_caps: dict[str, int]
    barriers: dict[str, datetime] = field(default_factory=dict)
    """By schedule: nothing that was due at or before this fires any more."""
    cancelled: dict[str, int] = field(default_factory=dict)
    """By trigger: the attempt at which it was cancelled; there is no further one."""
    by_key: dict[str, str] = field(default_factory=dict)
    """By idempotency key: its trigger."""
    backfilled: set[str] = field(default_factory=set)
    """Schedules whose skipped times may run after all: the record of the skip gives way to the run."""
    accepted: set[str] = field(default_factory=set)
    """Triggers that a caller was told of."""
    amended: dict[str, datetime] = field(default_factory=dict)
    """By schedule: when it was changed last; what was planned ahead by then hides no times that the change brought."""
    paused: set[str] = field(default_factory=set)
    """Schedules of which nothing is planned any more."""


class Invariants:
    """Compares the store with its past and with the world."""

    def __init__(self, database: Database, world: World, promises: Promises) -> None:
        self._database = database
        self._world = world
        self._promises = promises
        self._before = Snapshot({}, {}, {})
        self.lost_of: dict[str, str] = {}
        """Attempts that were given up, with their node."""
        self.concluded: set[str] = set()
        """Attempts whose end is known."""

    async def check(self) -> Snapshot:
        """Raises `AssertionError` with the sentence that is not true any more."""
        now, rollups, leases = await self._database.read(_read)
        before, self._before = self._before, now
        assert not self._world.doubled, f"{self._world.doubled} ran twice"
        _one_row_per_time(now)
        _only_forward(before, now, self._promises)
        self._caps_hold(now)
        self._nothing_past_fires(before, now)
        self._the_truth_is_told(before, now)
        for row in now.triggers.values():
            if row.state in LIVE:
                assert row.lease_id in leases, f"{row.trigger_id} is {row.state} and nobody's"
        for trigger_id, number in self._promises.cancelled.items():
            assert now.triggers[trigger_id].attempt == number, f"{trigger_id} was cancelled and is tried again"
        for trigger_id in self._promises.accepted:
            assert trigger_id in now.triggers, f"{trigger_id} was accepted and is gone"
        _rollups_equal_rows(now, rollups, some_gave_way=bool(self._promises.backfilled))
        chains_hold(now)
        preemptions_hold(now)
        return now

    def _caps_hold(self, now: Snapshot) -> None:
        live = [row for row in now.triggers.values() if row.state in LIVE]
        of_jobs = Counter(row.job_name for row in live)
        of_groups = Counter(row.group_name for row in live)
        of_leases = Counter((row.lease_id, row.node) for row in live)
        of_schedules = Counter(row.schedule_id for row in live if row.serial)
        for name, cap in self._promises.caps.items():
            assert of_jobs[name] <= cap, f"{of_jobs[name]} of job {name} are live, {cap} may be"
        for name, cap in self._promises.group_caps.items():
            assert of_groups[name] <= cap, f"{of_groups[name]} of group {name} are live, {cap} may be"
        assert max(of_leases.values(), default=0) <= self._world.slots, f"more live than slots: {of_leases}"
        assert max(of_schedules.values(), default=0) <= 1, f"two of a schedule that waits for itself: {of_schedules}"

    def _nothing_past_fires(self, before: Snapshot, now: Snapshot) -> None:
        for trigger_id in now.triggers.keys() - before.triggers.keys():
            row = now.triggers[trigger_id]
            barrier = self._promises.barriers.get(row.schedule_id or "")
            if barrier is not None and row.state != State.SKIPPED and row.kind != Kind.BACKFILL:
                assert row.due_time > barrier, f"{row.schedule_id} fires {row.due_time}, past at {barrier}"
            if row.schedule_id in self._promises.paused and row.kind == Kind.SCHEDULE:
                assert row.state == State.SKIPPED, f"{row.schedule_id} is paused, and fires {row.due_time}"

    def _the_truth_is_told(self, before: Snapshot, now: Snapshot) -> None:
        for name in now.attempts.keys() - before.attempts.keys():
            row = now.attempts[name]
            self.concluded.add(name)
            process = self._world.runs.get(name)
            if row.state == State.LOST:
                self.lost_of[name] = row.node
            elif row.exit_code is not None:
                assert process is not None, f"{name} has an exit code and never ran"
                assert row.exit_code == process.code, f"{name} ended with {process.code}, not {row.exit_code}"


def _read(connection: sa.Connection) -> tuple[Snapshot, list[Any], set[str]]:
    snapshot = Snapshot(
        {row.trigger_id: row for row in connection.execute(_TRIGGERS)},
        {row.schedule_id: row.high_water for row in connection.execute(_SCHEDULES)},
        {attempt_name(row.trigger_id, row.attempt): row for row in connection.execute(_ATTEMPTS)},
    )
    leases = set(connection.execute(sa.select(replica.c.replica_id)).scalars())
    return snapshot, list(connection.execute(_ROLLUPS)), leases


def _one_row_per_time(now: Snapshot) -> None:
    times = Counter((row.schedule_id, row.nominal_time) for row in now.triggers.values() if row.schedule_id is not None)
    assert max(times.values(), default=1) == 1, f"two rows for one time: {times.most_common(1)}"


def _only_forward(before: Snapshot, now: Snapshot, promises: Promises) -> None:
    for trigger_id, old in before.triggers.items():
        if old.state == State.SKIPPED and old.schedule_id in promises.backfilled:
            continue
        assert trigger_id in now.triggers, "a trigger is gone"
        new = now.triggers[trigger_id]
        if new == old:
            continue
        state, following = State(old.state), State(new.state)
        if state in FINISHED:
            assert old[:-_NOTES] == new[:-_NOTES], f"{trigger_id} had finished as {old} and is now {new}"
        elif new.attempt == old.attempt:
            assert following in REACH[state], f"{trigger_id}: {state} became {following}"
        else:
            assert new.attempt > old.attempt, f"{trigger_id}: attempt {old.attempt} became {new.attempt}"
            assert following in FROM_A_CLAIM, f"{trigger_id}: {state} became {following} in a new attempt"
    for name, row in before.attempts.items():
        assert tuple(row) == tuple(now.attempts[name]), f"attempt {name} was concluded twice"
    for schedule_id, mark in before.marks.items():
        least = min(mark, promises.amended.get(schedule_id, mark))
        assert now.marks.get(schedule_id, mark) >= least, f"the high-water mark of {schedule_id} went back"


def _rollups_equal_rows(now: Snapshot, rollups: list[Any], *, some_gave_way: bool) -> None:
    counted: Counter[tuple[str, str]] = Counter()
    for row in now.triggers.values():
        if row.counted:
            counted[row.job_name, row.state] += row.skipped_count or 1
    summed: Counter[tuple[str, str]] = Counter()
    for row in rollups:
        for state, many in Rollup.load(row.content).states.items():
            summed[row.name, state] += many
    if some_gave_way:  # what was skipped stays counted as such
        for counts in (counted, summed):
            for key in [each for each in counts if each[1] == State.SKIPPED]:
                del counts[key]
    assert +counted == +summed, f"rows say {+counted}, rollups {+summed}"

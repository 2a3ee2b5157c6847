"""Planned triggers that nothing can hold up are taken as they are written: one insert, where else a claim would follow.

Never takes what a cap, an upstream, another node or another trigger of its schedule could hold up: that is queued, and
claimed. Invariants: there is a slot for each that is taken, and for all that is queued; what is not in the store,
because its time has a row already, is not started; ahead of its time, what is taken leaves `reserve` slots free.

>>> Taker("local", node="host-1", lease_id="0193…", slots=1000, most=250).slots
1000
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sa

from clickclock.foundation.errors import Invalid
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.launch import Launch, depends_on_schedule, launch_of
from clickclock.scheduler.jobs.slots import reserve
from clickclock.scheduler.jobs.template_values import NO_SCHEDULE, Values
from clickclock.scheduler.jobs.trigger import Kind, State
from clickclock.scheduler.store.cadences import cadence_of_rows
from clickclock.scheduler.store.changes import note_taken
from clickclock.scheduler.store.conditions import HELD, HERE
from clickclock.scheduler.store.prepared import Inserting, Prepared
from clickclock.scheduler.store.schema import ANY_CLUSTER, QUEUED_ROWS, job_trigger
from clickclock.scheduler.times.schedule import Fire

_t = job_trigger.c
_READY = (
    sa.select(_t.trigger_id)
    .where(QUEUED_ROWS, _t.ready_at <= sa.bindparam("now"), HERE, _t.waits.is_(None))
    .limit(sa.bindparam("most"))
)
_TAKEN_OR_WANTED = Prepared(
    sa.select(
        sa.select(sa.func.count()).where(HELD).scalar_subquery()
        + sa.select(sa.func.count()).select_from(_READY.subquery()).scalar_subquery()
    )
)
_TAKE = Inserting(
    job_trigger,
    {
        "kind": sa.literal_column(f"'{Kind.SCHEDULE}'"),
        "state": sa.literal_column(f"'{State.STARTING}'"),
        "attempt": sa.literal_column("1"),
        "preemption_count": sa.literal_column("0"),
        "serial": sa.false(),
    },
)


class Taker(msgspec.Struct, frozen=True):
    """A replica that starts what it plans, in the slots of its default cluster; `most` in one transaction."""

    cluster: str
    node: str
    lease_id: str
    slots: int
    most: int


class Taking:
    """What one planning transaction takes; without a taker, nothing."""

    def __init__(self, connection: sa.Connection, now: datetime, taker: Taker | None, *, is_ahead: bool) -> None:
        self._connection = connection
        self._now = now
        self._taker = taker
        self._is_ahead = is_ahead
        self._free: int | None = None
        self._taken: list[tuple[dict[str, Any], Launch]] = []

    def take(self, row: Any, its_job: Job, fire: Fire, trigger: dict[str, Any]) -> bool:
        """Whether the new trigger is taken; `row` is its schedule's, with what its job and group allow."""
        taker = self._taker
        if (
            taker is None
            or fire.serial
            or its_job.depends_on
            or row.node not in {None, taker.node}
            or row.max_concurrent is not None
            or row.group_cap is not None
            or trigger["cluster"] not in {ANY_CLUSTER, taker.cluster}
            or self._slots_left(taker) <= 0
        ):
            return False
        cadence = cadence_of_rows([row]) if depends_on_schedule(its_job) else NO_SCHEDULE
        try:
            launch = launch_of(
                its_job,
                Values(trigger["trigger_id"], 1, fire.nominal, trigger["parameters"], cadence),
                not_before=fire.due,
                patient=self._is_ahead and not row.is_awaited,
            )
        except Invalid:
            return False  # the claim says what is wrong
        held = {
            "cluster": taker.cluster,
            "node": taker.node,
            "lease_id": taker.lease_id,
            "preemptible": its_job.preemption or None,
            "image": launch.image,
            "resolved_command": list(launch.argv),
        }
        self._taken.append((trigger | held, launch))
        return True

    def _slots_left(self, taker: Taker) -> int:
        if self._free is None:
            here = {"cluster": taker.cluster, "or_cluster": ANY_CLUSTER, "lease_id": taker.lease_id}
            busy = _TAKEN_OR_WANTED.scalar(self._connection, now=self._now, most=max(taker.slots, 0), **here)
            # What somebody asks for now does not wait for what is due later.
            free = taker.slots - busy - (reserve(taker.slots) if self._is_ahead else 0)
            self._free = min(free, taker.most)
        return self._free - len(self._taken)

    def write(self) -> Sequence[Launch]:
        """Write what is taken; the launches of all that is in the store now."""
        if not self._taken:
            return ()
        _TAKE.run(self._connection, [row for row, _ in self._taken])
        there = note_taken(self._connection, [row["trigger_id"] for row, _ in self._taken], self._now)
        return [launch for row, launch in self._taken if row["trigger_id"] in there]

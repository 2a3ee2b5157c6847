"""The engine's side of the store: plan, claim, preempt, mark, finish, adopt.

Never decides (`schedule.decide`, `slots.choose`, `trigger.conclude` do, inside these transactions) and never talks to
an executor. Invariant: every write after a wait names the attempt and the lease it believes in, and writes nothing
if they moved on.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sa

from clickclock.scheduler.jobs.image_mapping import ImageMapping
from clickclock.scheduler.jobs.job import Job
from clickclock.scheduler.jobs.launch import Launch
from clickclock.scheduler.jobs.template_values import Cadence
from clickclock.scheduler.jobs.trigger import (
    Conclusion,
    Exit,
    Kind,
    State,
    StopReason,
    attempt_name,
    parse_attempt_name,
)
from clickclock.scheduler.store.backlog import Backlog
from clickclock.scheduler.store.cadences import cadences
from clickclock.scheduler.store.changes import note_running
from clickclock.scheduler.store.claiming import Claimed, claim, launch_or_reason, mappings_of, with_jobs
from clickclock.scheduler.store.concluding import finish
from clickclock.scheduler.store.conditions import NOT_STOPPING
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.inline_claim import Taker
from clickclock.scheduler.store.planning import Due, Planned, Span, nobody_plans_ahead, plan
from clickclock.scheduler.store.preempting import is_wanted, preempt
from clickclock.scheduler.store.prepared import Among, Prepared
from clickclock.scheduler.store.rows import effective_job
from clickclock.scheduler.store.schema import (
    ANY_CLUSTER,
    LIVE_ROWS,
    UNFINISHED_ROWS,
    job_trigger,
    replica,
    schedule,
)
from clickclock.scheduler.times.schedule import Decision

_t = job_trigger.c


class Held(msgspec.Struct, frozen=True):
    """A live attempt as the store knows it."""

    name: str
    state: State
    cluster: str
    node: str | None
    stop_reason: StopReason | None
    lease_id: str
    grace_s: float


class Edited(msgspec.Struct, frozen=True):
    """The changed thing: one of these, or, without any, all."""

    schedule_id: str | None = None
    job: tuple[str, str] | None = None
    group_name: str | None = None
    calendar_name: str | None = None

    def is_of(self) -> Sequence[sa.ColumnElement[bool]]:
        """Which triggers it concerns."""
        found: list[sa.ColumnElement[bool]] = []
        if self.schedule_id is not None:
            found.append(_t.schedule_id == self.schedule_id)
        if self.job is not None:
            found += [_t.application == self.job[0], _t.job_name == self.job[1]]
        if self.group_name is not None:
            found.append(_t.group_name == self.group_name)
        if self.calendar_name is not None:
            by_it = sa.select(schedule.c.schedule_id).where(schedule.c.calendar_name == self.calendar_name)
            found.append(_t.schedule_id.in_(by_it))
        return found


_STARTING = _t.state == sa.literal_column(f"'{State.STARTING}'")
_MARK_RUNNING = Prepared(
    sa.update(job_trigger)
    .where(
        _t.trigger_id == sa.bindparam("b_id"),
        _t.attempt == sa.bindparam("b_attempt"),
        _t.lease_id == sa.bindparam("b_lease"),
        _t.state == State.STARTING,
    )
    .values(
        state=State.RUNNING,
        started_at=sa.bindparam("started_at"),
        node=sa.bindparam("node"),
        lag_ms=sa.func.coalesce(
            _t.lag_ms,
            sa.type_coerce(sa.bindparam("started_at"), _t.started_at.type).cast(sa.BigInteger)
            - sa.cast(_t.due_time, sa.BigInteger),
        ),
    )
)

_LIVE_AMONG = Among(_t.trigger_id, lambda these: sa.select(_t.trigger_id, _t.attempt).where(these, LIVE_ROWS))
_STARTING_AMONG = Among(
    _t.trigger_id, lambda these: sa.select(_t.trigger_id, _t.attempt).where(these, LIVE_ROWS, _STARTING)
)


class Queue:
    """Plan, claim, preempt, mark, finish, adopt."""

    def __init__(self, database: Database, default_cluster: str) -> None:
        self._database = database
        self._default_cluster = default_cluster
        self._queues = True
        self.backlog = Backlog()
        self.on_chain: Callable[[], None] = lambda: None
        """Called when a trigger that others depend on has ended, or one that depends on others is there."""

        self.on_failure: Callable[[set[str]], None] = lambda _: None
        """Called with the schedules of which triggers have failed for good."""

    async def plan(
        self,
        now: datetime,
        limit: int,
        decide: Callable[[Due], Decision],
        postpone_to: datetime,
        taker: Taker | None = None,
        span: Span | None = None,
    ) -> Planned:
        """Claim due schedules and commit what `decide` makes of them; one that fails is postponed, alone.

        What nothing holds up is claimed in the same moment by the `taker`, if there is one: it has to start it.
        A `span` with an end is claimed instead, ahead of its time: of that, only what can be taken is committed.
        """
        of = span or Span(now)

        def work(connection: sa.Connection) -> Planned:
            return plan(connection, now, limit, decide, postpone_to, taker, of)

        if of.until is not None:
            planned = await self._database.write(work)
            is_many = planned.claimed == limit and bool(planned.launches)
            self.backlog.planned(may_be_more=False, burst=planned.launches[-1].not_before if is_many else None)
        else:
            # If the taker took all last time, it does so again as a rule, and a claim would find nothing.
            is_expected = taker is None or self._queues
            planned = await self._database.write_triggers(work, queues=_has_queued, is_expected=is_expected)
            self.backlog.planned(may_be_more=planned.claimed == limit)
            self._queues = planned.queued > 0
        if planned.chained:
            self.on_chain()
        return planned

    async def claim(
        self,
        now: datetime,
        *,
        cluster: str,
        node: str,
        lease_id: str,
        slots: int,
        limit: int,
        wants_image: bool = False,
    ) -> Claimed:
        """Move queued triggers that may start to `starting`, at most `limit`. `wants_image`: each needs one there."""
        holder = {"b_cluster": cluster, "b_node": node, "b_lease": lease_id}
        named = self._named(cluster)
        claimed = await self._database.write(lambda c: claim(c, now, named, holder, slots, limit, wants_image))
        may_be_more = len(claimed.launches) == limit
        self.backlog.claimed(cluster, may_be_more=may_be_more, is_blocked=claimed.blocked)
        return claimed

    async def preempt(
        self, now: datetime, *, cluster: str, node: str, lease_id: str, slots: int, preemptions_max: int
    ) -> int:
        """Ask attempts of lower priority to make room for queued triggers that find none; how many were asked."""
        named = self._named(cluster)
        if not await self._database.read(lambda c: is_wanted(c, now, named)):
            return 0
        holder = {"b_cluster": cluster, "b_node": node, "b_lease": lease_id}
        return await self._database.write(lambda c: preempt(c, now, named, holder, slots, preemptions_max))

    def _named(self, cluster: str) -> list[str]:
        """How triggers name a cluster."""
        return [cluster, ANY_CLUSTER] if cluster == self._default_cluster else [cluster]

    async def mark_running(
        self, lease_id: str, started: Sequence[tuple[str, str, datetime]], *, may_wait_s: float = 0.0
    ) -> None:
        """Attempts (name, node, start) were seen running. Writes nothing for those that are no longer ours."""
        rows = []
        for name, node, started_at in started:
            trigger_id, number = parse_attempt_name(name)
            rows.append(
                {"b_id": trigger_id, "b_attempt": number, "b_lease": lease_id, "node": node, "started_at": started_at}
            )

        def work(connection: sa.Connection) -> None:
            note_running(connection, rows)
            _MARK_RUNNING.run(connection, rows)

        await self._database.write(work, may_wait_s=may_wait_s)

    async def finish(
        self, lease_id: str, exits: Mapping[str, Exit], fraction: Callable[[], float], *, may_wait_s: float = 0.0
    ) -> dict[str, Conclusion]:
        """Conclude attempts by name. What the answer leaves out is no longer ours; nothing was written for it."""
        conclusions = await self._database.write(lambda c: finish(c, lease_id, exits, fraction), may_wait_s=may_wait_s)
        if any(each.is_awaited for each in conclusions.values()):
            self.on_chain()
        if failed := {each.failed_schedule for each in conclusions.values() if each.failed_schedule is not None}:
            self.on_failure(failed)
        return conclusions

    async def stopping(self, lease_id: str) -> list[Held]:
        """Live attempts of ours that somebody wants stopped."""
        return await self._held(_t.lease_id == lease_id, _t.stop_reason.is_not(None))

    async def held(self, lease_id: str) -> list[Held]:
        """All live attempts of ours."""
        return await self._held(_t.lease_id == lease_id)

    async def under_way(self, edited: Edited, clusters: Sequence[str], since: datetime) -> dict[str, datetime]:
        """When they are due: attempts of what was edited, on these clusters, that were planned and may not have begun.

        Those that were due before `since` have come to something else.
        """
        of_schedules = _t.kind == sa.literal_column(f"'{Kind.SCHEDULE}'")
        query = sa.select(_t.trigger_id, _t.attempt, _t.due_time).where(
            *(LIVE_ROWS, UNFINISHED_ROWS, _STARTING, of_schedules, _t.due_time > since, _t.cluster.in_(clusters)),
            *edited.is_of(),
        )
        rows = await self._database.read(lambda c: c.execute(query).all())
        return {attempt_name(row.trigger_id, row.attempt): row.due_time for row in rows}

    async def nobody_plans_ahead(self) -> bool:
        """Whether no plan is open, of any replica, that may have read what was there before an edit."""
        return await self._database.read(nobody_plans_ahead)

    async def starting_among(self, names: Collection[str]) -> set[str]:
        """Those of these attempts of which nobody has heard that they started."""
        ids = [parse_attempt_name(name)[0] for name in names]
        rows = await self._database.read(lambda c: _STARTING_AMONG.rows(c, ids))
        return {attempt_name(row.trigger_id, row.attempt) for row in rows} & set(names)

    async def left_behind(self, node: str, lease_id: str, now: datetime) -> list[Held]:
        """Live attempts of this node that an earlier replica on it held; not what another has taken over."""
        others = sa.select(replica.c.replica_id).where(replica.c.lease_until > now, replica.c.node != node)
        return await self._held(_t.node == node, _t.lease_id != lease_id, _t.lease_id.not_in(others))

    async def abandoned(self, now: datetime) -> list[Held]:
        """Live attempts whose replica's lease has run out."""
        living = sa.select(replica.c.replica_id).where(replica.c.lease_until > now)
        return await self._held(_t.lease_id.not_in(living))

    async def live_among(self, names: Collection[str]) -> set[str]:
        """Those of these attempts that are live, whoever holds them."""
        if not names:
            return set()
        ids = [parse_attempt_name(name)[0] for name in names]
        rows = await self._database.read(lambda c: _LIVE_AMONG.rows(c, ids))
        return {attempt_name(row.trigger_id, row.attempt) for row in rows} & set(names)

    async def _held(self, *conditions: sa.ColumnElement[bool]) -> list[Held]:
        query = with_jobs(of_deleted_jobs=True).where(LIVE_ROWS, *conditions)
        return [_as_held(row) for row in await self._database.read(lambda c: c.execute(query).all())]

    async def take_over(self, held: Sequence[Held], lease_id: str, node: str) -> None:
        """Make abandoned attempts ours, on this node; those that somebody else took first stay theirs."""
        rows = [
            {"b_id": parse_attempt_name(each.name)[0], "b_attempt": parse_attempt_name(each.name)[1],
             "b_lease": each.lease_id}
            for each in held
        ]  # fmt: skip
        statement = (
            sa.update(job_trigger)
            .where(
                LIVE_ROWS,
                _t.trigger_id == sa.bindparam("b_id"),
                _t.attempt == sa.bindparam("b_attempt"),
                _t.lease_id == sa.bindparam("b_lease"),
            )
            .values(lease_id=lease_id, node=node)
        )
        if rows:
            await self._database.write(lambda c: c.execute(statement, rows))

    async def relaunch(
        self, lease_id: str, names: Sequence[str], *, wants_image: bool = False
    ) -> tuple[list[Launch], dict[str, str]]:
        """Launches of attempts of ours that were claimed already, made again: starting is idempotent by name.

        The second value names those that no longer fit their jobs, each with a sentence why. An attempt that is not
        ours any more is left out: its trigger may be another's next attempt by now, and that one's name must not be
        started here.
        """
        ids = [parse_attempt_name(name)[0] for name in names]
        query = with_jobs().where(LIVE_ROWS, _t.lease_id == lease_id, _t.trigger_id.in_(ids))
        launches: list[Launch] = []
        unstartable: dict[str, str] = {}

        def rows(
            connection: sa.Connection,
        ) -> tuple[list[tuple[Any, Job]], dict[str, Cadence], list[ImageMapping] | None]:
            found = [(row, effective_job(row.definition, row.grouped)) for row in connection.execute(query)]
            return found, cadences(connection, found), mappings_of(connection) if wants_image else None

        found, asked, mappings = await self._database.read(rows)
        for row, its_job in found:
            if (name := attempt_name(row.trigger_id, row.attempt)) not in names:
                continue
            launch = launch_or_reason(row, its_job, row.attempt, mappings, asked)
            if isinstance(launch, str):
                unstartable[name] = launch
            else:
                launches.append(launch)
        return launches, unstartable

    async def stop_all(self, lease_id: str) -> None:
        """Ask for every live attempt of ours to be stopped, because the service stops with its jobs."""
        statement = (
            sa.update(job_trigger)
            .where(LIVE_ROWS, _t.lease_id == lease_id, NOT_STOPPING)
            .values(stop_reason=StopReason.SHUTDOWN)
        )
        await self._database.write(lambda c: c.execute(statement))


def _has_queued(planned: Planned) -> bool:
    return planned.queued > 0


def _as_held(row: Any) -> Held:
    grace_s = Job.model_fields["grace_period_seconds"].default
    if row.definition is not None:
        grace_s = effective_job(row.definition, row.grouped).grace_period_seconds
    return Held(
        attempt_name(row.trigger_id, row.attempt),
        State(row.state),
        row.cluster,
        row.node,
        row.stop_reason and StopReason(row.stop_reason),
        row.lease_id,
        grace_s,
    )

"""Replicas in the store: who serves, since when, and whether they still do.

Never takes anything over (`rescuer.py`). Invariant: a replica's lease is in this one row; the attempts that it holds
name it, so that a heartbeat is one write however many attempts run.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import sqlalchemy as sa

from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.rows import equal, upsert
from clickclock.scheduler.store.schema import (
    LIVE_ROWS,
    QUEUED_ROWS,
    UNFINISHED_ROWS,
    attempt,
    job,
    job_trigger,
    replica,
    schedule,
)

_t = job_trigger.c
_HOUR = timedelta(hours=1)
TOLD_FOR = timedelta(minutes=10)
"""How long a silent replica is reported, even if nothing waits for it any more."""


class Heartbeat(msgspec.Struct, frozen=True):
    """What a replica says of itself."""

    replica_id: str
    node: str
    host: str
    version: str
    started_at: datetime
    heartbeat_at: datetime
    lease_until: datetime
    clusters: Sequence[Mapping[str, Any]]
    loops: Sequence[Mapping[str, Any]]
    clock_skew_ms: float | None = None
    """How far the database's clock is ahead of its machine's; None of those that do not say."""
    url: str | None = None
    """Where the other replicas reach its API; None of those that do not say."""


class LastBeat(msgspec.Struct, frozen=True):
    """When a replica was heard last."""

    heartbeat_at: datetime
    has_left: bool
    shared_clusters: frozenset[str]
    """Clusters of it whose attempts others can go on with."""


class Census(msgspec.Struct, frozen=True):
    """Counts of the store."""

    jobs: int
    schedules: int
    queued: int
    running: int


class Replicas:
    """Heartbeats, and the view over all."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def beat(self, beat: Heartbeat) -> None:
        """Renew the lease."""
        row = {name: getattr(beat, name) for name in Heartbeat.__struct_fields__}

        def work(connection: sa.Connection) -> None:
            statement = upsert(connection, replica).values(row)
            connection.execute(statement.on_conflict_do_update(index_elements=["replica_id"], set_=row))

        await self._database.write(work)

    async def last_heard(self) -> datetime | None:
        """When any replica was heard last: how old the database is."""
        return await self._database.read(lambda c: c.execute(sa.select(sa.func.max(replica.c.heartbeat_at))).scalar())

    async def leave(self, replica_id: str, now: datetime) -> None:
        """Give the lease up: a clean stop. What still runs may be taken over at once."""
        statement = (
            sa.update(replica).where(replica.c.replica_id == replica_id).values(heartbeat_at=now, lease_until=now)
        )
        await self._database.write(lambda c: c.execute(statement))

    async def living(self, now: datetime) -> list[Heartbeat]:
        """Replicas whose lease holds, oldest first."""
        query = sa.select(replica).where(replica.c.lease_until > now).order_by(replica.c.started_at)
        rows = await self._database.read(lambda c: c.execute(query).all())
        return [Heartbeat(**row._mapping) for row in rows]

    async def silent(self, now: datetime) -> list[tuple[Heartbeat, int]]:
        """Replicas whose lease ran out without a word, each with how many attempts it holds.

        One that holds none any more, because others took them over, is reported for `TOLD_FOR` since it was heard.
        """
        holding = (
            sa.select(_t.lease_id, sa.func.count().label("held")).where(LIVE_ROWS).group_by(_t.lease_id).subquery()
        )
        query = (
            sa.select(replica, sa.func.coalesce(holding.c.held, 0).label("held"))
            .join(holding, holding.c.lease_id == replica.c.replica_id, isouter=True)
            .where(
                replica.c.lease_until <= now,
                sa.or_(
                    holding.c.held > 0,
                    sa.and_(replica.c.heartbeat_at > now - TOLD_FOR, replica.c.lease_until > replica.c.heartbeat_at),
                ),
            )
            .order_by(replica.c.heartbeat_at)
        )
        rows = [dict(row._mapping) for row in await self._database.read(lambda c: c.execute(query).all())]
        return [(Heartbeat(**{name: row[name] for name in Heartbeat.__struct_fields__}), row["held"]) for row in rows]

    async def last_beats(self, now: datetime) -> dict[str, LastBeat]:
        """When each replica was heard last; those that were not for an hour are left out."""
        r = replica.c
        query = sa.select(r.replica_id, r.heartbeat_at, r.lease_until, r.clusters).where(r.heartbeat_at > now - _HOUR)
        rows = await self._database.read(lambda c: c.execute(query).all())
        return {
            row.replica_id: LastBeat(
                row.heartbeat_at,
                row.lease_until <= row.heartbeat_at,
                frozenset(each["cluster"] for each in row.clusters if each.get("shared")),
            )
            for row in rows
        }

    async def at(self, node: str, now: datetime) -> Heartbeat | None:
        """The living replica of a node."""
        query = sa.select(replica).where(replica.c.node == node, replica.c.lease_until > now)
        query = query.order_by(replica.c.started_at.desc()).limit(1)
        row = await self._database.read(lambda c: c.execute(query).one_or_none())
        return None if row is None else Heartbeat(**row._mapping)

    async def keeper(self, trigger_id: str, number: int) -> str | None:
        """The node that keeps the output of an attempt: where it ran, or whose replica watched over it."""
        a = attempt.c
        of_ended = sa.select(sa.func.coalesce(a.kept_on, a.node)).where(a.trigger_id == trigger_id, a.attempt == number)
        of_live = sa.select(_t.node).where(_t.trigger_id == trigger_id, _t.attempt == number, LIVE_ROWS)
        query = sa.select(sa.func.coalesce(of_ended.scalar_subquery(), of_live.scalar_subquery()))
        node: str | None = await self._database.read(lambda c: c.execute(query).scalar_one())
        return node

    async def census(self, filters: Mapping[str, Any]) -> Census:
        """Totals of what is of the applications in `filters`, or of all."""

        def count(*conditions: sa.ColumnElement[bool], of: sa.Table = job_trigger) -> sa.ScalarSelect[int]:
            query = sa.select(sa.func.count()).select_from(of)
            return query.where(*conditions, *equal(of, filters)).scalar_subquery()

        query = sa.select(
            count(of=job),
            count(of=schedule),
            count(QUEUED_ROWS, UNFINISHED_ROWS),
            count(LIVE_ROWS),
        )
        return Census(*(await self._database.read(lambda c: c.execute(query).one())))

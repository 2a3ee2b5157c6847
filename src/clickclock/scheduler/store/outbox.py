"""The outbox: notifications on their way to targets, claimed, tried, and done with or given up.

Never sends anything. Invariants: a claim is a lease: whoever holds a notification has until `next_at` to try it, and
marks it only if it is still theirs; so two replicas do not send the same, and what a dead one held is sent by another.
A target hears of one alarm in order: its end waits until its opening was sent, or given up.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sa

from clickclock.scheduler.access.audit import Resource
from clickclock.scheduler.errors import NotificationIsSent, NotificationNotFound
from clickclock.scheduler.jobs.notification import Delivery, Notification
from clickclock.scheduler.store.alarm_evaluation import add_notification
from clickclock.scheduler.store.auditing import audited
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.history_page import Asked, Found, led, unled, walk
from clickclock.scheduler.store.schema import replica
from clickclock.scheduler.store.schema_alarms import PENDING_ROWS, notification, pending_rows

TEST = "clickclock.test"
_n = notification.c
_earlier = notification.alias("earlier")
_IS_NEXT = sa.not_(
    sa.exists().where(
        _earlier.c.alarm_id == _n.alarm_id,
        _earlier.c.target == _n.target,
        _earlier.c.notification_id < _n.notification_id,
        pending_rows(_earlier.c),
    )
)
"""Of its alarm, for its target."""


class Parcel(msgspec.Struct, frozen=True):
    """A notification that is ours to send. `tries` counts the one that is to come."""

    notification_id: str
    target: str
    type: str
    body: str
    tries: int


class Outbox:
    """Claim, mark, list, try again."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(
        self, now: datetime, *, lease_id: str, until: datetime, limit: int, busy: Collection[str]
    ) -> tuple[list[Parcel], datetime | None]:
        """At most `limit` that are due for each target that is not `busy`; and when the next one is.

        Due is also what a replica holds that is dead by now.
        """
        dead = sa.select(replica.c.replica_id).where(replica.c.lease_until <= now)
        is_due = sa.or_(_n.next_at <= now, _n.lease_id.in_(dead))
        due_for = sa.select(_n.target).where(PENDING_ROWS, is_due, _IS_NEXT).distinct()
        later = sa.select(sa.func.min(_n.next_at)).where(PENDING_ROWS, _n.next_at > now)

        def work(connection: sa.Connection) -> tuple[list[Parcel], datetime | None]:
            parcels = []
            for target in targets:
                due = (
                    sa.select(notification)
                    .where(PENDING_ROWS, _n.target == target, is_due, _IS_NEXT)
                    .order_by(_n.next_at, _n.notification_id)
                    .limit(limit)
                    .with_for_update(of=notification, skip_locked=True)
                )
                parcels += [
                    Parcel(row.notification_id, row.target, row.type, row.body, row.tries + 1)
                    for row in connection.execute(due)
                ]
            if parcels:
                mine = _n.notification_id.in_([each.notification_id for each in parcels])
                connection.execute(
                    sa.update(notification).where(mine).values(lease_id=lease_id, next_at=until, tries=_n.tries + 1)
                )
            return parcels, connection.execute(later).scalar()

        targets = sorted(set(await self._database.read(lambda c: c.execute(due_for).scalars().all())) - set(busy))
        if not targets:  # mostly: nobody who writes is held up for it
            return [], await self._database.read(lambda c: c.execute(later).scalar())
        return await self._database.write(work)

    async def sent(self, parcel: Parcel, lease_id: str, now: datetime) -> bool:
        """It arrived. False if it was no longer ours, and nothing is written."""
        return await self._mark(parcel, lease_id, {"state": Delivery.SENT, "finished_at": now, "last_error": None})

    async def failed(self, parcel: Parcel, lease_id: str, now: datetime, error: str, again_at: datetime | None) -> bool:
        """It did not arrive; without `again_at` it is dead. False if it was no longer ours."""
        values: dict[str, Any] = {"last_error": error}
        if again_at is None:
            values |= {"state": Delivery.DEAD, "finished_at": now}
        else:
            values |= {"next_at": again_at}
        return await self._mark(parcel, lease_id, values)

    async def _mark(self, parcel: Parcel, lease_id: str, values: Mapping[str, Any]) -> bool:
        mine = (
            _n.notification_id == parcel.notification_id, PENDING_ROWS, _n.lease_id == lease_id,
            _n.tries == parcel.tries,
        )  # fmt: skip
        statement = sa.update(notification).where(*mine).values(**values, lease_id=None)
        return bool(await self._database.write(lambda c: c.execute(statement).rowcount))

    async def find(self, filters: Mapping[str, Any], after: Sequence[str] | None, limit: int) -> Found[Notification]:
        """Notifications whose columns equal `filters`, newest first."""
        conditions = {name: unled(notification.c[name], value) for name, value in filters.items()}
        leads = [lead for name in ("notification_id", "state") for lead in led(_n, filters, name)]
        asked = Asked(sa.select(notification), _n.notification_id, conditions, leads)
        found = await self._database.read(lambda c: walk(c, asked, after and after[0], limit))
        return found.shown(_shown)

    async def counts(self) -> dict[Delivery, int]:
        """How many are pending, and how many dead."""
        query = (
            sa.select(_n.state, sa.func.count().label("here"))
            .where(_n.state.in_([Delivery.PENDING, Delivery.DEAD]))
            .group_by(_n.state)
        )
        return {Delivery(row.state): row.here for row in await self._database.read(lambda c: c.execute(query).all())}

    async def try_again(self, notification_id: str, now: datetime) -> Notification:
        """Try it anew, from the first try on. Raises `NotificationNotFound`, `NotificationIsSent`."""

        def work(connection: sa.Connection) -> Notification:
            mine = _n.notification_id == notification_id
            row = connection.execute(sa.select(notification).where(mine).with_for_update()).one_or_none()
            if row is None:
                raise NotificationNotFound
            if row.state == Delivery.SENT:
                raise NotificationIsSent
            fresh = {"state": Delivery.PENDING, "tries": 0, "next_at": now, "lease_id": None, "finished_at": None}
            connection.execute(sa.update(notification).where(mine).values(fresh))
            its = {"application": row.application, "job_name": row.job_name}
            audited(Resource.NOTIFICATION, notification_id, {"state": row.state}, {"state": Delivery.PENDING}, its)
            return _shown(connection.execute(sa.select(notification).where(mine)).one())

        return await self._database.write(work)

    async def add_test(self, target: str, now: datetime) -> Notification:
        """A test notification for a target."""

        def work(connection: sa.Connection) -> Notification:
            data = {"message": "This is a test: whoever reads it is told of alarms."}
            notification_id = add_notification(connection, TEST, target, data, now)
            audited(Resource.NOTIFICATION, notification_id, None, {"target": target})
            return _shown(
                connection.execute(sa.select(notification).where(_n.notification_id == notification_id)).one()
            )

        return await self._database.write(work)

    async def prune(self, before: datetime) -> None:
        """Remove what was sent or given up before then."""
        await self._database.write(lambda c: c.execute(sa.delete(notification).where(_n.finished_at < before)))


def _shown(row: Any) -> Notification:
    columns = row._mapping
    next_try_at = row.next_at if row.state == Delivery.PENDING else None
    return Notification.model_validate(
        {name: columns[name] for name in Notification.model_fields if name != "next_try_at"}
        | {"next_try_at": next_try_at}
    )

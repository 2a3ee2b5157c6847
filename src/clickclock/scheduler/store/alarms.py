"""Alarms, silences and defaults of applications in the store; and what no trigger's end can say: what did not run.

Never opens an alarm twice (`alarm_evaluation.py`). Invariant: a look at what is overdue reads the jobs that are
expected, the attempts that live and the alarms that are open, and never history.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from clickclock.foundation.record import rfc3339
from clickclock.scheduler.access.audit import Resource, Said
from clickclock.scheduler.errors import AlarmIsResolved, AlarmNotFound, ApplicationNotFound, SilenceNotFound
from clickclock.scheduler.insight.alarm import (
    Acknowledgement,
    Alarm,
    AlarmKind,
    Silence,
    SilenceRequest,
    expected_by,
    missed_sentence,
    span,
)
from clickclock.scheduler.jobs.notification import ApplicationDefaults
from clickclock.scheduler.store.alarm_evaluation import (
    Noticed,
    alarm_of,
    announce,
    open_all,
    resolve,
    rules_in,
    silence_of,
)
from clickclock.scheduler.store.auditing import audited
from clickclock.scheduler.store.changes import note
from clickclock.scheduler.store.database import Database
from clickclock.scheduler.store.history_page import Asked, Found, Lead, led, unled, walk
from clickclock.scheduler.store.rows import definition_of, equal, page, planned_schedule, upsert
from clickclock.scheduler.store.schema import LIVE_ROWS, job, job_group, job_pulse, job_trigger, schedule
from clickclock.scheduler.store.schema_alarms import OPEN_ALARMS, alarm, application, silence

NO_LONGER = "The job is gone, disabled, or no longer expected."
LATER = "The job is expected later now."
ENDED = "The attempt ended."
_a, _t = alarm.c, job_trigger.c
_its_job = sa.and_(_a.application == job.c.application, _a.job_name == job.c.job_name)
_EXPECTED = (
    sa.select(
        job.c.application, job.c.job_name, job.c.group_name, job.c.expected_within_ms, job.c.created_at,
        job.c.enabled_since, job_pulse.c.last_success_at, job_group.c.paused,
    )
    .select_from(
        job.outerjoin(
            job_pulse,
            sa.and_(job.c.application == job_pulse.c.application, job.c.job_name == job_pulse.c.job_name),
        ).outerjoin(job_group)
    )
    .where(job.c.expected_within_ms.is_not(None), job.c.enabled)
    .where(
        sa.not_(
            sa.exists().where(OPEN_ALARMS, _its_job, _a.kind == AlarmKind.MISSED).correlate(job)
        )
    )
)  # fmt: skip
_LIVE = (
    sa.select(
        _t.trigger_id, _t.application, _t.job_name, _t.group_name, _t.started_at, _t.attempt,
        job.c.definition, job_group.c.definition.label("grouped"), application.c.definition.label("defaults"),
    )
    .select_from(
        job_trigger.join(job, sa.and_(_t.application == job.c.application, _t.job_name == job.c.job_name))
        .outerjoin(job_group, job.c.group_name == job_group.c.group_name)
        .outerjoin(application, job.c.application == application.c.application)
    )
    .where(LIVE_ROWS, _t.started_at.is_not(None))
)  # fmt: skip
_OPEN = (
    sa.select(
        alarm, job.c.enabled, job.c.expected_within_ms, job.c.created_at, job.c.enabled_since,
        job_pulse.c.last_success_at,
    )
    .select_from(
        alarm.outerjoin(job, _its_job).outerjoin(
            job_pulse,
            sa.and_(job.c.application == job_pulse.c.application, job.c.job_name == job_pulse.c.job_name),
        )
    )
    .where(OPEN_ALARMS)
    .order_by(_a.alarm_id)
)  # fmt: skip
_EXPIRED = sa.select(sa.exists().where(silence.c.until <= sa.bindparam("now", type_=silence.c.until.type)))


class Alarms:
    """Look, open, resolve; acknowledge, silence, and targets."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def look(self, now: datetime) -> None:
        """Notice what did not run or runs too long, what is over by itself, and what was silenced until now."""

        def work(connection: sa.Connection) -> None:
            # Anew: what was seen beside the writer may have changed before it was its turn.
            seen = _see(connection, now)
            resolve(connection, seen.pointless, now, NO_LONGER)
            resolve(connection, seen.early, now, LATER)
            resolve(connection, seen.ended, now, ENDED)
            open_all(connection, seen.noticed)
            if seen.untold:
                ids = [row.alarm_id for row in seen.untold]
                still_open = sa.select(alarm).where(OPEN_ALARMS, _a.alarm_id.in_(ids))
                announce(connection, connection.execute(still_open).all(), now)
            _end_silences(connection, silence.c.until <= now, now)

        if (await self._database.read(lambda c: _see(c, now))).is_something:
            await self._database.write(work)

    async def find(self, filters: Mapping[str, Any], after: Sequence[str] | None, limit: int) -> Found[Alarm]:
        """Alarms whose columns equal `filters`, newest first; `is_open`, too."""
        conditions = {name: unled(alarm.c[name], value) for name, value in filters.items() if name != "is_open"}
        leads = []
        if (is_open := filters.get("is_open")) is not None:
            conditions["is_open"] = OPEN_ALARMS if is_open else sa.not_(OPEN_ALARMS)
            leads += [Lead(frozenset({"is_open"}), OPEN_ALARMS)] if is_open else []
        leads += [*led(_a, filters, "alarm_id"), *led(_a, filters, "application", "job_name")]
        asked = Asked(sa.select(alarm), _a.alarm_id, conditions, leads)
        found = await self._database.read(lambda c: walk(c, asked, after and after[0], limit))
        return found.shown(alarm_of)

    async def open_count(self, filters: Mapping[str, Any]) -> int:
        """How many are open of those whose columns equal `filters`."""
        query = sa.select(sa.func.count()).select_from(alarm).where(OPEN_ALARMS, *equal(alarm, filters))
        return await self._database.read(lambda c: c.execute(query).scalar_one())

    async def acknowledge(self, by: Acknowledgement, now: datetime) -> Alarm:
        """Somebody takes it on. Raises `AlarmNotFound`, `AlarmIsResolved`."""

        def work(connection: sa.Connection) -> Alarm:
            mine = _a.alarm_id == by.alarm_id
            row = connection.execute(sa.select(alarm).where(mine).with_for_update()).one_or_none()
            if row is None:
                raise AlarmNotFound
            if row.resolved_at is not None:
                raise AlarmIsResolved
            values = {"acknowledged_at": now, "acknowledged_by": by.acknowledged_by, "note": by.note}
            connection.execute(sa.update(alarm).where(mine).values(values))
            told = {name: getattr(row, name) for name in ("application", "job_name", "group_name")}
            note(connection, "alarm", "acknowledged", now, [{**told, "subject": row.alarm_id, "reason": row.kind}])
            its = {"application": row.application, "job_name": row.job_name}
            said = {"acknowledgedBy": by.acknowledged_by, "note": by.note}
            was = {"acknowledgedBy": row.acknowledged_by, "note": row.note}
            audited(Resource.ALARM, row.alarm_id, was, said, its)
            return alarm_of(connection.execute(sa.select(alarm).where(mine)).one())

        return await self._database.write(work)

    async def prune(self, before: datetime) -> None:
        """Remove alarms that were over before then."""
        await self._database.write(lambda c: c.execute(sa.delete(alarm).where(_a.resolved_at < before)))

    async def silence(self, asked: SilenceRequest, now: datetime) -> Silence:
        """Tell nobody for a while; a silence of the same jobs is replaced."""
        row = {
            **_scope(asked.application, asked.job_name, asked.group_name),
            "until": now + timedelta(seconds=asked.seconds),
            "silenced_by": asked.silenced_by,
            "note": asked.note,
            "created_at": now,
        }

        def work(connection: sa.Connection) -> Silence:
            statement = upsert(connection, silence).values(row)
            connection.execute(
                statement.on_conflict_do_update(index_elements=["application", "job_name", "group_name"], set_=row)
            )
            note(connection, "silence", "created", now, [_of_silence(row)])
            _audited_silence(row, None, _said(row))
            return Silence.model_validate({name: value or None for name, value in row.items()})

        return await self._database.write(work)

    async def silences(self, now: datetime, within: Collection[str] | None = None) -> list[Silence]:
        """Those that hold, the first to end first; `within` some applications, with those of groups, or of all."""
        query = sa.select(silence).where(silence.c.until > now).order_by(silence.c.until)
        if within is not None:
            query = query.where(silence.c.application.in_(["", *sorted(within)]))
        return [silence_of(row) for row in await self._database.read(lambda c: c.execute(query).all())]

    async def end_silence(
        self, application: str | None, job_name: str | None, group_name: str | None, now: datetime
    ) -> None:
        """Tell again. Raises `SilenceNotFound`."""
        mine = [silence.c[name] == value for name, value in _scope(application, job_name, group_name).items()]

        def work(connection: sa.Connection) -> None:
            if not _end_silences(connection, sa.and_(*mine), now):
                raise SilenceNotFound

        await self._database.write(work)

    async def put_defaults(self, new: ApplicationDefaults, now: datetime) -> ApplicationDefaults:
        """Set what holds for an application."""
        row = application_row(new, now)

        def work(connection: sa.Connection) -> None:
            was = sa.select(application.c.definition).where(application.c.application == new.application)
            before = connection.execute(was.with_for_update()).scalar()
            written = connection.execute(
                upsert(connection, application)
                .values(**row, version=1, created_at=now)
                .on_conflict_do_update(
                    index_elements=["application"], set_={**row, "version": application.c.version + 1}
                )
                .returning(application.c.version)
            ).scalar_one()
            state = "created" if written == 1 else "changed"
            note(connection, "application", state, now, [{"application": new.application}])
            of = {"application": new.application}
            audited(Resource.APPLICATION, new.application, before, row["definition"], of)

        await self._database.write(work)
        return new

    async def defaults(
        self, filters: Mapping[str, Any], after: Sequence[str] | None, limit: int
    ) -> list[ApplicationDefaults]:
        """What holds for applications, by name."""
        query = sa.select(application).where(*equal(application, filters))
        query = page(query, [application.c.application], after, limit)
        rows = await self._database.read(lambda c: c.execute(query).all())
        return [ApplicationDefaults.model_validate_json(row.definition, extra="ignore") for row in rows]

    async def delete_defaults(self, name: str, now: datetime) -> None:
        """Let nothing hold for an application. Raises `ApplicationNotFound`."""

        def work(connection: sa.Connection) -> None:
            mine = sa.delete(application).where(application.c.application == name)
            gone = connection.execute(mine.returning(application.c.definition)).scalar()
            if gone is None:
                raise ApplicationNotFound
            note(connection, "application", "deleted", now, [{"application": name}])
            audited(Resource.APPLICATION, name, gone, None, {"application": name})

        await self._database.write(work)


@dataclass(slots=True)
class _Seen:
    """The result of a look: alarms to open, open ones that are over, open ones without a notification; old silences."""

    noticed: list[Noticed] = field(default_factory=list)
    pointless: list[Any] = field(default_factory=list)
    early: list[Any] = field(default_factory=list)
    ended: list[Any] = field(default_factory=list)
    untold: list[Any] = field(default_factory=list)
    has_expired: bool = False

    @property
    def is_something(self) -> bool:
        changes = (self.noticed, self.pointless, self.early, self.ended, self.untold)
        return self.has_expired or any(changes)


def _scope(application: str | None, job_name: str | None, group_name: str | None) -> dict[str, str]:
    return {"application": application or "", "job_name": job_name or "", "group_name": group_name or ""}


def _missed(connection: sa.Connection, now: datetime) -> list[Noticed]:
    """Jobs that have not succeeded for as long as they should not."""
    found = []
    for row in connection.execute(_EXPECTED):
        if _expected_by(row) <= now:
            pause = _pause(connection, row)
            sentence = missed_sentence(row.expected_within_ms / 1000, row.last_success_at, pause)
            found.append(Noticed(AlarmKind.MISSED, row.application, row.job_name, row.group_name, sentence, now))
    return found


def _end_silences(connection: sa.Connection, which: sa.ColumnElement[bool], now: datetime) -> int:
    gone = connection.execute(sa.delete(silence).where(which).returning(silence)).all()
    note(connection, "silence", "ended", now, [_of_silence(row._asdict()) for row in gone])
    for row in gone:
        _audited_silence(row._asdict(), _said(row._asdict()), None)
    return len(gone)


def _of_silence(row: Mapping[str, Any]) -> dict[str, Any]:
    """A silence as the log of changes has it."""
    return {name: row[name] or None for name in ("application", "job_name", "group_name")} | {"message": row["note"]}


def _audited_silence(row: Mapping[str, Any], before: Said, after: Said) -> None:
    named = [row[name] for name in ("group_name", "application", "job_name") if row[name]]
    its = {"application": row["application"] or None, "job_name": row["job_name"] or None}
    audited(Resource.SILENCE, "/".join(named), before, after, its)


def _said(row: Mapping[str, Any]) -> dict[str, Any]:
    """What the audit trail has of a silence."""
    return {"until": rfc3339(row["until"]), "silencedBy": row["silenced_by"], "note": row["note"]}


def _expected_by(row: Any) -> datetime:
    within = timedelta(milliseconds=row.expected_within_ms)
    return expected_by(within, row.last_success_at, row.created_at, row.enabled_since)


def _pause(connection: sa.Connection, row: Any) -> str | None:
    """The likeliest reason: somebody paused what should have run it, or never gave it a schedule."""
    if row.paused:
        return f"Its group {row.group_name} is paused."
    query = sa.select(schedule.c.schedule_name, schedule.c.definition).where(
        schedule.c.application == row.application, schedule.c.job_name == row.job_name
    )
    schedules = connection.execute(query.limit(100)).all()
    if not schedules:
        return "It has no schedule."
    paused = [each.schedule_name for each in schedules if planned_schedule(each.definition).paused]
    return f"Its schedule {paused[0]} is paused." if len(paused) == len(schedules) else None


def _long_running(connection: sa.Connection, now: datetime) -> list[Noticed]:
    """Attempts that run longer than their jobs say."""
    found = []
    for row in connection.execute(_LIVE):
        limit_s = rules_in(row).long_run_seconds
        if limit_s is not None and (now - row.started_at).total_seconds() > limit_s:
            sentence = f"Attempt {row.attempt} has run for more than {span(limit_s)}, and is still running."
            found.append(
                Noticed(
                    AlarmKind.LONG_RUN, row.application, row.job_name, row.group_name, sentence, now, row.trigger_id
                )
            )
    return found


def _see(connection: sa.Connection, now: datetime) -> _Seen:
    long_running = _long_running(connection, now)
    long_jobs = {each.key for each in long_running}
    seen = _Seen(has_expired=bool(connection.execute(_EXPIRED, {"now": now}).scalar()))
    standing = set()
    for row in connection.execute(_OPEN):
        key = (row.application, row.job_name)
        if row.enabled is None or (
            row.kind == AlarmKind.MISSED and (not row.enabled or row.expected_within_ms is None)
        ):
            seen.pointless.append(row)
        elif row.kind == AlarmKind.MISSED and _expected_by(row) > now:
            seen.early.append(row)
        elif row.kind == AlarmKind.LONG_RUN and key not in long_jobs:
            seen.ended.append(row)
        else:
            standing.add((*key, row.kind))
            if row.notified_at is None and row.acknowledged_at is None:
                seen.untold.append(row)
    noticed = [*_missed(connection, now), *long_running]
    seen.noticed = [each for each in noticed if (*each.key, each.kind) not in standing]
    return seen


def application_row(new: ApplicationDefaults, now: datetime) -> dict[str, Any]:
    """The columns of an application's defaults."""
    return {"application": new.application, "definition": definition_of(new), "updated_at": now}

"""Alarms open, go on and are over; their targets are notified, through the outbox, in the same transaction.

Never sends anything (`notifier.py`). Invariants: the schema lets a job have one open alarm of a kind, so that two
replicas which notice the same open it once; who was not told that an alarm opened is not told that it is over.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec
import sqlalchemy as sa

from clickclock.foundation.ids import new_id
from clickclock.scheduler.insight.alarm import INTENDED, Alarm, AlarmKind, Silence, judge
from clickclock.scheduler.insight.event import envelope
from clickclock.scheduler.jobs.notification import ApplicationDefaults, Delivery, Notifications, Occasion
from clickclock.scheduler.jobs.trigger import SkipReason, State
from clickclock.scheduler.store.changes import note
from clickclock.scheduler.store.rows import DEFINITIONS_CACHED, effective_job, insert_of
from clickclock.scheduler.store.schema import job, job_group, job_trigger
from clickclock.scheduler.store.schema_alarms import OPEN_ALARMS, alarm, application, notification, silence

KEYS_PER_QUERY = 200
OPENED, RESOLVED = "opened", "resolved"
SUCCEEDED = "The job succeeded."
Key = tuple[str, str]
_a = alarm.c
_OF_JOBS = sa.tuple_(_a.application, _a.job_name).in_(sa.bindparam("jobs", expanding=True))
_OPEN_OF = sa.select(alarm).where(OPEN_ALARMS, _OF_JOBS)
_RULES = (
    sa.select(
        job.c.application, job.c.job_name, job.c.definition, job_group.c.definition.label("grouped"),
        application.c.definition.label("defaults"),
    )
    .select_from(job.outerjoin(job_group).outerjoin(application, job.c.application == application.c.application))
    .where(sa.tuple_(job.c.application, job.c.job_name).in_(sa.bindparam("jobs", expanding=True)))
)  # fmt: skip
_t = job_trigger.c
_SKIPS = sa.select(_t.trigger_id, _t.skip_reason, _t.upstream).where(
    _t.trigger_id.in_(sa.bindparam("ids", expanding=True))
)
_SILENCES = sa.select(silence).where(silence.c.until > sa.bindparam("now", type_=silence.c.until.type))


class Noticed(msgspec.Struct, frozen=True):
    """Something that opens an alarm, or that happens again while it is open."""

    kind: AlarmKind
    application: str
    job_name: str
    group_name: str | None
    message: str
    at: datetime
    trigger_id: str | None = None

    @property
    def key(self) -> Key:
        return self.application, self.job_name


def take_note(connection: sa.Connection, ended: Sequence[Any]) -> None:
    """Triggers that ended for good (rows in the order of their ends) open and resolve the alarms of their jobs."""
    telling = [row for row in ended if row.state != State.CANCELLED]
    jobs = sorted({(row.application, row.job_name) for row in telling})
    standing = {(row.application, row.job_name, row.kind): row for row in _in_pieces(connection, _OPEN_OF, jobs)}
    skipping = sorted({(row.application, row.job_name) for row in telling if row.state == State.SKIPPED})
    wanted = {key for key, rules in rules_of(connection, skipping).items() if rules.wants(Occasion.SKIP)}
    intended = _intended(
        connection,
        [row.trigger_id for row in telling if row.state == State.SKIPPED and (row.application, row.job_name) in wanted],
    )
    for row in telling:
        verdict = judge(State(row.state))
        key = (row.application, row.job_name)
        over = [standing.pop((*key, kind)) for kind in sorted(verdict.resolves) if (*key, kind) in standing]
        if over:
            resolve(connection, over, row.finished_at, SUCCEEDED)
        if verdict.opens is None:
            continue
        if verdict.opens is AlarmKind.SKIP and (key not in wanted or row.trigger_id in intended):
            continue
        noticed = Noticed(
            verdict.opens, *key, row.group_name, row.message or f"It {row.state}.", row.finished_at, row.trigger_id
        )
        if (*key, noticed.kind) in standing:
            again(connection, standing[*key, noticed.kind].alarm_id, noticed)
        else:
            standing.update({(*key, noticed.kind): each for each in open_all(connection, [noticed])})


def _intended(connection: sa.Connection, skipped: Sequence[str]) -> set[str]:
    """Those of these skips that are meant: by their own schedule, or by those of all upstreams that they followed."""
    reasons: dict[str, str] = {}
    followed: dict[str, set[str]] = {}
    fresh = set(skipped)
    while fresh:
        found = _in_pieces(connection, _SKIPS, sorted(fresh), "ids")
        reasons |= {row.trigger_id: row.skip_reason for row in found}
        fresh = set()
        for row in found:
            if row.skip_reason in {SkipReason.UPSTREAM_FAILED, SkipReason.UPSTREAM_SKIPPED}:
                ended = [each for each in row.upstream or () if each["state"] not in {None, State.SUCCEEDED}]
                followed[row.trigger_id] = {each["triggerId"] for each in ended if each["state"] == State.SKIPPED}
                if len(followed[row.trigger_id]) == len(ended):
                    fresh |= followed[row.trigger_id] - reasons.keys()
                else:
                    del followed[row.trigger_id]  # one of them did not end as it was meant to
    meant = {trigger_id for trigger_id, reason in reasons.items() if reason in INTENDED}
    while more := {each for each, above in followed.items() if above and above <= meant} - meant:
        meant |= more
    return meant


def again(connection: sa.Connection, alarm_id: str, noticed: Noticed) -> None:
    """It happened once more."""
    connection.execute(
        sa.update(alarm)
        .where(_a.alarm_id == alarm_id)
        .values(count=_a.count + 1, updated_at=noticed.at, message=noticed.message, trigger_id=noticed.trigger_id)
    )


@lru_cache
def _insert(dialect: str) -> Any:
    return (
        insert_of(dialect, alarm)
        .on_conflict_do_nothing(index_elements=["application", "job_name", "kind"], index_where=OPEN_ALARMS)
        .returning(alarm)
    )


def open_all(connection: sa.Connection, noticed: Iterable[Noticed]) -> list[Any]:
    """Open alarms where none of the kind is open, and tell; the rows of those that were opened."""
    opened = []
    for each in noticed:
        row = connection.execute(
            _insert(connection.dialect.name),
            {
                "alarm_id": new_id(),
                "kind": each.kind,
                "application": each.application,
                "job_name": each.job_name,
                "group_name": each.group_name,
                "trigger_id": each.trigger_id,
                "message": each.message,
                "count": 1,
                "opened_at": each.at,
                "updated_at": each.at,
            },
        ).one_or_none()
        if row is not None:
            opened.append(row)
            note(connection, "alarm", OPENED, each.at, [_noted(row)])
    for at in sorted({row.opened_at for row in opened}):
        announce(connection, [row for row in opened if row.opened_at == at], at)
    return opened


def announce(connection: sa.Connection, alarms: Sequence[Any], now: datetime) -> None:
    """Notify of open alarms, unless they are silenced; those follow when the silence is over."""
    rules = rules_of(connection, sorted({(row.application, row.job_name) for row in alarms}))
    silences = [silence_of(row) for row in connection.execute(_SILENCES, {"now": now})]
    told = []
    for row in alarms:
        if any(each.covers(row.application, row.job_name, row.group_name) for each in silences):
            continue
        told.append(row.alarm_id)
        wanted = rules.get((row.application, row.job_name), Notifications())
        if wanted.wants(Occasion(row.kind)):
            _put(connection, OPENED, row, wanted.targets or [], now)
    if told:
        connection.execute(sa.update(alarm).where(_a.alarm_id.in_(told)).values(notified_at=now))


def resolve(connection: sa.Connection, alarms: Sequence[Any], now: datetime, how: str) -> None:
    """These are over; the targets that heard of their opening hear of it."""
    rules = rules_of(connection, sorted({(row.application, row.job_name) for row in alarms}))
    for row in alarms:
        gone = connection.execute(
            sa.update(alarm)
            .where(_a.alarm_id == row.alarm_id, OPEN_ALARMS)
            .values(resolved_at=now, resolution=how)
            .returning(alarm)
        ).one_or_none()
        if gone is None:
            continue  # another replica was faster
        note(connection, "alarm", RESOLVED, now, [{**_noted(gone), "message": how}])
        wanted = rules.get((row.application, row.job_name), Notifications())
        if gone.notified_at is not None and wanted.wants(Occasion.RECOVERY) and wanted.wants(Occasion(row.kind)):
            _put(connection, RESOLVED, gone, wanted.targets or [], now)


def rules_of(connection: sa.Connection, jobs: Sequence[Key]) -> dict[Key, Notifications]:
    """The targets of these jobs' alarms: their own, or those of their groups, or of their applications."""
    return {(row.application, row.job_name): rules_in(row) for row in _in_pieces(connection, _RULES, jobs)}


def rules_in(row: Any) -> Notifications:
    """The rules in a row with the definitions of a job, its group and its application's defaults."""
    defaults = None if row.defaults is None else _defaults(row.defaults)
    return effective_job(row.definition, row.grouped).notifications.over(defaults)


@lru_cache(DEFINITIONS_CACHED)
def _defaults(definition: str) -> Notifications:
    return ApplicationDefaults.model_validate_json(definition, extra="ignore").notifications


def _in_pieces(connection: sa.Connection, query: sa.Select[Any], keys: Sequence[Any], name: str = "jobs") -> list[Any]:
    return [
        row
        for start in range(0, len(keys), KEYS_PER_QUERY)
        for row in connection.execute(query, {name: keys[start : start + KEYS_PER_QUERY]})
    ]


def _put(connection: sa.Connection, happened: str, row: Any, targets: Sequence[str], now: datetime) -> None:
    for target in dict.fromkeys(targets):
        data = alarm_of(row).wire()
        add_notification(connection, f"clickclock.alarm.{happened}", target, data, now, row)


def add_notification(
    connection: sa.Connection, type_: str, target: str, data: Mapping[str, Any], now: datetime, of: Any | None = None
) -> str:
    """Put something into the outbox, about an alarm (a row) or about none; its id."""
    notification_id = new_id()
    subject = f"{of.application}/{of.job_name}" if of is not None else target
    connection.execute(
        sa.insert(notification).values(
            notification_id=notification_id,
            target=target,
            type=type_,
            alarm_id=of.alarm_id if of is not None else None,
            application=of.application if of is not None else None,
            job_name=of.job_name if of is not None else None,
            # Written once, so that every try is the same, byte for byte.
            body=json.dumps(envelope(notification_id, type_, now, subject, dict(data)), separators=(",", ":")),
            state=Delivery.PENDING,
            tries=0,
            next_at=now,
            created_at=now,
        )
    )
    return notification_id


def alarm_of(row: Any) -> Alarm:
    """A row of `alarm` as people see it."""
    columns = row._mapping
    return Alarm.model_validate({name: columns[name] for name in Alarm.model_fields})


def silence_of(row: Any) -> Silence:
    """A row of `silence` as people see it."""
    columns = row._mapping
    return Silence.model_validate({name: columns[name] or None for name in Silence.model_fields})


def _noted(row: Any) -> dict[str, Any]:
    return {
        "subject": row.alarm_id,
        "application": row.application,
        "job_name": row.job_name,
        "group_name": row.group_name,
        "reason": row.kind,
        "message": row.message,
    }

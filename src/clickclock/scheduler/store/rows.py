"""Rows to nouns, and the statements every resource needs: a page by keyset, an upsert, a replacement by key.

Never opens a connection. Invariants: a page is ordered by a unique key, so that `after` can go on where it ended; a
field that a newer replica wrote and we do not know is passed over.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Any, get_args

import sqlalchemy as sa
from pydantic import ValidationError
from pydantic.alias_generators import to_camel
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

from clickclock.foundation.instant import MILLISECOND
from clickclock.scheduler.errors import StaleVersion
from clickclock.scheduler.insight.statistics import Ending
from clickclock.scheduler.jobs.group import Group, StoredGroup
from clickclock.scheduler.jobs.image_mapping import ImageMapping
from clickclock.scheduler.jobs.job import AttemptRole, Job, StoredJob
from clickclock.scheduler.jobs.notification import ApplicationDefaults
from clickclock.scheduler.jobs.trigger import Attempt, Kind, SkipReason, State, StopReason, Trigger, UpstreamTrigger
from clickclock.scheduler.store.history_page import one_of
from clickclock.scheduler.store.schema import job_trigger
from clickclock.scheduler.times.backfill import Backfill, StoredBackfill
from clickclock.scheduler.times.business_days import Calendar, CalendarRule, Days, StoredCalendar
from clickclock.scheduler.times.schedule import Schedule, StoredSchedule

DEFINITIONS_CACHED = 2048
"""Definitions kept in their parsed form: those that fire often; 100,000 idle ones stay in the store."""

_t = job_trigger.c
ENDING_COLUMNS = (
    _t.trigger_id, _t.application, _t.job_name, _t.group_name, _t.state, _t.skipped_count, _t.started_at,
    _t.finished_at, _t.attempt, _t.preemption_count, _t.lag_ms, _t.cpu_seconds, _t.max_memory_bytes, _t.is_flip,
    _t.node,
)  # fmt: skip
"""What `ending_of` reads."""
_COLUMNS = {"schedule_id", "schedule_name", "version", "created_at", "updated_at", "updated_by"}
"""Fields that have columns of their own. Without them the definitions of many schedules are one, parsed once."""


def insert_of(dialect: str, table: sa.Table) -> Any:
    """An INSERT of the dialect of that name, which knows ON CONFLICT."""
    return (sqlite if dialect == "sqlite" else postgresql).insert(table)


def upsert(connection: sa.Connection, table: sa.Table) -> Any:
    """An INSERT of the connection's own dialect, which knows ON CONFLICT."""
    return insert_of(connection.dialect.name, table)


class _Texts(TypeDecorator[Sequence[str]]):
    """A list of texts as JSON, made by the shortest way: the hottest statements take such lists."""

    impl = sa.Text
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[Sequence[str] | None], str]:
        return _as_json


def _as_json(texts: Sequence[str] | None) -> str:
    return f"[{','.join(map(encode_basestring_ascii, texts or ()))}]"


def among(dialect: str, column: sa.ColumnElement[str], name: str) -> sa.ColumnElement[bool]:
    """`column` is one of the texts in the list that is the parameter `name`: one statement, however many there are."""
    if dialect == "sqlite":
        listed = sa.func.json_each(sa.bindparam(name, type_=_Texts)).table_valued("value")
        return column.in_(sa.select(listed.c.value))
    return column == sa.any_(sa.bindparam(name, type_=postgresql.ARRAY(sa.Text)))


def page(
    query: sa.Select[Any],
    key: Sequence[sa.ColumnElement[Any]],
    after: Sequence[Any] | None,
    limit: int,
    *,
    newest_first: bool = False,
) -> sa.Select[Any]:
    """`query` ordered by `key`, beginning after the row whose key is `after`."""
    query = query.order_by(*(column.desc() if newest_first else column for column in key)).limit(limit)
    if after is None:
        return query
    here, there = sa.tuple_(*key), sa.tuple_(*after)
    return query.where(here < there if newest_first else here > there)


def equal(table: sa.Table, values: Mapping[str, Any]) -> list[sa.ColumnElement[bool]]:
    """That columns have these values; one of them, where there is a list."""
    return [one_of(table.c[name], value) for name, value in values.items()]


def refuse_stale(version: int | None, wanted: int | None) -> None:
    """Raise `StaleVersion` if another version is wanted than this one; None wants any."""
    if wanted is not None and version != wanted:
        raise StaleVersion


def put_row(
    connection: sa.Connection,
    table: sa.Table,
    mine: sa.ColumnElement[bool],
    row: Callable[[Any], dict[str, Any]],
    now: datetime,
    if_version: int | None,
    *,
    replace: bool = True,
) -> Any:
    """Insert the row that `mine` is, or `replace` it; `row` makes it of the old one, which is returned, or None.

    Raises `StaleVersion`.
    """
    old = connection.execute(sa.select(table).where(mine).with_for_update()).one_or_none()
    refuse_stale(None if old is None else old.version, if_version)
    if old is None:
        connection.execute(sa.insert(table).values(**row(None), version=1, created_at=now))
    elif replace:
        connection.execute(sa.update(table).where(mine).values(**row(old), version=old.version + 1))
    return old


def definition_of(record: Job | Group | Schedule | ImageMapping | Calendar | Backfill | ApplicationDefaults) -> str:
    """What the user said, as JSON, and only that: what was left unsaid keeps following its default."""
    return record.model_dump_json(by_alias=True, exclude_unset=True, exclude=_COLUMNS)


@lru_cache(DEFINITIONS_CACHED)
def _group(definition: str) -> Group:
    return Group.model_validate_json(definition, extra="ignore")


@lru_cache(DEFINITIONS_CACHED)
def effective_job(definition: str, group: str | None) -> Job:
    """A job with its group's defaults, as it runs; parsed once per definition."""
    try:
        job = Job.model_validate_json(definition, extra="ignore")
    except ValidationError:
        job = Job.model_validate(_known(json.loads(definition)), extra="ignore")
    return job if group is None else _group(group).apply_to(job)


def _known(job: dict[str, Any]) -> dict[str, Any]:
    """A job as it was kept. Its attempts get no token of a role that this release does not know."""
    return job if job.get("token") in {None, *get_args(AttemptRole)} else {**job, "token": None}


@lru_cache(DEFINITIONS_CACHED)
def planned_schedule(definition: str) -> Schedule:
    """A schedule as the planner needs it; parsed once per definition."""
    return Schedule.model_validate_json(definition, extra="ignore")


@lru_cache(DEFINITIONS_CACHED)
def planned_days(calendar: str | None, rule: CalendarRule) -> Days | None:
    """The days that a schedule's calendar leaves, as the planner needs them; parsed once per definition."""
    return None if calendar is None else Calendar.model_validate_json(calendar).days(rule)


def _versions(row: Any) -> dict[str, Any]:
    return {"version": row.version, "createdAt": row.created_at, "updatedAt": row.updated_at}


def stored_job(row: Any) -> StoredJob:
    """A job as the service keeps it."""
    said = {**_known(json.loads(row.definition)), **_versions(row), "updatedBy": row.updated_by}
    return StoredJob.model_validate(said, extra="ignore")


def stored_group(row: Any, jobs: int, queued: int, running: int) -> StoredGroup:
    """A group as the service keeps it, with what it holds now."""
    counts = {"jobs": jobs, "queued": queued, "running": running}
    return StoredGroup.model_validate({**json.loads(row.definition), **_versions(row), **counts}, extra="ignore")


def stored_schedule(row: Any) -> StoredSchedule:
    """A schedule as the service keeps it."""
    return StoredSchedule.model_validate(
        {
            **json.loads(row.definition),
            "scheduleId": row.schedule_id,
            "scheduleName": row.schedule_name,
            "nextFireAt": row.next_due,
            "lastFireAt": row.last_fire,
            "updatedBy": row.updated_by,
            **_versions(row),
        },
        extra="ignore",
    )


def stored_calendar(row: Any, schedules: int) -> StoredCalendar:
    """A calendar as the service keeps it, with how many schedules go by it."""
    return StoredCalendar.model_validate({**json.loads(row.definition), **_versions(row), "schedules": schedules})


def asked_backfill(row: Any) -> Backfill:
    """A backfill as it was asked for."""
    return Backfill.model_validate({**json.loads(row.definition), "scheduleId": row.schedule_id})


def stored_backfill(row: Any, counts: Mapping[str, int]) -> StoredBackfill:
    """A backfill as the service keeps it, with the numbers of its triggers."""
    columns = ("backfill_id", "application", "job_name", "schedule_id", "state", "message", "total", "excluded",
               "skipped", "triggered", "settled_through", "ended_at")  # fmt: skip
    return StoredBackfill.model_validate(
        {
            **json.loads(row.definition),
            **{to_camel(name): row._mapping[name] for name in columns},
            "maxConcurrentTriggers": row.max_concurrent,
            "maxTriggersPerSecond": row.per_second,
            **_versions(row),
            **counts,
        }
    )


def stored_mapping(row: Any) -> ImageMapping:
    """A mapping as the service keeps it."""
    return ImageMapping.model_validate(
        {**json.loads(row.definition), "createdAt": row.created_at, "updatedAt": row.updated_at}, extra="ignore"
    )


def trigger_of(row: Any, attempts: list[Attempt] | None = None) -> Trigger:
    """A row of `job_trigger` as the API shows it."""
    running_ms = None
    if row.started_at is not None and row.finished_at is not None:
        running_ms = (row.finished_at - row.started_at) // MILLISECOND
    derived = {
        "kind": Kind(row.kind),
        "state": State(row.state),
        "skip_reason": row.skip_reason and SkipReason(row.skip_reason),
        "stop_reason": row.stop_reason and StopReason(row.stop_reason),
        "cluster": row.cluster or None,
        "duration_ms": running_ms,
        "retry_at": row.ready_at if row.state == State.QUEUED else None,
        "attempts": attempts,
        "waits_for": None,
        "upstream": row.upstream and [UpstreamTrigger.model_validate(each) for each in row.upstream],
    }
    # In the order of the fields: that is the order in which they are written.
    return Trigger.trusted(
        **{name: derived[name] if name in derived else getattr(row, name) for name in Trigger.model_fields}
    )


def ending_of(row: Any, *, is_flip: bool | None = None) -> Ending:
    """What statistics count of a concluded trigger; `is_flip` where its row does not say it yet."""
    ran = row.started_at is not None
    return Ending(
        row.application,
        row.job_name,
        State(row.state),
        row.finished_at,
        group_name=row.group_name,
        count=row.skipped_count or 1,
        attempts=row.attempt,
        preemption_count=row.preemption_count,
        duration_ms=(row.finished_at - row.started_at) / MILLISECOND if ran else None,
        lag_ms=row.lag_ms,
        cpu_seconds=row.cpu_seconds,
        max_memory_bytes=row.max_memory_bytes,
        trigger_id=row.trigger_id,
        is_flip=bool(row.is_flip) if is_flip is None else is_flip,
        node=row.node,
    )

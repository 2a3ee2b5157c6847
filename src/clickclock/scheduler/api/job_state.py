"""`/schedulerService/jobState`: where each job stands, in one bounded question.

Parse, call, render.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.errors import Fault
from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.instant import MILLISECOND
from clickclock.foundation.permission import Permission
from clickclock.foundation.record import Instant, Record
from clickclock.scheduler.api.job import JobFilters
from clickclock.scheduler.api.operation import Call, Operation, success
from clickclock.scheduler.api.paging import columns, key_in, page, seen_by
from clickclock.scheduler.jobs.trigger import SkipReason, State
from clickclock.scheduler.store import Standing

TRIGGERS_MAX = 5000


class StateFilters(JobFilters):
    """Which jobs: the filters of `GET job`."""

    recent: int = Field(1, ge=1, le=100, description="Newest triggers of each job.", examples=[1])


class RecentTrigger(Record):
    """One of a job's newest triggers."""

    trigger_id: str = Field(description="The trigger.", examples=[EXAMPLE_ID])
    state: State = Field(description="Where it stands.", examples=["succeeded"])
    skip_reason: SkipReason | None = Field(description="Why it did not become a run.", examples=["overlap"])
    skipped_count: int | None = Field(description="Times that share this row, if more than one was skipped.")
    due_time: Instant = Field(description="When it was due.")
    started_at: Instant | None = Field(description="When the current or last attempt's process started.")
    finished_at: Instant | None = Field(description="When it ended for good.")
    lag_ms: int | None = Field(description="Start of the first attempt minus due time, in ms.", examples=[4])
    duration_ms: int | None = Field(description="End minus start of the last attempt, in ms.", examples=[1250])


class JobState(Record):
    """Where a job stands."""

    application: str = Field(description="Its application.", examples=["shop"])
    job_name: str = Field(description="Its name.", examples=["nightly-export"])
    group_name: str | None = Field(description="Its group.", examples=["exports"])
    enabled: bool = Field(description="Whether it may run.", examples=[True])
    next_fire_at: Instant | None = Field(
        description="When the first of its schedules that are not paused is due; null if none is."
    )
    queued: int = Field(description="Triggers that wait now.", examples=[0])
    running: int = Field(description="Triggers that start or run now.", examples=[1])
    current_streak: int | None = Field(
        description="Successes in a row (positive) or failures (negative) up to now; null if it never ended.",
        examples=[12],
    )
    last_success_at: Instant | None = Field(description="When it last succeeded.")
    last_failure_at: Instant | None = Field(description="When it last failed for good.")
    recent: list[RecentTrigger] = Field(description="Its newest triggers, newest first.")


def check(wanted: StateFilters, now: datetime) -> Sequence[Fault]:
    """The faults of the filters together."""
    if wanted.limit * wanted.recent <= TRIGGERS_MAX:
        return []
    most = TRIGGERS_MAX // wanted.recent
    sentence = f"One answer has at most {TRIGGERS_MAX} triggers: with recent={wanted.recent} give at most {most}."
    return [Fault("limit", sentence)]


async def find(call: Call[StateFilters]) -> Response:
    """GET: by name, as `GET job`."""
    filters = columns(call.filters)
    own = {name: value for name, value in filters.items() if name != "recent"}
    after = key_in(call.filters.cursor, "jobState", filters)
    seen = seen_by(own, call.seen(Permission.JOB_READ))
    if seen is None:
        return success(jobStates=[], nextCursor=None)
    found = await call.engine.store.overview.standings(seen, after, call.filters.limit + 1, call.filters.recent)
    standings, cursor = page("jobState", filters, found, call.filters.limit, lambda each: each.key)
    return success(jobStates=[_shown(each) for each in standings], nextCursor=cursor)


def _shown(standing: Standing) -> JobState:
    row = standing.job
    return JobState.trusted(
        application=row.application,
        job_name=row.job_name,
        group_name=row.group_name,
        enabled=row.enabled,
        next_fire_at=row.next_due,
        queued=standing.queued,
        running=standing.running,
        current_streak=row.streak,
        last_success_at=row.last_success_at,
        last_failure_at=row.last_failure_at,
        recent=[_recent(each) for each in standing.recent],
    )


def _recent(row: Any) -> RecentTrigger:
    ran = row.started_at is not None and row.finished_at is not None
    return RecentTrigger.trusted(
        **{name: row._mapping[name] for name in RecentTrigger.model_fields if name != "duration_ms"},
        duration_ms=(row.finished_at - row.started_at) // MILLISECOND if ran else None,
    )


OPERATIONS = (
    Operation(
        "GET",
        "List where jobs stand",
        Permission.JOB_READ,
        find,
        StateFilters,
        {200: {"jobStates": list[JobState], "nextCursor": str | None}},
        check=check,
        description="By name, with the filters of `GET job`: what each has queued and running, when it is due next, "
        "and its newest triggers. It costs the same behind any history.",
    ),
)

"""`/schedulerService/triggerMarks`: many triggers in few bytes, for time lines.

Parse, call, render. Never reads more of a trigger than where it is on the line. Invariant: all columns are of one
length, and what has the same place in them is one trigger.
"""

from collections.abc import Sequence

from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.instant import ms_of
from clickclock.foundation.permission import Permission
from clickclock.foundation.record import Record
from clickclock.scheduler.api.job_trigger import TriggerFilters, by_columns
from clickclock.scheduler.api.operation import Call, Operation, success
from clickclock.scheduler.api.paging import columns, key_in, page, seen_by
from clickclock.scheduler.api.reading import Word
from clickclock.scheduler.jobs.trigger import State
from clickclock.scheduler.store import Mark

MARKS_MAX = 5000


class MarkFilters(TriggerFilters):
    """Which triggers: the filters of `GET jobTrigger`."""

    limit: int = Field(1000, ge=1, le=MARKS_MAX, description="At most this many triggers.", examples=[1000])
    trigger_id: Word | None = Field(None, description="This trigger.", examples=[EXAMPLE_ID])


class MarkedJob(Record):
    """A job that a mark may point at."""

    application: str = Field(description="Its application.", examples=["shop"])
    job_name: str = Field(description="Its name.", examples=["nightly-export"])


class TriggerMarks(Record):
    """Triggers, newest first, as columns: what has the same place in each is one trigger. Times are ms since 1970."""

    trigger_ids: list[str] = Field(description="Their ids.", examples=[[EXAMPLE_ID]])
    jobs: list[MarkedJob] = Field(description="The jobs that `jobIndexes` point at.")
    job_indexes: list[int] = Field(description="Each trigger's job: its place in `jobs`.", examples=[[0]])
    states: list[State] = Field(description="The states that `stateIndexes` point at.", examples=[["succeeded"]])
    state_indexes: list[int] = Field(description="Each trigger's state: its place in `states`.", examples=[[0]])
    due_times_ms: list[int] = Field(description="When they were due.", examples=[[1_795_138_200_000]])
    starts_ms: list[int | None] = Field(
        description="When the current or last attempt's process started.", examples=[[1_795_138_200_004]]
    )
    ends_ms: list[int | None] = Field(description="When they ended for good.", examples=[[1_795_138_201_254]])
    lags_ms: list[int | None] = Field(description="Start of the first attempt minus due time, in ms.", examples=[[4]])


async def find(call: Call[MarkFilters]) -> Response:
    """GET: as columns."""
    given = columns(call.filters)
    after = key_in(call.filters.cursor, "triggerMarks", given)
    seen = seen_by(by_columns(given), call.seen(Permission.TRIGGER_READ))
    if seen is None:
        return success(triggerMarks=_as_columns([]), nextCursor=None)
    found = await call.engine.store.triggers.marks(seen, after, call.filters.limit + 1)
    marks, cursor = page("triggerMarks", given, found, call.filters.limit, lambda each: [each.trigger_id])
    return success(triggerMarks=_as_columns(marks), nextCursor=cursor)


def _as_columns(marks: Sequence[Mark]) -> TriggerMarks:
    jobs: dict[tuple[str, str], int] = {}
    states: dict[str, int] = {}
    return TriggerMarks.trusted(
        trigger_ids=[each.trigger_id for each in marks],
        job_indexes=[jobs.setdefault((each.application, each.job_name), len(jobs)) for each in marks],
        jobs=[MarkedJob.trusted(application=application, job_name=job_name) for application, job_name in jobs],
        state_indexes=[states.setdefault(each.state, len(states)) for each in marks],
        states=[State(each) for each in states],
        due_times_ms=[ms_of(each.due_time) for each in marks],
        starts_ms=[each.started_at and ms_of(each.started_at) for each in marks],
        ends_ms=[each.finished_at and ms_of(each.finished_at) for each in marks],
        lags_ms=[each.lag_ms for each in marks],
    )


OPERATIONS = (
    Operation(
        "GET",
        "List triggers as marks on a time line",
        Permission.TRIGGER_READ,
        find,
        MarkFilters,
        {200: {"triggerMarks": TriggerMarks, "nextCursor": str | None}},
        description="The same triggers as `GET jobTrigger`, newest first, in a tenth of the bytes, for pictures of "
        "many runs. `from` and `to` bound when a trigger was recorded. For those that began earlier and still run, ask "
        "again with `state=queued,starting,running`.",
    ),
)

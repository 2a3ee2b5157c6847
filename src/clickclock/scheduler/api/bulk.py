"""`/schedulerService/bulk`: the same done to many triggers or schedules, with an answer for each.

Parse, call, render. Invariants: each item is a transaction of its own, so nothing is half done wherever a call ends;
what a caller may not do to an item is not done, and said; a call is bounded, and its cursor goes on.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from starlette.responses import Response

from clickclock.foundation.errors import ClickclockError, Invalid, StoreUnreachable
from clickclock.foundation.ids import new_id
from clickclock.foundation.permission import Permission
from clickclock.scheduler.api.operation import Call, Operation, success
from clickclock.scheduler.api.paging import key_in, page, seen_by
from clickclock.scheduler.api.reading import Body, Query
from clickclock.scheduler.api.schedules import changed
from clickclock.scheduler.jobs.bulk import COUNTED_MAX, BulkAction, BulkCount, BulkItem, BulkRequest
from clickclock.scheduler.jobs.trigger import NewTrigger, Trigger
from clickclock.scheduler.times.schedule import StoredSchedule

PER_PAGE = 1000
PAGES_MAX = 20
"""Pages of a dry run: where few rows match, a page may be nearly empty."""
BODY = Body(BulkRequest)
_PERMISSIONS = {
    BulkAction.CANCEL: Permission.TRIGGER_CANCEL,
    BulkAction.RUN_AGAIN: Permission.TRIGGER_CREATE,
    BulkAction.PAUSE: Permission.SCHEDULE_PAUSE,
    BulkAction.RESUME: Permission.SCHEDULE_PAUSE,
}

_READS = {True: Permission.TRIGGER_READ, False: Permission.SCHEDULE_READ}
"""What the caller may see of triggers, or of schedules: others it does not learn of."""


async def act(call: Call[Query]) -> Response:
    """POST: one page of items, or a count."""
    asked: BulkRequest = BODY.read(call.body, BulkRequest.check)
    call.principal.require(_PERMISSIONS[asked.action])
    seen = seen_by(asked.columns(), call.seen(_READS[asked.action.is_of_triggers]))
    if asked.dry_run:
        counted = BulkCount(states={}, is_complete=True) if seen is None else await _counted(call, asked, seen)
        return success(bulkId=None, items=[], nextCursor=None, dryRun=counted)
    told, cursor = ([], None) if seen is None else await _page(call, asked, seen)
    bulk_id = asked.bulk_id or new_id()
    # All at once: what is written together shares its commit.
    with call.engine.store.audit.needing(_PERMISSIONS[asked.action]):
        items = await asyncio.gather(*(_item(call, asked, bulk_id, each) for each in told))
    if asked.action.is_of_triggers:
        call.engine.stop_attempts()
        call.engine.wake_dispatcher()
        call.engine.wake_chainer()
    return success(bulkId=bulk_id, items=items, nextCursor=cursor, dryRun=None)


async def _page(
    call: Call[Query], asked: BulkRequest, filters: Mapping[str, Any]
) -> tuple[Sequence[Trigger] | Sequence[StoredSchedule], str | None]:
    bound = {"action": asked.action, **asked.columns()}
    after = key_in(asked.cursor, "bulk", bound)
    store = call.engine.store
    if asked.action.is_of_triggers:
        triggers = await store.triggers.find(filters, after, asked.limit + 1)
        return page("bulk", bound, triggers, asked.limit, lambda each: [each.trigger_id])
    schedules = await store.schedules.find(filters, after, asked.limit + 1)
    return page("bulk", bound, schedules, asked.limit, lambda each: [each.schedule_id])


async def _counted(call: Call[Query], asked: BulkRequest, filters: Mapping[str, Any]) -> BulkCount:
    states: Counter[str] = Counter()
    after: Sequence[str] | None = None
    for _ in range(PAGES_MAX):
        key: str | None
        if asked.action.is_of_triggers:
            marks = await call.engine.store.triggers.marks(filters, after, PER_PAGE)
            states.update(each.state for each in marks)
            key = marks[-1].trigger_id if len(marks) == PER_PAGE else marks.reached
        else:
            schedules = await call.engine.store.schedules.find(filters, after, PER_PAGE)
            states.update("paused" if each.paused else "active" for each in schedules)
            key = schedules[-1].schedule_id if len(schedules) == PER_PAGE else None
        if key is None:
            return BulkCount(states=dict(states), is_complete=True)
        if states.total() >= COUNTED_MAX:
            break
        after = [str(key)]
    return BulkCount(states=dict(states), is_complete=False)


async def _item(call: Call[Query], asked: BulkRequest, bulk_id: str, of: Trigger | StoredSchedule) -> BulkItem:
    """Do it to one. What the store cannot do at all is no answer of an item."""
    new_trigger_id = None
    fault: ClickclockError | None = None
    try:
        call.principal.require(_PERMISSIONS[asked.action], application=of.application)
        if isinstance(of, Trigger):
            new_trigger_id = await _TO_TRIGGERS[asked.action](call, asked, bulk_id, of)
        else:
            await _paused(call, asked, of, paused=asked.action is BulkAction.PAUSE)
    except StoreUnreachable:
        raise
    except ClickclockError as error:
        fault = error
    sentences = [str(fault), *(each.message for each in fault.faults)] if fault is not None else []
    return BulkItem(
        trigger_id=of.trigger_id if isinstance(of, Trigger) else None,
        schedule_id=of.schedule_id if isinstance(of, StoredSchedule) else None,
        done=fault is None,
        new_trigger_id=new_trigger_id,
        code=None if fault is None else fault.code,
        message=" ".join(sentences) or None,
    )


async def _cancel(call: Call[Query], asked: BulkRequest, bulk_id: str, of: Trigger) -> None:
    await call.engine.store.triggers.cancel(of.trigger_id, call.engine.clock.now())


async def _run_again(call: Call[Query], asked: BulkRequest, bulk_id: str, of: Trigger) -> str:
    again = NewTrigger(
        trigger_id=new_id(),
        application=of.application,
        job_name=of.job_name,
        parameters=of.parameters,
        idempotency_key=f"{bulk_id}:{of.trigger_id}",
        requested_by="api",
        reason=asked.reason,
        nominal_time=of.nominal_time,
    )
    trigger, _ = await call.engine.store.triggers.create(again, call.engine.clock.now())
    return trigger.trigger_id


async def _paused(call: Call[Query], asked: BulkRequest, of: StoredSchedule, *, paused: bool) -> None:
    if of.paused is not paused:
        reason = {"pauseReason": asked.reason} if paused and asked.reason is not None else {}
        await changed(call.engine, of.schedule_id, {"paused": paused, **reason})


_TO_TRIGGERS: Mapping[BulkAction, Callable[[Call[Query], BulkRequest, str, Trigger], Awaitable[str | None]]] = {
    BulkAction.CANCEL: _cancel,
    BulkAction.RUN_AGAIN: _run_again,
}


OPERATIONS = (
    Operation(
        "POST",
        "Do the same to many triggers or schedules",
        Permission.TRIGGER_CANCEL,
        act,
        Query,
        {
            200: {
                "bulkId": str | None,
                "items": list[BulkItem],
                "nextCursor": str | None,
                "dryRun": BulkCount | None,
            }
        },
        description="Cancels triggers, runs them again with their parameters, or pauses or resumes schedules. One call "
        "takes up to 100 of those that the filter finds, and answers for each of them. `nextCursor` goes on with the "
        "rest. A dry run counts them by state and does nothing.",
        body=BulkRequest,
        examples={
            "what would run again": {
                "action": "runAgain",
                "filter": {"application": "shop", "states": ["failed"], "from": "2026-11-20T00:00:00Z"},
                "dryRun": True,
            },
            "run it again": {
                "action": "runAgain",
                "filter": {"application": "shop", "states": ["failed"], "from": "2026-11-20T00:00:00Z"},
                "bulkId": "after-the-fix",
                "reason": "rerun after a fix",
            },
            "pause an application's schedules": {"action": "pause", "filter": {"application": "shop"}},
        },
        errors=(Invalid,),
    ),
)

"""`/schedulerService/alarm` and `/schedulerService/silence`: what is wrong, who is on it, and who is left in peace.

Parse, call, render.
"""

from typing import Any

from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.errors import Fault, Invalid
from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.permission import Permission
from clickclock.foundation.principal import EVERY
from clickclock.scheduler.api.operation import Call, Operation, success
from clickclock.scheduler.api.paging import listed
from clickclock.scheduler.api.reading import Body, Page, Query, Word
from clickclock.scheduler.errors import AlarmIsResolved, AlarmNotFound, SilenceNotFound
from clickclock.scheduler.insight.alarm import (
    Acknowledgement,
    Alarm,
    AlarmKind,
    Silence,
    SilenceRequest,
    scope_faults,
)


class AlarmFilters(Page):
    """Which alarms."""

    alarm_id: Word | None = Field(None, description="This alarm.", examples=[EXAMPLE_ID])
    application: Word | None = Field(None, description="Alarms of this application.", examples=["shop"])
    job_name: Word | None = Field(None, description="Alarms of jobs of this name.", examples=["nightly-export"])
    group_name: Word | None = Field(None, description="Alarms of this group's jobs.", examples=["exports"])
    kind: AlarmKind | None = Field(None, description="Alarms of this kind.", examples=["missed"])
    is_open: bool | None = Field(
        None, description="Only those that are open, or only those that are over.", examples=[True]
    )


class SilenceTarget(Query):
    """Which silence is to end."""

    application: Word | None = Field(None, description="The application.", examples=["shop"])
    job_name: Word | None = Field(None, description="The one job.", examples=["nightly-export"])
    group_name: Word | None = Field(None, description="The group.", examples=["exports"])


ACKNOWLEDGEMENT = Body(Acknowledgement)
SILENCE = Body(SilenceRequest)


async def find(call: Call[AlarmFilters]) -> Response:
    """GET: newest first."""
    alarms, cursor = await listed(
        "alarm",
        call.filters,
        call.engine.store.alarms.find,
        lambda each: [each.alarm_id],
        call.seen(Permission.ALARM_READ),
    )
    return success(200, alarms=alarms, nextCursor=cursor)


async def acknowledge(call: Call[Query]) -> Response:
    """PUT: somebody takes it on."""
    by: Acknowledgement = ACKNOWLEDGEMENT.read(call.body)
    store = call.engine.store.alarms
    if call.seen(Permission.ALARM_ACKNOWLEDGE) is not None:
        found = await store.find({"alarm_id": by.alarm_id}, None, 1)
        if not found:
            raise AlarmNotFound
        call.require_of(Permission.ALARM_ACKNOWLEDGE, found[0].application, Permission.ALARM_READ, AlarmNotFound)
    by = by.model_copy(update={"acknowledged_by": call.doer(by.acknowledged_by)})
    return success(200, alarm=await store.acknowledge(by, call.engine.clock.now()))


async def list_silences(call: Call[Query]) -> Response:
    """GET: those that hold."""
    store, now = call.engine.store.alarms, call.engine.clock.now()
    return success(200, silences=await store.silences(now, call.seen(Permission.SILENCE_READ)))


async def silence(call: Call[Query]) -> Response:
    """PUT: tell nobody for a while."""
    asked: SilenceRequest = SILENCE.read(call.body, _check_scope)
    call.principal.require(Permission.SILENCE_WRITE, application=asked.application or EVERY)
    asked = asked.model_copy(update={"silenced_by": call.doer(asked.silenced_by)})
    return success(200, silence=await call.engine.store.alarms.silence(asked, call.engine.clock.now()))


async def end_silence(call: Call[SilenceTarget]) -> Response:
    """DELETE: tell again."""
    _check_scope(call.filters)
    target = call.filters
    call.principal.require(Permission.SILENCE_WRITE, application=target.application or EVERY)
    now = call.engine.clock.now()
    await call.engine.store.alarms.end_silence(target.application, target.job_name, target.group_name, now)
    return success()


def _check_scope(asked: Any) -> None:
    faults = scope_faults(asked.application, asked.job_name, asked.group_name)
    if faults:
        raise Invalid(faults=[Fault(field, sentence) for field, sentence in faults.items()])


ALARM_OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "GET",
        "List alarms",
        Permission.ALARM_READ,
        find,
        AlarmFilters,
        {200: {"alarms": list[Alarm], "nextCursor": str | None}},
        description="Newest first. A job has one open alarm of a kind, which counts what happens again meanwhile.",
    ),
    Operation(
        "PUT",
        "Acknowledge an alarm",
        Permission.ALARM_ACKNOWLEDGE,
        acknowledge,
        Query,
        {200: {"alarm": Alarm}},
        description="Somebody takes it on: it stays open until it is over by itself.",
        body=Acknowledgement,
        examples={
            "with a note": {
                "alarmId": EXAMPLE_ID,
                "note": "I am looking at it.",
            }
        },
        errors=(AlarmNotFound, AlarmIsResolved, Invalid),
    ),
)
SILENCE_OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "GET",
        "List silences",
        Permission.SILENCE_READ,
        list_silences,
        Query,
        {200: {"silences": list[Silence]}},
        description="Those that hold, the first to end first.",
    ),
    Operation(
        "PUT",
        "Silence alarms for a while",
        Permission.SILENCE_WRITE,
        silence,
        Query,
        {200: {"silence": Silence}},
        description="Alarms open all the same, but nobody is notified; if one is still open when the silence ends, it "
        "is notified then. A silence of the same jobs is replaced.",
        body=SilenceRequest,
        examples={
            "a job": {"application": "shop", "jobName": "nightly-export", "seconds": 3600},
            "a group": {"groupName": "exports", "seconds": 600, "note": "The disk is replaced."},
        },
        errors=(Invalid,),
    ),
    Operation(
        "DELETE",
        "End a silence",
        Permission.SILENCE_WRITE,
        end_silence,
        SilenceTarget,
        {200: {}},
        description="It is named by what it was made for.",
        target_in_body=True,
        errors=(SilenceNotFound, Invalid),
    ),
)

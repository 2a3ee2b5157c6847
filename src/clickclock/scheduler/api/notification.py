"""`/schedulerService/notification` and `/schedulerService/application`: notifications, and their targets by default.

Parse, call, render. Never says where a target is: the configuration alone knows.
"""

from typing import Any

from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.errors import Fault, Invalid
from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.permission import Permission
from clickclock.foundation.record import Record
from clickclock.scheduler.api.operation import Call, Operation, success
from clickclock.scheduler.api.paging import listed
from clickclock.scheduler.api.reading import Body, Page, Query, Word
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.errors import ApplicationNotFound, NotificationIsSent, NotificationNotFound
from clickclock.scheduler.jobs.notification import (
    ApplicationDefaults,
    Delivery,
    Notification,
    Notifications,
    TargetName,
)


class NotificationFilters(Page):
    """Which notifications."""

    notification_id: Word | None = Field(None, description="This one.")
    state: Delivery | None = Field(None, description="Those in this state.", examples=["dead"])
    target: Word | None = Field(None, description="Those for this target.", examples=["ops"])
    alarm_id: Word | None = Field(None, description="Those of this alarm.")
    application: Word | None = Field(None, description="Those of this application's alarms.", examples=["shop"])
    job_name: Word | None = Field(None, description="Those of alarms of jobs of this name.", examples=["export"])


class Retry(Record):
    """A notification that is to be tried again."""

    notification_id: str = Field(max_length=64, description="The notification.")


class TestNotification(Record):
    """A target to which a test notification is sent."""

    target: TargetName = Field(description="The target.", examples=["ops"])


class ApplicationFilters(Page):
    """Which applications."""

    application: Word | None = Field(None, description="This application.", examples=["shop"])


class ApplicationTarget(Query):
    """An application whose defaults are to go."""

    application: Word = Field(description="The application.", examples=["shop"])


RETRY = Body(Retry)
TEST = Body(TestNotification)
DEFAULTS = Body(ApplicationDefaults)


def unknown_targets(engine: Engine, wanted: Notifications, field: str = "notifications.targets") -> list[Fault]:
    """A fault where a target is named that is not configured."""
    known = engine.notifier.targets
    unknown = [each for each in wanted.targets or [] if each not in known]
    if not unknown:
        return []
    there_are = f"configured are: {', '.join(sorted(known))}" if known else "none is configured"
    sentence = f"There is no target {', '.join(unknown)}; {there_are} (see [notifications.NAME] in the reference)."
    return [Fault(field, sentence)]


def check_targets(engine: Engine, wanted: Notifications | None, field: str = "notifications.targets") -> None:
    """Raises `Invalid` where a target is named that is not configured."""
    if wanted is not None and (faults := unknown_targets(engine, wanted, field)):
        raise Invalid(faults=faults)


async def find(call: Call[NotificationFilters]) -> Response:
    """GET: newest first."""
    told, cursor = await listed(
        "notification", call.filters, call.engine.store.outbox.find, lambda each: [each.notification_id]
    )
    return success(200, notifications=told, nextCursor=cursor)


async def try_again(call: Call[Query]) -> Response:
    """PUT: try it anew."""
    asked: Retry = RETRY.read(call.body)
    told = await call.engine.store.outbox.try_again(asked.notification_id, call.engine.clock.now())
    call.engine.wake_notifier()
    return success(200, notification=told)


async def test(call: Call[Query]) -> Response:
    """POST: tell a target something."""
    engine = call.engine
    asked: TestNotification = TEST.read(
        call.body, lambda asked: check_targets(engine, Notifications(targets=[asked.target]), "target")
    )
    told = await engine.store.outbox.add_test(asked.target, engine.clock.now())
    engine.wake_notifier()
    return success(201, notification=told)


async def find_defaults(call: Call[ApplicationFilters]) -> Response:
    """GET: by name."""
    told, cursor = await listed(
        "application",
        call.filters,
        call.engine.store.alarms.defaults,
        lambda each: [each.application],
        call.seen(Permission.APPLICATION_READ),
    )
    return success(200, applications=told, nextCursor=cursor)


async def put_defaults(call: Call[Query]) -> Response:
    """PUT: what holds for an application."""
    engine = call.engine
    new: ApplicationDefaults = DEFAULTS.read(call.body, lambda new: check_targets(engine, new.notifications))
    call.principal.require(Permission.APPLICATION_WRITE, application=new.application)
    return success(200, application=await engine.store.alarms.put_defaults(new, engine.clock.now()))


async def delete_defaults(call: Call[ApplicationTarget]) -> Response:
    """DELETE: nothing holds for it any more."""
    call.principal.require(Permission.APPLICATION_WRITE, application=call.filters.application)
    await call.engine.store.alarms.delete_defaults(call.filters.application, call.engine.clock.now())
    return success()


NOTIFICATION_OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "GET",
        "List notifications",
        Permission.NOTIFICATION_READ,
        find,
        NotificationFilters,
        {200: {"notifications": list[Notification], "nextCursor": str | None}},
        description="Those delivered, those still to be delivered, and those that could not be (`state=dead`), newest "
        "first.",
    ),
    Operation(
        "POST",
        "Send a target a test notification",
        Permission.NOTIFICATION_WRITE,
        test,
        Query,
        {201: {"notification": Notification}},
        description="It goes the way that alarms go.",
        body=TestNotification,
        examples={"to ops": {"target": "ops"}},
        errors=(Invalid,),
    ),
    Operation(
        "PUT",
        "Try a notification again",
        Permission.NOTIFICATION_WRITE,
        try_again,
        Query,
        {200: {"notification": Notification}},
        description="At once, and with all its tries anew; under the same id.",
        body=Retry,
        examples={"by its id": {"notificationId": EXAMPLE_ID}},
        errors=(NotificationNotFound, NotificationIsSent, Invalid),
    ),
)
APPLICATION_OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "GET",
        "List applications' defaults",
        Permission.APPLICATION_READ,
        find_defaults,
        ApplicationFilters,
        {200: {"applications": list[ApplicationDefaults], "nextCursor": str | None}},
        description="By name; only applications that have any.",
    ),
    Operation(
        "PUT",
        "Set an application's defaults",
        Permission.APPLICATION_WRITE,
        put_defaults,
        Query,
        {200: {"application": ApplicationDefaults}},
        description="They hold for all its jobs, where these and their groups do not say otherwise.",
        body=ApplicationDefaults,
        examples={"who is told": {"application": "shop", "notifications": {"targets": ["ops"]}}},
        errors=(Invalid,),
    ),
    Operation(
        "DELETE",
        "Delete an application's defaults",
        Permission.APPLICATION_WRITE,
        delete_defaults,
        ApplicationTarget,
        {200: {}},
        description="Its jobs stay.",
        target_in_body=True,
        errors=(ApplicationNotFound,),
    ),
)

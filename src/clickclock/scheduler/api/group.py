"""`/schedulerService/group`: create, list, create or replace, delete.

Parse, call, render.
"""

from functools import partial

from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.errors import Invalid
from clickclock.foundation.permission import Permission
from clickclock.scheduler.api.notification import check_targets
from clickclock.scheduler.api.operation import ANY_VERSION, Call, Operation, etag, success
from clickclock.scheduler.api.paging import listed
from clickclock.scheduler.api.reading import Body, Page, Query, Word, set_by_service
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.errors import GroupExists, GroupInUse, GroupNotFound, StaleVersion
from clickclock.scheduler.jobs.group import Group, StoredGroup
from clickclock.scheduler.store import Edited


class GroupFilters(Page):
    """Which groups."""

    group_name: Word | None = Field(None, description="This group.", examples=["exports"])
    paused: bool | None = Field(None, description="Only paused groups, or only those that are not.", examples=[False])


class GroupTarget(Query):
    """One group that is to go."""

    group_name: Word = Field(description="The group.", examples=["exports"])


BODY = Body(Group)
_SET_BY_SERVICE = set_by_service(StoredGroup, Group)


def check(engine: Engine, group: Group) -> None:
    """Raise `Invalid` where its defaults name a target that is not configured."""
    check_targets(engine, group.defaults.notifications, "defaults.notifications.targets")


async def create(call: Call[Query]) -> Response:
    """POST: a new group."""
    group: Group = BODY.read(call.body, lambda group: check(call.engine, group))
    stored = await call.engine.store.groups.create(group, call.engine.clock.now())
    return success(201, etag(stored.version), group=stored)


async def find(call: Call[GroupFilters]) -> Response:
    """GET: by name, with live counts."""
    counted = partial(call.engine.store.groups.find, within=call.seen(Permission.JOB_READ))
    groups, cursor = await listed("group", call.filters, counted, lambda group: [group.group_name])
    named = call.filters.group_name is not None and len(groups) == 1
    return success(200, etag(groups[0].version) if named else None, groups=groups, nextCursor=cursor)


async def put(call: Call[Query]) -> Response:
    """PUT: the whole definition; what is left out has its default."""
    engine = call.engine
    group: Group = BODY.read(call.body, lambda group: check(engine, group), leave_out=_SET_BY_SERVICE)
    if call.if_match == ANY_VERSION and not await engine.store.groups.find({"group_name": group.group_name}, None, 1):
        raise GroupNotFound
    stored, created = await engine.store.groups.put(group, engine.clock.now(), call.if_version)
    engine.wake_dispatcher()
    await engine.edited(Edited(group_name=group.group_name))
    return success(201 if created else 200, etag(stored.version), group=stored)


async def delete(call: Call[GroupTarget]) -> Response:
    """DELETE: an empty group."""
    await call.engine.store.groups.delete(call.filters.group_name, call.engine.clock.now(), call.if_version)
    return success()


OPERATIONS = (
    Operation(
        "GET",
        "List groups",
        Permission.GROUP_READ,
        find,
        GroupFilters,
        {200: {"groups": list[StoredGroup], "nextCursor": str | None}},
        description="By name, each with its jobs, queued and running triggers as they are now; with those that "
        "the caller may see.",
        versioned=True,
    ),
    Operation(
        "POST",
        "Create a group",
        Permission.GROUP_WRITE,
        create,
        Query,
        {201: {"group": StoredGroup}},
        description="Jobs join it by naming it in `groupName`.",
        body=Group,
        examples={
            "at most two at once": {"groupName": "exports", "maxConcurrentTriggers": 2},
            "with defaults": {"groupName": "exports", "defaults": {"maxRetries": 3, "timeoutSeconds": 3600}},
        },
        versioned=True,
        errors=(GroupExists, Invalid),
    ),
    Operation(
        "PUT",
        "Create or replace a group",
        Permission.GROUP_WRITE,
        put,
        Query,
        {200: {"group": StoredGroup}, 201: {"group": StoredGroup}},
        description="The body is the whole definition: a field that is left out has its default. Fields that the "
        "service sets may be sent back and are ignored.",
        body=Group,
        examples={
            "at most two at once": {"groupName": "exports", "maxConcurrentTriggers": 2},
            "with defaults": {"groupName": "exports", "defaults": {"maxRetries": 3, "timeoutSeconds": 3600}},
        },
        versioned=True,
        errors=(StaleVersion, GroupNotFound, Invalid),
    ),
    Operation(
        "DELETE",
        "Delete a group",
        Permission.GROUP_WRITE,
        delete,
        GroupTarget,
        {200: {}},
        description="Refused while jobs are in it.",
        target_in_body=True,
        versioned=True,
        errors=(GroupNotFound, GroupInUse, StaleVersion),
    ),
)

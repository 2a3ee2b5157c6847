"""The scheduler's HTTP interface: one file for each resource, which parses, calls and renders.

Never decides anything about jobs, and never knows a status code of an error (`foundation/problem.py` does).
Invariant: `TABLE` is all there is: the routes and `/openapi.json` are made from it.

>>> app = create_app(engine, allowed_hosts=["scheduler.example.com"])   # doctest: +SKIP
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from clickclock.foundation.access import OPEN, Access
from clickclock.foundation.compression import Compression
from clickclock.foundation.gate import Gate
from clickclock.foundation.problem import UnknownPath
from clickclock.foundation.refusals import Refusals
from clickclock.scheduler.api import (
    alarm,
    audit,
    backfill,
    bulk,
    calendar,
    cluster,
    command_preview,
    declaration,
    events,
    forecast,
    group,
    image_mapping,
    job,
    job_detail,
    job_log,
    job_log_search,
    job_stat,
    job_stat_grid,
    job_state,
    job_trigger,
    job_versions,
    notification,
    schedule_preview,
    schedule_times,
    schedules,
    search,
    session,
    sessions,
    settings,
    token,
    trigger_marks,
    zone_changes,
)
from clickclock.scheduler.api.documentation import documentation_routes
from clickclock.scheduler.api.health import health_routes
from clickclock.scheduler.api.metrics import Measures
from clickclock.scheduler.api.operation import BASE, Operation, Resource
from clickclock.scheduler.api.sign_in import sign_in_routes
from clickclock.scheduler.engine import Engine
from clickclock.scheduler.identity_provider import IdentityProvider

BODY_BYTES_MAX = 8 * 2**20

TABLE: Mapping[str, Sequence[Operation[Any]]] = {
    f"{BASE}/jobTrigger": job_trigger.OPERATIONS,
    f"{BASE}/job": job.OPERATIONS,
    f"{BASE}/schedules": schedules.OPERATIONS,
    f"{BASE}/jobStat": job_stat.OPERATIONS,
    f"{BASE}/jobDetail": job_detail.OPERATIONS,
    f"{BASE}/jobLog": job_log.OPERATIONS,
    f"{BASE}/group": group.OPERATIONS,
    f"{BASE}/cluster": cluster.OPERATIONS,
    f"{BASE}/events": events.OPERATIONS,
    f"{BASE}/alarm": alarm.ALARM_OPERATIONS,
    f"{BASE}/silence": alarm.SILENCE_OPERATIONS,
    f"{BASE}/notification": notification.NOTIFICATION_OPERATIONS,
    f"{BASE}/audit": audit.OPERATIONS,
    f"{BASE}/auditChain": audit.CHAIN_OPERATIONS,
    f"{BASE}/application": notification.APPLICATION_OPERATIONS,
    f"{BASE}/commandPrefixImageMapping": image_mapping.OPERATIONS,
    f"{BASE}/declaration": declaration.OPERATIONS,
    f"{BASE}/schedulePreview": schedule_preview.OPERATIONS,
    f"{BASE}/commandPreview": command_preview.OPERATIONS,
    f"{BASE}/calendar": calendar.OPERATIONS,
    f"{BASE}/backfill": backfill.OPERATIONS,
    f"{BASE}/jobState": job_state.OPERATIONS,
    f"{BASE}/scheduleTimes": schedule_times.OPERATIONS,
    f"{BASE}/triggerMarks": trigger_marks.OPERATIONS,
    f"{BASE}/forecast": forecast.OPERATIONS,
    f"{BASE}/search": search.OPERATIONS,
    f"{BASE}/token": token.OPERATIONS,
    f"{BASE}/whoami": session.WHOAMI_OPERATIONS,
    f"{BASE}/session": session.SESSION_OPERATIONS,
    f"{BASE}/sessions": sessions.OPERATIONS,
    f"{BASE}/signInLink": session.LINK_OPERATIONS,
    f"{BASE}/login": session.LOGIN_OPERATIONS,
    f"{BASE}/loginApproval": session.APPROVAL_OPERATIONS,
    f"{BASE}/jobStatGrid": job_stat_grid.GRID_OPERATIONS,
    f"{BASE}/nodeStatGrid": job_stat_grid.NODE_OPERATIONS,
    f"{BASE}/triggerCounts": job_stat_grid.COUNT_OPERATIONS,
    f"{BASE}/zoneChanges": zone_changes.OPERATIONS,
    f"{BASE}/bulk": bulk.OPERATIONS,
    f"{BASE}/jobLogSearch": job_log_search.OPERATIONS,
    f"{BASE}/jobVersions": job_versions.OPERATIONS,
    f"{BASE}/settings": settings.OPERATIONS,
}
"""Every path with its operations; the one that is called most stands first."""
_PERMISSIONS = {(each.method, path): each.permission for path, operations in TABLE.items() for each in operations}


def create_app(
    engine: Engine,
    *,
    allowed_hosts: Collection[str] | None = (),
    body_bytes_max: int = BODY_BYTES_MAX,
    elsewhere: ASGIApp | None = None,
    access: Access = OPEN,
    measures: Measures | None = None,
    provider: IdentityProvider | None = None,
) -> Starlette:
    """The ASGI application over a running engine. `access` says who asks, and `provider` signs people in.

    `allowed_hosts` are names by which it may be addressed beside the loopback's; None lets every name in. `elsewhere`
    answers at every address outside this interface. `measures` are what `/metrics` shows.
    """
    app = Starlette(
        routes=[
            *(Route(path, Resource(engine, path, operations, body_bytes_max)) for path, operations in TABLE.items()),
            *documentation_routes(TABLE, engine, measures or Measures(engine, ())),
            *health_routes(engine),
            *sign_in_routes(engine, provider),
        ],
        middleware=[
            Middleware(Gate, allowed_hosts=allowed_hosts, access=access),
            Middleware(Compression),
            Middleware(Refusals, count=engine.auditor.count, permissions=_PERMISSIONS, base=BASE),
        ],
    )
    app.router.redirect_slashes = False

    async def default(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await WebSocketClose()(scope, receive, send)
        elif elsewhere is None or scope["path"].startswith(f"{BASE}/"):
            raise UnknownPath
        else:
            await elsewhere(scope, receive, send)

    app.router.default = default
    return app

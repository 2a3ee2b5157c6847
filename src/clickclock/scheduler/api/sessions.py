"""`/schedulerService/sessions`: whose browsers are signed in, and how an admin ends that.

Parse, call, render. Never tells what proves a session. Invariant: what is listed is signed in at this moment.
"""

from typing import Any

from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.ids import EXAMPLE_ID
from clickclock.foundation.permission import Permission
from clickclock.foundation.principal import Kind
from clickclock.foundation.record import Instant, Record
from clickclock.scheduler.access.access_token import TokenGrant
from clickclock.scheduler.access.browser_session import Session
from clickclock.scheduler.api.operation import Call, Operation, success
from clickclock.scheduler.api.paging import listed
from clickclock.scheduler.api.reading import Page, Query, Word
from clickclock.scheduler.errors import SessionNotFound


class SessionFilters(Page):
    """Which sessions."""

    name: Word | None = Field(None, description="Those of the principal of this name.")


class SessionTarget(Query):
    """The sessions that are to end."""

    name: Word = Field(description="Those of the principal of this name.", examples=["anna"])
    session_id: Word | None = Field(None, description="Only this one.", examples=[EXAMPLE_ID])


class BrowserSession(Record):
    """A browser that is signed in."""

    session_id: str = Field(description="What it is known by. It opens nothing.", examples=[EXAMPLE_ID])
    kind: Kind = Field(description="What its principal is.", examples=["person"])
    name: str = Field(description="What its principal is called.", examples=["anna"])
    grants: list[TokenGrant] = Field(description="What it may do.")
    token: str | None = Field(None, description="The token that it rests on and ends with, if it does.")
    created_at: Instant = Field(description="When the browser signed in.")
    last_used_at: Instant = Field(description="When it last asked for something, to about a minute.")
    expires_at: Instant = Field(description="When it ends, if it asks for nothing more.")


async def find(call: Call[SessionFilters]) -> Response:
    """GET: in the order in which they began."""
    now = call.engine.clock.now()

    async def valid(filters: Any, after: Any, limit: int) -> list[Session]:
        return await call.engine.store.browser_sessions.find(now, filters, after, limit)

    found, cursor = await listed("sessions", call.filters, valid, lambda each: [each.session_id])
    valid_now = [each for each in found if each.principal_at(now).kind is not Kind.NOBODY]
    return success(200, sessions=list(map(_shown, valid_now)), nextCursor=cursor)


async def end(call: Call[SessionTarget]) -> Response:
    """DELETE: they are refused from now on."""
    ended = await call.engine.store.browser_sessions.end_those(call.filters.name, call.filters.session_id)
    if not ended:
        raise SessionNotFound
    call.engine.authenticator.changed()
    return success(200, ended=ended)


def _shown(session: Session) -> BrowserSession:
    who = session.principal
    return BrowserSession(
        session_id=session.session_id,
        kind=who.kind,
        name=who.name,
        grants=[TokenGrant.of(each) for each in who.grants],
        token=None if session.token is None else session.token.name,
        created_at=session.created_at,
        last_used_at=session.last_used_at,
        expires_at=session.expires_at,
    )


OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "GET",
        "List sessions",
        Permission.TOKEN_READ,
        find,
        SessionFilters,
        {200: {"sessions": list[BrowserSession], "nextCursor": str | None}},
        description="The browsers that are signed in, in the order in which they signed in. A page may have fewer than "
        "`limit` of them, because sessions whose token was revoked are left out.",
    ),
    Operation(
        "DELETE",
        "End sessions",
        Permission.TOKEN_WRITE,
        end,
        SessionTarget,
        {200: {"ended": int}},
        description="All of a principal, or one of them. They are refused when the answer comes, and on other replicas "
        "within two seconds. A token goes on working, and so does the account at an identity provider: revoke the one, "
        "or disable the other, first.",
        target_in_body=True,
        errors=(SessionNotFound,),
    ),
)

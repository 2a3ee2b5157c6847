"""`/schedulerService/token`: create, list, rotate, revoke.

Parse, call, render. Never tells a token but once, in the answer that makes it.
"""

from typing import Any

from pydantic import Field
from starlette.responses import Response

from clickclock.foundation.bearer import digest
from clickclock.foundation.errors import Invalid
from clickclock.foundation.permission import Permission
from clickclock.foundation.record import Record
from clickclock.scheduler.access.access_token import NewToken, Token
from clickclock.scheduler.agents.authenticator import mint
from clickclock.scheduler.api.operation import Call, Operation, success
from clickclock.scheduler.api.paging import listed
from clickclock.scheduler.api.reading import Body, Page, Query, Word
from clickclock.scheduler.errors import TokenExists, TokenIsRevoked, TokenNotFound

_UNCACHED = {"cache-control": "no-store"}


class TokenFilters(Page):
    """Which tokens."""

    name: Word | None = Field(None, description="Those of this name: one that is valid, and revoked ones.")


class TokenTarget(Query):
    """One token that is to go."""

    name: Word = Field(description="The token.", examples=["deploy"])


class Rotation(Record):
    """A token that is to be another from now on."""

    name: Word = Field(description="The token.", examples=["deploy"])


BODY = Body(NewToken)
ROTATION = Body(Rotation)


async def create(call: Call[Query]) -> Response:
    """POST: a new token."""
    engine = call.engine
    now = engine.clock.now()
    new: NewToken = BODY.read(call.body, lambda new: new.check(now))
    secret = mint()
    token = await engine.store.tokens.create(new, digest(secret), call.principal.name, now)
    return success(201, _UNCACHED, token=token, secret=secret)


async def find(call: Call[TokenFilters]) -> Response:
    """GET: in the order in which they were made."""
    tokens, cursor = await listed("token", call.filters, call.engine.store.tokens.find, lambda each: [each.token_id])
    return success(200, tokens=tokens, nextCursor=cursor)


async def rotate(call: Call[Query]) -> Response:
    """PUT: another secret, the same name and grants."""
    rotation: Rotation = ROTATION.read(call.body)
    secret = mint()
    token = await call.engine.store.tokens.rotate(rotation.name, digest(secret))
    call.engine.authenticator.changed()
    return success(200, _UNCACHED, token=token, secret=secret)


async def revoke(call: Call[TokenTarget]) -> Response:
    """DELETE: it is refused from now on."""
    token = await call.engine.store.tokens.revoke(call.filters.name, call.engine.clock.now())
    call.engine.authenticator.changed()
    return success(200, token=token)


OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "GET",
        "List tokens",
        Permission.TOKEN_READ,
        find,
        TokenFilters,
        {200: {"tokens": list[Token], "nextCursor": str | None}},
        description="In the order in which they were made, those that are revoked or expired among them. The tokens "
        "themselves are not kept, and cannot be told.",
    ),
    Operation(
        "POST",
        "Create a token",
        Permission.TOKEN_WRITE,
        create,
        Query,
        {201: {"token": Token, "secret": str}},
        description="The answer has the token as `secret`, this once: only its SHA-256 is kept.",
        body=NewToken,
        examples={"for deployments": {"name": "deploy", "grants": [{"role": "editor"}]}},
        errors=(TokenExists, Invalid),
    ),
    Operation(
        "PUT",
        "Rotate a token",
        Permission.TOKEN_WRITE,
        rotate,
        Query,
        {200: {"token": Token, "secret": str}},
        description="It gets another `secret`, told this once, and keeps its name, grants and end. The old one is "
        "refused when the answer comes, and on other replicas within two seconds.",
        body=Rotation,
        examples={"by its name": {"name": "deploy"}},
        errors=(TokenNotFound, TokenIsRevoked, Invalid),
    ),
    Operation(
        "DELETE",
        "Revoke a token",
        Permission.TOKEN_WRITE,
        revoke,
        TokenTarget,
        {200: {"token": Token}},
        description="It is refused when the answer comes, and on other replicas within two seconds. Its name is free.",
        target_in_body=True,
        errors=(TokenNotFound, TokenIsRevoked),
    ),
)

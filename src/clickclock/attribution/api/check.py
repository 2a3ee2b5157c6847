"""`GET` and `POST /attribution/check`: what the collector would make of an address, a query or a line of a log.

Parse, call, render. Never keeps what it is given, and never asks the collector. Invariant: the verdict is the
collector's own (`click.judge`), by the accounts of this service; nobody learns the rules of a client that is not his.

>>> read({"click": ["client_id=shop-1"]}).text
'client_id=shop-1'
"""

from collections.abc import Mapping, Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from clickclock.attribution.api.questions import parameters_of
from clickclock.attribution.clicks.account import Accounts
from clickclock.attribution.crediting.policy import Policies
from clickclock.attribution.registering.check import TEXT_CHARS_MAX, Asked, check
from clickclock.attribution.reporting.parameters import Parameters, text_of
from clickclock.foundation.caller import caller
from clickclock.foundation.clock import Clock
from clickclock.foundation.errors import Malformed
from clickclock.foundation.permission import Permission
from clickclock.foundation.problem import MethodNotAllowed, TooLarge

METHODS: Final = ("GET", "HEAD", "POST")
PERMISSION: Final = Permission.CLICK_CHECK
BODY_BYTES_MAX: Final = TEXT_CHARS_MAX


class Checker:
    """The endpoint."""

    def __init__(self, accounts: Accounts, policies: Policies, clock: Clock) -> None:
        self._accounts = accounts
        self._policies = policies
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or raise what `problem.py` turns into an answer."""
        request = Request(scope, receive)
        if request.method not in METHODS:
            raise MethodNotAllowed(METHODS)
        caller().principal.scope(PERMISSION)
        given = parameters_of(scope["query_string"])
        asked = read(given, await _body(request) if request.method == "POST" else None)
        told = check(asked, self._clock.epoch_ms(), self._accounts, self._policies)
        caller().principal.require(PERMISSION, client=told["clientId"] or None)
        answer = JSONResponse({"status": "success", "check": told}, headers={"cache-control": "no-store"})
        await answer(scope, receive, send)


def read(given: Mapping[str, Sequence[str]], body: str | None = None) -> Asked:
    """The question; a body is the text itself. Raises `Malformed` naming every fault."""
    parameters = Parameters(given)
    text = parameters.one("click", _click_of, required=True) if body is None else body
    client_id = parameters.one("clientId", text_of)
    seller_id = parameters.one("sellerId", text_of)
    parameters.finish()
    assert text is not None
    return Asked(text, client_id, seller_id)


async def _body(request: Request) -> str:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > BODY_BYTES_MAX:
            raise TooLarge(f"The request body is larger than {BODY_BYTES_MAX} bytes; check one click at a time.")
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise Malformed("The body is not UTF-8; send the text as it is.") from error


def _click_of(text: str) -> str:
    if not 0 < len(text) <= TEXT_CHARS_MAX:
        raise ValueError(f"Give between 1 and {TEXT_CHARS_MAX} characters.")
    return text

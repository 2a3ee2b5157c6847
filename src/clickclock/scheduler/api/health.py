"""`/healthz`, `/readyz` and `/livez`: whether the service works, and whether it runs at all.

Never decides what healthy is (`examiner.py` does). Invariants: the answer of `/livez` depends on nothing but this
process; `/healthz` and `/readyz` say the same as the health check `/schedulerService/jobTrigger`, but to strangers
no reason.

>>> routes = health_routes(engine)   # doctest: +SKIP
"""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from clickclock.foundation.caller import caller
from clickclock.foundation.openapi import ALIVE, HEALTHY
from clickclock.foundation.principal import Kind
from clickclock.foundation.problem import Unhealthy, refuse_changes
from clickclock.scheduler.engine import Engine

_METHODS = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"]


def health_routes(engine: Engine) -> list[Route]:
    """All three, for GET and HEAD."""

    async def healthy(request: Request) -> Response:
        refuse_changes(request.method)
        if faults := await engine.faults():
            raise Unhealthy(None if caller().principal.kind is Kind.NOBODY else " ".join(faults))
        return PlainTextResponse(HEALTHY)

    async def alive(request: Request) -> Response:
        refuse_changes(request.method)
        return PlainTextResponse(ALIVE)

    answers = {"/healthz": healthy, "/readyz": healthy, "/livez": alive}
    return [Route(path, answer, methods=_METHODS) for path, answer in answers.items()]

"""Routes beside the resources: `/openapi.json`, `/docs`, which is made of it in the browser, and `/metrics`.

Never fetches anything from elsewhere: the page is two small files of ours, and works with no way to the internet.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from clickclock.foundation.caller import caller
from clickclock.foundation.measure import MEDIA_TYPE
from clickclock.foundation.permission import Permission
from clickclock.foundation.problem import refuse_changes
from clickclock.scheduler.api.metrics import Measures
from clickclock.scheduler.api.openapi import document
from clickclock.scheduler.api.operation import Operation
from clickclock.scheduler.engine import Engine

_FOLDER = Path(__file__).parent
_POLICY = {
    # The last two are not covered by the first: no other page may frame this one, whose buttons run commands.
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
}
_PAGES = {
    "/docs": ("docs.html", "text/html"),
    "/docs/docs.js": ("docs.js", "text/javascript"),
    "/docs/docs.css": ("docs.css", "text/css"),
}


def documentation_routes(
    table: Mapping[str, Sequence[Operation[Any]]], engine: Engine, measures: Measures
) -> list[Route]:
    """The pages; the document is made when it is first asked for, since that takes longer than starting the rest."""
    made: list[bytes] = []

    async def openapi(request: Request) -> Response:
        caller().principal.require(Permission.DESCRIPTION_READ)
        if not made:
            made.append(json.dumps(document(table, engine.version)).encode())
        return unless_known(request, made[0], "application/json")

    async def metrics(_request: Request) -> Response:
        caller().principal.require(Permission.METRICS_READ)
        return Response(measures.text(), media_type=MEDIA_TYPE)

    async def root(_request: Request) -> Response:
        return RedirectResponse("/docs")

    def page(file: str, media_type: str) -> Callable[[Request], Awaitable[Response]]:
        async def tell(request: Request) -> Response:
            # The files are part of the program and a few kB: no slower than any answer.
            return unless_known(request, (_FOLDER / file).read_bytes(), media_type, _POLICY)

        return tell

    return [
        _get("/schedulerService", root),  # the address that the service prints when it is ready
        _get("/openapi.json", openapi),
        _get("/metrics", metrics),
        *(_get(path, page(*of)) for path, of in _PAGES.items()),
    ]


def unless_known(
    request: Request, content: bytes, media_type: str, headers: Mapping[str, str] | None = None
) -> Response:
    """What never changes while the program runs: the content, or 304 where the browser has it already."""
    # Weak: the same content may leave as gzip.
    tag = f'W/"{blake2b(content, digest_size=12).hexdigest()}"'
    kept = {**(headers or {}), "etag": tag, "cache-control": "no-cache"}
    known = {each.strip() for each in request.headers.get("if-none-match", "").split(",")}
    if tag in known or "*" in known:
        return Response(status_code=304, headers=kept)
    return Response(content, media_type=media_type, headers=kept)


def _get(path: str, tell: Callable[[Request], Awaitable[Response]]) -> Route:
    async def endpoint(request: Request) -> Response:
        refuse_changes(request.method)
        return await tell(request)

    return Route(path, endpoint, methods=["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"])

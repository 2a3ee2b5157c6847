"""What every refusal passes on its way out: whoever may not do what he asks for is counted for the audit trail.

Never refuses anybody, and never holds up an answer. Invariant: only 401 and 403 for want of a permission count; what is
wrong with a request is nobody's attempt.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from starlette.types import ASGIApp, Receive, Scope, Send

from clickclock.foundation.caller import Caller, caller
from clickclock.foundation.errors import Forbidden, Unauthenticated

Count: TypeAlias = Callable[[Caller, str, str], None]
"""Gets who was refused, the method and path, and the permission that it needs; that is empty where nobody knows it."""


class Refusals:
    """ASGI middleware. `permissions` are by method and path; an operation is named without `base` in front."""

    def __init__(self, app: ASGIApp, count: Count, permissions: Mapping[tuple[str, str], str], base: str = "") -> None:
        self._app = app
        self._count = count
        self._permissions = permissions
        self._base = f"{base}/"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let it pass, and count it if it is refused."""
        try:
            await self._app(scope, receive, send)
        except (Unauthenticated, Forbidden):
            method, path = "GET" if scope["method"] == "HEAD" else scope["method"], scope["path"]
            permission = self._permissions.get((method, path), "")
            self._count(caller(), f"{method} {path.removeprefix(self._base)}", permission)
            raise

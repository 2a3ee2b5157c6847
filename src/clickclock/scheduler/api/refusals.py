"""What every refusal passes on its way out: whoever may not do what he asks for is counted for the audit trail.

Never refuses anybody, and never holds up an answer. Invariant: only 401 and 403 for want of a permission count; what is
wrong with a request is nobody's attempt.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from clickclock.foundation.caller import caller
from clickclock.foundation.errors import Forbidden, Unauthenticated
from clickclock.scheduler.access.audit import act_of
from clickclock.scheduler.api.operation import BASE, Operation
from clickclock.scheduler.engine import Engine


class Refusals:
    """ASGI middleware over the operations of `table`."""

    def __init__(self, app: ASGIApp, engine: Engine, table: Mapping[str, Sequence[Operation[Any]]]) -> None:
        self._app = app
        self._engine = engine
        self._permissions = {(each.method, path): each.permission for path in table for each in table[path]}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let it pass, and count it if it is refused."""
        try:
            await self._app(scope, receive, send)
        except (Unauthenticated, Forbidden):
            method, path = "GET" if scope["method"] == "HEAD" else scope["method"], scope["path"]
            operation = f"{method} {path.removeprefix(f'{BASE}/')}"
            act = act_of(caller(), operation, self._permissions.get((method, path), ""), self._engine.clock.now())
            self._engine.auditor.refused(act)
            raise

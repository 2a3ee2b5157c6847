"""An application that is made when somebody asks it first: a start waits for nothing that may never be wanted.

Never makes it twice. Invariant: it is made in a thread, so that no job waits for its imports.

>>> Late(lambda: None).is_made
False
"""

import asyncio
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send


class Late:
    """Passes requests on to what `make` makes."""

    def __init__(self, make: Callable[[], ASGIApp]) -> None:
        self._make = make
        self._app: ASGIApp | None = None
        self._one = asyncio.Lock()

    @property
    def is_made(self) -> bool:
        """Whether somebody has asked."""
        return self._app is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; the first request waits until there is somebody to answer it."""
        async with self._one:
            if self._app is None:
                self._app = await asyncio.to_thread(self._make)
        await self._app(scope, receive, send)

"""Whether the collector could keep a click now, asked of the disk at most once a second.

Never asks the disk unless somebody asks here. Invariant: everybody who asks is told, and nobody waits for longer than
`PATIENCE_S`.

>>> Health(journal.probe, loop.time).ask(lambda fault: print(fault or "healthy"))   # doctest: +SKIP
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

FRESH_S: Final = 1.0
PATIENCE_S: Final = 5.0

Tell = Callable[[str | None], None]
"""Is told what is wrong, in a sentence, or None."""


class Health:
    """The health of one process's journal."""

    def __init__(self, probe: Callable[[], Awaitable[None]], now_s: Callable[[], float]) -> None:
        """`probe` raises if the disk does not keep what it is given; `now_s` is monotonic."""
        self._probe = probe
        self._now_s = now_s
        self._told_s = float("-inf")
        self._fault: str | None = None
        self._asking: list[Tell] = []
        self._task: asyncio.Task[None] | None = None

    def ask(self, tell: Tell) -> None:
        """`tell` is called soon, never before this returns."""
        self._asking.append(tell)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._find_out())

    async def _find_out(self) -> None:
        if self._now_s() - self._told_s >= FRESH_S:
            try:
                await asyncio.wait_for(self._probe(), PATIENCE_S)
                self._fault = None
            except TimeoutError:
                self._fault = f"The journal's disk has not answered for {PATIENCE_S:g} s."
            except Exception as error:  # noqa: BLE001 - whatever is wrong is what was asked for
                self._fault = str(error) or type(error).__name__
            self._told_s = self._now_s()
        asking, self._asking, self._task = self._asking, [], None
        for tell in asking:
            tell(self._fault)

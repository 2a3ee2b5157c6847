"""What the connections of one process share: the routes, the limits, the time, and what is counted of all of them.

Never reads or writes a connection. Invariant: what was read and written is counted at the end of the loop's turn, and
not for each click, which would cost more than the click's address.

>>> Shared(routes, Origins(LOOPBACK, salt)).connections   # doctest: +SKIP
set()
"""

import asyncio
from typing import Final, Protocol

from clickclock.attribution.api.answers import Answer
from clickclock.attribution.api.fast_path import Arrivals
from clickclock.attribution.api.origin import Origins
from clickclock.attribution.api.routes import Routes
from clickclock.attribution.files.counters import cell

_RECEIVED: Final = cell("clickclock_received_bytes_total")
_SENT: Final = cell("clickclock_sent_bytes_total")
_ACCEPTED: Final = cell("clickclock_connections_total")
_OPEN: Final = cell("clickclock_connections")


class Client(Protocol):
    """A connection, as those see it who look after all of them."""

    def check(self) -> None:
        """End it if it took too long; to be called every second or so."""
        ...

    def forget_origin(self) -> None:
        """Say anew where its next request comes from."""
        ...

    def drain(self) -> None:
        """End it once it has its answers; a request that is half here may be finished."""
        ...

    def abort(self) -> None:
        """End it now."""
        ...


class Shared:
    """What the connections of one process share."""

    def __init__(self, routes: Routes, origins: Origins) -> None:
        self.routes = routes
        self.origins = origins
        self.collector = routes.collector
        self.cells = routes.cells
        self.answers = routes.answers
        self.limits = routes.limits
        self.arrivals = Arrivals(routes, self.count_soon)
        self.connections: set[Client] = set()
        self.bodies_bytes = 0
        self.now_s = 0.0
        """The loop's time at the last tick."""
        self.salt_number = 0
        """How many salts were used before this one."""
        self.is_draining = False
        self.received_bytes = 0
        """Not counted yet."""
        self._uncounted: list[Answer] = []
        self._will_count = False
        self._empty: asyncio.Future[None] | None = None

    def count_soon(self, answer: Answer) -> None:
        """An answer begins to be used: count it together with those that are written in this turn of the loop."""
        self._uncounted.append(answer)
        self._call_count()

    def count_written(self, answer: Answer) -> None:
        """Count an answer that is written, and acknowledges nothing or was counted as kept."""
        self.cells[answer.status] += 1
        self.cells[_SENT] += len(answer.data)
        self._call_count()

    def count(self) -> None:
        """Count what was read, kept and written."""
        self._will_count = False
        cells = self.cells
        cells[_RECEIVED] += self.received_bytes + self.arrivals.received_bytes
        self.received_bytes = self.arrivals.received_bytes = 0
        for answer in self._uncounted:
            cells[answer.status] += answer.uses
            cells[_SENT] += answer.uses * len(answer.data)
            for kept in answer.kept:
                cells[kept] += answer.uses
            answer.uses = 0
        self._uncounted.clear()
        self.collector.publish()

    def _call_count(self) -> None:
        if not self._will_count:
            self._will_count = True
            asyncio.get_running_loop().call_soon(self.count)

    def tick(self, now_s: float, epoch_s: float) -> None:
        """Time goes on: the loop's, and the wall clock in seconds since 1970."""
        self.now_s = now_s
        self.answers.refresh(epoch_s)
        self.routes.private.refresh(epoch_s)

    def use_salt(self, salt: bytes) -> None:
        """Make pseudonyms of addresses with another salt from now on, of open connections, too."""
        self.origins.use(salt)
        self._forget_origins()

    def use_countries(self) -> None:
        """The table of countries is another one: ask it from now on, for open connections, too."""
        self.origins.forget_countries()
        self._forget_origins()

    def _forget_origins(self) -> None:
        self.salt_number += 1
        for connection in self.connections:
            connection.forget_origin()

    def came(self, client: Client) -> None:
        """A connection was accepted."""
        self.connections.add(client)
        self.cells[_ACCEPTED] += 1
        self.cells[_OPEN] = len(self.connections)

    def went(self, client: Client) -> None:
        """It has ended."""
        self.connections.discard(client)
        self.cells[_OPEN] = len(self.connections)
        if not self.connections and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    async def emptied(self) -> None:
        """Until there is no connection."""
        while self.connections:
            self._empty = asyncio.get_running_loop().create_future()
            await self._empty

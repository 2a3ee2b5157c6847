"""A cable between a replica and PostgreSQL that can be cut: what is sent is swallowed, and nobody is told.

Never looks at what it carries. Invariant: after a cut that is mended, the connections of before stay dead and silent,
as behind a firewall that forgot them; new ones work. The server hears of it after a while, from its keep-alive.
"""

import asyncio
import contextlib
from pathlib import Path

CHUNK = 65536
NOTICED_S = 3.0
"""After this long the server's keep-alive finds out that nobody is there any more."""


class Wire:
    """One replica's way to the server's Unix socket, by a TCP port of its own."""

    within: tuple[str, ...] = ()
    """What a replica's command line begins with."""

    def __init__(self, target: Path, host: str = "127.0.0.1") -> None:
        self._target = target
        self.host = host
        self._server: asyncio.Server | None = None
        self._carrying: set[asyncio.Task[None]] = set()
        self._generation = 0
        self._ends: set[asyncio.StreamWriter] = set()
        self._is_cut = False
        self.port = 0

    @property
    def database(self) -> str:
        """Where the server is, for the replica."""
        return f"{self.host}:{self.port}"

    async def open(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._carry, self.host, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """From now on nothing gets through, on connections old and new."""
        self._is_cut = True
        self._generation += 1
        asyncio.get_running_loop().call_later(NOTICED_S, self._notice, set(self._ends))

    @staticmethod
    def _notice(ends: set[asyncio.StreamWriter]) -> None:
        for end in ends:
            end.close()

    def mend(self) -> None:
        """New connections work again."""
        self._is_cut = False

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        generation = self._generation
        carrying = asyncio.current_task()
        assert carrying is not None
        self._carrying.add(carrying)
        try:
            async with contextlib.AsyncExitStack() as ends:
                ends.push_async_callback(_end, writer)
                if self._is_cut:
                    await reader.read()  # taken, and never answered
                    return
                there, back = await asyncio.open_unix_connection(self._target)
                ends.push_async_callback(_end, back)
                self._ends.add(back)
                ends.callback(self._ends.discard, back)
                async with asyncio.TaskGroup() as flows:
                    flows.create_task(self._flow(reader, back, generation))
                    flows.create_task(self._flow(there, writer, generation))
        except (OSError, asyncio.CancelledError):
            pass  # the server is away, or the wire is taken down: who dialled sees the connection end
        finally:
            self._carrying.discard(carrying)

    async def _flow(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, generation: int) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(CHUNK):
                if generation == self._generation:
                    sink.write(data)
                    await sink.drain()
            if generation == self._generation:
                sink.close()  # how one side ended, the other is told

    async def close(self) -> None:
        """Carry nothing more."""
        if self._server is not None:
            self._server.close()
        for carrying in self._carrying:
            carrying.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)


async def _end(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()

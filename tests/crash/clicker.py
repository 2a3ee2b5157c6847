"""Clients of the collector, to be run as a process of their own: `python -m tests.crash.clicker PORT CLIENTS NAME`.

Each sends one click after the other over a connection that it keeps, and a new one when that ends. Says on standard
output what became of each: `+` and the click's user when it was answered 204, `-` when it was answered 503. Of what had
no answer it says nothing. Ends when its standard input does.
"""

import asyncio
import contextlib
import sys
import time

REST_S = 0.02
REQUEST = (
    "GET /aclick?client_id=shop-1&cli_ubid={user}&seller_id=77&asvt=1&atag=t&event_time={ms} HTTP/1.1\r\n"
    "Host: localhost\r\nUser-Agent: clicker\r\n\r\n"
)


async def _click(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, user: str) -> int:
    writer.write(REQUEST.format(user=user, ms=time.time_ns() // 1_000_000).encode())
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if b"content-length: " in head:
        await reader.readexactly(int(head.partition(b"content-length: ")[2].split()[0]))
    return int(head.split()[1])


async def _client(port: int, name: str) -> None:
    number = 0
    while True:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                while True:
                    number += 1
                    user = f"{name}-{number}"
                    status = await _click(reader, writer, user)
                    sys.stdout.write(f"{({204: '+', 503: '-'})[status]}{user}\n")
            finally:
                writer.close()
        await asyncio.sleep(REST_S)


async def main(port: int, clients: int, name: str) -> None:
    """Click until standard input ends."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), ended.set)
    async with asyncio.TaskGroup() as group:
        clicking = [group.create_task(_client(port, f"{name}-{number}")) for number in range(clients)]
        while not ended.is_set():
            sys.stdout.flush()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), REST_S)
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        for task in clicking:
            task.cancel()
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))

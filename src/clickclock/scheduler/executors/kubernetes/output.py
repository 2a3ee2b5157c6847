"""An attempt's output, copied from the cluster to a file of ours: live, and whole before the pod is removed.

Never trusts an end: a stream that ends while the command runs is opened again, and once it has ended, what the cluster
has is compared with what we have. Invariants: the file only grows, so that an offset means the same byte for ever; it
is never longer than its limit and one line that says so.

>>> head_of(b"abc", 2)
b'ab'
"""

import asyncio
import contextlib
import os
from contextlib import aclosing
from pathlib import Path

import httpx

from clickclock.scheduler.executors.kubernetes.api import Api, Refused, Unreachable
from clickclock.scheduler.executors.kubernetes.options import ATTEMPT_CONTAINER

HEAD_BYTES = 512
"""By its beginning a log is known again: after a rotation it begins with something else."""
PAUSE_S_MIN, PAUSE_S_MAX = 0.05, 5.0
FOLLOWED_MAX, FETCHED_MAX = 500, 32
COMPLETE_S_MAX = 60.0
LAST_TRIES_S = 20.0
"""How long the output of a command that has ended is asked for, before its end is told without the rest."""
ROTATED = b"\n[clickclock: the cluster rotated this output; what follows may miss a part or repeat one]\n"


def head_of(data: bytes, size: int) -> bytes:
    """What of `data` a comparison of beginnings looks at, when `size` bytes are known."""
    return data[: min(HEAD_BYTES, size)]


class Turns:
    """How many outputs come at once: followed ones are a connection each, and an ended one waits for none of them."""

    def __init__(self) -> None:
        self.followed = asyncio.Semaphore(FOLLOWED_MAX)
        self.fetched = asyncio.Semaphore(FETCHED_MAX)


class Output:
    """The copy of one attempt's output."""

    def __init__(self, path: Path, bytes_max: int) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._base = 0
        self._ended_well = False

    async def complete(self, copying: "asyncio.Task[None]", *, is_silent: bool) -> None:
        """Wait until all is here; for a node that is silent not at all, and for a stream that hangs not for ever."""
        _, late = await asyncio.wait({copying}, timeout=0.0 if is_silent else COMPLETE_S_MAX)
        if late:
            copying.cancel()
            await asyncio.gather(copying, return_exceptions=True)
            self._append(b"\n[clickclock: the rest of this output did not come]\n")
        else:
            copying.result()

    async def copy(self, api: Api, pod: str, ended: asyncio.Event, turns: Turns) -> None:
        """Copy until the command has ended and all is here, or cannot be had any more."""
        loop = asyncio.get_running_loop()
        pause_s, give_up_s = PAUSE_S_MIN, None
        self._open()
        while not self._is_full():
            last = ended.is_set()
            if last and give_up_s is None:
                give_up_s = loop.time() + LAST_TRIES_S
            try:
                if not last and turns.followed.locked():
                    await _wait(ended, PAUSE_S_MAX)
                    continue
                async with turns.fetched if last else turns.followed:
                    await self._pass(api, pod, follow=not last)
            except (Unreachable, Refused) as error:
                gone = isinstance(error, Refused) and error.status == httpx.codes.NOT_FOUND
                if last and (gone or loop.time() >= (give_up_s or 0.0)):
                    if not (gone and self._ended_well):
                        self._append(f"\n[clickclock: the rest of this output cannot be read: {error}]\n".encode())
                    return
                self._ended_well = False
            else:
                if last:
                    return
                self._ended_well = True
            await (asyncio.sleep(pause_s) if last else _wait(ended, pause_s))
            pause_s = min(2 * pause_s, PAUSE_S_MAX)

    async def _pass(self, api: Api, pod: str, *, follow: bool) -> None:
        """Read from the beginning, pass over what we have, append the rest."""
        have = self._size() - self._base
        head = self._read_head(have)
        begin, seen = b"", 0
        async with aclosing(api.log(pod, ATTEMPT_CONTAINER, follow=follow)) as pieces:
            async for piece in pieces:
                if len(begin) < len(head):
                    begin += piece
                    if begin[: len(head)] != head[: len(begin)]:
                        self._append(ROTATED)
                        self._base, have, head = self._size(), 0, b""
                        piece = begin  # noqa: PLW2901 - what was held back for the comparison is new, too
                        seen = 0
                fresh = piece[max(0, have - seen) :]
                seen += len(piece)
                if fresh:
                    self._append(fresh)
                if self._is_full():
                    return

    def _open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600))

    def _size(self) -> int:
        return self._path.stat().st_size

    def _is_full(self) -> bool:
        return self._size() > self._bytes_max

    def _read_head(self, have: int) -> bytes:
        with self._path.open("rb") as file:
            file.seek(self._base)
            return head_of(file.read(HEAD_BYTES), have)

    def _append(self, data: bytes) -> None:
        room = self._bytes_max - self._size()
        if len(data) > room:
            data = data[:room] + f"\n[clickclock: output cut here at {self._bytes_max} bytes]\n".encode()
        with self._path.open("ab") as file:
            file.write(data)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)

"""An attempt's output, copied from the cluster to a file of ours: live, and whole before the pod is removed.

Never trusts an end: a stream that ends while the command runs is opened again, and once it has ended, what the cluster
has is compared with what we have. Invariants: the file only grows, so that an offset means the same byte for ever; it
is held to its limit; of a log that the cluster rotated nothing is copied twice, and
where something is missing a line says so.

>>> overlap(b"one two", b"two three")
3
"""

import asyncio
import contextlib
import os
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import httpx

from clickclock.scheduler.executors.kubernetes.api import Api, Refused, Removed, RuntimeDown, Unreachable
from clickclock.scheduler.executors.kubernetes.options import ATTEMPT_CONTAINER
from clickclock.scheduler.executors.log_file import LogFiles

HEAD_BYTES = 512
"""By its beginning a log is known again: after a rotation it begins with something else."""
TAIL_BYTES = 4096
"""By its end our copy is found in a log that was rotated."""
PAUSE_S_MIN, PAUSE_S_MAX = 0.05, 5.0
FOLLOWED_MAX, FETCHED_MAX = 500, 32
COMPLETE_S_MAX = 60.0
FOLLOWED_ON_S = 1.0
"""How long an output is still followed when its command has ended. The rest is asked for anew: a node flushes each line
of a followed output by itself, which takes ten times as long."""
LAST_TRIES_S = 20.0
"""How long the output of a command that has ended is asked for, before its end is reported without the rest."""
MISSING = b"\n[clickclock: the cluster rotated this output, and a part of it may be missing here]\n"
GAP = b"\n[clickclock: the node's container runtime did not answer for a while; lines may be missing above]\n"


def overlap(ours: bytes, theirs: bytes) -> int:
    """How many of the last bytes of `ours` are the first ones of `theirs`."""
    return next((size for size in range(min(len(ours), len(theirs)), 0, -1) if ours.endswith(theirs[:size])), 0)


class Turns:
    """How many outputs come at once: followed ones are a connection each, and an ended one waits for none of them."""

    def __init__(self) -> None:
        self.followed = asyncio.Semaphore(FOLLOWED_MAX)
        self.fetched = asyncio.Semaphore(FETCHED_MAX)


class Output:
    """The copy of one attempt's output."""

    def __init__(self, logs: LogFiles, name: str, found_gap: Callable[[], None]) -> None:
        """`found_gap` is called when the cluster says that it may have lost some of it."""
        self._logs = logs
        self._found_gap = found_gap
        self._has_gap_note = False
        self._path = Path(logs.path(name))
        self._have, self._head = 0, b""
        """How much we have of what the cluster shows, and how that begins."""
        self._ended_well = False
        """Whether the newest stream of a running command's output came to its end."""
        self._hurries = False
        """Whether the command has ended some time ago, and its output can be asked for anew."""

    async def complete(self, copying: "asyncio.Task[None]", *, is_silent: bool, is_removed: bool) -> None:
        """Wait until all is here; for a node that is silent not at all, and for a stream that hangs not for ever.

        `is_removed`: the pod is, or will be at once, so that its output can only be followed on.
        """
        if not is_silent and not is_removed:
            await asyncio.wait({copying}, timeout=FOLLOWED_ON_S)
            self._hurries = True
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
            except Removed:
                return
            except (Unreachable, Refused) as error:
                gone = isinstance(error, Refused) and error.status == httpx.codes.NOT_FOUND
                if last and (gone or loop.time() >= (give_up_s or 0.0)):
                    if not (gone and self._ended_well):
                        self._append(f"\n[clickclock: the rest of this output cannot be read: {error}]\n".encode())
                    return
                if isinstance(error, RuntimeDown) and not last:
                    self._found_gap()
                # A pod may be removed before we learn of its end: that takes nothing from a good end.
                self._ended_well = self._ended_well and (last or gone)
            else:
                if last:
                    return
                self._ended_well = True
            await (asyncio.sleep(pause_s) if last else _wait(ended, pause_s))
            pause_s = min(2 * pause_s, PAUSE_S_MAX)

    async def _pass(self, api: Api, pod: str, *, follow: bool) -> None:
        """Read from the beginning, pass over what we have, append the rest."""
        begin, seen = b"", 0
        async with aclosing(api.log(pod, ATTEMPT_CONTAINER, follow=follow)) as pieces:
            async for piece in pieces:
                begin += piece[: HEAD_BYTES - len(begin)]
                if not begin.startswith(self._head[: len(begin)]):
                    break
                self._head = max(self._head, begin, key=len)
                fresh = piece[max(0, self._have - seen) :]
                seen += len(piece)
                self._have = max(self._have, seen)
                if fresh:
                    self._append(fresh)
                if self._is_full() or (follow and self._hurries):
                    return
            else:
                if seen >= self._have:
                    return
        await self._find_seam(api, pod)
        await self._pass(api, pod, follow=follow)

    async def _find_seam(self, api: Api, pod: str) -> None:
        """The cluster rotated the log, and shows only what came since: find where in that our copy ends."""
        tail = self._read_tail()
        begin, window, seen, known = b"", b"", 0, 0
        async with aclosing(api.log(pod, ATTEMPT_CONTAINER, follow=False)) as pieces:
            async for piece in pieces:
                begin += piece[: TAIL_BYTES - len(begin)]
                window += piece
                seen += len(piece)
                if tail and (at := window.rfind(tail)) >= 0:
                    known = seen - len(window) + at + len(tail)
                window = window[max(0, len(window) - len(tail) + 1) :]
        known = known or overlap(tail, begin)
        if tail and seen and not known:
            self._append(MISSING)
        self._have, self._head = known, begin[:HEAD_BYTES]

    def note_gap(self) -> None:
        """Say at its end, once, that lines may be missing."""
        if not self._has_gap_note:
            self._append(GAP)
            self._has_gap_note = True

    def _open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(self._path, os.O_RDONLY | os.O_CREAT, 0o600), "rb") as file:
            self._head = file.read(HEAD_BYTES)
        self._have = self._size()
        with self._path.open("rb") as file:
            file.seek(max(0, self._have - len(GAP)))
            self._has_gap_note = file.read() == GAP
        if self._has_gap_note:
            self._have -= len(GAP)
            self._head = self._head[: self._have]

    def _size(self) -> int:
        return self._path.stat().st_size

    def _is_full(self) -> bool:
        return self._logs.is_full(self._size())

    def _read_tail(self) -> bytes:
        with self._path.open("rb") as file:
            file.seek(max(0, self._size() - TAIL_BYTES))
            return file.read().rpartition(MISSING)[2]

    def _append(self, data: bytes) -> None:
        with self._path.open("ab") as file:
            file.write(data)
        self._logs.hold(str(self._path))


async def _wait(event: asyncio.Event, seconds: float) -> None:
    # Not by `wait_for`: on Python 3.11 it forgets that it was cancelled if the event comes at the same moment.
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()

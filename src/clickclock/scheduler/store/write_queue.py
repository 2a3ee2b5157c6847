"""Writes → commits: in which order writes are made, and which of them share a commit.

Never runs a write. Invariants: writes leave in the order in which they came; one that may wait leaves with the next
that may not, when its time is up, or at a `flush`, whichever is first.

>>> writes.put(patient)   # doctest: +SKIP
>>> writes.put(urgent)    # doctest: +SKIP
>>> writes.group()        # doctest: +SKIP
[patient, urgent]
"""

import asyncio
import contextlib
import queue
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import sqlalchemy as sa


@dataclass(slots=True, eq=False)
class Write:
    """One write that waits for its commit until `latest_s` on the monotonic clock, and what came of it."""

    work: Callable[[sa.Connection], Any]
    answer: asyncio.Future[Any]
    latest_s: float = 0.0
    result: Any = None
    error: BaseException | None = None

    def settle(self) -> None:
        """Give the answer; called in its loop."""
        if self.answer.cancelled():
            return
        if self.error is not None:
            self.answer.set_exception(self.error)
        else:
            self.answer.set_result(self.result)


def answer_all(group: Sequence[Write]) -> None:
    """Give those who wait for these writes their answers, each in its own loop."""
    for loop in {each.answer.get_loop() for each in group}:
        theirs = [each for each in group if each.answer.get_loop() is loop]
        with contextlib.suppress(RuntimeError):  # that loop is closed: nobody waits for the answer any more
            loop.call_soon_threadsafe(_settle, theirs)


def _settle(group: Sequence[Write]) -> None:
    for each in group:
        each.settle()


class _Word(Enum):
    FLUSH = 1
    END = 2


class WriteQueue:
    """Any thread puts writes in. Writes that may wait are for one writer: several would not keep the order."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Write | _Word] = queue.SimpleQueue()

    def put(self, write: Write) -> None:
        """Let it wait for its commit."""
        self._queue.put(write)

    def flush(self) -> None:
        """What waits is committed now."""
        self._queue.put(_Word.FLUSH)

    def end(self) -> None:
        """One writer is to end, after all that was put in before."""
        self._queue.put(_Word.END)

    def group(self, within_s: float | None = None) -> list[Write] | None:
        """The next writes, to be committed together; none if none comes within `within_s` seconds; None at the end."""
        found: list[Write] = []
        wait_s = within_s
        while True:
            try:
                write = self._queue.get(timeout=wait_s)
            except queue.Empty:
                return found
            if write is _Word.END and not found:
                return None
            if write is _Word.END:
                self._queue.put(write)
            elif write is not _Word.FLUSH:
                found.append(write)
                if write.latest_s:
                    wait_s = max(0.0, min(each.latest_s for each in found) - time.monotonic())
                    continue
            if found:
                return found

    def following(self) -> Write | None:
        """The next write that waits already, to share the commit of the present group; None if there is none."""
        while not self._queue.empty():
            write = self._queue.get_nowait()
            if write is _Word.END:
                self._queue.put(write)
                return None
            if write is not _Word.FLUSH:
                return write
        return None

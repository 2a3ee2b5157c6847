"""The answers of one connection: they go out once each, in the order of the requests.

Never reads. Invariants: an answer that acknowledges goes out after the disk has said so, and an answer that need not
wait goes out after those before it; a client that is gone costs nobody else anything, and what it sent is kept.

>>> outgoing._say(answer)   # doctest: +SKIP
"""

import asyncio

from clickclock.attribution.api.answers import CLOSED, Answer
from clickclock.attribution.api.fast_path import ARRIVED, QUIET
from clickclock.attribution.api.request import Later
from clickclock.attribution.api.shared import Shared


class Outgoing(asyncio.Protocol):
    """The half of a connection that writes. The other half says in `ending`, `_eof` and `unfed` how far it is."""

    __slots__ = (
        "_begun_s",
        "_eof",
        "_held",
        "_lingers",
        "_on_disk",
        "_partial_bytes",
        "_shared",
        "_stuck_s",
        "click",
        "ending",
        "transport",
        "unfed",
        "waiting",
    )

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self.transport: asyncio.Transport | None = None
        self.click: Answer | None = None
        """The state of the click of a client that only repeats itself (`Repeater`)."""
        self.waiting: list[Answer | Later] = []
        """In the order of the requests. An `Answer` waits for the disk, which acknowledges in that order, too."""
        self.unfed = b""
        """Came, and is not parsed yet."""
        self._held = False
        """Whether that is the beginning of a request line."""
        self._begun_s = 0.0
        """When the request began whose end has not come; 0: there is none."""
        self._partial_bytes = 0
        """How much of it came; after a refusal, how much was read away."""
        self.ending = False
        """Whether nothing more is to be parsed."""
        self._eof = False
        """Whether the client has ended its side."""
        self._lingers = False
        """Whether all was said, and what still comes is read away."""
        self._stuck_s = 0.0
        """Since when the client does not read its answers; 0: it does."""
        # Bound once, not for every request; `connection_lost` undoes the circle.
        self._on_disk = self.committed

    def pause_writing(self) -> None:
        self._stuck_s = self._shared.now_s or 1.0
        if self.transport is not None:
            self.transport.pause_reading()

    def resume_writing(self) -> None:
        self._stuck_s = 0.0
        self._go_on()

    def _go_on(self) -> None:
        """Read on, first what came already."""
        raise AssertionError("the half that reads does that")

    def _has_many_waiting(self) -> bool:
        return len(self.waiting) >= self._shared.limits.pipelined_max

    def committed(self, error: Exception | None) -> None:
        """The first of the requests that wait for the disk is on it, or never will be."""
        self._settle()
        shared, waiting = self._shared, self.waiting
        first = waiting[0]
        transport = self.transport
        if error is None and isinstance(first, Answer) and transport is not None:
            del waiting[0]
            if not first.uses:
                shared.count_soon(first)
            first.uses += 1
            try:
                transport.write(first.data)
            except RuntimeError:  # uvloop's way to say that it was closed a moment ago; nobody else may suffer for it
                self.ending = True
            if waiting or self.ending or self.unfed:
                self._flush()
            return
        at = next(at for at, each in enumerate(waiting) if isinstance(each, Answer))
        answer = waiting[at]
        assert isinstance(answer, Answer)
        if error is None:
            for kept in answer.kept:
                shared.cells[kept] += 1
        else:
            answer = shared.routes.not_kept(error, answer)
        waiting[at] = Later(self._flush, answer)
        self._flush()

    def _flush(self) -> None:
        """Write the answers that are known, up to the first that is not."""
        waiting = self.waiting
        known = 0
        for each in waiting:
            if isinstance(each, Answer) or each.answer is None:
                break
            self._write(each.answer)
            self.ending = self.ending or each.answer.persistence is CLOSED
            known += 1
        del waiting[:known]
        if self.unfed and not self._held and 2 * len(waiting) <= self._shared.limits.pipelined_max:
            self._go_on()
        self._rest()

    def _say(self, answer: Answer) -> None:
        """An answer that need not wait for the disk goes out when those before it have."""
        if self.waiting:
            self.waiting.append(Later(self._flush, answer))
        else:
            self._write(answer)
            self._rest()

    def _write(self, answer: Answer) -> None:
        transport = self.transport
        if transport is None:
            return
        self._shared.count_written(answer)
        try:
            transport.write(answer.data)
        except RuntimeError:  # uvloop's way to say that it was closed a moment ago; nobody else may suffer for it
            self.ending = True

    def _rest(self) -> None:
        """Nothing waits any more: perhaps that was all."""
        transport = self.transport
        if self.waiting or transport is None or self._lingers or not (self.ending or (self._eof and not self.unfed)):
            return
        if not self._begun_s or self._eof:
            transport.close()
            return
        # In the middle of a request: what still comes is read away, so that the client gets to read why.
        self._lingers = True
        self._begun_s = self._shared.now_s
        self._partial_bytes = 0
        try:
            transport.write_eof()
            transport.resume_reading()
        except (RuntimeError, OSError):  # it closed by itself meanwhile
            transport.abort()

    def _settle(self) -> None:
        """Before anything else happens to it: what came in this turn of the loop is taken first."""
        if self.click is ARRIVED:
            self._shared.arrivals.settle()
        if self.click is not None and self.click is not QUIET:
            self.waiting.append(self.click)
        self.click = None

    def drain(self) -> None:
        """End it once it has its answers; a request that is half here may be finished."""
        self._settle()
        if not self._begun_s and not self.unfed:
            self.ending = True
            self._rest()

    def abort(self) -> None:
        """End it now."""
        if self.transport is not None:
            self.transport.abort()

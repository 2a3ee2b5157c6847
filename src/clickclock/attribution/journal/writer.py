r"""The journal as its one writer sees it: lines in, one write and one `fdatasync` for all that wait, then the answers.

Never blocks the event loop, never waits for more to come: the next commit starts when the last one has returned, with
everything that came meanwhile. Never reads what lines mean.
Invariants: `done(None)` is called only after an `fdatasync` that covers the line has returned; after a failed write or
sync the segment is closed where the last good frame ends and nothing more is written to it, so that the same pages are
never trusted again; a line whose `done` got an error is in no frame that a reader gets. (One case is beyond us: a disk
that refuses the sync, then refuses to cut, then takes nothing more until this process dies. If the refused frame
reached the disk all the same, the next start cannot know it from a good one, and keeps it.)

>>> journal = await Journal.open(Path("journal/1"))                         # doctest: +SKIP
>>> journal.append(b"a line\n", lambda error: print(error or "on disk"))    # doctest: +SKIP
>>> await journal.close()                                                   # doctest: +SKIP
on disk
"""

import asyncio
import contextlib
import errno
import logging
import math
import os
import threading
import time
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

from clickclock.attribution.errors import JournalFailing
from clickclock.attribution.journal import frame
from clickclock.attribution.journal.batch import Batch, Done, Piece, that_fit
from clickclock.attribution.journal.frame import BLOCK_BYTES, CUTS_MAX, Kind, padded
from clickclock.attribution.journal.keeper import Keeper
from clickclock.attribution.journal.recovery import Recovery, lock, recover
from clickclock.attribution.journal.segment import LiveSegment, Segment
from clickclock.foundation.clock import Clock, SystemClock

SEGMENT_BYTES = 64 * 2**20
SEGMENT_AGE_S = 60.0
LOOK_EVERY_S = 1.0
"""How often a journal to which nothing is written looks whether its file is still in its place."""
SYNC_BUCKETS_S = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)

_now_s = time.monotonic
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Figures:
    """Counters since the start.

    `bytes` are those of the lines; `sync_s` is what the disk took for all commits, write and sync, and `sync_counts`
    are the commits by `SYNC_BUCKETS_S` (the last one: those that took longer). `waited_s` and `waited_counts`
    are the same of each line on disk, from when it came.
    """

    commits: int = 0
    lines: int = 0
    bytes: int = 0
    refused: int = 0
    sealed: int = 0
    sync_s: float = 0.0
    sync_counts: list[int] = field(default_factory=lambda: [0] * (len(SYNC_BUCKETS_S) + 1))
    waited_s: float = 0.0
    waited_counts: list[int] = field(default_factory=lambda: [0] * (len(SYNC_BUCKETS_S) + 1))


class Journal:
    """The one writer of one folder. All its methods belong to the loop that opened it."""

    def __init__(
        self,
        folder: Path,
        lock_fd: int,
        recovery: Recovery,
        segment_bytes: int,
        segment_age_s: float,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        on_sealed: Callable[[Segment], None] | None,
    ) -> None:
        self.folder = folder
        self.recovery = recovery
        self.figures = Figures()
        self.waiting = 0
        """Lines without an answer yet. The caller decides how many there may be."""
        self._lock_fd = lock_fd
        self._age_s = segment_age_s
        self._clock = clock
        self._loop = loop
        self._on_sealed = on_sealed
        self._pieces: list[Piece] = []
        self._probes: list[Done] = []
        self._is_resting = True
        """Whether neither the commit thread nor a call that the loop will make has anything to do."""
        self._batches: SimpleQueue[Batch | None] = SimpleQueue()
        self._segment: LiveSegment | None = None
        self._empty = recovery.empty
        self._old_at_s = math.inf
        self._is_failing = False
        self._is_closing = self._has_ended = False
        self._keeper = Keeper(
            folder,
            recovery.journal_id,
            recovery.next_number,
            segment_bytes // BLOCK_BYTES * BLOCK_BYTES,
            clock,
            self._was_sealed,
        )
        self._thread = threading.Thread(target=self._run, name="journal-commit", daemon=True)

    @classmethod
    async def open(
        cls,
        folder: Path,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        segment_age_s: float = SEGMENT_AGE_S,
        clock: Clock | None = None,
        taken_wait_s: float = 0.0,
        on_sealed: Callable[[Segment], None] | None = None,
    ) -> "Journal":
        """Take the folder (made if missing), cut and seal what a crash left (`recovery`), and be ready to write.

        A segment is sealed at `segment_bytes` (full blocks of 4096), or `segment_age_s` after its first line, and
        `on_sealed` called on the loop. Raises `JournalTaken` when another process has the folder for `taken_wait_s`
        longer (one that drains lets go), `JournalFailing` when the disk refuses, but not for want of room for lines.
        """
        clock = clock or SystemClock()
        loop = asyncio.get_running_loop()

        def begin() -> "Journal":
            lock_fd = lock(folder, taken_wait_s)
            try:
                recovery = recover(folder, int(clock.now().timestamp() * 1000))
                journal = cls(folder, lock_fd, recovery, segment_bytes, segment_age_s, clock, loop, on_sealed)
                journal._begin()
            except BaseException:
                os.close(lock_fd)
                raise
            return journal

        try:
            return await asyncio.to_thread(begin)
        except OSError as error:
            raise _failing(error) from error

    @property
    def id(self) -> str:
        """The journal's name for ever, 32 hex digits; with a segment's number it names a segment anywhere."""
        return self.recovery.journal_id.hex()

    def append(self, lines: bytes, done: Done, count: int = 1) -> None:
        """Keep `count` lines, each with its LF; `done` is called on the loop once all are on disk or all refused.

        Lines that come together stay together in one frame, whatever its limits.
        """
        self.waiting += count
        self._pieces.append(Piece(lines, count, done, _now_s()))
        if self._is_resting:
            self._start()

    async def probe(self) -> None:
        """Write nothing and sync it, among the others. Raises `JournalFailing` if that cannot be done."""
        told: asyncio.Future[Exception | None] = self._loop.create_future()
        self.waiting += 1
        self._probes.append(lambda error: None if told.done() else told.set_result(error))
        if self._is_resting:
            self._start()
        error = await told
        if error is not None:
            raise error

    async def close(self) -> None:
        """Commit what waits, tell of it, seal, and let go of the folder."""
        self._is_closing = True
        if self._is_resting:
            self._start()
        await asyncio.to_thread(self._thread.join)
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    # On the loop. At any time one batch is being committed, or one of these is about to be called, or all rests.

    def _start(self) -> None:
        self._is_resting = False
        self._hand_over_soon()

    def _hand_over_soon(self) -> None:
        # After the answers: to write to sockets and to join lines at once, two threads would fight for the interpreter.
        # And after the loop has read once more, for what those sent meanwhile who were told. Else nearly all clients
        # end up in every second commit: they wait for one of a few lines, then for their own, and nobody works.
        self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        """Give the commit thread everything that waits."""
        if self._has_ended:
            self._refuse_all()
        elif self._pieces or self._probes:
            pieces = that_fit(self._pieces)
            del self._pieces[: len(pieces)]
            probes, self._probes = self._probes, []
            self._batches.put(Batch(pieces, probes, sum(piece.total for piece in pieces)))
        elif self._is_closing:
            self._batches.put(None)
        else:
            self._is_resting = True

    def _refuse_all(self) -> None:
        self._has_ended = self._is_resting = True
        batch = Batch(self._pieces, self._probes, sum(piece.total for piece in self._pieces))
        self._pieces, self._probes = [], []
        self.figures.refused += batch.total
        self._tell(batch, JournalFailing("The journal is closed; send the request again in a moment."))

    def _tell(self, batch: Batch, error: Exception | None) -> None:
        self.waiting -= batch.total + len(batch.probes)
        for done in [*(piece.done for piece in batch.pieces), *batch.probes]:
            try:
                done(error)
            except Exception:  # noqa: BLE001 - one caller that fails must not cost the others their answers
                _log.exception("an answer could not be sent")

    def _committed(self, batch: Batch, size: int, took_s: float) -> None:
        figures = self.figures
        figures.commits += 1
        figures.lines += batch.total
        figures.bytes += size
        figures.sync_s += took_s
        figures.sync_counts[bisect_left(SYNC_BUCKETS_S, took_s)] += 1
        now_s, counts = _now_s(), figures.waited_counts
        for piece in batch.pieces:
            waited_s = now_s - piece.since_s
            figures.waited_s += waited_s * piece.total
            counts[bisect_left(SYNC_BUCKETS_S, waited_s)] += piece.total
        self._tell(batch, None)
        self._hand_over_soon()

    def _refused(self, batch: Batch, error: Exception) -> None:
        self.figures.refused += batch.total
        self._tell(batch, error)
        self._hand_over_soon()

    def _tell_sealed(self, segment: Segment) -> None:
        self.figures.sealed += 1
        if self._on_sealed is not None:
            self._on_sealed(segment)

    # On the commit thread.

    def _begin(self) -> None:
        try:
            self._segment = self._keeper.take(BLOCK_BYTES)
            self._replace_empty(self._segment)
        except OSError as error:
            self._has_failed(error)  # as later on: each new line is refused, until the disk takes something again
        except BaseException:
            self._keeper.close()
            raise
        self._thread.start()

    def _run(self) -> None:
        try:
            while self._step():
                pass
            self._retire()
            self._keeper.close()
        finally:  # whatever ended it, nobody waits in vain
            self._call(self._refuse_all)

    def _step(self) -> bool:
        left_s = self._old_at_s - self._clock.monotonic_s()
        try:
            batch = self._batches.get(timeout=max(0.0, min(left_s, LOOK_EVERY_S)))
        except Empty:
            if left_s <= LOOK_EVERY_S:
                self._retire()
            else:
                self._look()
            return True
        if batch is not None:
            self._commit(batch)
            if self._clock.monotonic_s() >= self._old_at_s:
                self._retire()
        return batch is not None

    def _look(self) -> None:
        if self._segment is not None:
            try:
                self._segment.expect_in_place()
            except OSError as error:
                self._has_failed(error)

    def _commit(self, batch: Batch) -> None:
        try:
            payload = b"".join([piece.lines for piece in batch.pieces])
            took_s = self._write(payload, batch.total)
        except Exception as error:  # noqa: BLE001 - whatever it was, they must be told
            self._has_failed(error)
            self._call(self._refused, batch, _failing(error))
            return
        self._call(self._committed, batch, len(payload), took_s)
        if self._is_failing:
            self._is_failing = False
            _log.info("journal %s: the disk writes again", self.folder)

    def _write(self, payload: bytes, count: int) -> float:
        """One frame, synced; returns how many seconds the disk took."""
        size = padded(len(payload))
        if self._segment is not None and not self._segment.has_room(size):
            self._retire()
        if self._segment is None:
            self._expect_folder()
            self._segment = self._keeper.take(size + BLOCK_BYTES)
            self._remember_cuts(self._segment)
            self._replace_empty(self._segment)
        segment = self._segment
        kind = Kind.FRAME if count else Kind.PROBE
        parts, _ = frame.build(kind, segment.place, self._now_ms(), count, payload)
        began_s = time.perf_counter()
        segment.write(parts, size)
        segment.expect_in_place()
        took_s = time.perf_counter() - began_s
        if count:
            if not segment.lines:
                self._old_at_s = self._clock.monotonic_s() + self._age_s
            segment.end += size
            segment.frames += 1
            segment.lines += count
        return took_s

    def _expect_folder(self) -> None:
        """Another folder in the place of ours is another journal, or none."""
        held, there = os.fstat(self._lock_fd), os.stat(self.folder / "lock")  # noqa: PTH116 - as its neighbour
        if not os.path.samestat(held, there):
            raise OSError(errno.ESTALE, "the folder is not the one that this collector has locked", str(self.folder))

    def _remember_cuts(self, segment: LiveSegment) -> None:
        """If we die while the disk still refuses to cut those before, the next start reads here where they end."""
        uncut = self._keeper.uncut()
        if len(uncut) > CUTS_MAX:
            raise OSError("too many segments wait to be cut")
        if uncut:
            parts, size = frame.build(Kind.CUTS, segment.place, self._now_ms(), len(uncut), frame.cuts(uncut))
            segment.write(parts, size)
            segment.end += size

    def _replace_empty(self, segment: LiveSegment) -> None:
        """Files without a line may go: this one keeps the numbers from being used again, and says what they said."""
        segment.keeps_number = bool(self._empty)
        for path in self._empty:
            with contextlib.suppress(OSError):  # it goes at the next start
                path.unlink()
        self._empty = []

    def _has_failed(self, error: Exception) -> None:
        if not self._is_failing:
            self._is_failing = True
            _log.error("journal %s: the disk refuses: %s", self.folder, error)
        segment, self._segment, self._old_at_s = self._segment, None, math.inf
        if segment is not None:
            segment.is_torn = True
            try:
                segment.seal(self._now_ms())  # before anyone is answered: a reader must never see a refused line
            except OSError:
                self._keeper.retire(segment)
            else:
                if segment.lines:
                    self._was_sealed(segment.sealed)
                else:
                    self._empty.append(segment.path)

    def _retire(self) -> None:
        segment, self._segment, self._old_at_s = self._segment, None, math.inf
        if segment is not None:
            self._keeper.retire(segment)

    def _was_sealed(self, segment: Segment) -> None:
        self._call(self._tell_sealed, segment)

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # the loop was closed first: nobody is there to be told
            _log.warning("journal %s: the loop ended before the journal", self.folder)

    def _now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)


def _failing(error: Exception) -> JournalFailing:
    if isinstance(error, OSError) and error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ESTALE}:
        return JournalFailing(
            f"The journal is not in its place ({error}); put its folder or mount back, or restart the collectors."
        )
    return JournalFailing(f"The journal's disk refuses to write ({error}); free some space or fix it and try again.")
